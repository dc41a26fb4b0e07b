/*
 * Arithmetic on halves, on integers and singles two in a register, on a half and a single, on three
 * singles, and with a carry. Source: PTX ISA 9.0, sections 9.7.1 (integers), 9.7.2 (extended
 * precision), 9.7.3 (singles), 9.7.4 (half precision), 9.7.5 (mixed precision).
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

/* ---- singles, since sm_100: micro-operations of older instructions, which round in the same
 * places; a half is converted exactly ---- */

/* _f32, _ftz_f32, _any_f32 within a group of ops.def. */
static enum soft_op single_op_of(const struct ptx_instruction *in, uint32_t mode) {
    return soft_first_op(in) + (mode == 0 ? 0u : mode == SOFT_MODE_FTZ ? 1u : 2u);
}

static bool single_draft(struct soft_lowering *lowering, enum soft_op op, uint32_t d,
                         const uint32_t *sources, unsigned count, uint32_t mode) {
    struct soft_draft *draft = d != SOFT_NO_VALUE ? soft_draft(lowering, op) : NULL;
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = sources[0];
    draft->b = sources[1];
    if (count == 3) draft->c = sources[2];
    draft->mode = mode;
    return true;
}

/* The half of a pair as a value of its own. */
static uint32_t single_half(struct soft_lowering *lowering, uint32_t pair, uint32_t which) {
    uint32_t half = soft_convert(lowering, SOFT_OP_unpack_64_32, 32, pair);
    if (half != SOFT_NO_VALUE) lowering->drafts[lowering->draft_count - 1].mode = which;
    return half;
}

bool soft_lower_pair_f32(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_operands operands;
    uint32_t halves[2], mode = soft_mode_of(in->opcode);
    for (uint32_t i = 1; i < in->operand_count; i++) {
        if (in->operands[i].kind != PTX_OPERAND_REGISTER) {
            return LOWER_FAIL(lowering, &in->operands[i], "expected a register of 64 bits");
        }
    }
    if (!soft_operands(lowering, in, &operands)) return false;
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t sources[3];
        for (unsigned i = 0; i < operands.count; i++) {
            sources[i] = single_half(lowering, operands.source[i], half);
            if (sources[i] == SOFT_NO_VALUE) return false;
        }
        halves[half] = soft_value_temporary(lowering, 32);
        if (!single_draft(lowering, single_op_of(in, mode), halves[half], sources, operands.count,
                          mode)) {
            return false;
        }
    }
    return single_draft(lowering, SOFT_OP_pack_32_64, operands.d, halves, 2, 0);
}

bool soft_lower_mixed_f32(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct soft_operands operands;
    const uint32_t mode = soft_mode_of(in->opcode);
    const bool is_brain = in->opcode->type[1] == PTX_bf16;
    if (!soft_operands(lowering, in, &operands)) return false;
    for (unsigned i = 0; i + 1 < operands.count; i++) { /* the last is a single */
        operands.source[i] =
            soft_convert(lowering, is_brain ? SOFT_OP_cvt_f32_bf16 : SOFT_OP_cvt_f32_f16, 32,
                         operands.source[i]);
        if (operands.source[i] == SOFT_NO_VALUE) return false;
    }
    return single_draft(lowering, single_op_of(in, mode), operands.d, operands.source,
                        operands.count, mode);
}

/* min and max of two, or of three, whose names are the same. */
bool soft_lower_extreme(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, sources[3], first[2], mode = soft_mode_of(in->opcode);
    const bool has_abs = ptx_has(in->opcode, PTX_abs);
    if (in->operand_count != 4 && !has_abs) return soft_lower_moded(lowering, in);
    if (in->operand_count != 4) {
        return LOWER_FAIL(lowering, in, "'%s' with .abs needs 4 operands here, not %u",
                          in->opcode->row->name, in->operand_count);
    }
    if (lowering->module->target < 100 || lowering->module->version < 88) {
        return LOWER_FAIL(lowering, in,
                          "'%s' of three numbers needs .target sm_100 and .version 8.8 or newer",
                          in->opcode->row->name);
    }
    for (int i = 0; i < 3; i++) {
        if (!soft_source(lowering, &in->operands[i + 1], 32, PTX_f32, &sources[i])) return false;
    }
    if (!soft_destination(lowering, &in->operands[0], 32, PTX_f32, &d)) return false;
    if (has_abs) mode |= SOFT_MODE_ABS;
    const enum soft_op op = (enum soft_op)soft_first_op(in);
    first[0] = soft_value_temporary(lowering, 32);
    first[1] = sources[2];
    return single_draft(lowering, op, first[0], sources, 2, mode) &&
           single_draft(lowering, op, d, first, 2, mode);
}
