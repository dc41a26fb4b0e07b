/*
 * The definition, and the bound.
 *
 * With S = sum over l of |a_il| |b_lj|, u = 2^-24 and k products, a result may differ from the
 * exact one by the sum of these:
 *
 *   f32            (k + 2) u |alpha| S: each fma of a chain, or of a few chains that are added,
 *                  rounds a partial sum of at most S (1 + k u). Higham, Accuracy, section 3.1.
 *   tensor cores   (k + 32) 2^-22 |alpha| S: products are exact; a step adds up to 16 of them and
 *                  the sum so far, each cut off at 2^-23 of the largest of them or finer, which is
 *                  at most S. 17 such cuts and one of the result for every 16 products, or 9 and
 *                  one for every 8, are at most 1.25 k 2^-23 S; the rest is for steps half empty.
 *   tf32           and 2^-10 (1 + 2^-12) |alpha| S: both factors were rounded by up to 2^-11.
 *   c's type       its roundoff times |result|, and half of its smallest subnormal.
 *   alpha, beta    3 u (|alpha sum| + |beta c|): two products and a sum, in float.
 *   underflow      (k + 2) 2^-149 (1 + |alpha|): sums below 2^-126 are rounded to multiples of
 *                  that. On tensor cores (k + 2) 2^-126: they need not keep subnormal numbers.
 */
#include "gemm_oracle.h"

#include <math.h>

static double element(enum kn_type type, const void *elements, size_t at) {
    switch (type) {
    case KN_F16:
        return (double)kn_f16_value(((const uint16_t *)elements)[at]);
    case KN_BF16:
        return (double)kn_bf16_value(((const uint16_t *)elements)[at]);
    case KN_F32:
    case KN_TYPES:
        break;
    }
    return (double)((const float *)elements)[at];
}

static double bound(const struct kn_gemm *gemm, double sum, double sizes, double old,
                    double result) {
    const double u = 0x1p-24, k = (double)gemm->k, alpha = fabs((double)gemm->alpha);
    const bool tensor = gemm->precision != KN_GEMM_F32;
    const double least = gemm->c_type == KN_F16 ? 0x1p-25 : gemm->c_type == KN_BF16 ? 0x1p-134 : 0;
    double allowed = (tensor ? (k + 32) * 0x1p-22 : (k + 2) * u) * alpha * sizes;
    if (gemm->precision == KN_GEMM_TF32) allowed += 0x1p-10 * (1 + 0x1p-12) * alpha * sizes;
    allowed += 3 * u * (alpha * fabs(sum) + fabs((double)gemm->beta * old));
    allowed += (k + 2) * (tensor ? 0x1p-126 : 0x1p-149) * (1 + alpha);
    if (gemm->c_type != KN_F32) {
        allowed += kn_type_roundoff(gemm->c_type) * (fabs(result) + allowed) + least;
    }
    return allowed;
}

/* A tile of op(B), in floats: sums over it are vectors of columns, whichever way B lies, and each
 * sum still takes its products in the order of l. */
enum { DEPTH = 16, LANES = 8, COLUMNS = 32 * LANES };

struct tile {
    size_t first_l, first_j, depth, columns;
    float values[DEPTH][COLUMNS];
};

/* Columns past the last are 0 up to whole lanes. */
static void load_tile(const struct kn_gemm *gemm, size_t index,
                      const struct kn_gemm_oracle_matrix *b, struct tile *tile) {
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t lines = gemm->transpose_b ? tile->columns : tile->depth;
    const size_t line_first = gemm->transpose_b ? tile->first_j : tile->first_l;
    const size_t first = gemm->transpose_b ? tile->first_l : tile->first_j;
    for (size_t line = 0; line < lines; line++) {
        const char *from = (const char *)b->elements +
                           kn_type_bytes(type) *
                               (index * b->batch_stride + (line_first + line) * b->leading + first);
        if (gemm->transpose_b) {
            float column[DEPTH];
            kn_numbers_load(type, from, tile->depth, column);
            for (size_t l = 0; l < tile->depth; l++) tile->values[l][line] = column[l];
        } else {
            kn_numbers_load(type, from, tile->columns, tile->values[line]);
        }
    }
    for (size_t l = 0; l < tile->depth; l++) {
        for (size_t j = tile->columns; j % LANES != 0; j++) tile->values[l][j] = 0;
    }
}

/* Adds the products with one piece of a row of op(A) to sums and sizes. */
static void add_tile(const struct tile *tile, const double left[DEPTH], double *sums,
                     double *sizes) {
    for (size_t j = 0; j < tile->columns; j += LANES) {
        double sum[LANES], size[LANES];
        for (int i = 0; i < LANES; i++)
            sum[i] = sums[j + (size_t)i], size[i] = sizes[j + (size_t)i];
        for (size_t l = 0; l < tile->depth; l++) {
            const float *right = &tile->values[l][j];
            for (int i = 0; i < LANES; i++) {
                const double product = left[l] * (double)right[i];
                sum[i] += product;
                size[i] += fabs(product);
            }
        }
        for (int i = 0; i < LANES; i++)
            sums[j + (size_t)i] = sum[i], sizes[j + (size_t)i] = size[i];
    }
}

void kn_gemm_oracle(const struct kn_gemm *gemm, size_t index, size_t row,
                    const struct kn_gemm_oracle_matrix *a, const struct kn_gemm_oracle_matrix *b,
                    const struct kn_gemm_oracle_matrix *c, double *result, double *allowed) {
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t k = gemm->alpha == 0 ? 0 : gemm->k;
    const size_t a_first = index * a->batch_stride + row * (gemm->transpose_a ? 1 : a->leading);
    const size_t a_step = gemm->transpose_a ? a->leading : 1;
    for (size_t first = 0; first < gemm->n; first += COLUMNS) {
        const size_t columns = gemm->n - first < COLUMNS ? gemm->n - first : COLUMNS;
        double sums[COLUMNS] = {0}, sizes[COLUMNS] = {0}, left[DEPTH];
        for (size_t l = 0; l < k; l += DEPTH) {
            struct tile tile; /* its values are not worth clearing each time */
            tile.first_l = l, tile.depth = k - l < DEPTH ? k - l : DEPTH;
            tile.first_j = first, tile.columns = columns;
            for (size_t i = 0; i < tile.depth; i++) {
                left[i] = element(type, a->elements, a_first + (l + i) * a_step);
            }
            load_tile(gemm, index, b, &tile);
            add_tile(&tile, left, sums, sizes);
        }
        for (size_t j = first; j < first + columns; j++) {
            const size_t at = index * c->batch_stride + row * c->leading + j;
            const double old = gemm->beta != 0 ? element(gemm->c_type, c->elements, at) : 0;
            const double sum = sums[j - first];
            result[j] = (double)gemm->alpha * sum + (double)gemm->beta * old;
            allowed[j] = bound(gemm, sum, sizes[j - first], old, result[j]);
        }
    }
}
