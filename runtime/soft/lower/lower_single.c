/*
 * Single precision of sm_100 and later: two singles in a register, sums of a half and a single, and
 * the least or the largest of three. Source: PTX ISA 9.0, sections 9.7.3 and 9.7.5.
 *
 * Each becomes micro-operations of older instructions, which round in the same places: a half is
 * converted exactly, and the least of three is the least of two, twice.
 */
#include "lower.h"

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
