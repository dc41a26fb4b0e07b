/*
 * Comparisons, selections, and logic on predicates. Source: PTX ISA 9.0, section 9.7.6.
 *
 * setp may combine its result with a third predicate, and return the complement as well: p = (a op
 * b) and c; q = !(a op b) and c. This becomes up to three micro-operations.
 */
#include "lower.h"

/* Comparisons in the order of the groups in ops.def. */
static bool compare_of(const struct ptx_opcode *opcode, unsigned *place, bool *is_unsigned) {
    static const enum ptx_modifier order[] = {PTX_eq,  PTX_ne,  PTX_lt,  PTX_le,   PTX_gt,
                                              PTX_ge,  PTX_equ, PTX_neu, PTX_ltu,  PTX_leu,
                                              PTX_gtu, PTX_geu, PTX_num, PTX_isnan};
    static const enum ptx_modifier unsigneds[] = {PTX_lo, PTX_ls, PTX_hi, PTX_hs};
    *is_unsigned = false;
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (ptx_has(opcode, order[i])) {
            *place = i;
            return true;
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        if (ptx_has(opcode, unsigneds[i])) {
            *place = 2 + i;
            *is_unsigned = true;
            return true;
        }
    }
    return false;
}

/* The micro-operation of a comparison of a type. */
static bool compare_op(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       enum ptx_modifier type, unsigned *op, uint32_t *mode) {
    static const unsigned bases[6] = {SOFT_OP_setp_eq_u16, SOFT_OP_setp_eq_u32,
                                      SOFT_OP_setp_eq_u64, SOFT_OP_setp_eq_s16,
                                      SOFT_OP_setp_eq_s32, SOFT_OP_setp_eq_s64};
    unsigned place = 0;
    bool is_unsigned = false;
    compare_of(in->opcode, &place, &is_unsigned);
    *mode = 0;
    if (soft_is_half(type))
        type = PTX_f32; /* compared as singles, which are flushed already */
    else if (type == PTX_f32 && ptx_has(in->opcode, PTX_ftz)) {
        *op = SOFT_OP_setp_ftz_f32;
        *mode = place;
        return true;
    }
    if (type == PTX_f32 || type == PTX_f64) {
        *op = (type == PTX_f32 ? SOFT_OP_setp_eq_f32 : SOFT_OP_setp_eq_f64) + place;
        return true;
    }
    char kind = ptx_types[type].kind[0];
    if (kind == 'B' && place >= 2) {
        return LOWER_FAIL(lowering, in, "only .eq and .ne compare values of a .b type");
    }
    if (kind == 'S' && is_unsigned) {
        return LOWER_FAIL(lowering, in, ".lo, .ls, .hi and .hs compare unsigned integers only");
    }
    unsigned width = ptx_types[type].bits == 16 ? 0 : ptx_types[type].bits == 32 ? 1 : 2;
    *op = bases[width + (kind == 'S' ? 3 : 0)] + place;
    return true;
}

static bool compare_logic(struct soft_lowering *lowering, enum soft_op op, uint32_t d, uint32_t a,
                          uint32_t b, uint32_t mode) {
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->mode = mode;
    return true;
}

/* An operand; for halves the lower or the upper one, as a single. */
static bool read_side(struct soft_lowering *lowering, const struct ptx_instruction *in,
                      enum ptx_modifier type, const struct ptx_operand *operand, bool upper,
                      uint32_t *value) {
    if (!soft_source(lowering, operand, soft_bits(type), type, value)) return false;
    if (!soft_is_half(type)) return true;
    bool brain = type == PTX_bf16 || type == PTX_bf16x2;
    *value = soft_convert(lowering, brain ? SOFT_OP_half_bf16 : SOFT_OP_half_f16, 32, *value);
    if (*value == SOFT_NO_VALUE) return false;
    lowering->drafts[lowering->draft_count - 1].mode =
        (ptx_has(in->opcode, PTX_ftz) ? SOFT_MODE_FTZ : 0u) | (upper ? 16u << 16 : 0u);
    return true;
}

/* Compares into d, a fresh predicate. */
static bool compare(struct soft_lowering *lowering, const struct ptx_instruction *in,
                    enum ptx_modifier type, const struct ptx_operand *operands, bool upper,
                    uint32_t d) {
    unsigned op = 0;
    uint32_t mode = 0, a = 0, b = 0;
    if (!compare_op(lowering, in, type, &op, &mode) ||
        !read_side(lowering, in, type, &operands[0], upper, &a) ||
        !read_side(lowering, in, type, &operands[1], upper, &b)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)op);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->mode = mode;
    return true;
}

static enum soft_op boolean_of(const struct ptx_opcode *opcode) {
    return ptx_has(opcode, PTX_and)   ? SOFT_OP_and_pred
           : ptx_has(opcode, PTX_or)  ? SOFT_OP_or_pred
           : ptx_has(opcode, PTX_xor) ? SOFT_OP_xor_pred
                                      : SOFT_OPS;
}

