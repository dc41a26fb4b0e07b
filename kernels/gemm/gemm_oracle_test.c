/*
 * The oracle of gemm, which everything else is held against: it is the definition, bit for bit.
 */
#include "gemm/gemm_oracle.h"

#include "inputs.h"

#include <criterion/criterion.h>
#include <math.h>

enum { M = 3, N = 300, K = 37, GAP = 5, ELEMENTS = 2 * (N + GAP) * (N + GAP) };

static float numbers[ELEMENTS];
static uint16_t halves[2][ELEMENTS]; /* fp16, bf16 */

static double value_of(enum kn_gemm_precision precision, size_t at) {
    return precision == KN_GEMM_F16    ? (double)kn_f16_value(halves[0][at])
           : precision == KN_GEMM_BF16 ? (double)kn_bf16_value(halves[1][at])
                                       : (double)numbers[at];
}

/* One row, by the sum in the order of l. */
static void expect_row(const struct kn_gemm *g, size_t index, size_t row,
                       const struct kn_gemm_oracle_matrix *a, const struct kn_gemm_oracle_matrix *b,
                       const struct kn_gemm_oracle_matrix *c) {
    double result[N], allowed[N];
    kn_gemm_oracle(g, index, row, a, b, c, result, allowed);
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
