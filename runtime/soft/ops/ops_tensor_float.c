/*
 * Products of matrices of floating point numbers of 8, 16 and 19 bits, with sums in single or half
 * precision, as tensor_model.h says. Source: PTX ISA 9.0, sections 9.7.14.4 and 9.7.14.5.
 */
#include "ops_tensor.h"

/* Numbers of eight bits are multiplied as halves. */
enum { FACTORS_MAX = 512, SUMS_MAX = 256, E4M3_LEAST = -14 };
#include "plain_sum.h"
#include "tensor_sum.h"

static void begin_problem(struct problem *p, struct soft_tensor_shape shape, unsigned block,
                          bool half) {
    p->m = shape.m;
    p->n = shape.n;
    p->k = shape.k;
    p->block = block;
    p->half = half;
    p->cut = 0;
    p->special = false;
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

/* The position of k: the elements of a block are adjacent. */
static unsigned place_of_byte(unsigned k, unsigned count) {
    return k / 4 * 2 + k % 2 + (k % 4 / 2) * (count / 2);
}

static void tensor_float_regroup(uint32_t *matrix, unsigned rows, unsigned columns, bool down) {
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

/* Factors as plain_sum.h reads them. */
struct plain_factors {
    _Alignas(64) float value[FACTORS_MAX];
    _Alignas(64) int32_t exponent[FACTORS_MAX];
};

/* Adds a block of products to all sums. */
static inline __attribute__((always_inline)) void
add_plain_block(struct problem *p, const struct plain_factors *a, const struct plain_factors *b,
                unsigned k_begin, unsigned count) {
    plain_floats a_value[PLAIN_K];
    plain_ints a_exponent[PLAIN_K];
    for (unsigned row = 0; row < p->m; row++) {
        for (unsigned k = 0; k < count; k++) {
            a_value[k] = (plain_floats){0} + a->value[row * p->k + k_begin + k];
            a_exponent[k] = (plain_ints){0} + a->exponent[row * p->k + k_begin + k];
        }
        for (unsigned column = 0; column < p->n; column += COLUMNS) {
            size_t at = (size_t)k_begin * p->n + column;
            struct plain_strip strip = {
                a_value, (const plain_floats *)(const void *)(b->value + at), a_exponent,
                (const plain_ints *)(const void *)(b->exponent + at), p->n / COLUMNS};
            add_plain(&strip, count, (plain_floats *)(void *)(p->c + row * p->n + column));
        }
    }
}

/* Whether the fast path applies. If so, it has computed the sums. */
static bool tensor_float_multiply_plain(struct problem *p, const struct tensor *t,
                                        const uint32_t *a_bits, const uint32_t *b_bits) {
    struct plain_factors a, b;
    float before[SUMS_MAX];
    const uint32_t *sums = (const uint32_t *)(const void *)p->c;
    if (p->half || !has_plain_type(t->a) || !has_plain_type(t->b)) return false;
    struct plain_range a_range = read_plain(a_bits, p->m * p->k, t->a, a.value, a.exponent);
    struct plain_range b_range = read_plain(b_bits, p->k * p->n, t->b, b.value, b.exponent);
    if (!are_plain_factors(&a_range, &b_range)) return false;
    memcpy(before, p->c, sizeof before);
    for (unsigned k = 0; k < p->k; k += p->block) {
        if (!are_plain(sums, p->m * p->n)) { /* of a block before, perhaps */
            memcpy(p->c, before, sizeof before);
            return false;
        }
        if (p->block == PLAIN_K) {
            add_plain_block(p, &a, &b, k, PLAIN_K);
        } else if (p->block == 8) {
            add_plain_block(p, &a, &b, k, 8);
        } else {
            add_plain_block(p, &a, &b, k, 4);
        }
    }
    return true;
}

/* The sums by tensor_sum.h, whatever the factors are. */
static void multiply_any(struct problem *p, const struct tensor *t, uint32_t *a, uint32_t *b) {
    bool bytes = soft_tensor_bits(t->a) == 8;
    if (bytes) {
        tensor_float_regroup(a, p->m, p->k, false);
        tensor_float_regroup(b, p->k, p->n, true);
    }
    p->special = read_factors(&p->a, a, p->m * p->k, t->a);
    p->special |= read_factors(&p->b, b, p->k * p->n, t->b);
    if (bytes) {
        multiply_bytes(p);
    } else {
        multiply(p);
    }
}

OP_WHOLE(mma_float) {
    struct tensor t = tensor_of(warp, in);
    struct soft_tensor_shape s = t.shape;
    struct fragment fa = fragment_of(s, SOFT_TENSOR_A, t.a);
    struct fragment fb = fragment_of(s, SOFT_TENSOR_B, t.b);
    struct fragment fc = fragment_of(s, SOFT_TENSOR_C, t.c);
    struct fragment fd = fragment_of(s, SOFT_TENSOR_C, t.d);
    _Alignas(64) uint32_t a[FACTORS_MAX], b[FACTORS_MAX], c[SUMS_MAX];
    _Alignas(64) struct problem p;
    /* If C or D is single, so is the sum: halves are widened before it and rounded after it. */
    begin_problem(&p, s, block_of(t.a, s), t.c == SOFT_TENSOR_F16 && t.d == SOFT_TENSOR_F16);
    gather_elements(warp, &fa, t.a_slots, a);
    gather_elements(warp, &fb, t.b_slots, b);
    gather_elements(warp, &fc, t.c_slots, c);
    read_sums(&p, c, t.c);
    if (!tensor_float_multiply_plain(&p, &t, a, b)) multiply_any(&p, &t, a, b);
    write_sums(&p, c, t.d);
    scatter_elements(warp, &fd, t.d_slots, c);
    return in + 1;
}
