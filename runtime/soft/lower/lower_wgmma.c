/*
 * Matrix products by four warps (wgmma), and the registers that they use meanwhile. Source: PTX ISA
 * 9.0, section 9.7.15.
 *
 * A product is computed at its wait. Until then its registers must not share slots with others, and
 * a check before each instruction that uses them reports premature uses.
 */
#include "lower.h"

#include "wgmma_modes.h"

#include <string.h>

enum { D_MAX = 128, A_REGISTERS = 4 };

static const struct {
    enum ptx_modifier modifier;
    enum soft_tensor_type type;
} types[] = {
    {PTX_f16, SOFT_TENSOR_F16},   {PTX_bf16, SOFT_TENSOR_BF16}, {PTX_tf32, SOFT_TENSOR_TF32},
    {PTX_e4m3, SOFT_TENSOR_E4M3}, {PTX_e5m2, SOFT_TENSOR_E5M2}, {PTX_s8, SOFT_TENSOR_S8},
    {PTX_u8, SOFT_TENSOR_U8},     {PTX_b1, SOFT_TENSOR_B1},     {PTX_f32, SOFT_TENSOR_F32},
    {PTX_s32, SOFT_TENSOR_S32},
};

static uint32_t wgmma_type_of(enum ptx_modifier modifier) {
    uint32_t i = 0;
    while (types[i].modifier != modifier) i++;
    return (uint32_t)types[i].type;
}

/* modifier.def has the shapes in the order of k, and then of n. */
static void wgmma_shape_of(const struct ptx_opcode *opcode, uint32_t *n, uint32_t *k) {
    static const uint16_t ks[] = {8, 16, 32, 256};
    for (uint32_t i = 0; i < 4 * 32; i++) {
        if (!ptx_has(opcode, (enum ptx_modifier)(PTX_m64n8k8 + i))) continue;
        *n = 8 * (i % 32 + 1);
        *k = ks[i / 32];
    }
}

static bool read_registers(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           enum ptx_modifier held, unsigned count, bool written,
                           uint32_t values[]) {
    if (operand->kind != PTX_OPERAND_VECTOR || operand->count != count) {
        return LOWER_FAIL(lowering, operand, "expected %u registers in braces", count);
    }
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *item = &operand->items[i];
        bool ok = written ? soft_destination(lowering, item, 32, held, &values[i])
                          : soft_source(lowering, item, 32, held, &values[i]);
        if (!ok) return false;
    }
    return true;
}

/* An immediate that is one of two numbers; the second sets a bit. */
static bool read_choice(struct soft_lowering *lowering, const struct ptx_operand *operand,
                        int64_t usual, int64_t other, uint32_t bit, uint32_t *mode) {
    if (operand->kind != PTX_OPERAND_INTEGER ||
        (operand->integer != usual && operand->integer != other)) {
        return LOWER_FAIL(lowering, operand, "expected the number %d or %d", (int)usual,
                          (int)other);
    }
    if (operand->integer == other) *mode |= bit;
    return true;
}

struct product {
    uint32_t d[D_MAX], a[A_REGISTERS], a_descriptor, b_descriptor, scale;
    uint32_t d_count, mode;
};

/* The immediates after scale-d: factors of A and B for all floating point types, and the layouts of
 * both in shared memory for 16-bit types. */
static bool read_immediates(struct soft_lowering *lowering, const struct ptx_instruction *in,
                            struct product *p) {
    const struct ptx_operand *next = &in->operands[4];
    enum ptx_modifier a = in->opcode->type[1];
    bool in_registers = (p->mode & SOFT_WGMMA_A_IN_REGISTERS) != 0;
    if (a == PTX_s8 || a == PTX_u8 || a == PTX_b1) return true;
    if (!read_choice(lowering, &next[0], 1, -1, SOFT_WGMMA_NEGATE_A, &p->mode) ||
        !read_choice(lowering, &next[1], 1, -1, SOFT_WGMMA_NEGATE_B, &p->mode)) {
        return false;
    }
    if (a != PTX_f16 && a != PTX_bf16) return true;
    if (!in_registers && !read_choice(lowering, &next[2], 0, 1, SOFT_WGMMA_TRANSPOSE_A, &p->mode)) {
        return false;
    }
    return read_choice(lowering, &next[in_registers ? 2 : 3], 0, 1, SOFT_WGMMA_TRANSPOSE_B,
                       &p->mode);
}

static uint32_t wgmma_operands_of(enum ptx_modifier a, bool in_registers) {
    if (a == PTX_s8 || a == PTX_u8 || a == PTX_b1) return 4;
    if (a != PTX_f16 && a != PTX_bf16) return 6;
    return in_registers ? 7 : 8;
}

