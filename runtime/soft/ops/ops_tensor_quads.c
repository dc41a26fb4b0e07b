/*
 * Matrix products: m8n8k4 on halves, four per warp, eight lanes each.
 *
 * Only sm_70 has a tensor core that does it. For sm_90, ptxas compiles it to shuffles and fused
 * multiply-adds, each rounded to nearest, and an H200 gives these bits: see tensor_model.h. Source:
 * PTX ISA 9.0, section 9.7.14.5.1.
 */
#include "ops_half.h"
#include "ops_tensor.h"

enum { QUADS = 4, SIDE = 8, DEEP = 4 };

/* One of the four. */
struct quad {
    uint32_t a[SIDE * DEEP], b[DEEP * SIDE], c[SIDE * SIDE];
};

/* Element i of a lane's registers. */
static uint32_t quad_element(const struct soft_warp *warp, const uint32_t *slots, unsigned lane,
                             unsigned i, bool single) {
    if (single) return SLOT(uint32_t, slots[i])[lane];
    return SLOT(uint32_t, slots[i / 2])[lane] >> (16 * (i % 2)) & 0xffff;
}

/* Reads one of the four products' matrices. */
static void gather_quad(const struct soft_warp *warp, unsigned quad, const uint32_t *slots,
                        enum soft_tensor_operand operand, bool turned, bool single,
                        uint32_t *matrix) {
    unsigned columns = operand == SOFT_TENSOR_A ? DEEP : SIDE;
    unsigned elements = operand == SOFT_TENSOR_C ? SIDE : DEEP;
    for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
        for (unsigned i = 0; lane % 16 / 4 == quad && i < elements; i++) {
            struct soft_tensor_place place =
                soft_tensor_quad_place(operand, turned, single, i, lane);
            matrix[place.row * columns + place.column] = quad_element(warp, slots, lane, i, single);
        }
    }
}

/* Products of halves are exact in single precision, so it does not matter what is fused. */
static float single_sum(const float a[DEEP], const float b[DEEP], float c) {
    float sum = 0;
    for (unsigned k = 0; k < DEEP; k++) sum += a[k] * b[k];
    return c + sum;
}

static float half_sum(const float a[DEEP], const float b[DEEP], float c) {
    float left = a[0] * b[0] + a[1] * b[1], right = a[2] * b[2] + a[3] * b[3];
    return c + right + left;
}

/* C becomes A B + C. */
static void multiply_quad(struct quad *q, bool c_single, bool d_single) {
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        float a[DEEP], b[DEEP], c = c_single ? float_f32(q->c[i]) : float_of_f16(q->c[i]);
        for (unsigned k = 0; k < DEEP; k++) {
            a[k] = float_of_f16(q->a[i / SIDE * DEEP + k]);
            b[k] = float_of_f16(q->b[k * SIDE + i % SIDE]);
        }
        q->c[i] = d_single ? bits_f32(canonical_f32(single_sum(a, b, c)))
                           : f16_of_float(half_sum(a, b, c));
    }
}

OP_WHOLE(mma_quads) {
    struct tensor t = tensor_of(warp, in);
    bool a_turned = (in->mode & SOFT_TENSOR_A_COL) != 0, c_single = t.c == SOFT_TENSOR_F32;
    bool b_turned = (in->mode & SOFT_TENSOR_B_ROW) != 0, d_single = t.d == SOFT_TENSOR_F32;
    struct quad quads[QUADS];
    for (unsigned i = 0; i < QUADS; i++) {
        gather_quad(warp, i, t.a_slots, SOFT_TENSOR_A, a_turned, false, quads[i].a);
        gather_quad(warp, i, t.b_slots, SOFT_TENSOR_B, b_turned, false, quads[i].b);
        gather_quad(warp, i, t.c_slots, SOFT_TENSOR_C, false, c_single, quads[i].c);
        multiply_quad(&quads[i], c_single, d_single);
    }
    for (unsigned lane = 0; lane < SOFT_LANES; lane++) {
        for (unsigned i = 0; i < SIDE; i++) {
            struct soft_tensor_place place =
                soft_tensor_quad_place(SOFT_TENSOR_C, false, d_single, i, lane);
            uint32_t bits = quads[lane % 16 / 4].c[place.row * SIDE + place.column];
            uint32_t *word = &SLOT(uint32_t, t.d_slots[d_single ? i : i / 2])[lane];
            if (d_single) {
                *word = bits;
            } else {
                *word = i % 2 == 0 ? bits : *word | bits << 16;
            }
        }
    }
    return in + 1;
}