bool soft_lower_setp(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op boolean = boolean_of(in->opcode);
    uint32_t wanted = boolean == SOFT_OPS ? 3 : 4;
    if (in->operand_count != wanted) {
        return LOWER_FAIL(lowering, in, "setp needs %u operands here, not %u", wanted,
                          in->operand_count);
    }
    const struct ptx_operand *to = &in->operands[0];
    bool pair = to->kind == PTX_OPERAND_PAIR;
    if (pair && soft_is_half(in->opcode->type[0])) {
        return LOWER_FAIL(lowering, to, "a comparison of halves has no complement");
    }
    uint32_t p = SOFT_NO_VALUE, q = SOFT_NO_VALUE, c = SOFT_NO_VALUE;
    bool negated = false;
    if (!soft_destination(lowering, pair ? &to->items[0] : to, 1, PTX_pred, &p)) return false;
    if (pair && !soft_destination(lowering, &to->items[1], 1, PTX_pred, &q)) return false;
    if (boolean == SOFT_OPS && !pair) {
        return compare(lowering, in, in->opcode->type[0], &in->operands[1], false, p);
    }
    uint32_t result = soft_value_temporary(lowering, 1);
    if (result == SOFT_NO_VALUE ||
        !compare(lowering, in, in->opcode->type[0], &in->operands[1], false, result)) {
        return false;
    }
    if (boolean == SOFT_OPS) {
        return compare_logic(lowering, SOFT_OP_mov_pred, p, result, result, 0) &&
               compare_logic(lowering, SOFT_OP_not_pred, q, result, result, 0);
    }
    if (!soft_predicate(lowering, &in->operands[3], &c, &negated)) return false;
    /* The complement first: p may be the same register as c. */
    uint32_t mode = negated ? 2 : 0;
    if (pair) {
        uint32_t other = soft_value_temporary(lowering, 1);
        if (other == SOFT_NO_VALUE ||
            !compare_logic(lowering, boolean, other, result, c, mode | 1) ||
            !compare_logic(lowering, boolean, p, result, c, mode)) {
            return false;
        }
        return compare_logic(lowering, SOFT_OP_mov_pred, q, other, other, 0);
    }
    return compare_logic(lowering, boolean, p, result, c, mode);
}

/* setp on two halves: p|q are those of the lower and the upper one. */
bool soft_lower_setp_pair(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op boolean = boolean_of(in->opcode);
    const struct ptx_operand *to = &in->operands[0];
    if (in->operand_count != (boolean == SOFT_OPS ? 3 : 4) || to->kind != PTX_OPERAND_PAIR) {
        return LOWER_FAIL(lowering, in,
                          "setp needs p|q and 2 sources here, or 3 with .and, .or or .xor");
    }
    uint32_t d[2], result[2], c = SOFT_NO_VALUE;
    bool negated = false;
    if (boolean != SOFT_OPS && !soft_predicate(lowering, &in->operands[3], &c, &negated))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        result[i] = soft_value_temporary(lowering, 1);
        if (result[i] == SOFT_NO_VALUE ||
            !soft_destination(lowering, &to->items[i], 1, PTX_pred, &d[i]) ||
            !compare(lowering, in, in->opcode->type[0], &in->operands[1], i == 1, result[i]) ||
            (boolean != SOFT_OPS &&
             !compare_logic(lowering, boolean, result[i], result[i], c, negated ? 2 : 0))) {
            return false;
        }
    }
    return compare_logic(lowering, SOFT_OP_mov_pred, d[0], result[0], result[0], 0) &&
           compare_logic(lowering, SOFT_OP_mov_pred, d[1], result[1], result[1], 0);
}

/* The value of a true comparison: 1.0, or all ones. */
static uint64_t compare_truth(enum ptx_modifier type) {
    switch ((int)type) {
    case PTX_f32:
        return 0x3f800000;
    case PTX_f16:
    case PTX_f16x2:
        return 0x3c00;
    case PTX_bf16:
    case PTX_bf16x2:
        return 0x3f80;
    default:
        return UINT32_MAX;
    }
}

/* Adds d = p ? yes : no. */
static bool compare_choose(struct soft_lowering *lowering, uint32_t d, uint32_t yes, uint32_t no,
                           uint32_t p) {
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_sel_32);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = yes;
    draft->b = no;
    draft->c = p;
    return true;
}

