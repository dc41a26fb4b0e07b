/*
 * softmax(scale q k^T) v of a row, in double, and the bounds of its error.
 *
 * Let u = 2^-24, n the keys that the row sees, size the largest scale sum |q| |k| of them, w the
 * weights, which add up to 1, A = sum w |v|, W^2 = sum w^2 v^2, and U the sum of the weights before
 * they are divided by it, which is at least 1. A score is a sum of head_size terms, off by at most
 * head_size u size in any order of fused multiply-adds; tensor cores add sixteen products at once,
 * truncated, which is no more than 16 u for each of head_size / 16 of them. Scaling, the maximum
 * and the argument of exp2 round a few times more, up to the size at which exp2 becomes 0. So each
 * exponent is off by at most d, weights by a factor of at most exp(2 d), as their sum is off by one
 * exp(d). Weights are rounded to the type where it has 16 bits, in fp16 by up to 2^-25 of those
 * below 2^-14; exp2 gives 0 for what is below 2^-126. The result is rounded to the type.
 *
 * For any data, sums over keys are off by n u of A, four times over: products, sums, and scaling
 * anew, and the errors of weights by up to their size times A.
 *
 * For drawn data, where that is less (L = KN_SIGNS and C = KN_CHAOS are those of chance.h):
 *   errors of weights    do not depend on the signs of v: e of each weight adds L e W. e is
 *                        exp(2 d) - 1, the roundoff of 16 bits, and 4u for each of R + 16 times
 *                        that sums are scaled to a larger maximum or merged. As scores are
 *                        independent of each other, key i has the largest so far with a
 *                        probability of 1 / i. 64 of 2^16 keys or more do so, R = 64, with a
 *                        probability below 1e-21 (Chernoff, mean 11.7).
 *                        Absolute errors of 2^-25 / U and the like add L sqrt(n) max|v| of them.
 *   the sum of weights   scales the row. It is off by exp(d) - 1 and 4u R as above, and by the
 *                        roundings of its n additions, of which each is 2u of the whole at most:
 *                        L 2u sqrt(n) (Higham and Mary 2019, theorem 2.4). All times |out|.
 *   the sum over keys    as in gemm_oracle.c, with W for N: C u sqrt(2 n + 128) W of roundings to
 *                        nearest; on tensor cores also 2 C 2u sqrt(n + 16) W for what is cut off
 *                        products, and 2u (L K + sqrt(K)) W for sums cut K = n / 8 times.
 * The logarithm of the sum of weights has the error of that sum, and its own rounding.
 */
#include "attention/forward/attention_oracle.h"

#include "chance.h"

#include <math.h>
#include <stdlib.h>

/* In lanes, which become vectors, and are added in the end: the same on every machine. */
static double attention_oracle_dot(const float *a, const float *b, size_t count, double *size) {
    enum { LANES = 8 };
    double sums[LANES] = {0}, sizes[LANES] = {0}, sum = 0;
    const size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            const double product = (double)a[i + lane] * (double)b[i + lane];
            sums[lane] += product;
            sizes[lane] += fabs(product);
        }
    }
    for (size_t i = whole; i < count; i++) {
        const double product = (double)a[i] * (double)b[i];
        sums[i - whole] += product;
        sizes[i - whole] += fabs(product);
    }
    *size = 0;
    for (size_t lane = 0; lane < LANES; lane++) sum += sums[lane], *size += sizes[lane];
    return sum;
}

/* The sums of a row's columns, and what is known of all of its keys. */
struct row_sums {
    double *weighted, *squares, *largest; /* sum of w |v| and of (w v)^2, and the largest |v| */
    double keys, size, weights, value;    /* n; size; U; the largest |v| of all columns */
};

static void attention_oracle_add_value(const float *v, size_t width, double weight,
                                       double *restrict out, double *restrict weighted,
                                       double *restrict squares, double *restrict largest) {
    for (size_t d = 0; d < width; d++) {
        const double value = (double)v[d], size = fabs(value), term = weight * value;
        out[d] += term;
        weighted[d] += weight * size;
        squares[d] += term * term;
        largest[d] = size > largest[d] ? size : largest[d];
    }
}

/* The largest absolute error of a weight. */
static double weight_least(enum kn_type type) {
    return type == KN_F16 ? 0x1p-25 : 0x1p-126;
}

static double exponent_error(const struct kn_attention *x, const struct row_sums *sums) {
    return 0x1p-24 * (((double)x->head_size + 8) * sums->size + 400);
}

/* The relative error of scaling and merging sums, of drawn data: 4u for each time. */
static const double SCALED = 4 * 0x1p-24 * (64 + 16);

static double error_of_sum(const struct row_sums *sums) {
    return SCALED + 2 * 0x1p-24 * KN_SIGNS * sqrt(sums->keys);
}

