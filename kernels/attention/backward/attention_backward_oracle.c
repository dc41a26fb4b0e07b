/*
 * The gradients of attention in double, and the bounds of their errors.
 *
 * Let u = 2^-24, t the roundoff of the type and a the largest error of rounding what is below its
 * normal numbers (0 and 0 where the type is fp32, since then nothing is rounded in between), h the
 * head size. All bounds are for any data and any order of sums; of tensor cores, which truncate, a
 * sum of n terms is off by no more than 4 n u times the sum of their sizes, as in
 * attention_oracle.c.
 *
 *   lse, out   are off by what attention_oracle.c allows, E_lse and E_out; out is stored in the
 *              type, which that bound includes.
 *   P          = exp2(s - lse) has an exponent that is off by e = u ((h + 8) S + 400) + E_lse +
 *              4 u |lse|, with S the largest scale sum |q| |k| of the row: the score as in
 *              attention_oracle.c, and lse with its product with log2(e). So P is off by a factor
 *              of exp(e), and by 8 u of exp2 itself, which gives 0 below 2^-126:
 *                  E_P = P (exp(e + 8 u) - 1) + 2^-126.
 *   d_p        = sum d_out v is off by E_dp = 4 u (h + 8) sum |d_out| |v|.
 *   delta      = sum d_out out is off by E_delta = sum |d_out| E_out + 4 u (h + 8) sum |d_out|
 *              (|out| + E_out).
 *   d_s        = P (d_p - delta), with one subtraction and one product in float:
 *                  E_ds = E_P |d_p - delta| + (P + E_P) (E_dp + E_delta + 4 u (|d_p| + |delta| +
 *                  E_dp + E_delta)).
 *   rounding   to the type, of P and of d_s: X is then off by R_X = E_X + t (|X| + E_X) + a.
 *   sums       over n pairs, of X = d_s or P, with rows y of k, q or d_out: sum R_X |y| + 4 u
 *              (n + 16) sum (|X| + R_X) |y|. d_q and d_k are then multiplied by the scale, which is
 *              itself rounded: 4 u of the result more.
 *   result     rounded to the type, as everything is.
 */
#include "attention/backward/attention_backward_oracle.h"

#include <math.h>
#include <stdlib.h>

static const double U = 0x1p-24;

/* What is known of a row of q: out and delta, with their errors, and the exponent's error. */
struct row_figures {
    double lse, exponent_error, delta, delta_error;
};

/* A sum of products, and of their sizes. */
struct sized_sum {
    double sum, size;
};

static struct sized_sum backward_oracle_dot(const float *a, const float *b, size_t count) {
    struct sized_sum s = {0, 0};
    for (size_t d = 0; d < count; d++) {
        const double product = (double)a[d] * (double)b[d];
        s.sum += product, s.size += fabs(product);
    }
    return s;
}

static double backward_oracle_scale_of(const struct kn_attention *x) {
    return x->scale != 0 ? (double)x->scale : 1 / sqrt((double)x->head_size);
}

/* out is room for twice head_size. false: out of memory. */
static bool find_figures(const struct kn_attention *x, enum kn_attention_data data,
                         const struct kn_attention_head *head, const float *d_out, size_t index,
                         double *out, struct row_figures *figures) {
    const size_t width = x->head_size;
    struct kn_attention_row row = {.out = out, .allowed = out + width};
    size_t first = 0;
    const size_t seen = kn_attention_seen(x, index, &first);
    double most = 0, size = 0;
    if (!kn_attention_oracle(x, data, head, index, &row)) return false;
    *figures = (struct row_figures){.lse = row.lse};
    for (size_t j = first; j < first + seen; j++) {
        most = fmax(most,
                    backward_oracle_dot(head->q + index * width, head->k + j * width, width).size);
    }
    for (size_t d = 0; d < width; d++) {
        const double gradient = (double)d_out[index * width + d];
        figures->delta += gradient * row.out[d];
        figures->delta_error += fabs(gradient) * row.allowed[d];
        size += fabs(gradient) * (fabs(row.out[d]) + row.allowed[d]);
    }
    figures->delta_error += 4 * U * ((double)width + 8) * size;
    figures->exponent_error = U * (((double)width + 8) * backward_oracle_scale_of(x) * most + 400) +
                              row.lse_allowed + 4 * U * fabs(row.lse);
    return true;
}

/* Of a pair of a row and a key: a factor of the sums, and its error after rounding to the type. */
struct factor {
    double value, error;
};

