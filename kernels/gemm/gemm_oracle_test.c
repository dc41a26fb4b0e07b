/*
 * The oracle of gemm, which everything else is held against: it is the definition, bit for bit.
 */
#include "gemm/gemm_oracle.h"

#include "deviation.h"
#include "inputs.h"
#include "test/test_device.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { M = 3, N = 300, K = 37, GAP = 5, ELEMENTS = 2 * (N + GAP) * (N + GAP) };

static float numbers[ELEMENTS];
static uint16_t halves[2][ELEMENTS]; /* fp16, bf16 */

static double value_of(enum kn_gemm_precision precision, size_t at) {
    return precision == KN_GEMM_F16    ? (double)kn_f16_value(halves[0][at])
           : precision == KN_GEMM_BF16 ? (double)kn_bf16_value(halves[1][at])
           : precision == KN_GEMM_TF32 ? (double)kn_tf32_of(numbers[at])
                                       : (double)numbers[at];
}

/* One row, by the sum in the order of l. */
static void expect_row(const struct kn_gemm *g, size_t index, size_t row,
                       const struct kn_gemm_oracle_matrix *a, const struct kn_gemm_oracle_matrix *b,
                       const struct kn_gemm_oracle_matrix *c) {
    double result[N], allowed[N], likely[N];
    kn_gemm_oracle(g, KN_GEMM_ANY, index, row, a, b, c, result, allowed);
    kn_gemm_oracle(g, KN_GEMM_DRAWN, index, row, a, b, c, result, likely);
    for (size_t j = 0; j < g->n; j++) {
        double sum = 0;
        for (size_t l = 0; l < g->k; l++) {
            const size_t left = g->transpose_a ? l * a->leading + row : row * a->leading + l;
            const size_t right = g->transpose_b ? j * b->leading + l : l * b->leading + j;
            sum += value_of(g->precision, index * a->batch_stride + left) *
                   value_of(g->precision, index * b->batch_stride + right);
        }
        const double old = (double)numbers[index * c->batch_stride + row * c->leading + j];
        const double exact = (double)g->alpha * sum + (double)g->beta * old;
        cr_assert(result[j] == exact, "%s %d%d, %zu columns of %zu: row %zu, column %zu",
                  kn_gemm_precision_name(g->precision), g->transpose_a, g->transpose_b, g->n, g->k,
                  row, j);
        cr_assert(allowed[j] > 0 && isfinite(allowed[j]));
        cr_assert(likely[j] > 0 && likely[j] <= allowed[j]);
    }
}

Test(gemm_oracle, sums_are_the_definition_however_the_matrices_lie) {
    static const size_t columns[] = {1, 7, 8, 9, 255, 256, 257, N}, depths[] = {1, 16, 17, K};
    uint64_t state = 3;
    kn_inputs_draw(KN_NORMAL, &state, 1, numbers, ELEMENTS);
    kn_numbers_store(KN_F16, numbers, ELEMENTS, halves[0]);
    kn_numbers_store(KN_BF16, numbers, ELEMENTS, halves[1]);
    for (unsigned i = 0; i < KN_GEMM_PRECISIONS * 4 * 8 * 4; i++) {
        const enum kn_gemm_precision p = i % KN_GEMM_PRECISIONS;
        const void *elements = p == KN_GEMM_F16    ? (const void *)halves[0]
                               : p == KN_GEMM_BF16 ? (const void *)halves[1]
                                                   : (const void *)numbers;
        const struct kn_gemm g = {.precision = p,
                                  .transpose_a = i / 4 % 2 == 1,
                                  .transpose_b = i / 8 % 2 == 1,
                                  .m = M,
                                  .n = columns[i / 16 % 8],
                                  .k = depths[i / 128],
                                  .batch = 2,
                                  .alpha = 0.75f,
                                  .beta = 2};
        const struct kn_gemm_oracle_matrix a = {elements, K + GAP, M * (K + GAP)},
                                           b = {elements, N + GAP, N * (N + GAP)},
                                           c = {numbers, N + GAP, M * (N + GAP)};
        for (size_t row = 0; row < M; row++) expect_row(&g, row % 2, row, &a, &b, &c);
    }
}

/* ---- the bounds at the sizes of real programs ------------------------------------------------ */

struct drawn {
    struct kn_gemm gemm;
    struct kn_gemm_oracle_matrix a, b;
    float *floats[2];  /* the elements as they are multiplied; B is transposed */
    void *elements[2]; /* as they are stored */
};

static void *room(size_t bytes) {
    void *p = malloc(bytes);
    cr_assert(p != NULL, "no memory for %zu bytes", bytes);
    return p;
}

