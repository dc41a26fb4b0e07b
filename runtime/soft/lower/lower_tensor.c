/*
 * Products of matrices, and matrices between registers and memory: mma, wmma, ldmatrix, stmatrix,
 * movmatrix. Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 *
 * ptx.def has every form; here shapes and types become numbers, and braces become slots.
 */
#include "lower_memory.h"

#include "tensor.h"

enum { REGISTERS_MAX = 8 };

static const struct {
    enum ptx_modifier modifier;
    struct soft_tensor_shape shape;
} shapes[] = {
    {PTX_m8n8k4, {8, 8, 4}},       {PTX_m8n8k16, {8, 8, 16}},     {PTX_m8n8k32, {8, 8, 32}},
    {PTX_m8n8k128, {8, 8, 128}},   {PTX_m16n8k4, {16, 8, 4}},     {PTX_m16n8k8, {16, 8, 8}},
    {PTX_m16n8k16, {16, 8, 16}},   {PTX_m16n8k32, {16, 8, 32}},   {PTX_m16n8k64, {16, 8, 64}},
    {PTX_m16n8k128, {16, 8, 128}}, {PTX_m16n8k256, {16, 8, 256}}, {PTX_m16n16k8, {16, 16, 8}},
    {PTX_m16n16k16, {16, 16, 16}}, {PTX_m32n8k16, {32, 8, 16}},   {PTX_m8n32k16, {8, 32, 16}},
};

static struct soft_tensor_shape tensor_shape_of(const struct ptx_opcode *opcode) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (ptx_has(opcode, shapes[i].modifier)) return shapes[i].shape;
    }
    return (struct soft_tensor_shape){8, 8, 8}; /* movmatrix and similar: no row names another */
}

/* The element types of ptx.def, and the type of the registers that hold them. */
static const struct {
    enum ptx_modifier modifier;
    enum soft_tensor_type type;
    enum ptx_modifier held;
} types[] = {
    {PTX_f16, SOFT_TENSOR_F16, PTX_f16x2}, {PTX_bf16, SOFT_TENSOR_BF16, PTX_b32},
    {PTX_tf32, SOFT_TENSOR_TF32, PTX_b32}, {PTX_e4m3, SOFT_TENSOR_E4M3, PTX_b32},
    {PTX_e5m2, SOFT_TENSOR_E5M2, PTX_b32}, {PTX_f32, SOFT_TENSOR_F32, PTX_f32},
    {PTX_f64, SOFT_TENSOR_F64, PTX_f64},   {PTX_s8, SOFT_TENSOR_S8, PTX_b32},
    {PTX_u8, SOFT_TENSOR_U8, PTX_b32},     {PTX_s4, SOFT_TENSOR_S4, PTX_b32},
    {PTX_u4, SOFT_TENSOR_U4, PTX_b32},     {PTX_b1, SOFT_TENSOR_B1, PTX_b32},
    {PTX_s32, SOFT_TENSOR_S32, PTX_s32},   {PTX_b16, SOFT_TENSOR_F16, PTX_b32},
};

static unsigned index_of_type(enum ptx_modifier modifier) {
    unsigned i = 0;
    while (types[i].modifier != modifier) i++;
    return i;
}

static enum soft_tensor_type tensor_type(enum ptx_modifier modifier) {
    return types[index_of_type(modifier)].type;
}

/* The registers between two braces: a number of registers of a type. */
struct operand_registers {
    uint32_t values[REGISTERS_MAX];
    unsigned count;
};

static bool read_fragment(struct soft_lowering *lowering, const struct ptx_operand *operand,
                          enum ptx_modifier type, unsigned count, bool written,
                          struct operand_registers *fragment) {
    enum ptx_modifier held = types[index_of_type(type)].held;
    unsigned bits = soft_bits(held);
    fragment->count = count;
    if (operand->kind != PTX_OPERAND_VECTOR || operand->count != count) {
        return LOWER_FAIL(lowering, operand, "expected %u registers in braces", count);
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t *value = &fragment->values[i];
        bool ok = written ? soft_destination(lowering, &operand->items[i], bits, held, value)
                          : soft_source(lowering, &operand->items[i], bits, held, value);
        if (!ok) return false;
    }
    return true;
}

