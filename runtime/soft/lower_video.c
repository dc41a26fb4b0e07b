/*
 * The video instructions: all that they say, packed into one word.
 * Source: PTX ISA 9.0, section 9.7.19.
 *
 *     vadd.s32.u32.s32.sat d.h1, a.b0, b, c
 *
 * Lane masks and permuting selectors of the packed forms, and negated operands of vmad, are not
 * offered.
 */
#include "lower.h"

#include <string.h>

static uint32_t operation_of(const char *name) {
    static const struct {
        const char *name;
        uint32_t operation;
    } names[] = {
        {"vadd", SOFT_VIDEO_ADD}, {"vsub", SOFT_VIDEO_SUB}, {"vabsdiff", SOFT_VIDEO_ABSDIFF},
        {"vmin", SOFT_VIDEO_MIN}, {"vmax", SOFT_VIDEO_MAX}, {"vavrg", SOFT_VIDEO_AVRG},
        {"vset", SOFT_VIDEO_SET}, {"vshl", SOFT_VIDEO_SHL}, {"vshr", SOFT_VIDEO_SHR}};
    size_t length = strcspn(name, "24");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0) {
            return names[i].operation;
        }
    }
    return 0; /* vmad has an operation to itself */
}

static uint32_t mode_of(const struct ptx_opcode *opcode) {
    static const enum ptx_modifier comparisons[] = {PTX_eq, PTX_ne, PTX_lt, PTX_le, PTX_gt, PTX_ge};
    static const enum ptx_modifier seconds[] = {PTX_add, PTX_min, PTX_max};
    static const enum ptx_modifier scales[] = {PTX_shr7, PTX_shr15};
    uint32_t mode = operation_of(opcode->row->name);
    bool has_result = opcode->types == 3; /* vset gives 0 or 1, and has no type for it */
    const enum ptx_modifier *sources = opcode->type + has_result;
    if (has_result && opcode->type[0] == PTX_s32) mode |= SOFT_VIDEO_D_SIGNED;
    if (sources[0] == PTX_s32) mode |= SOFT_VIDEO_A_SIGNED;
    if (sources[1] == PTX_s32) mode |= SOFT_VIDEO_B_SIGNED;
    if (ptx_has(opcode, PTX_sat)) mode |= SOFT_VIDEO_SAT;
    if (ptx_has(opcode, PTX_clamp)) mode |= SOFT_VIDEO_CLAMP;
    if (ptx_has(opcode, PTX_po)) mode |= SOFT_VIDEO_PO;
    if (strchr(opcode->row->name, '4') != NULL) mode |= SOFT_VIDEO_BYTES;
    for (uint32_t i = 0; i < 6; i++) {
        if (ptx_has(opcode, comparisons[i])) mode |= i << SOFT_VIDEO_COMPARE_SHIFT;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (ptx_has(opcode, seconds[i])) mode |= (i + 1) << SOFT_VIDEO_SECOND_SHIFT;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (ptx_has(opcode, scales[i])) mode |= (i + 1) << SOFT_VIDEO_SCALE_SHIFT;
    }
    return mode;
}

bool soft_lower_video(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const uint32_t shifts[3] = {SOFT_VIDEO_D_SHIFT, SOFT_VIDEO_A_SHIFT, SOFT_VIDEO_B_SHIFT};
    bool scalar = in->opcode->row->base == SOFT_OP_video;
    uint32_t mode = mode_of(in->opcode), values[4] = {0, 0, 0, SOFT_NO_VALUE};
    bool third = !scalar || (mode & 7u << SOFT_VIDEO_SECOND_SHIFT) != 0 ||
                 (in->operand_count > 0 && in->operands[0].part != 0);
    if (in->operand_count != (third ? 4 : 3)) {
        return LOWER_FAIL(lowering, in, "'%s' takes %u operands here, and has %u",
                          in->opcode->row->name, third ? 4u : 3u, in->operand_count);
    }
    if (in->operands[0].part != 0 && (!scalar || (mode & 7u << SOFT_VIDEO_SECOND_SHIFT) != 0)) {
        return LOWER_FAIL(lowering, in, "no part of the destination can be chosen here");
    }
    for (uint32_t i = 1; i <= in->operand_count; i++) { /* the destination last */
        uint32_t place = i % in->operand_count;
        struct ptx_operand whole = in->operands[place];
        if (whole.part != 0 && (place == 3 || in->opcode->row->base == SOFT_OP_video_packed)) {
            return LOWER_FAIL(lowering, &whole, "no part of this operand can be chosen");
        }
        if (place < 3) mode |= (uint32_t)whole.part << shifts[place];
        whole.part = 0;
        if (place == 0 ? !soft_destination(lowering, &whole, 32, PTX_b32, &values[0])
                       : !soft_source(lowering, &whole, 32, PTX_b32, &values[place])) {
            return false;
        }
    }
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)in->opcode->row->base);
    if (draft == NULL) return false;
    draft->d = values[0];
    draft->a = values[1];
    draft->b = values[2];
    draft->c = values[3];
    draft->mode = mode;
    return true;
}