static bool read_product(struct soft_lowering *lowering, const struct ptx_instruction *in,
                         uint32_t n, struct product *p) {
    const enum ptx_modifier *type = in->opcode->type;
    bool negated = false;
    if (lowering->module->target_suffix == 0) {
        return LOWER_FAIL(lowering, in, "wgmma needs the target sm_90a");
    }
    bool in_registers = in->operand_count > 1 && in->operands[1].kind == PTX_OPERAND_VECTOR;
    uint32_t count = wgmma_operands_of(type[1], in_registers);
    if (in->operand_count != count) {
        return LOWER_FAIL(lowering, in, "expected %u operands, not %u", count, in->operand_count);
    }
    if (in_registers) p->mode |= SOFT_WGMMA_A_IN_REGISTERS;
    if (ptx_has(in->opcode, PTX_satfinite)) p->mode |= SOFT_TENSOR_SATFINITE;
    p->d_count = type[0] == PTX_f16 ? n / 4 : n / 2;
    enum ptx_modifier held = type[0] == PTX_f16 ? PTX_b32 : type[0];
    if (!read_registers(lowering, &in->operands[0], held, p->d_count, true, p->d)) return false;
    bool ok = in_registers
                  ? read_registers(lowering, &in->operands[1], PTX_b32, A_REGISTERS, false, p->a)
                  : soft_source(lowering, &in->operands[1], 64, PTX_b64, &p->a_descriptor);
    ok = ok && soft_source(lowering, &in->operands[2], 64, PTX_b64, &p->b_descriptor) &&
         soft_predicate(lowering, &in->operands[3], &p->scale, &negated);
    if (negated) p->mode |= SOFT_WGMMA_NOT_SCALED;
    return ok && read_immediates(lowering, in, p);
}

/* wgmma.mma_async d, a, b, scale-d{, immediates} */
bool soft_lower_wgmma(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct product p = {.a_descriptor = SOFT_NO_VALUE};
    const enum ptx_modifier *type = in->opcode->type;
    uint32_t n = 0, k = 0;
    wgmma_shape_of(in->opcode, &n, &k);
    if (!read_product(lowering, in, n, &p)) return false;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_wgmma);
    if (draft == NULL) return false;
    draft->a = p.a_descriptor;
    draft->b = p.b_descriptor;
    draft->c = p.scale;
    draft->mode = p.mode;
    draft->has_site = true;
    bool ok = soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, n | k << 16) &&
              soft_extra(lowering, draft, SOFT_EXTRA_NUMBER,
                         wgmma_type_of(type[0]) | wgmma_type_of(type[1]) << 8 |
                             wgmma_type_of(type[2]) << 16) &&
              soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, p.d_count);
    for (uint32_t i = 0; i < p.d_count && ok; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, p.d[i]);
    }
    for (uint32_t i = 0; i < A_REGISTERS && ok && p.a_descriptor == SOFT_NO_VALUE; i++) {
        ok = soft_extra(lowering, draft, SOFT_EXTRA_USE, p.a[i]);
    }
    return ok;
}

/* ---- registers in use ---- */

static bool wgmma_is_product(const struct ptx_instruction *in) {
    return in->opcode->row->name[0] == 'w' && strcmp(in->opcode->row->name, "wgmma") == 0 &&
           ptx_has(in->opcode, PTX_mma_async);
}

void soft_wgmma_pin(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *in = &function->instructions[i];
        const uint32_t count = !wgmma_is_product(in)   ? 0
                               : in->operand_count < 2 ? in->operand_count
                                                       : 2;
        for (uint32_t o = 0; o < count; o++) {
            const struct ptx_operand *operand = &in->operands[o];
            for (uint32_t r = 0; operand->kind == PTX_OPERAND_VECTOR && r < operand->count; r++) {
                if (operand->items[r].kind != PTX_OPERAND_REGISTER) continue;
                lowering->values[operand->items[r].reg].pinned = true;
                lowering->has_wgmma = true;
            }
        }
    }
}

static bool is_group(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_VECTOR || operand->kind == PTX_OPERAND_PAIR ||
           operand->kind == PTX_OPERAND_LIST || operand->kind == PTX_OPERAND_ADDRESS;
}

/* Calls add for each pinned register of an operand. */
static bool each_pinned(struct soft_lowering *lowering, const struct ptx_operand *operand,
                        uint32_t *count, struct soft_draft *draft) {
    if (operand->kind == PTX_OPERAND_REGISTER) {
        if (!lowering->values[operand->reg].pinned) return true;
        ++*count;
        return draft == NULL || soft_extra(lowering, draft, SOFT_EXTRA_USE, operand->reg);
    }
    for (uint32_t i = 0; is_group(operand) && i < operand->count; i++) {
        if (!each_pinned(lowering, &operand->items[i], count, draft)) return false;
    }
    return true;
}

bool soft_wgmma_check_use(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    uint32_t read = 0, written = 0;
    if (wgmma_is_product(in)) return true;
    bool stores = in->operand_count > 0 && in->operands[0].kind == PTX_OPERAND_ADDRESS;
    for (uint32_t o = 0; o < in->operand_count; o++) {
        (void)each_pinned(lowering, &in->operands[o], o == 0 && !stores ? &written : &read, NULL);
    }
    if (read + written == 0) return true;
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_wgmma_use);
    if (draft == NULL || !soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, read) ||
        !soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, written)) {
        return false;
    }
    /* Those that are read come first. */
    for (uint32_t o = stores ? 0 : 1; o < in->operand_count; o++) {
        if (!each_pinned(lowering, &in->operands[o], &read, draft)) return false;
    }
    return stores || in->operand_count == 0 ||
           each_pinned(lowering, &in->operands[0], &written, draft);
}
