/*
 * Sums, differences and products with a carry, instruction after instruction.
 * Source: PTX ISA 9.0, section 9.7.2.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* The value of a row's operand: a source, a number, or an earlier one again. */
static uint64_t carry_operand(const struct oracle_call *call, unsigned place) {
    const struct table_operand *at = &call->row->operands[place];
    if (at->kind == TABLE_NUMBER) return strtoull(at->text, NULL, 0);
    if (at->kind == TABLE_AGAIN) return carry_operand(call, at->source);
    return call->source[at->source];
}

/* One instruction; the carry, or the borrow, goes in and comes out. */
static bool carry_step(const struct oracle_call *call, const struct table_instruction *instruction,
                       int *flag) {
    const struct table_type *type = instruction->types[0];
    const char *name = instruction->words[0];
    oracle_wide modulus = (oracle_wide)1 << type->bits, in = 0;
    unsigned place = instruction->first_operand;
    struct table_type plain = *type;
    plain.kind = 'U';
    oracle_wide x = oracle_value(&plain, carry_operand(call, place + 1));
    oracle_wide y = oracle_value(&plain, carry_operand(call, place + 2)), result;
    if (name[3] == 'c') in = *flag;
    if (strncmp(name, "add", 3) == 0) {
        result = x + y + in;
    } else if (strncmp(name, "sub", 3) == 0) {
        result = x - y - in;
    } else if (strncmp(name, "mad", 3) == 0) {
        oracle_wide p = oracle_value(type, (uint64_t)x), q = oracle_value(type, (uint64_t)y);
        oracle_uwide product = (oracle_uwide)p * (oracle_uwide)q;
        if (table_has(instruction, "hi")) product >>= type->bits;
        result = (oracle_wide)(product % (oracle_uwide)modulus);
        result += oracle_value(&plain, carry_operand(call, place + 3)) + in;
    } else {
        return false;
    }
    if (table_has(instruction, "cc")) *flag = result >= modulus || result < 0;
    oracle_give(call, call->row->operands[place].result, (uint64_t)result);
    return true;
}

bool oracle_carry(const struct oracle_call *call) {
    if (!oracle_has(call, "cc")) return false;
    int flag = 0;
    for (unsigned i = 0; i < call->row->instruction_count; i++) {
        if (!carry_step(call, &call->row->instructions[i], &flag)) return false;
    }
    return true;
}
