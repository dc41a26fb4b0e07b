/*
 * Moves, packing, conversions, and addresses from one space to another.
 * Source: PTX ISA 9.0, sections 9.7.9.3 (mov), 9.7.9.4 (mov, packing), 9.7.9.20 (cvta), 9.7.9.21
 * (cvt).
 */
#include "lower.h"

#include "memory/space.h"

static bool move(struct soft_lowering *lowering, const struct ptx_instruction *in, uint32_t d,
                 uint32_t a, unsigned bits) {
    if (soft_value_alias(lowering, in, d, a)) return true;
    struct soft_draft *draft = soft_draft(lowering, bits == 64 ? SOFT_OP_mov_64 : SOFT_OP_mov_32);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    return true;
}

/* prmt: the bytes of two values that a number selects, one digit per byte. */
static uint32_t move_permute(struct soft_lowering *lowering, uint32_t d, uint32_t a, uint32_t b,
                             uint32_t picks) {
    uint32_t selector = soft_value_constant(lowering, 32, picks);
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_prmt);
    if (draft == NULL || d == SOFT_NO_VALUE || selector == SOFT_NO_VALUE) return SOFT_NO_VALUE;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->c = selector;
    return d;
}

/* Parts of eight bits are in 16-bit registers, whose other bytes are undefined. */
static bool pack_bytes(struct soft_lowering *lowering, const struct ptx_operand *parts,
                       uint32_t d) {
    uint32_t values[4], pairs[2] = {SOFT_NO_VALUE, SOFT_NO_VALUE};
    for (uint32_t i = 0; i < parts->count; i++) {
        if (!soft_source(lowering, &parts->items[i], 16, PTX_b8, &values[i])) return false;
    }
    uint32_t zero = soft_value_constant(lowering, 32, 0);
    for (uint32_t i = 0; i < parts->count / 2; i++) {
        pairs[i] = move_permute(lowering, soft_value_temporary(lowering, 32), values[2 * i],
                                values[2 * i + 1], 0x0040);
        if (pairs[i] == SOFT_NO_VALUE) return false;
    }
    bool four = parts->count == 4;
    return move_permute(lowering, d, pairs[0], four ? pairs[1] : zero, four ? 0x5410 : 0x4410) !=
           SOFT_NO_VALUE;
}

static bool unpack_bytes(struct soft_lowering *lowering, const struct ptx_operand *parts,
                         uint32_t a) {
    uint32_t zero = soft_value_constant(lowering, 32, 0);
    for (uint32_t i = 0; i < parts->count; i++) {
        uint32_t d = 0;
        if (parts->items[i].kind == PTX_OPERAND_NONE) continue;
        if (!soft_destination(lowering, &parts->items[i], 16, PTX_b8, &d) ||
            move_permute(lowering, d, a, zero, 0x4440 + i) == SOFT_NO_VALUE) {
            return false;
        }
    }
    return true;
}

/* mov.b64 %rd, {%r1, %r2}: the first is the low part. */
static bool move_pack(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    const struct ptx_operand *parts = &in->operands[1];
    unsigned bits = soft_bits(in->opcode->type[0]), part_bits = bits / parts->count;
    uint32_t d = 0, values[4];
    if ((parts->count != 2 && parts->count != 4) || bits < 16 || part_bits < 8) {
        return LOWER_FAIL(lowering, parts, "%u elements cannot be packed into %u bits",
                          parts->count, bits);
    }
    if (part_bits == 8) {
        return soft_destination(lowering, &in->operands[0], bits, in->opcode->type[0], &d) &&
               pack_bytes(lowering, parts, d);
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        enum ptx_modifier type = part_bits == 16 ? PTX_b16 : PTX_b32;
        if (!soft_source(lowering, &parts->items[i], part_bits, type, &values[i])) return false;
    }
    if (!soft_destination(lowering, &in->operands[0], bits, in->opcode->type[0], &d)) return false;
    struct soft_draft *draft = soft_draft(lowering, bits == 32          ? SOFT_OP_pack_16_32
                                                    : parts->count == 2 ? SOFT_OP_pack_32_64
                                                                        : SOFT_OP_pack_16_64);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = values[0];
    draft->b = values[1];
    if (parts->count == 4) {
        draft->c = values[2];
        draft->e = values[3];
    }
    return true;
}

/* mov.b64 {%r1, %r2}, %rd. A part may be "_". The source cannot be one of the parts' registers,
 * because their widths differ, so the parts are written one after the other. */
