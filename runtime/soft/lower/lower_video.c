/*
 * The video instructions, packed into one word each. The selectors of packed sources become
 * permutations before them. Source: PTX ISA 9.0, section 9.7.19.
 *
 *     vadd.s32.u32.s32.sat d.h1, a.b0, b, c
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

static uint32_t video_mode_of(const struct ptx_opcode *opcode) {
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

/* Whether a selector names count bytes or half-words, each below a limit. */
static bool video_picks(const struct ptx_operand *operand, bool halves, unsigned count,
                        unsigned limit) {
    if (operand->picked != count || operand->picks_halves != halves) return false;
    for (unsigned i = 0; i < count; i++) {
        if (operand->picks[i] >= limit) return false;
    }
    return true;
}

/* Of a word: 0 all, 1 to 4 a byte, 5 and 6 a half-word. */
static bool video_part_of(struct soft_lowering *lowering, const struct ptx_operand *operand,
                          uint32_t *part) {
    *part = 0;
    if (operand->picked == 0) return true;
    if (!video_picks(operand, operand->picks_halves, 1, operand->picks_halves ? 2 : 4)) {
        return LOWER_FAIL(lowering, operand, "this operand must select one byte or half-word");
    }
    *part = operand->picks[0] + (operand->picks_halves ? 5u : 1u);
    return true;
}

/* The register of an operand, without its selector. */
static bool video_whole_of(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           bool is_result, uint32_t *value) {
    struct ptx_operand whole = *operand;
    whole.picked = 0;
    whole.minus = false;
    return is_result ? soft_destination(lowering, &whole, 32, PTX_b32, value)
                     : soft_source(lowering, &whole, 32, PTX_b32, value);
}

static bool video_emit(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       uint32_t mode, const uint32_t values[4]) {
    struct soft_draft *draft = soft_draft(lowering, (enum soft_op)soft_first_op(in));
    if (draft == NULL) return false;
    draft->d = values[0];
    draft->a = values[1];
    draft->b = values[2];
    draft->c = values[3];
    draft->mode = mode;
    return true;
}

bool soft_lower_video(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    static const uint32_t shifts[3] = {SOFT_VIDEO_D_SHIFT, SOFT_VIDEO_A_SHIFT, SOFT_VIDEO_B_SHIFT};
    bool product = soft_first_op(in) == SOFT_OP_video_mad;
    uint32_t mode = video_mode_of(in->opcode), values[4] = {0, 0, 0, SOFT_NO_VALUE}, minus = 0;
    bool second = (mode & 7u << SOFT_VIDEO_SECOND_SHIFT) != 0;
    bool chosen = in->operand_count > 0 && in->operands[0].picked != 0;
    bool third = product || second || chosen; /* without one of these a fourth operand is idle */
    if (in->operand_count != 4 && (third || in->operand_count != 3)) {
        return LOWER_FAIL(lowering, in, "'%s' needs 4 operands here, not %u", in->opcode->row->name,
                          in->operand_count);
    }
    if (chosen && (product || second)) {
        return LOWER_FAIL(lowering, in, "the destination cannot select part of a register here");
    }
    for (uint32_t i = 1; i <= in->operand_count; i++) { /* the destination last */
        uint32_t place = i % in->operand_count, part = 0;
        const struct ptx_operand *operand = &in->operands[place];
        if (!video_part_of(lowering, operand, &part)) return false;
        if (part != 0 && place == 3) {
            return LOWER_FAIL(lowering, operand, "this operand cannot select part of a register");
        }
        if (place < 3) mode |= part << shifts[place];
        if (operand->minus) minus ^= place == 3 ? SOFT_VIDEO_MINUS_C : SOFT_VIDEO_MINUS_PRODUCT;
        if (!video_whole_of(lowering, operand, place == 0, &values[place])) return false;
    }
    if (in->operands[0].minus || ((mode & SOFT_VIDEO_PO) != 0 && minus != 0)) {
        return LOWER_FAIL(lowering, in, "'-' is not allowed here");
    }
    if (minus == (SOFT_VIDEO_MINUS_PRODUCT | SOFT_VIDEO_MINUS_C)) {
        return LOWER_FAIL(lowering, in, "the product and the addend cannot both be negated");
    }
    return video_emit(lowering, in, mode | minus, values);
}