/* Uniform elements; both matrices are stored with steps side by side. */
static struct drawn draw(enum kn_gemm_precision precision, size_t m, size_t n, size_t k,
                         uint64_t seed) {
    const enum kn_type type = kn_gemm_input_type(precision);
    const size_t counts[] = {m * k, n * k};
    struct drawn d = {
        .gemm = {.precision = precision, .transpose_b = true, .m = m, .n = n, .k = k, .alpha = 1}};
    for (int i = 0; i < 2; i++) {
        float *values = d.floats[i] = room(counts[i] * sizeof *values);
        d.elements[i] = room(counts[i] * kn_type_bytes(type));
        kn_inputs_draw(KN_UNIFORM, &seed, 1, values, counts[i]);
        kn_numbers_store(type, values, counts[i], d.elements[i]);
        kn_numbers_load(type, d.elements[i], counts[i], values);
        for (size_t j = 0; precision == KN_GEMM_TF32 && j < counts[i]; j++) {
            values[j] = kn_tf32_of(values[j]);
        }
    }
    d.a = (struct kn_gemm_oracle_matrix){d.elements[0], k, m * k};
    d.b = (struct kn_gemm_oracle_matrix){d.elements[1], k, n * k};
    return d;
}

static void discard(struct drawn *d) {
    for (int i = 0; i < 2; i++) free(d->floats[i]), free(d->elements[i]);
}

/* value as a float, cut off towards zero. */
static float cut(double value) {
    const float nearest = (float)value;
    return fabs((double)nearest) > fabs(value) ? nextafterf(nearest, 0) : nearest;
}

/* Cut off at 2^-23 of the power of two of the largest. */
static double aligned(double value, int exponent) {
    const double unit = ldexp(1, exponent - 24);
    return trunc(value / unit) * unit;
}

/* An element as kernels compute it: a chain of fused multiply-adds, or steps of a tensor core that
 * keeps the fewest digits and adds the fewest products at once (V100 and A100; tensor_model.h). */
static double summed(const struct drawn *d, size_t i, size_t j) {
    const size_t k = d->gemm.k, at_once = d->gemm.precision == KN_GEMM_TF32 ? 4 : 8;
    const float *a = d->floats[0] + i * k, *b = d->floats[1] + j * k;
    const bool is_chain =
        d->gemm.precision == KN_GEMM_F32 || d->gemm.precision == KN_GEMM_F32_TENSOR;
    float sum = 0;
    for (size_t l = 0; is_chain && l < k; l++) {
        sum = (float)((double)a[l] * (double)b[l] + (double)sum);
    }
    for (size_t l = 0; !is_chain && l < k; l += at_once) {
        int exponent = 0;
        double largest = fabs((double)sum), all = 0;
        for (size_t p = l; p < l + at_once; p++) {
            largest = fmax(largest, fabs((double)a[p] * (double)b[p]));
        }
        (void)frexp(largest, &exponent);
        for (size_t p = l; p < l + at_once; p++) {
            all += aligned((double)a[p] * (double)b[p], exponent);
        }
        sum = cut(all + aligned((double)sum, exponent));
    }
    return (double)sum;
}

/* The exact sum of steps from first on. */
static double part(const struct drawn *d, size_t i, size_t j, size_t first, size_t count) {
    const float *a = d->floats[0] + i * d->gemm.k, *b = d->floats[1] + j * d->gemm.k;
    double sum = 0;
    for (size_t l = first; l < first + count; l++) sum += (double)a[l] * (double)b[l];
    return sum;
}

/* Judges a row as what a kernel would store: values, rounded to C's type. */
static size_t failed(const struct drawn *d, const float *values, const double *result,
                     const double *allowed) {
    unsigned char *elements = room(d->gemm.n * sizeof(float));
    kn_numbers_store(d->gemm.c_type, values, d->gemm.n, elements);
    const struct kn_deviation deviation = kn_deviation_of(
        d->gemm.c_type, elements, result, d->gemm.n, (struct kn_tolerance){0, 0}, allowed);
    free(elements);
    return deviation.failed;
}

struct counts {
    size_t right, zeros, lost; /* failed elements: of a right product, of zeros, and of one that
                                  lacks some steps */
};

/* Judges all rows with and without the faults, once for each type of C. */
static struct counts judge(struct drawn *d, enum kn_type c_type, bool computes, size_t lost_first,
                           size_t lost_count) {
    const size_t n = d->gemm.n;
    struct counts counts = {0, 0, 0};
    double *result = room(2 * n * sizeof *result);
    float *values = room(n * sizeof *values);
    d->gemm.c_type = c_type;
    for (size_t i = 0; i < d->gemm.m; i++) {
        kn_gemm_oracle(&d->gemm, KN_GEMM_DRAWN, 0, i, &d->a, &d->b, NULL, result, result + n);
        for (size_t j = 0; j < n; j++) {
            values[j] = computes ? (float)summed(d, i, j) : (float)result[j];
        }
        counts.right += failed(d, values, result, result + n);
        for (size_t j = 0; j < n; j++) values[j] -= (float)part(d, i, j, lost_first, lost_count);
        counts.lost += failed(d, values, result, result + n);
        for (size_t j = 0; j < n; j++) values[j] = 0;
        counts.zeros += failed(d, values, result, result + n);
    }
    free(values);
    free(result);
    return counts;
}