static double worst_of_row(const struct kn_attention *x, const struct row_sums *sums, size_t d) {
    const double roundoff = x->type == KN_F32 ? 0 : kn_type_roundoff(x->type);
    const double weight =
        expm1(2 * exponent_error(x, sums)) + 4 * 0x1p-24 * (sums->keys + 16) + roundoff;
    return sums->weighted[d] * weight + sums->keys * sums->value * weight_least(x->type);
}

static double likely_of_row(const struct kn_attention *x, const struct row_sums *sums, size_t d,
                            double out) {
    const double u = 0x1p-24, n = sums->keys, steps = ceil(n / 8);
    const double exponent = expm1(2 * exponent_error(x, sums));
    const double roundoff = x->type == KN_F32 ? 0 : kn_type_roundoff(x->type);
    const double cut = 2 * u * (2 * KN_CHAOS * sqrt(n + 16) + KN_SIGNS * steps + sqrt(steps));
    const double chain = KN_CHAOS * u * sqrt(2 * n + 128) + (x->type == KN_F32 ? 0 : cut);
    const double norm = sqrt(sums->squares[d]);
    return KN_SIGNS * (exponent + SCALED + roundoff) * norm +
           KN_SIGNS * sqrt(n) * sums->value * weight_least(x->type) / sums->weights +
           fabs(out) * (exponent + error_of_sum(sums)) + chain * norm * KN_CHANCE_SECOND_ORDER(n);
}

static void attention_oracle_allow(const struct kn_attention *x, enum kn_attention_data data,
                                   const struct row_sums *sums, struct kn_attention_row *row) {
    const double u = 0x1p-24, type = kn_type_roundoff(x->type);
    const double least = x->type == KN_F16 ? 0x1p-25 : 0x1p-126;
    double of_sum = 4 * u * (sums->keys + 16);
    for (size_t d = 0; d < x->head_size; d++) {
        double allowed = worst_of_row(x, sums, d);
        if (data == KN_ATTENTION_DRAWN) {
            allowed = fmin(allowed, likely_of_row(x, sums, d, row->out[d]));
        }
        row->allowed[d] = allowed + type * (fabs(row->out[d]) + allowed) + least;
    }
    if (data == KN_ATTENTION_DRAWN) of_sum = fmin(of_sum, error_of_sum(sums));
    row->lse_allowed = exponent_error(x, sums) + of_sum + 4 * u * fabs(row->lse);
}

size_t kn_attention_seen(const struct kn_attention *x, size_t row, size_t *first) {
    *first = 0;
    if (!x->causal) return x->kv_length;
    const size_t end =
        row + 1 + x->kv_length > x->q_length ? row + 1 + x->kv_length - x->q_length : 0;
    if (x->window != 0 && x->window < end) *first = end - x->window;
    return end - *first;
}

bool kn_attention_oracle(const struct kn_attention *x, enum kn_attention_data data,
                         const struct kn_attention_head *head, size_t index,
                         struct kn_attention_row *row) {
    const double scale = x->scale != 0 ? (double)x->scale : 1 / sqrt((double)x->head_size);
    const size_t width = x->head_size;
    size_t first = 0;
    const size_t keys = kn_attention_seen(x, index, &first);
    const float *k = head->k + first * width, *v = head->v + first * width;
    double *weights = malloc((keys + 3 * width + 1) * sizeof *weights);
    double largest = -INFINITY, sum = 0;
    if (weights == NULL) return false;
    struct row_sums sums = {.weighted = weights + keys,
                            .squares = weights + keys + width,
                            .largest = weights + keys + 2 * width,
                            .keys = (double)keys};
    for (size_t j = 0; j < keys; j++) {
        double size;
        weights[j] =
            scale * attention_oracle_dot(head->q + index * width, k + j * width, width, &size);
        if (!(weights[j] <= largest)) largest = weights[j];
        sums.size = fmax(sums.size, scale * size);
    }
    for (size_t j = 0; j < keys; j++) {
        weights[j] = largest == -INFINITY ? 0 : exp(weights[j] - largest);
        sum += weights[j];
    }
    for (size_t d = 0; d < width; d++) {
        row->out[d] = sums.weighted[d] = sums.squares[d] = sums.largest[d] = 0;
    }
    for (size_t j = 0; j < keys && sum != 0; j++) {
        attention_oracle_add_value(v + j * width, width, weights[j] / sum, row->out, sums.weighted,
                                   sums.squares, sums.largest);
    }
    for (size_t d = 0; d < width; d++) sums.value = fmax(sums.value, sums.largest[d]);
    sums.weights = sum > 1 ? sum : 1; /* no key: anything */
    row->lse = sum == 0 ? -INFINITY : largest + log(sum);
    attention_oracle_allow(x, data, &sums, row);
    free(weights);
    return true;
}
