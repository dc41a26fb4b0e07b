/*
 * The bound of attention: what is wrong at the length of a long sequence does not pass.
 */
#include "attention/forward/attention_oracle.h"

#include "deviation.h"
#include "inputs.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 65536, WIDTH = 64, SHARES = 16 };

struct problem {
    struct kn_attention attention;
    float *values, *q, *k, *v;
};

static struct problem draw(enum kn_type type, size_t keys, uint64_t seed) {
    struct problem p = {.attention = {.type = type,
                                      .batch = 1,
                                      .heads = 1,
                                      .kv_heads = 1,
                                      .q_length = 1,
                                      .kv_length = keys,
                                      .head_size = WIDTH}};
    const size_t count = (2 * keys + 1) * WIDTH;
    p.values = malloc(count * sizeof *p.values);
    cr_assert(p.values != NULL);
    p.q = p.values, p.k = p.q + WIDTH, p.v = p.k + keys * WIDTH;
    kn_inputs_draw(KN_NORMAL, &seed, 1, p.q, (keys + 1) * WIDTH);
    kn_inputs_draw(KN_UNIFORM, &seed, 1, p.v, keys * WIDTH);
    if (type != KN_F32) {
        uint16_t *halves = malloc(count * sizeof *halves);
        cr_assert(halves != NULL);
        kn_numbers_store(type, p.values, count, halves);
        kn_numbers_load(type, halves, count, p.values);
        free(halves);
    }
    return p;
}

static struct kn_attention_row oracle(const struct problem *p, enum kn_attention_data data,
                                      size_t keys, double out[WIDTH], double allowed[WIDTH]) {
    struct kn_attention x = p->attention;
    const struct kn_attention_head head = {p->q, p->k, p->v};
    struct kn_attention_row row = {.out = out, .allowed = allowed};
    x.kv_length = keys;
    cr_assert(kn_attention_oracle(&x, data, &head, 0, &row));
    return row;
}

static struct kn_deviation judge(enum kn_type type, const double *row, const double *expected,
                                 const double *allowed) {
    float values[WIDTH];
    unsigned char elements[WIDTH * 4];
    for (size_t d = 0; d < WIDTH; d++) values[d] = (float)row[d];
    kn_numbers_store(type, values, WIDTH, elements);
    return kn_deviation_of(type, elements, expected, WIDTH, (struct kn_tolerance){0, 0}, allowed);
}

/* Goal: the right row passes; zeros and the row without its last share fail in most elements, in
 * every type, one that is a fifteenth too large in many, and so does the logarithm of both. */
Test(attention_oracle, faults_of_long_rows_exceed_the_bound) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        struct problem p = draw(type, LONG, 100 + type);
        double right[WIDTH], lost[WIDTH], allowed[WIDTH], unused[WIDTH];
        const struct kn_attention_row row = oracle(&p, KN_ATTENTION_DRAWN, LONG, right, allowed);
        const struct kn_attention_row less =
            oracle(&p, KN_ATTENTION_ANY, LONG - LONG / SHARES, lost, unused);
        const double zeros[WIDTH] = {0};
        cr_assert(judge(type, right, right, allowed).failed == 0);
        cr_assert(judge(type, zeros, right, allowed).failed > WIDTH * 3 / 4);
        cr_assert(judge(type, lost, right, allowed).failed > WIDTH * 3 / 4);
        cr_assert(fabs(row.lse - less.lse) > row.lse_allowed);
        /* The sum of weights lacks a share, and the sum of values does not. */
        for (size_t d = 0; d < WIDTH; d++) lost[d] = right[d] * exp(row.lse - less.lse);
        cr_assert(judge(type, lost, right, allowed).failed > WIDTH / 4);
        free(p.values);
    }
}

/* Goal: the bound of drawn data is never above the worst case, at any length. */
Test(attention_oracle, what_is_likely_is_never_above_the_worst_case) {
    static const size_t lengths[] = {1, 2, 17, 300, 4097};
    for (unsigned i = 0; i < 5 * KN_TYPES; i++) {
        struct problem p = draw(i % KN_TYPES, lengths[4], 7);
        double out[WIDTH], worst[WIDTH], likely[WIDTH];
        const struct kn_attention_row any =
            oracle(&p, KN_ATTENTION_ANY, lengths[i / KN_TYPES], out, worst);
        const struct kn_attention_row drawn =
            oracle(&p, KN_ATTENTION_DRAWN, lengths[i / KN_TYPES], out, likely);
        for (size_t d = 0; d < WIDTH; d++) {
            cr_assert(likely[d] > 0 && likely[d] <= worst[d]);
        }
        cr_assert(drawn.lse_allowed > 0 && drawn.lse_allowed <= any.lse_allowed);
        free(p.values);
    }
}
