/*
 * softmax(scale q k^T) v of a row, in double, and the bound of its error.
 *
 * Let u = 2^-24, n the keys that the row sees, size the largest scale sum |q| |k| of them, and A =
 * sum w |v| with the weights w. A score is a sum of head_size terms, off by at most head_size u
 * size in any order of fused multiply-adds; tensor cores add sixteen products at a time, truncated,
 * which is no more than 16 u for each of head_size / 16 of them. Scaling, the maximum and the
 * argument of exp2 round a few times more, up to the size at which exp2 becomes 0. So each exponent
 * is off by at most d, weights by a factor of at most exp(2 d), as their sum is off by one exp(d).
 * Sums over keys are off by n u of A, four times over: products, sums, and scaling anew. Weights
 * are rounded to the type where it has 16 bits, in fp16 by up to 2^-25 of those below 2^-14; exp2
 * gives 0 for what is below 2^-126. The result is rounded to the type.
 */
#include "attention/attention_oracle.h"

#include <math.h>
#include <stdlib.h>

/* In lanes, which become vectors, and are added in the end: the same on every machine. */
static double dot(const float *a, const float *b, size_t count, double *size) {
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

/* Adds weight v to out and weight |v| to weighted, and keeps the largest |v| of each column. */
static void add_value(const float *v, size_t width, double weight, double *restrict out,
                      double *restrict weighted, double *restrict largest) {
    for (size_t d = 0; d < width; d++) {
        const double value = (double)v[d], size = fabs(value);
        out[d] += weight * value;
        weighted[d] += weight * size;
        largest[d] = size > largest[d] ? size : largest[d];
    }
}

static void allow(const struct kn_attention *x, double size, double keys, double value_max,
                  const double *weighted, struct kn_attention_row *row) {
    const double u = 0x1p-24, type = kn_type_roundoff(x->type);
    const double exponent = u * (((double)x->head_size + 8) * size + 400);
    const double weight =
        expm1(2 * exponent) + 4 * u * (keys + 16) + (x->type == KN_F32 ? 0 : type);
    const double least = x->type == KN_F32 ? 0x1p-126 : x->type == KN_BF16 ? 0x1p-126 : 0x1p-25;
    const double small = keys * value_max * (x->type == KN_F16 ? 0x1p-25 : 0x1p-126);
    for (size_t d = 0; d < x->head_size; d++) {
        row->allowed[d] = weighted[d] * weight + small + type * fabs(row->out[d]) + least;
    }
    row->lse_allowed = exponent + 4 * u * (keys + 16) + 4 * u * fabs(row->lse);
}

bool kn_attention_oracle(const struct kn_attention *x, const struct kn_attention_head *head,
                         size_t index, struct kn_attention_row *row) {
    const double scale = x->scale != 0 ? (double)x->scale : 1 / sqrt((double)x->head_size);
    const size_t width = x->head_size;
    size_t keys = x->kv_length;
    if (x->causal) {
        keys = index + 1 + x->kv_length > x->q_length ? index + 1 + x->kv_length - x->q_length : 0;
        if (keys > x->kv_length) keys = x->kv_length;
    }
    double *weights = malloc((keys + 2 * width + 1) * sizeof *weights);
    double largest = -INFINITY, sum = 0, size_max = 0, value_max = 0;
    if (weights == NULL) return false;
    double *weighted = weights + keys, *values = weighted + width;
    for (size_t j = 0; j < keys; j++) {
        double size;
        weights[j] = scale * dot(head->q + index * width, head->k + j * width, width, &size);
        if (!(weights[j] <= largest)) largest = weights[j];
        size_max = fmax(size_max, scale * size);
    }
    for (size_t j = 0; j < keys; j++) {
        weights[j] = largest == -INFINITY ? 0 : exp(weights[j] - largest);
        sum += weights[j];
    }
    for (size_t d = 0; d < width; d++) row->out[d] = weighted[d] = values[d] = 0;
    for (size_t j = 0; j < keys && sum != 0; j++) {
        add_value(head->v + j * width, width, weights[j] / sum, row->out, weighted, values);
    }
    for (size_t d = 0; d < width; d++) value_max = fmax(value_max, values[d]);
    row->lse = sum == 0 ? -INFINITY : largest + log(sum);
    allow(x, size_max, (double)keys, value_max, weighted, row);
    free(weights);
    return true;
}