static struct factor backward_oracle_rounded(const struct kn_attention *x, double value,
                                             double error) {
    if (x->type == KN_F32) return (struct factor){value, error};
    const double least = x->type == KN_F16 ? 0x1p-25 : 0x1p-126;
    return (struct factor){value,
                           error + kn_type_roundoff(x->type) * (fabs(value) + error) + least};
}

static void find_pair(const struct kn_attention *x, const struct kn_attention_backward_heads *h,
                      const struct row_figures *figures, size_t row, size_t key, struct factor *p,
                      struct factor *d_s) {
    const size_t width = x->head_size;
    const double score = backward_oracle_scale_of(x) *
                         backward_oracle_dot(h->q + row * width, h->k + key * width, width).sum;
    const struct sized_sum d_p =
        backward_oracle_dot(h->d_out + row * width, h->v + key * width, width);
    const double weight = figures->lse == -INFINITY ? 0 : exp(score - figures->lse);
    const double weight_error = weight * expm1(figures->exponent_error + 8 * U) + 0x1p-126;
    const double off = 4 * U * ((double)width + 8) * d_p.size + figures->delta_error;
    const double difference = d_p.sum - figures->delta;
    const double size = fabs(d_p.sum) + fabs(figures->delta) + off;
    *p = backward_oracle_rounded(x, weight, weight_error);
    *d_s = backward_oracle_rounded(x, weight * difference,
                                   weight_error * fabs(difference) +
                                       (weight + weight_error) * (off + 4 * U * size));
}

/* Adds factor times a row to a gradient of `count` terms. */
static void backward_oracle_add(const struct kn_attention_gradient *to, size_t at,
                                struct factor factor, double count, const float *row,
                                size_t width) {
    const double error = factor.error + 4 * U * (count + 16) * (fabs(factor.value) + factor.error);
    for (size_t d = 0; d < width; d++) {
        to->values[at + d] += factor.value * (double)row[d];
        to->allowed[at + d] += error * fabs((double)row[d]);
    }
}

static void backward_oracle_clear(const struct kn_attention_gradient *gradient, size_t count) {
    for (size_t i = 0; i < count; i++) gradient->values[i] = gradient->allowed[i] = 0;
}

/* Scales the sums, and allows what the result's rounding adds. */
static void backward_oracle_finish(const struct kn_attention *x,
                                   const struct kn_attention_gradient *gradient, size_t count,
                                   double scale) {
    const double type = kn_type_roundoff(x->type), least = x->type == KN_F16 ? 0x1p-25 : 0x1p-126;
    for (size_t i = 0; i < count; i++) {
        const double value = gradient->values[i] *= scale;
        double allowed = gradient->allowed[i] * scale;
        allowed += 4 * U * (fabs(value) + allowed);
        gradient->allowed[i] = allowed + type * (fabs(value) + allowed) + least;
    }
}

bool kn_attention_backward_oracle(const struct kn_attention *x, enum kn_attention_data data,
                                  const struct kn_attention_backward_heads *heads,
                                  const struct kn_attention_gradients *g) {
    const size_t width = x->head_size, group = x->heads / x->kv_heads, rows = group * x->q_length;
    double *out = malloc(2 * width * sizeof *out);
    bool fits = out != NULL;
    backward_oracle_clear(&g->d_q, rows * width);
    backward_oracle_clear(&g->d_k, x->kv_length * width);
    backward_oracle_clear(&g->d_v, x->kv_length * width);
    for (size_t row = 0; fits && row < rows; row++) {
        const size_t head = row / x->q_length, index = row % x->q_length;
        const size_t skipped = head * x->q_length * width;
        const struct kn_attention_head of_head = {heads->q + skipped, heads->k, heads->v};
        size_t first = 0;
        const size_t seen = kn_attention_seen(x, index, &first);
        struct row_figures figures;
        fits = find_figures(x, data, &of_head, heads->d_out + skipped, index, out, &figures);
        for (size_t key = first; fits && key < first + seen; key++) {
            struct factor p, d_s;
            find_pair(x, heads, &figures, row, key, &p, &d_s);
            backward_oracle_add(&g->d_q, row * width, d_s, (double)seen, heads->k + key * width,
                                width);
            backward_oracle_add(&g->d_k, key * width, d_s, (double)rows, heads->q + row * width,
                                width);
            backward_oracle_add(&g->d_v, key * width, p, (double)rows, heads->d_out + row * width,
                                width);
        }
    }
    backward_oracle_finish(x, &g->d_q, rows * width, backward_oracle_scale_of(x));
    backward_oracle_finish(x, &g->d_k, x->kv_length * width, backward_oracle_scale_of(x));
    backward_oracle_finish(x, &g->d_v, x->kv_length * width, 1);
    free(out);
    return fits;
}
