/*
 * Arithmetic on halves, on integers two in a register, and with a carry.
 * Source: PTX ISA 9.0, sections 9.7.4 (half precision), 9.7.1 (integers), 9.7.2 (extended
 * precision).
 */
#include "lower.h"

/* Groups of ops.def: _f16, _f16x2, _bf16, _bf16x2. */
bool soft_lower_half(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier order[] = {PTX_f16, PTX_f16x2, PTX_bf16, PTX_bf16x2};
    uint32_t mode = soft_mode_of(in->opcode);
    if (ptx_has(in->opcode, PTX_abs)) mode |= SOFT_MODE_ABS;
    unsigned place = 0;
    while (order[place] != in->opcode->type[0]) place++;
    return soft_emit(lowering, in, soft_first_op(in) + place, mode);
}

/* A group of two: unsigned and signed. */
bool soft_lower_packed(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    bool is_signed = ptx_types[in->opcode->type[0]].text[0] == 's';
    return soft_emit(lowering, in, soft_first_op(in) + is_signed, soft_mode_of(in->opcode));
}

/* The carry flag is a register that PTX does not name: a predicate of the function. */
static bool carry_of(struct soft_lowering *lowering, uint32_t *carry) {
    if (!lowering->has_carry) {
        lowering->carry = soft_value_temporary(lowering, 1);
        lowering->has_carry = lowering->carry != SOFT_NO_VALUE;
    }
    *carry = lowering->carry;
    return lowering->has_carry;
}

/* add, sub, mad with .cc write the flag; addc, subc, madc read it. Groups: 32 bits, 64. */
bool soft_lower_carry(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    const char *name = in->opcode->row->name;
    bool reads = name[3] == 'c', writes = ptx_has(in->opcode, PTX_cc);
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t carry = 0, mode = 0;
    if (reads) mode |= SOFT_CARRY_READ;
    if (writes) mode |= SOFT_CARRY_WRITE;
    if (ptx_has(in->opcode, PTX_hi)) mode |= SOFT_CARRY_HIGH;
    if (ptx_types[type].kind[0] == 'S') mode |= SOFT_CARRY_SIGNED;
    unsigned wide = ptx_types[type].bits == 64;
    if (!carry_of(lowering, &carry) || !soft_emit(lowering, in, soft_first_op(in) + wide, mode)) {
        return false;
    }
    /* more: the flag's slot. An unwritten flag keeps its value. */
    struct soft_draft *draft = &lowering->drafts[lowering->draft_count - 1];
    return soft_extra(lowering, draft, SOFT_EXTRA_USE, carry) &&
           (!writes || soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, carry));
}