static bool tensor_add_fragment(struct soft_lowering *lowering, struct soft_draft *draft,
                                const struct operand_registers *fragment,
                                enum soft_extra_kind kind) {
    for (unsigned i = 0; i < fragment->count; i++) {
        if (!soft_extra(lowering, draft, kind, fragment->values[i])) return false;
    }
    return true;
}

static bool add_words(struct soft_lowering *lowering, struct soft_draft *draft, uint32_t shape,
                      uint32_t about, uint32_t counts) {
    return soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, shape) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, about) &&
           soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, counts);
}

static enum soft_op op_of(enum soft_tensor_type type, bool quads) {
    switch (type) {
    case SOFT_TENSOR_F64:
        return SOFT_OP_mma_f64;
    case SOFT_TENSOR_S8:
    case SOFT_TENSOR_U8:
    case SOFT_TENSOR_S4:
    case SOFT_TENSOR_U4:
        return SOFT_OP_mma_integer;
    case SOFT_TENSOR_B1:
        return SOFT_OP_mma_bits;
    default:
        return quads ? SOFT_OP_mma_quads : SOFT_OP_mma_float;
    }
}

/* The number of registers of each operand, D, A, B, C. */
static void count_registers(struct soft_tensor_shape shape, const enum soft_tensor_type type[4],
                            bool quads, bool is_wmma, unsigned counts[4]) {
    static const enum soft_tensor_operand operands[4] = {SOFT_TENSOR_C, SOFT_TENSOR_A,
                                                         SOFT_TENSOR_B, SOFT_TENSOR_C};
    for (int i = 0; i < 4; i++) {
        counts[i] = soft_tensor_registers(shape, operands[i], type[i]);
        /* Four matrices per warp: a thread has four elements of its A and B, and eight of C. */
        if (quads) counts[i] = (operands[i] == SOFT_TENSOR_C ? 8 : 4) / soft_tensor_per(type[i]);
        /* wmma's fragments of halves have the same number of registers for every shape. */
        bool is_factor = operands[i] != SOFT_TENSOR_C;
        if (is_wmma && is_factor && type[i] == SOFT_TENSOR_F16) counts[i] = REGISTERS_MAX;
    }
}

/* mma d, a, b, c of four types, in the order of the operands. */
static bool lower_product(struct soft_lowering *lowering, const struct ptx_instruction *in,
                          const enum ptx_modifier written[4], bool is_wmma, uint32_t mode) {
    struct soft_tensor_shape shape = tensor_shape_of(in->opcode);
    enum soft_tensor_type type[4];
    struct operand_registers fragments[4] = {{{0}, 0}};
    unsigned counts[4];
    for (int i = 0; i < 4; i++) type[i] = tensor_type(written[i]);
    bool quads = !is_wmma && shape.k == 4 && type[1] == SOFT_TENSOR_F16;
    count_registers(shape, type, quads, is_wmma, counts);
    if (in->operand_count != 4) {
        return LOWER_FAIL(lowering, in, "%s needs 4 operands, not %u", in->opcode->row->name,
                          in->operand_count);
    }
    for (unsigned i = 0; i < 4; i++) {
        if (!read_fragment(lowering, &in->operands[i], written[i], counts[i], i == 0,
                           &fragments[i])) {
            return false;
        }
    }
    struct soft_draft *draft = soft_draft(lowering, op_of(type[1], quads));
    if (draft == NULL) return false;
    draft->mode = mode | (soft_mode_of(in->opcode) & SOFT_MODE_ROUND);
    if (ptx_has(in->opcode, PTX_satfinite)) draft->mode |= SOFT_TENSOR_SATFINITE;
    if (ptx_has(in->opcode, PTX_and)) draft->mode |= SOFT_TENSOR_AND;
    uint32_t all = (uint32_t)type[0] | (uint32_t)type[1] << 8 | (uint32_t)type[2] << 16 |
                   (uint32_t)type[3] << 24;
    bool ok = add_words(lowering, draft, soft_tensor_pack_shape(shape), all,
                        counts[0] | counts[1] << 8 | counts[2] << 16);
    for (unsigned i = 0; i < 4 && ok; i++) {
        ok = tensor_add_fragment(lowering, draft, &fragments[i],
                                 i == 0 ? SOFT_EXTRA_DEFINE : SOFT_EXTRA_USE);
    }
    return ok;
}

