/*
 * Instructions that compute one result from one to four sources: selects the micro-operation of the
 * row's group by types and modifiers.
 */
#include "lower.h"

/* Positions within the groups of ops.def. */
static unsigned by_width_of(enum ptx_modifier type) {
    unsigned bits = ptx_types[type].bits;
    return bits == 16 ? 0 : bits == 32 ? 1 : 2;
}

static bool arithmetic_is_signed(enum ptx_modifier type) {
    return ptx_types[type].kind[0] == 'S';
}

bool soft_emit(struct soft_lowering *lowering, const struct ptx_instruction *in, unsigned op,
               uint32_t mode) {
    struct soft_operands operands;
    if (!soft_operands(lowering, in, &operands)) return false;
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)op);
    if (draft == NULL) return false;
    draft->d = operands.d;
    draft->a = operands.count > 0 ? operands.source[0] : SOFT_NO_VALUE;
    draft->b = operands.count > 1 ? operands.source[1] : SOFT_NO_VALUE;
    draft->c = operands.count > 2 ? operands.source[2] : SOFT_NO_VALUE;
    draft->e = operands.count > 3 ? operands.source[3] : SOFT_NO_VALUE;
    draft->mode = mode;
    return true;
}

/* The row's operation itself. */
bool soft_lower_one(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in), 0);
}

/* The same with the modifiers as its mode. */
bool soft_lower_moded(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t mode = soft_mode_of(in->opcode);
    if (ptx_has(in->opcode, PTX_abs)) mode |= SOFT_MODE_ABS;
    return soft_emit(lowering, in, soft_first_op(in), mode);
}

bool soft_lower_integer(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in) + by_width_of(in->opcode->type[0]), 0);
}

bool soft_lower_integer_signed(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned place = by_width_of(type) + (arithmetic_is_signed(type) ? 3 : 0);
    return soft_emit(lowering, in, soft_first_op(in) + place, 0);
}

bool soft_lower_wide(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    unsigned place = by_width_of(type) + (arithmetic_is_signed(type) ? 2 : 0);
    return soft_emit(lowering, in, soft_first_op(in) + place, 0);
}

bool soft_lower_by_sign(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in) + arithmetic_is_signed(in->opcode->type[0]),
                     0);
}

/* 32 bits, then 64. */
bool soft_lower_by_width(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in) + by_width_of(in->opcode->type[0]) - 1, 0);
}

/* u32, u64, s32, s64. */
static unsigned by_width_and_sign(enum ptx_modifier type) {
    return by_width_of(type) - 1 + (arithmetic_is_signed(type) ? 2 : 0);
}

bool soft_lower_find(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    unsigned place = by_width_and_sign(in->opcode->type[0]);
    return soft_emit(lowering, in, soft_first_op(in) + place, ptx_has(in->opcode, PTX_shiftamt));
}

bool soft_lower_field(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in) + by_width_and_sign(in->opcode->type[0]), 0);
}

bool soft_lower_insert(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_lower_by_width(lowering, in);
}

bool soft_lower_clamp_wrap(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return soft_emit(lowering, in, soft_first_op(in) + ptx_has(in->opcode, PTX_wrap), 0);
}

bool soft_lower_extend(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    unsigned place =
        ptx_has(in->opcode, PTX_wrap) + (arithmetic_is_signed(in->opcode->type[0]) ? 2u : 0u);
    return soft_emit(lowering, in, soft_first_op(in) + place, 0);
}

bool soft_lower_dot(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t mode = (uint32_t)arithmetic_is_signed(in->opcode->type[0]) |
                    (uint32_t)arithmetic_is_signed(in->opcode->type[1]) << 1 |
                    (uint32_t)ptx_has(in->opcode, PTX_hi) << 2;
    return soft_emit(lowering, in, soft_first_op(in), mode);
}

bool soft_lower_prmt(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier forms[] = {PTX_f4e, PTX_b4e, PTX_rc8,
                                              PTX_ecl, PTX_ecr, PTX_rc16};
    uint32_t mode = 0;
    for (uint32_t i = 0; i < 6; i++) {
        if (ptx_has(in->opcode, forms[i])) mode = i + 1;
    }
    return soft_emit(lowering, in, soft_first_op(in), mode);
}