static bool move_unpack(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    const struct ptx_operand *parts = &in->operands[0];
    unsigned bits = soft_bits(in->opcode->type[0]), part_bits = bits / parts->count;
    if ((parts->count != 2 && parts->count != 4) || bits < 16 || part_bits < 8) {
        return LOWER_FAIL(lowering, parts, "%u bits cannot be unpacked into %u elements", bits,
                          parts->count);
    }
    uint32_t a = 0;
    if (!soft_source(lowering, &in->operands[1], bits, in->opcode->type[0], &a)) return false;
    if (part_bits == 8) return unpack_bytes(lowering, parts, a);
    for (uint32_t i = 0; i < parts->count; i++) {
        uint32_t d = 0;
        if (parts->items[i].kind == PTX_OPERAND_NONE) continue;
        if (!soft_destination(lowering, &parts->items[i], part_bits,
                              part_bits == 16 ? PTX_b16 : PTX_b32, &d))
            return false;
        struct soft_draft *draft = soft_draft(lowering, bits == 32        ? SOFT_OP_unpack_32_16
                                                        : part_bits == 32 ? SOFT_OP_unpack_64_32
                                                                          : SOFT_OP_unpack_64_16);
        if (draft == NULL) return false;
        draft->d = d;
        draft->a = a;
        draft->mode = i;
    }
    return true;
}

bool soft_lower_mov(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "mov needs 2 operands, not %u", in->operand_count);
    }
    bool packs = in->operands[1].kind == PTX_OPERAND_VECTOR;
    bool unpacks = in->operands[0].kind == PTX_OPERAND_VECTOR;
    if ((packs || unpacks) && ptx_types[in->opcode->type[0]].kind[0] != 'B') {
        return LOWER_FAIL(lowering, in, "packing and unpacking need a .b type");
    }
    if (packs) return move_pack(lowering, in);
    if (unpacks) return move_unpack(lowering, in);
    unsigned bits = soft_bits(in->opcode->type[0]);
    uint32_t d = 0, a = 0;
    return soft_source(lowering, &in->operands[1], bits, in->opcode->type[0], &a) &&
           soft_destination(lowering, &in->operands[0], bits, in->opcode->type[0], &d) &&
           move(lowering, in, d, a, bits);
}

