/*
 * Atomics on a cell that no other thread touches: before and after.
 * Source: PTX ISA 9.0, sections 9.7.13.5 (atom) and 9.7.13.6 (red).
 */
#include "oracle_number.h"

static bool atomic_is_nan(struct oracle_number a) {
    return a.kind == ORACLE_NOT_A_NUMBER;
}

/* A subnormal has no leading one. */
static struct oracle_number atomic_element(struct oracle_format format, uint64_t bits, bool ftz) {
    struct oracle_number x = oracle_decode(format, bits);
    bool tiny = x.kind == ORACLE_FINITE && x.significand >> format.fraction_bits == 0;
    if (ftz && tiny) x.kind = ORACLE_ZERO;
    return x;
}

/* The smaller or the larger; -0 is less than +0, and a NaN loses. */
static uint64_t atomic_chosen(const struct oracle_call *call, struct oracle_format format,
                              uint64_t a, uint64_t b) {
    struct oracle_number x = oracle_decode(format, a), y = oracle_decode(format, b);
    if (atomic_is_nan(x) && atomic_is_nan(y)) return oracle_encode(format, x, ORACLE_NEAREST);
    if (atomic_is_nan(x) || atomic_is_nan(y)) return atomic_is_nan(x) ? b : a;
    int order = oracle_order(x, y);
    if (order == 0) order = (int)y.negative - (int)x.negative;
    return (oracle_has(call, "min") ? order <= 0 : order >= 0) ? a : b;
}

/* Element by element. Single precision sums flush subnormals in global memory. */
static uint64_t float_after(const struct oracle_call *call, const struct table_type *type,
                            uint64_t a, uint64_t b) {
    struct oracle_format format = oracle_format_of(type);
    unsigned width = type->bits / type->elements;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1, all = 0;
    bool ftz = width == 32 && !call->row->shared;
    for (unsigned e = 0; e < type->elements; e++) {
        uint64_t one = a >> (e * width) & mask, other = b >> (e * width) & mask;
        if (!oracle_has(call, "add")) {
            all |= atomic_chosen(call, format, one, other) << (e * width);
            continue;
        }
        struct oracle_number x = atomic_element(format, one, ftz),
                             y = atomic_element(format, other, ftz);
        uint64_t sum = oracle_encode(format, oracle_add(x, y, ORACLE_NEAREST), ORACLE_NEAREST);
        if (ftz && (sum & (mask >> 1)) >> format.fraction_bits == 0) sum &= (mask >> 1) + 1;
        all |= sum << (e * width);
    }
    return all;
}

static uint64_t atomic_after(const struct oracle_call *call, uint64_t old, uint64_t b, uint64_t c) {
    const struct table_type *type = call->type[0];
    bool less = oracle_value(type, old) < oracle_value(type, b);
    if (type->kind == 'F') return float_after(call, type, old, b);
    if (oracle_has(call, "add")) return old + b;
    if (oracle_has(call, "min")) return less ? old : b;
    if (oracle_has(call, "max")) return less ? b : old;
    if (oracle_has(call, "inc")) return old >= b ? 0 : old + 1;
    if (oracle_has(call, "dec")) return old == 0 || old > b ? b : old - 1;
    if (oracle_has(call, "and")) return old & b;
    if (oracle_has(call, "or")) return old | b;
    if (oracle_has(call, "xor")) return old ^ b;
    if (oracle_has(call, "exch")) return b;
    return old == b ? c : old;
}

/* A vector: two components, each in a register of its own, and side by side in the cell. */
static bool atomic_vector(const struct oracle_call *call, bool reduces) {
    const struct table_row *row = call->row;
    unsigned cell = reduces ? 0 : 2, width = call->type[0]->bits;
    for (unsigned i = 0; i < row->operand_count; i++) {
        if (row->operands[i].kind != TABLE_CELL) continue;
        uint64_t sum = call->source[1] | call->source[2] << width;
        oracle_give(call, cell, float_after(call, row->operands[i].type, call->source[0], sum));
    }
    for (unsigned i = 0; i < 2 && !reduces; i++) {
        uint64_t part = call->source[0] >> (i * width);
        oracle_give(call, i, width == 32 ? part & 0xffffffff : part);
    }
    return true;
}

bool oracle_atomic(const struct oracle_call *call) {
    bool reduces = oracle_is(call, "red");
    const struct table_row *row = call->row;
    if ((!reduces && !oracle_is(call, "atom")) || call->type[0] == NULL) return false;
    if (oracle_has(call, "v2")) return atomic_vector(call, reduces);
    uint64_t c = row->source_count > 2 ? call->source[2] : 0;
    unsigned cell = reduces ? 0 : 1;
    const struct table_type *type = call->type[0];
    uint64_t sum = atomic_after(call, call->source[0], call->source[1], c);
    if (!reduces) oracle_give(call, 0, call->source[0]);
    oracle_give(call, cell, sum);
    struct oracle_format format = oracle_format_of(type);
    bool is_double = type->kind == 'F' && type->bits == 64;
    if (is_double && oracle_decode(format, sum).kind == ORACLE_NOT_A_NUMBER) {
        call->answer[cell].kind = ORACLE_NAN;
    }
    return true;
}