/* The bytes or half-words that a packed destination names, from high to low, one bit each. */
static bool lanes_of(struct soft_lowering *lowering, const struct ptx_operand *operand, bool bytes,
                     uint32_t *lanes) {
    unsigned count = bytes ? 4 : 2;
    *lanes = operand->picked == 0 ? (1u << count) - 1 : 0;
    if (operand->picked != 0 && !video_picks(operand, !bytes, operand->picked, count)) {
        return LOWER_FAIL(lowering, operand, "expected a selector from .%s",
                          bytes ? "b3210" : "h10");
    }
    for (unsigned i = 0; i < operand->picked; i++) {
        if (i > 0 && operand->picks[i - 1] <= operand->picks[i]) {
            return LOWER_FAIL(lowering, operand, "the selector must list higher parts first");
        }
        *lanes |= 1u << operand->picks[i];
    }
    return true;
}

/* What a packed source takes from the two consecutive registers, as prmt's digits. */
static bool digits_of(struct soft_lowering *lowering, const struct ptx_operand *operand, bool bytes,
                      uint32_t *digits) {
    if (operand->picked != 0 && !video_picks(operand, !bytes, bytes ? 4 : 2, bytes ? 8 : 4)) {
        return LOWER_FAIL(lowering, operand,
                          "a source must select %s of the two registers, such as .%s",
                          bytes ? "4 bytes" : "2 half-words", bytes ? "b7654" : "h32");
    }
    *digits = 0;
    for (unsigned i = 0; i < operand->picked; i++) {
        uint32_t pick = operand->picks[i];
        *digits = bytes ? *digits << 4 | pick : *digits << 8 | (2 * pick + 1) << 4 | 2 * pick;
    }
    return true;
}

/* vadd4.u32.u32.u32 d.b10, a.b7654, b.b3210, c */
bool soft_lower_video_packed(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t values[4], sources[3], lanes = 0;
    bool bytes = strchr(in->opcode->row->name, '4') != NULL;
    if (in->operand_count != 4) {
        return LOWER_FAIL(lowering, in, "'%s' needs 4 operands, not %u", in->opcode->row->name,
                          in->operand_count);
    }
    for (uint32_t i = 0; i < 4; i++) {
        const struct ptx_operand *operand = &in->operands[i];
        if (operand->kind != PTX_OPERAND_REGISTER) {
            return LOWER_FAIL(lowering, operand, "expected a register");
        }
        if (i == 3 && operand->picked != 0) {
            return LOWER_FAIL(lowering, operand, "this operand cannot select part of a register");
        }
        if (!video_whole_of(lowering, operand, i == 0, &values[i])) return false;
    }
    for (uint32_t i = 1; i < 3; i++) {
        uint32_t digits = 0;
        if (!digits_of(lowering, &in->operands[i], bytes, &digits)) return false;
        sources[i] = values[i];
        if (in->operands[i].picked == 0) continue;
        uint32_t selector = soft_value_constant(lowering, 32, digits);
        sources[i] = soft_value_temporary(lowering, 32);
        struct soft_draft *draft = soft_draft(lowering, SOFT_OP_prmt);
        if (draft == NULL || selector == SOFT_NO_VALUE) return false;
        draft->d = sources[i];
        draft->a = values[1];
        draft->b = values[2];
        draft->c = selector;
    }
    if (!lanes_of(lowering, &in->operands[0], bytes, &lanes)) return false;
    values[1] = sources[1];
    values[2] = sources[2];
    return video_emit(lowering, in, video_mode_of(in->opcode) | lanes << SOFT_VIDEO_LANES_SHIFT,
                      values);
}