bool soft_lower_mma(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t mode = 0;
    if (!ptx_has(in->opcode, PTX_row)) mode |= SOFT_TENSOR_A_COL;
    if (!ptx_has(in->opcode, PTX_col)) mode |= SOFT_TENSOR_B_ROW;
    return lower_product(lowering, in, in->opcode->type, false, mode);
}

/* Both words are present, as in row.col; ptx.def's row determines the order. */
bool soft_lower_mma_col_row(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_product(lowering, in, in->opcode->type, false,
                         SOFT_TENSOR_A_COL | SOFT_TENSOR_B_ROW);
}

/* The layouts are those of the loads. If two types are written, they are D's and C's. */
bool soft_lower_wmma_mma(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    const enum ptx_modifier *type = in->opcode->type;
    enum ptx_modifier halves[4] = {type[0], PTX_f16, PTX_f16, type[1]};
    return lower_product(lowering, in, in->opcode->types == 2 ? halves : type, true, 0);
}

bool soft_lower_movmatrix(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t d = 0, a = 0;
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "movmatrix needs 2 operands, not %u", in->operand_count);
    }
    if (!soft_source(lowering, &in->operands[1], 32, PTX_b32, &a) ||
        !soft_destination(lowering, &in->operands[0], 32, PTX_b32, &d)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_movmatrix);
    return draft != NULL && add_words(lowering, draft, 0, 0, 0) &&
           soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, d) &&
           soft_extra(lowering, draft, SOFT_EXTRA_USE, a);
}

static uint32_t space_mode(enum soft_access_space space, const struct soft_address *address) {
    return (uint32_t)space << SOFT_ACCESS_SPACE_SHIFT |
           (address->wide ? (uint32_t)SOFT_ACCESS_WIDE_ADDRESS : 0);
}

/* The draft of a load or a store of a fragment, with its address. */
static struct soft_draft *memory_draft(struct soft_lowering *lowering, enum soft_op op,
                                       enum soft_access_space space,
                                       const struct soft_address *address) {
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return NULL;
    draft->a = address->base;
    draft->immediate = address->offset;
    draft->mode = space_mode(space, address);
    draft->has_site = true;
    return draft;
}

/* ldmatrix r, [p]; stmatrix [p], r */
static bool lower_rows(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       enum soft_op op) {
    bool stores = op == SOFT_OP_stmatrix;
    unsigned count = ptx_has(in->opcode, PTX_x4) ? 4 : ptx_has(in->opcode, PTX_x2) ? 2 : 1;
    struct operand_registers fragment = {{0}, 0};
    struct soft_address address;
    if (in->operand_count != 2) {
        return LOWER_FAIL(lowering, in, "%s needs 2 operands, not %u", in->opcode->row->name,
                          in->operand_count);
    }
    enum soft_access_space space = soft_space_at(in->opcode, &in->operands[!stores]);
    if (!read_fragment(lowering, &in->operands[stores], PTX_b16, count, !stores, &fragment) ||
        !soft_read_address(lowering, &in->operands[!stores], space, &address)) {
        return false;
    }
    struct soft_draft *draft = memory_draft(lowering, op, space, &address);
    if (draft == NULL) return false;
    if (stores) draft->mode |= SOFT_ACCESS_STORE;
    if (ptx_has(in->opcode, PTX_trans)) draft->mode |= SOFT_MATRIX_TRANS;
    if (count > 1) draft->mode |= (uint32_t)(count == 4 ? SOFT_MATRIX_X4 : SOFT_MATRIX_X2);
    return add_words(lowering, draft, 0, 0, count) &&
           tensor_add_fragment(lowering, draft, &fragment,
                               stores ? SOFT_EXTRA_USE : SOFT_EXTRA_DEFINE);
}