/* p = (d != 0) and q, or the same with or. */
static bool lop3_predicate(struct soft_lowering *lowering, const struct ptx_instruction *in,
                           uint32_t d) {
    uint32_t p = 0, q = 0, some = soft_value_temporary(lowering, 1);
    uint32_t zero = soft_value_constant(lowering, 32, 0);
    bool negated = false;
    if (some == SOFT_NO_VALUE || zero == SOFT_NO_VALUE ||
        !soft_predicate(lowering, &in->operands[5], &q, &negated) ||
        !soft_destination(lowering, &in->operands[0].items[1], 1, PTX_pred, &p)) {
        return false;
    }
    struct soft_draft *compare = soft_draft(lowering, SOFT_OP_setp_ne_u32);
    if (compare == NULL) return false;
    compare->d = some;
    compare->a = d;
    compare->b = zero;
    bool both = ptx_has(in->opcode, PTX_and);
    struct soft_draft *logic = soft_draft(lowering, both ? SOFT_OP_and_pred : SOFT_OP_or_pred);
    if (logic == NULL) return false;
    logic->d = p;
    logic->a = some;
    logic->b = q;
    logic->mode = negated ? 2 : 0;
    return true;
}

/* lop3 d, a, b, c, table; lop3.and d|p, a, b, c, table, q: the table must be a number. */
bool soft_lower_lop3(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    bool tells = ptx_has(in->opcode, PTX_and) || ptx_has(in->opcode, PTX_or);
    bool pair = in->operand_count > 0 && in->operands[0].kind == PTX_OPERAND_PAIR;
    if (in->operand_count != (tells ? 6 : 5) || pair != tells ||
        in->operands[4].kind != PTX_OPERAND_INTEGER || in->operands[4].integer < 0 ||
        in->operands[4].integer > 255) {
        return LOWER_FAIL(
            lowering, in,
            "lop3 needs a destination, three sources and a number from 0 to 255; .and and .or also "
            "need a second destination and a fourth source, both predicates");
    }
    uint32_t values[4];
    for (int i = 1; i < 4; i++) {
        if (!soft_source(lowering, &in->operands[i], 32, PTX_b32, &values[i])) return false;
    }
    const struct ptx_operand *to = tells ? &in->operands[0].items[0] : &in->operands[0];
    if (!soft_destination(lowering, to, 32, PTX_b32, &values[0])) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_lop3);
    if (draft == NULL) return false;
    draft->d = values[0];
    draft->a = values[1];
    draft->b = values[2];
    draft->c = values[3];
    draft->mode = (uint32_t)in->operands[4].integer;
    return !tells || lop3_predicate(lowering, in, values[0]);
}

bool soft_lower_testp(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const enum ptx_modifier properties[] = {PTX_finite,     PTX_infinite, PTX_number,
                                                   PTX_notanumber, PTX_normal,   PTX_subnormal};
    uint32_t mode = 0;
    for (uint32_t i = 0; i < 6; i++) {
        if (ptx_has(in->opcode, properties[i])) mode = i;
    }
    unsigned place = in->opcode->type[0] == PTX_f64 ? 1 : 0;
    return soft_emit(lowering, in, soft_first_op(in) + place, mode);
}

/* Floating point groups: _f32, _ftz_f32, _any_f32, _f64, _any_f64. */
bool soft_lower_arithmetic(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t mode = soft_mode_of(in->opcode);
    bool divides = soft_first_op(in) == SOFT_OP_div_f32;
    if (!divides) mode &= ~(uint32_t)SOFT_MODE_APPROX;
    unsigned place = 0;
    if (in->opcode->type[0] == PTX_f64) {
        place = mode == 0 ? 3 : 4;
    } else {
        place = mode == 0 ? 0 : mode == SOFT_MODE_FTZ ? 1 : 2;
    }
    return soft_emit(lowering, in, soft_first_op(in) + place, mode);
}

/* Hints: instructions without a result or an effect here. */
bool soft_lower_plain(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 0) return LOWER_FAIL(lowering, in, "this instruction has no operands");
    return soft_draft(lowering, (enum soft_op)soft_first_op(in)) != NULL;
}

bool soft_lower_ignored(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (soft_first_op(in) == SOFT_OP_nothing) return true;
    return soft_draft(lowering, (enum soft_op)soft_first_op(in)) != NULL;
}