/* set on two halves: each half of the result is for its own pair. */
bool soft_lower_set_pair(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op boolean = boolean_of(in->opcode);
    if (in->operand_count != (boolean == SOFT_OPS ? 3 : 4)) {
        return LOWER_FAIL(lowering, in, "set needs %u operands here",
                          boolean == SOFT_OPS ? 3u : 4u);
    }
    uint32_t d = 0, part[2], c = SOFT_NO_VALUE;
    bool negated = false;
    if (boolean != SOFT_OPS && !soft_predicate(lowering, &in->operands[3], &c, &negated))
        return false;
    uint32_t yes = soft_value_constant(lowering, 16, compare_truth(in->opcode->type[0]) & 0xffff);
    uint32_t no = soft_value_constant(lowering, 16, 0);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t result = soft_value_temporary(lowering, 1);
        part[i] = soft_value_temporary(lowering, 16);
        if (result == SOFT_NO_VALUE || part[i] == SOFT_NO_VALUE || yes == SOFT_NO_VALUE ||
            no == SOFT_NO_VALUE ||
            !compare(lowering, in, in->opcode->type[1], &in->operands[1], i == 1, result) ||
            (boolean != SOFT_OPS &&
             !compare_logic(lowering, boolean, result, result, c, negated ? 2 : 0)) ||
            !compare_choose(lowering, part[i], yes, no, result)) {
            return false;
        }
    }
    if (!soft_destination(lowering, &in->operands[0], 32, in->opcode->type[0], &d)) return false;
    return compare_logic(lowering, SOFT_OP_pack_16_32, d, part[0], part[1], 0);
}

/* set gives all ones, or 1.0, for true. */
bool soft_lower_set(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op boolean = boolean_of(in->opcode);
    uint32_t wanted = boolean == SOFT_OPS ? 3 : 4;
    if (in->operand_count != wanted) {
        return LOWER_FAIL(lowering, in, "set needs %u operands here, not %u", wanted,
                          in->operand_count);
    }
    enum ptx_modifier to = in->opcode->type[0], from = in->opcode->type[1];
    uint32_t d = SOFT_NO_VALUE, c = SOFT_NO_VALUE, result = soft_value_temporary(lowering, 1);
    uint32_t yes = soft_value_constant(lowering, soft_bits(to), compare_truth(to));
    uint32_t no = soft_value_constant(lowering, soft_bits(to), 0);
    bool negated = false;
    if (result == SOFT_NO_VALUE || yes == SOFT_NO_VALUE || no == SOFT_NO_VALUE ||
        !soft_destination(lowering, &in->operands[0], soft_bits(to), to, &d) ||
        !compare(lowering, in, from, &in->operands[1], false, result)) {
        return false;
    }
    if (boolean != SOFT_OPS &&
        (!soft_predicate(lowering, &in->operands[3], &c, &negated) ||
         !compare_logic(lowering, boolean, result, result, c, negated ? 2 : 0))) {
        return false;
    }
    return compare_choose(lowering, d, yes, no, result);
}

bool soft_lower_select(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_operands operands;
    if (!soft_operands(lowering, in, &operands)) return false;
    bool wide = soft_bits(in->opcode->type[0]) == 64;
    struct soft_draft *draft = soft_draft(lowering, wide ? SOFT_OP_sel_64 : SOFT_OP_sel_32);
    if (draft == NULL) return false;
    draft->d = operands.d;
    draft->a = operands.source[0];
    draft->b = operands.source[1];
    draft->c = operands.source[2];
    draft->mode = operands.negated[2] ? UINT32_MAX : 0;
    return true;
}

bool soft_lower_slct(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_operands operands;
    if (!soft_operands(lowering, in, &operands)) return false;
    bool wide = soft_bits(in->opcode->type[0]) == 64;
    struct soft_draft *draft =
        soft_draft(lowering, (enum soft_op)(soft_first_op(in) + (wide ? 1 : 0)));
    if (draft == NULL) return false;
    draft->d = operands.d;
    draft->a = operands.source[0];
    draft->b = operands.source[1];
    draft->c = operands.source[2];
    draft->mode = soft_mode_of(in->opcode);
    return true;
}

/* and, or, xor, not, mov on predicates; sources may be negated. */
bool soft_lower_predicates(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum soft_op op = (enum soft_op)soft_first_op(in);
    uint32_t sources = op == SOFT_OP_not_pred || op == SOFT_OP_mov_pred ? 1 : 2;
    if (in->operand_count != sources + 1) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", sources + 1,
                          in->operand_count);
    }
    uint32_t d = 0, values[2] = {SOFT_NO_VALUE, SOFT_NO_VALUE};
    bool negated[2] = {false, false};
    for (uint32_t i = 0; i < sources; i++) {
        if (!soft_predicate(lowering, &in->operands[i + 1], &values[i], &negated[i])) return false;
    }
    if (!soft_destination(lowering, &in->operands[0], 1, PTX_pred, &d)) return false;
    if (sources == 1) values[1] = values[0];
    return compare_logic(lowering, op, d, values[0], values[1],
                         (uint32_t)negated[0] | (uint32_t)negated[1] << 1);
}