bool soft_lower_ldmatrix(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_rows(lowering, in, SOFT_OP_ldmatrix);
}

bool soft_lower_stmatrix(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_rows(lowering, in, SOFT_OP_stmatrix);
}

static enum soft_tensor_operand tensor_operand_of(const struct ptx_opcode *opcode) {
    return ptx_has(opcode, PTX_a)   ? SOFT_TENSOR_A
           : ptx_has(opcode, PTX_b) ? SOFT_TENSOR_B
                                    : SOFT_TENSOR_C;
}

/* Without a stride, lines are contiguous. */
static unsigned least_stride(struct soft_tensor_shape shape, enum soft_tensor_operand operand,
                             bool by_columns) {
    unsigned rows = operand == SOFT_TENSOR_B ? shape.k : shape.m;
    unsigned columns = operand == SOFT_TENSOR_A ? shape.k : shape.n;
    return by_columns ? rows : columns;
}

/* wmma.load r, [p]{, stride}; wmma.store [p], r{, stride} */
static bool lower_fragment(struct soft_lowering *lowering, const struct ptx_instruction *in,
                           enum soft_op op) {
    bool stores = op == SOFT_OP_wmma_store, by_columns = ptx_has(in->opcode, PTX_col);
    struct soft_tensor_shape shape = tensor_shape_of(in->opcode);
    enum soft_tensor_operand operand = tensor_operand_of(in->opcode);
    enum soft_tensor_type type = tensor_type(in->opcode->type[0]);
    unsigned count = soft_tensor_registers(shape, operand, type);
    if (operand != SOFT_TENSOR_C && type == SOFT_TENSOR_F16) count = REGISTERS_MAX;
    struct operand_registers fragment = {{0}, 0};
    struct soft_address address;
    uint32_t stride = soft_value_constant(lowering, 32, least_stride(shape, operand, by_columns));
    if (in->operand_count < 2 || in->operand_count > 3) {
        return LOWER_FAIL(lowering, in, "wmma needs 2 or 3 operands here, not %u",
                          in->operand_count);
    }
    enum soft_access_space space = soft_space_at(in->opcode, &in->operands[!stores]);
    if (stride == SOFT_NO_VALUE ||
        !read_fragment(lowering, &in->operands[stores], in->opcode->type[0], count, !stores,
                       &fragment) ||
        !soft_read_address(lowering, &in->operands[!stores], space, &address) ||
        (in->operand_count == 3 &&
         !soft_source(lowering, &in->operands[2], 32, PTX_u32, &stride))) {
        return false;
    }
    struct soft_draft *draft = memory_draft(lowering, op, space, &address);
    if (draft == NULL) return false;
    draft->b = stride;
    if (stores) draft->mode |= SOFT_ACCESS_STORE;
    if (by_columns) draft->mode |= SOFT_MATRIX_COL;
    return add_words(lowering, draft, soft_tensor_pack_shape(shape),
                     (uint32_t)operand | (uint32_t)type << 8, count) &&
           tensor_add_fragment(lowering, draft, &fragment,
                               stores ? SOFT_EXTRA_USE : SOFT_EXTRA_DEFINE);
}

bool soft_lower_wmma_load(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_fragment(lowering, in, SOFT_OP_wmma_load);
}

bool soft_lower_wmma_store(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    return lower_fragment(lowering, in, SOFT_OP_wmma_store);
}