/* mov.v4.f32 {a, b, c, d}, v: component by component, all read before any is written. */
bool soft_lower_mov_vector(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier type = in->opcode->type[0];
    uint32_t count = ptx_has(in->opcode, PTX_v2) ? 2 : 4, from[4], to[4];
    unsigned bits = soft_bits(type);
    if (in->operand_count != 2 || in->operands[0].kind != PTX_OPERAND_VECTOR ||
        in->operands[1].kind != PTX_OPERAND_VECTOR || in->operands[0].count != count ||
        in->operands[1].count != count) {
        return LOWER_FAIL(lowering, in, "expected two vectors of %u elements", count);
    }
    if (count * bits > 128) return LOWER_FAIL(lowering, in, "the vector is larger than 128 bits");
    for (uint32_t i = 0; i < count; i++) {
        if (!soft_source(lowering, &in->operands[1].items[i], bits, type, &from[i]) ||
            !soft_destination(lowering, &in->operands[0].items[i], bits, type, &to[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        bool overwritten = false;
        for (uint32_t j = 0; j < i; j++) overwritten |= to[j] == from[i];
        if (!overwritten) continue;
        from[i] =
            soft_convert(lowering, bits == 64 ? SOFT_OP_mov_64 : SOFT_OP_mov_32, bits, from[i]);
        if (from[i] == SOFT_NO_VALUE) return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (in->operands[0].items[i].kind == PTX_OPERAND_NONE) continue;
        if (!move(lowering, in, to[i], from[i], bits)) return false;
    }
    return true;
}

/* mov.b128 d, a; {a, b}, d; d, {a, b} */
bool soft_lower_mov_128(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "mov needs 2 operands, not %u", in->operand_count);
    }
    const struct ptx_operand *to = &in->operands[0], *from = &in->operands[1];
    bool packs = from->kind == PTX_OPERAND_VECTOR, unpacks = to->kind == PTX_OPERAND_VECTOR;
    const struct ptx_operand *parts = packs ? from->items : to->items;
    uint32_t d = 0, a = 0, b = SOFT_NO_VALUE;
    if ((packs && from->count != 2) || (unpacks && to->count != 2)) {
        return LOWER_FAIL(lowering, in,
                          "128 bits can only be packed from or unpacked into two elements");
    }
    if (packs ? !soft_source(lowering, &parts[0], 64, PTX_b64, &a) ||
                    !soft_source(lowering, &parts[1], 64, PTX_b64, &b)
              : !soft_source(lowering, from, 128, PTX_b128, &a)) {
        return false;
    }
    for (uint32_t i = 0; i < (unpacks ? 2u : 1u); i++) {
        if (unpacks && parts[i].kind == PTX_OPERAND_NONE) continue;
        if (unpacks ? !soft_destination(lowering, &parts[i], 64, PTX_b64, &d)
                    : !soft_destination(lowering, to, 128, PTX_b128, &d)) {
            return false;
        }
        struct soft_draft *draft = soft_draft(lowering, unpacks ? SOFT_OP_unpack_128_64
                                                        : packs ? SOFT_OP_pack_64_128
                                                                : SOFT_OP_mov_128);
        if (draft == NULL) return false;
        draft->d = d;
        draft->a = a;
        draft->b = b;
        draft->mode = i;
    }
    return true;
}

static bool is_integer_of(enum ptx_modifier type, unsigned bits) {
    const char kind = ptx_types[type].kind[0];
    return (kind == 'S' || kind == 'U') && ptx_types[type].bits == bits;
}

/* Between integers, without .sat; wide: the width of the source's register. A 16-bit register has
 * zeros above its value; a wider one is undefined there. */
static enum soft_op common_integer(enum ptx_modifier to, enum ptx_modifier from, unsigned wide) {
    if (is_integer_of(to, 64)) {
        return is_integer_of(from, 32) ? from == PTX_u32 ? SOFT_OP_cvt_u64_u32 : SOFT_OP_cvt_s64_s32
               : from == PTX_u16       ? SOFT_OP_cvt_u64_u16
               : from == PTX_s16       ? SOFT_OP_cvt_s64_s16
                                       : SOFT_OP_cvt_any;
    }
    if (is_integer_of(to, 32)) {
        if (is_integer_of(from, 64)) return SOFT_OP_cvt_low_32;
        if (is_integer_of(from, 32)) return SOFT_OP_mov_32;
        if (from == PTX_u16) return wide == 16 ? SOFT_OP_mov_32 : SOFT_OP_cvt_any;
        if (from == PTX_s16) return SOFT_OP_cvt_s32_s16;
        if (from == PTX_s8) return SOFT_OP_cvt_s32_s8;
        if (from == PTX_u8) return SOFT_OP_cvt_u32_u8;
    }
    if (is_integer_of(to, 16)) {
        if (is_integer_of(from, 64)) return SOFT_OP_cvt_u16_u64;
        if (is_integer_of(from, 32)) return SOFT_OP_low_16;
        if (from == PTX_s8) return SOFT_OP_cvt_s16_s8;
        if (from == PTX_u8) return SOFT_OP_cvt_u16_u8;
    }
    return SOFT_OP_cvt_any;
}

/* The pairs of types with their own micro-operation. */
static enum soft_op common_conversion(enum ptx_modifier to, enum ptx_modifier from, uint32_t mode,
                                      unsigned wide) {
    uint32_t rounding = mode & SOFT_MODE_ROUND, more = mode & ~(uint32_t)SOFT_MODE_ROUND;
    if (from == PTX_f32 && to == PTX_f32) {
        return mode == SOFT_MODE_SAT                                   ? SOFT_OP_cvt_sat_f32
               : more == SOFT_MODE_INTEGER && rounding == SOFT_MODE_RN ? SOFT_OP_cvt_rni_f32
                                                                       : SOFT_OP_cvt_any;
    }
    if (more != 0) return SOFT_OP_cvt_any;
    if (ptx_types[to].kind[0] != 'F' && ptx_types[from].kind[0] != 'F') {
        return common_integer(to, from, wide);
    }
    if (to == PTX_tf32 && rounding == SOFT_MODE_RNA) return SOFT_OP_cvt_tf32_f32;
    if (to == PTX_f32 && from == PTX_bf16) return SOFT_OP_cvt_f32_bf16;
    if (from == PTX_f32 && to == PTX_s32 && rounding == SOFT_MODE_RN) {
        return SOFT_OP_cvt_s32_rni_f32;
    }
    if (to == PTX_f32 && rounding == SOFT_MODE_RN) {
        if (from == PTX_s64) return SOFT_OP_cvt_f32_s64;
        if (from == PTX_u16) return SOFT_OP_cvt_f32_u16;
        if (from == PTX_s16) return SOFT_OP_cvt_f32_s16;
        if (from == PTX_s32) return SOFT_OP_cvt_f32_s32;
        if (from == PTX_u32) return SOFT_OP_cvt_f32_u32;
        if (from == PTX_f64) return SOFT_OP_cvt_f32_f64;
    }
    if (from == PTX_f32 && rounding == SOFT_MODE_RZ) {
        if (to == PTX_s32) return SOFT_OP_cvt_s32_f32;
        if (to == PTX_u32) return SOFT_OP_cvt_u32_f32;
    }
    if (from == PTX_f32 && to == PTX_f64) return SOFT_OP_cvt_f64_f32;
    if (from == PTX_f16 && to == PTX_f32) return SOFT_OP_cvt_f32_f16;
    if (from == PTX_f32 && to == PTX_f16 && rounding == SOFT_MODE_RN) return SOFT_OP_cvt_f16_f32;
    if (from == PTX_f32 && to == PTX_bf16 && rounding == SOFT_MODE_RN) return SOFT_OP_cvt_bf16_f32;
    return SOFT_OP_cvt_any;
}

static bool move_is_float(enum ptx_modifier type) {
    return ptx_types[type].kind[0] == 'F';
}

/* The rounding modifiers that a conversion requires or forbids. */
static bool check_rounding(struct soft_lowering *lowering, const struct ptx_instruction *in,
                           enum ptx_modifier to, enum ptx_modifier from, bool to_integer) {
    const struct ptx_opcode *opcode = in->opcode;
    bool direction = ptx_has(opcode, PTX_rn) || ptx_has(opcode, PTX_rz) ||
                     ptx_has(opcode, PTX_rm) || ptx_has(opcode, PTX_rp) || ptx_has(opcode, PTX_rna);
    bool float_from = move_is_float(from), float_to = move_is_float(to);
    if (!float_from && !float_to) {
        if (direction || to_integer) {
            return LOWER_FAIL(
                lowering, in,
                "a conversion from integer to integer cannot have a rounding modifier");
        }
        bool to_signed = ptx_types[to].kind[0] == 'S', from_signed = ptx_types[from].kind[0] == 'S';
        bool holds = to_signed == from_signed
                         ? ptx_types[to].bits >= ptx_types[from].bits
                         : to_signed && ptx_types[to].bits > ptx_types[from].bits;
        if (ptx_has(opcode, PTX_sat) && holds) {
            return LOWER_FAIL(lowering, in, ".sat is not allowed here: .%s can represent every .%s",
                              ptx_types[to].text, ptx_types[from].text);
        }
        return true;
    }
    if (float_from && !float_to && !to_integer) {
        return LOWER_FAIL(lowering, in,
                          "a conversion from float to integer needs .rni, .rzi, .rmi or .rpi");
    }
    bool narrows =
        float_to && (!float_from || ptx_types[to].bits < ptx_types[from].bits ||
                     (to == PTX_tf32 && from == PTX_f32) ||
                     (ptx_types[to].bits == 16 && to != from && ptx_types[from].bits == 16));
    if (narrows && !direction) {
        return LOWER_FAIL(lowering, in, "a conversion that may round needs .rn, .rz, .rm or .rp");
    }
    return true;
}

bool soft_lower_cvt(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier to = in->opcode->type[0], from = in->opcode->type[1];
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "cvt needs 2 operands, not %u", in->operand_count);
    }
    bool to_integer = ptx_has(in->opcode, PTX_rni) || ptx_has(in->opcode, PTX_rzi) ||
                      ptx_has(in->opcode, PTX_rmi) || ptx_has(in->opcode, PTX_rpi);
    if (!check_rounding(lowering, in, to, from, to_integer)) return false;
    uint32_t mode = soft_mode_of(in->opcode);
    bool float_both = move_is_float(to) && move_is_float(from);
    if (float_both && to_integer) mode |= SOFT_MODE_INTEGER;

    /* Registers may be wider than the types: the source's low bits are used, the destination is
     * sign-extended. */
    const struct ptx_operand *source = &in->operands[1], *destination = &in->operands[0];
    unsigned from_bits = soft_bits(from), to_bits = soft_bits(to);
    if (source->kind == PTX_OPERAND_REGISTER && soft_bits(source->type) > from_bits) {
        from_bits = soft_bits(source->type);
    }
    if (destination->kind == PTX_OPERAND_REGISTER && soft_bits(destination->type) > to_bits) {
        to_bits = soft_bits(destination->type);
    }
    uint32_t d = 0, a = 0;
    if (!soft_source(lowering, source, from_bits, from, &a) ||
        !soft_destination(lowering, destination, to_bits, to, &d)) {
        return false;
    }
    /* Up to 32 bits, a lane is one word, of which the operation uses the needed bits. */
    bool exact = (from_bits == soft_bits(from) || from_bits <= 32) && to_bits == soft_bits(to);
    enum soft_op op = exact ? common_conversion(to, from, mode, from_bits) : SOFT_OP_cvt_any;
    if (op == SOFT_OP_mov_32 && from_bits == to_bits) return move(lowering, in, d, a, to_bits);
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->mode = mode;
    if (op != SOFT_OP_cvt_any) return true;
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, to) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, from) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, to_bits == 64) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, from_bits == 64) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, to_bits);
}

