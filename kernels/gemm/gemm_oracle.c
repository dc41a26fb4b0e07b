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

/* Row after row of op(B), so that memory is read in its order where B is not transposed. */
void kn_gemm_oracle(const struct kn_gemm *gemm, size_t index, size_t row,
                    const struct kn_gemm_oracle_matrix *a, const struct kn_gemm_oracle_matrix *b,
                    const struct kn_gemm_oracle_matrix *c, double *result, double *allowed) {
    const enum kn_type type = kn_gemm_input_type(gemm->precision);
    const size_t k = gemm->alpha == 0 ? 0 : gemm->k;
    const size_t a_first = index * a->batch_stride + row * (gemm->transpose_a ? 1 : a->leading);
    const size_t a_step = gemm->transpose_a ? a->leading : 1;
    const size_t b_column = gemm->transpose_b ? b->leading : 1;
    const size_t b_step = gemm->transpose_b ? 1 : b->leading;
    for (size_t j = 0; j < gemm->n; j++) result[j] = allowed[j] = 0; /* the sum, and S */
    for (size_t l = 0; l < k; l++) {
        const double left = element(type, a->elements, a_first + l * a_step);
        const size_t b_first = index * b->batch_stride + l * b_step;
        for (size_t j = 0; j < gemm->n; j++) {
            const double product = left * element(type, b->elements, b_first + j * b_column);
            result[j] += product;
            allowed[j] += fabs(product);
        }
    }
    for (size_t j = 0; j < gemm->n; j++) {
        const size_t at = index * c->batch_stride + row * c->leading + j;
        const double old = gemm->beta != 0 ? element(gemm->c_type, c->elements, at) : 0;
        const double sum = result[j];
        result[j] = (double)gemm->alpha * sum + (double)gemm->beta * old;
        allowed[j] = bound(gemm, sum, allowed[j], old, result[j]);
    }
}
