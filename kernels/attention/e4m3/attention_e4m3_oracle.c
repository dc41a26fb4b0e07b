/*
 * The definition and the bounds from those of attention over fp16, which has the numbers of e4m3.
 *
 * Let D be the elements of a head and size the largest scale sum |q| |k|, with the scales of the
 * head in the scale. Hopper adds 32 products of e4m3 and the sum so far at once, of which each
 * loses what is below 2^-13 of the largest; none is larger than the sum of the sizes. So a score is
 * off by (D + D / 32 + 2) 2^-13 size, besides what it is off in fp16; three roundings of the scale
 * add 3 u size. With e the sum of both, weights are off by exp(2 e) - 1 of themselves, and what
 * they are multiplied by adds up to A, the result for |v|; the logarithm is off by e. Weights are
 * rounded to fp16, which the bounds of fp16 have. Then the scale of v is multiplied, in float, and
 * the result is rounded to the type of out.
 */
#include "attention/e4m3/attention_e4m3_oracle.h"

#include <math.h>
#include <stdlib.h>

/* The largest sum |q| |k| of a key that the row sees. */
static double largest_size(const struct kn_attention *x, const struct kn_attention_head *head,
                           size_t index) {
    size_t first = 0;
    const size_t keys = kn_attention_seen(x, index, &first), width = x->head_size;
    double largest = 0;
    for (size_t key = first; key < first + keys; key++) {
        double size = 0;
        for (size_t i = 0; i < width; i++) {
            size += fabs((double)head->q[index * width + i] * (double)head->k[key * width + i]);
        }
        largest = fmax(largest, size);
    }
    return largest;
}

/* The result for |v|. */
static bool solve_sizes(const struct kn_attention *x, const struct kn_attention_head *head,
                        size_t index, struct kn_attention_row *row) {
    const size_t count = x->kv_length * x->head_size;
    float *v = malloc((count + 1) * sizeof *v);
    bool ok = v != NULL;
    for (size_t i = 0; ok && i < count; i++) v[i] = fabsf(head->v[i]);
    ok = ok && kn_attention_oracle(x, KN_ATTENTION_ANY,
                                   &(struct kn_attention_head){head->q, head->k, v}, index, row);
    free(v);
    return ok;
}

bool kn_attention_e4m3_oracle(const struct kn_attention *attention,
                              const struct kn_e4m3_scales *scales,
                              const struct kn_attention_head *head, size_t index,
                              struct kn_attention_row *row) {
    const double u = 0x1p-24, width = (double)attention->head_size, v = (double)scales->v;
    const double given =
        attention->scale != 0 ? (double)attention->scale : 1 / sqrt((double)attention->head_size);
    const double scale = given * (double)scales->q * (double)scales->k;
    const double type = kn_type_roundoff(attention->type);
    const double least = attention->type == KN_F16 ? 0x1p-25 : 0x1p-126;
    struct kn_attention x = *attention;
    x.type = KN_F16, x.scale = (float)scale;
    double *sizes = malloc(2 * attention->head_size * sizeof *sizes);
    if (sizes == NULL) return false;
    struct kn_attention_row of_sizes = {.out = sizes, .allowed = sizes + attention->head_size};
    const bool ok = solve_sizes(&x, head, index, &of_sizes) &&
                    kn_attention_oracle(&x, KN_ATTENTION_ANY, head, index, row);
    const double size = scale * largest_size(&x, head, index);
    const double off = ((width + width / 32 + 2) * 0x1p-13 + 4 * u) * size;
    for (size_t i = 0; ok && i < attention->head_size; i++) {
        const double all = row->allowed[i] + expm1(2 * off) * (sizes[i] + row->allowed[i]);
        row->out[i] *= v;
        row->allowed[i] = v * all + (type + 2 * u) * (fabs(row->out[i]) + v * all) + least;
    }
    row->lse_allowed += off;
    free(sizes);
    return ok;
}