/* Goal: at k = 65536 every order of magnitude is where it should be: what kernels compute is within
 * the bound, over seeds; nearly all elements of a product of zeros, and of one that lacks one of 64
 * shares, are not. */
static void expect_shares(enum kn_gemm_precision precision) {
    enum { SIDE = 16, STEPS = 65536 };
    for (uint64_t seed = 1; seed <= 2; seed++) {
        if (!test_takes_trial()) continue;
        struct drawn d = draw(precision, SIDE, SIDE, STEPS, seed);
        const enum kn_type types[] = {KN_F32, kn_gemm_input_type(precision)};
        for (int i = 0; i < (types[1] == KN_F32 ? 1 : 2); i++) {
            const struct counts counts = judge(&d, types[i], true, STEPS / 64 * 21, STEPS / 64);
            const size_t most = SIDE * SIDE * 3 / 4;
            cr_assert(counts.right == 0, "%s: %zu right elements fail",
                      kn_gemm_precision_name(precision), counts.right);
            cr_assert(counts.zeros > most && counts.lost > most, "%s into %s: %zu and %zu fail",
                      kn_gemm_precision_name(precision), kn_type_name(types[i]), counts.zeros,
                      counts.lost);
        }
        discard(&d);
    }
}

Test(gemm_oracle, zeros_and_a_lost_share_of_65536_steps_exceed_the_bound_in_f32) {
    expect_shares(KN_GEMM_F32);
}

Test(gemm_oracle, zeros_and_a_lost_share_of_65536_steps_exceed_the_bound_in_f32_tensor) {
    expect_shares(KN_GEMM_F32_TENSOR);
}

Test(gemm_oracle, zeros_and_a_lost_share_of_65536_steps_exceed_the_bound_in_tf32) {
    expect_shares(KN_GEMM_TF32);
}

Test(gemm_oracle, zeros_and_a_lost_share_of_65536_steps_exceed_the_bound_in_f16) {
    expect_shares(KN_GEMM_F16);
}

Test(gemm_oracle, zeros_and_a_lost_share_of_65536_steps_exceed_the_bound_in_bf16) {
    expect_shares(KN_GEMM_BF16);
}

/* Goal: a factor half way between two numbers of tf32 may become either, and no other may. */
Test(gemm_oracle, a_factor_half_way_may_be_rounded_either_way) {
    const float half_way = 1 + 0x1p-11f, beside = 1 + 0x1.002p-11f;
    for (unsigned i = 0; i < 4; i++) {
        float left = i % 2 == 0 ? half_way : beside, right = i / 2 == 0 ? 3 : left;
        const struct kn_gemm gemm = {.precision = KN_GEMM_TF32, .m = 1, .n = 1, .k = 1, .alpha = 1};
        const struct kn_gemm_oracle_matrix a = {&left, 1, 1}, b = {&right, 1, 1};
        double result, allowed;
        kn_gemm_oracle(&gemm, KN_GEMM_ANY, 0, 0, &a, &b, NULL, &result, &allowed);
        const double up = 1 + 0x1p-10, most = i / 2 == 0 ? 3 * up : up * up;
        const double least = i % 2 == 1 ? most : i / 2 == 0 ? 3 : 1;
        cr_assert(result == most, "%g", result - most);
        cr_assert(allowed >= most - least && allowed < most - least + 0x1p-14, "%g", allowed);
    }
}

/* Goal: one lost step of 4096 exceeds the bound in many elements, in every precision and type of C.
 * A lost step of a row is as small as its element of A, so there are some rows. */
Test(gemm_oracle, one_lost_step_of_4096_exceeds_the_bound) {
    for (enum kn_gemm_precision precision = 0; precision < KN_GEMM_PRECISIONS; precision++) {
        struct drawn d = draw(precision, 4, 1024, 4096, 7);
        const enum kn_type types[] = {KN_F32, kn_gemm_input_type(precision)};
        for (int i = 0; i < (types[1] == KN_F32 ? 1 : 2); i++) {
            const struct counts counts = judge(&d, types[i], false, 1033, 1);
            cr_assert(counts.right == 0 && counts.zeros > 3900, "%zu and %zu fail", counts.right,
                      counts.zeros);
            cr_assert(counts.lost > 400, "%s into %s: %zu elements of 4096 fail",
                      kn_gemm_precision_name(precision), kn_type_name(types[i]), counts.lost);
        }
        discard(&d);
    }
}