/* cvt of two values into the halves of a register: d, a, b, or d, a where a is packed. */
bool soft_lower_cvt_pair(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier to = in->opcode->type[0], from = in->opcode->type[1];
    uint32_t sources = from == PTX_f32 ? 2 : 1, d = 0, a = 0, b = SOFT_NO_VALUE;
    if (in->operand_count != 1 + sources) {
        return LOWER_FAIL(lowering, in, "cvt needs %u operands here, not %u", 1 + sources,
                          in->operand_count);
    }
    /* Packed bytes have no registers of their type: they use 16-bit ones. */
    if (!soft_source(lowering, &in->operands[1], soft_bits(from),
                     ptx_types[from].bits == 16 ? PTX_b16 : from, &a) ||
        (sources == 2 && !soft_source(lowering, &in->operands[2], 32, from, &b)) ||
        !soft_destination(lowering, &in->operands[0], soft_bits(to),
                          ptx_types[to].bits == 16 ? PTX_b16 : to, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cvt_pair);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->mode = soft_mode_of(in->opcode);
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, to) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, from);
}

/* cvt.pack d, a, b, or d, a, b, c */
bool soft_lower_cvt_pack(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    enum ptx_modifier to = in->opcode->type[0];
    bool third = in->opcode->types == 3;
    uint32_t d = 0, a = 0, b = 0, c = SOFT_NO_VALUE;
    if (in->operand_count != (third ? 4 : 3)) {
        return LOWER_FAIL(lowering, in, "cvt.pack needs %u operands here, not %u", third ? 4u : 3u,
                          in->operand_count);
    }
    if (!soft_source(lowering, &in->operands[1], 32, PTX_s32, &a) ||
        !soft_source(lowering, &in->operands[2], 32, PTX_s32, &b) ||
        (third && !soft_source(lowering, &in->operands[3], 32, PTX_b32, &c)) ||
        !soft_destination(lowering, &in->operands[0], 32, PTX_b32, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cvt_pack);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->b = b;
    draft->c = c;
    draft->mode =
        ptx_types[to].bits | (ptx_types[to].kind[0] == 'S' ? 256u : 0u) | (third ? 512u : 0u);
    return true;
}

/* The window of a space in generic addressing; 0 for global memory, which needs none. */
static uint64_t window_of(const struct ptx_opcode *opcode) {
    const struct soft_windows *windows = soft_space_windows();
    if (ptx_has(opcode, PTX_local)) return windows->local;
    if (ptx_has(opcode, PTX_param)) return windows->parameter;
    if (ptx_has(opcode, PTX_global) || ptx_has(opcode, PTX_constant)) return 0;
    return windows->shared;
}

bool soft_lower_cvta(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "cvta needs 2 operands, not %u", in->operand_count);
    }
    uint32_t d = 0, a = 0;
    if (!soft_source(lowering, &in->operands[1], 64, PTX_u64, &a) ||
        !soft_destination(lowering, &in->operands[0], 64, PTX_u64, &d)) {
        return false;
    }
    uint64_t window = window_of(in->opcode);
    if (window == 0) return move(lowering, in, d, a, 64);
    if (ptx_has(in->opcode, PTX_to)) window = 0 - window;
    const struct soft_value *from = &lowering->values[lowering->values[a].alias];
    if (from->kind == SOFT_VALUE_CONSTANT || from->kind == SOFT_VALUE_DYNAMIC_SHARED ||
        from->kind == SOFT_VALUE_LOCAL) {
        /* The sum is known already. */
        uint32_t sum = soft_value_find(lowering, from->kind, 64, from->constant + window, 0, false);
        return sum != SOFT_NO_VALUE && move(lowering, in, d, sum, 64);
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_cvta_to);
    if (draft == NULL) return false;
    draft->d = d;
    draft->a = a;
    draft->immediate = (int64_t)window;
    return true;
}
