/*
 * Products of matrices of floating point numbers of 8, 16 and 19 bits, with sums in single or half
 * precision, as tensor_model.h says. Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 */
#include "ops_tensor.h"

/* Numbers of eight bits are multiplied as halves. */
enum { FACTORS_MAX = 512, SUMS_MAX = 256, E4M3_LEAST = -14 };
#include "tensor_sum.h"

static void begin_problem(struct problem *p, struct soft_tensor_shape shape, unsigned block,
                          bool half) {
    p->m = shape.m;
    p->n = shape.n;
    p->k = shape.k;
    p->block = block;
    p->half = half;
}

/* Eight bits: the lower two elements of every four, then the upper two; C comes last. */
static void multiply_bytes(struct problem *p) {
    float c[SUMS_MAX];
    memcpy(c, p->c, sizeof c);
    memset(p->c, 0, sizeof p->c);
    p->block = p->k / 2;
    multiply(p);
    for (unsigned i = 0; i < p->m * p->n; i++) {
        float sum = c[i] + p->c[i];
        p->c[i] = canonical_f32(p->half ? float_of_f16(f16_of_float(sum)) : sum);
    }
}

/* Where k goes: a block's elements stand together. */
static unsigned place_of_byte(unsigned k, unsigned count) {
    return k / 4 * 2 + k % 2 + (k % 4 / 2) * (count / 2);
}

static void regroup(uint32_t *matrix, unsigned rows, unsigned columns, bool down) {
    uint32_t old[FACTORS_MAX];
    memcpy(old, matrix, sizeof old);
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < columns; column++) {
            unsigned to = down ? place_of_byte(row, rows) * columns + column
                               : row * columns + place_of_byte(column, columns);
            matrix[to] = old[row * columns + column];
        }
    }
}

static unsigned block_of(enum soft_tensor_type type, struct soft_tensor_shape shape) {
    /* Only wmma's matrices of tf32 are sixteen columns wide. */
    unsigned tf32 = shape.n == 16 ? SOFT_TENSOR_BLOCK_TF32_WMMA : SOFT_TENSOR_BLOCK_TF32;
    unsigned block = type == SOFT_TENSOR_TF32 ? tf32 : SOFT_TENSOR_BLOCK_HALF;
    return shape.k < block ? shape.k : block;
}

static void read_sums(struct problem *p, const uint32_t *bits, enum soft_tensor_type type) {
    p->accumulator_least = p->half ? -14 : -126;
    for (unsigned i = 0; i < p->m * p->n; i++) {
        p->c[i] = type == SOFT_TENSOR_F16 ? float_of_f16(bits[i]) : float_f32(bits[i]);
    }
}

static void write_sums(const struct problem *p, uint32_t *bits, enum soft_tensor_type type) {
    for (unsigned i = 0; i < p->m * p->n; i++) {
        bits[i] =
            type == SOFT_TENSOR_F16 ? f16_of_float(p->c[i]) : bits_f32(canonical_f32(p->c[i]));
    }
}

OP_WHOLE(mma_float) {
    struct tensor t = tensor_of(warp, in);
    struct soft_tensor_shape s = t.shape;
    struct fragment fa = fragment_of(s, SOFT_TENSOR_A, t.a);
    struct fragment fb = fragment_of(s, SOFT_TENSOR_B, t.b);
    struct fragment fc = fragment_of(s, SOFT_TENSOR_C, t.c);
    struct fragment fd = fragment_of(s, SOFT_TENSOR_C, t.d);
    uint32_t a[FACTORS_MAX] = {0}, b[FACTORS_MAX] = {0}, c[SUMS_MAX] = {0};
    _Alignas(64) struct problem p = {0};
    bool bytes = soft_tensor_bits(t.a) == 8;
    /* Where one of C and D is single the sum is: halves are widened before, and made behind it. */
    begin_problem(&p, s, block_of(t.a, s), t.c == SOFT_TENSOR_F16 && t.d == SOFT_TENSOR_F16);
    gather_elements(warp, &fa, t.a_slots, a);
    gather_elements(warp, &fb, t.b_slots, b);
    gather_elements(warp, &fc, t.c_slots, c);
    if (bytes) {
        regroup(a, s.m, s.k, false);
        regroup(b, s.k, s.n, true);
    }
    p.special = read_factors(&p.a, a, s.m * s.k, t.a);
    p.special |= read_factors(&p.b, b, s.k * s.n, t.b);
    read_sums(&p, c, t.c);
    if (bytes) {
        multiply_bytes(&p);
    } else {
        multiply(&p);
    }
    write_sums(&p, c, t.d);
    scatter_elements(warp, &fd, t.d_slots, c);
    return in + 1;
}
