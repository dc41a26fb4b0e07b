/*
 * Equal scores, and one score above all others.
 *
 * The first CODE elements of a key are its number in binary, as 1 and -1. With KN_ATTENTION_CHOSEN
 * the row has the code of its key there, times 2^10: the score is 2^14 for that key, and 2^11 less
 * for each bit in which another differs; the other elements of the row are 0. With
 * KN_ATTENTION_EQUAL a row is 1 in one element and 0 elsewhere, and keys are 2 everywhere.
 */
#include "attention/forward/attention_exact.h"

#include "attention/forward/attention_oracle.h"
#include "inputs.h"

#include <math.h>
#include <stdlib.h>

enum { CODE = 16 };

/* The key that a row of any head chooses, of those that it sees; 0 if there is none. */
static size_t chosen_key(uint64_t seed, size_t row, size_t first, size_t seen) {
    uint64_t state = seed + 0x51ed2701 * (uint64_t)row;
    return seen > 0 ? first + (size_t)(kn_random(&state) % seen) : 0;
}

static float attention_exact_code(size_t key, size_t bit) {
    return (key >> bit & 1) != 0 ? 1 : -1;
}

void kn_attention_exact_fill(const struct kn_attention *x, enum kn_attention_exact exact,
                             uint64_t seed, const struct kn_attention_exact_problem *problem) {
    const size_t width = x->head_size, keys = x->batch * x->kv_heads * x->kv_length;
    const bool is_equal = exact == KN_ATTENTION_EQUAL;
    uint64_t state = ~seed;
    for (size_t i = 0; i < x->batch * x->heads * x->q_length; i++) {
        float *q = problem->q + i * width;
        size_t first = 0;
        const size_t seen = kn_attention_seen(x, i % x->q_length, &first);
        const size_t key = chosen_key(seed, i, first, seen);
        for (size_t d = 0; d < width; d++) {
            q[d] = is_equal   ? (d == i % width ? 1 : 0)
                   : d < CODE ? 0x1p10f * attention_exact_code(key, d)
                              : 0;
        }
    }
    for (size_t i = 0; i < keys; i++) {
        for (size_t d = 0; d < width; d++) {
            problem->v[i * width + d] = (float)(int)(kn_random(&state) % 15) - 7;
            problem->k[i * width + d] = is_equal   ? 2
                                        : d < CODE ? attention_exact_code(i % x->kv_length, d)
                                                   : problem->v[i * width + d];
        }
    }
}

static float attention_exact_nearest(enum kn_type type, float value) {
    return type == KN_F16    ? kn_f16_value(kn_f16_of(value))
           : type == KN_BF16 ? kn_bf16_value(kn_bf16_of(value))
                             : value;
}

/* What a row must be, and by how much it may differ: 0, or where the mean of n values is not exact
 * three roundings in float and one to the type. */
static void expect_row(const struct kn_attention *x, enum kn_attention_exact exact, uint64_t seed,
                       size_t i, const float *v, double *expected, double *allowed) {
    size_t begin = 0;
    const size_t width = x->head_size, seen = kn_attention_seen(x, i % x->q_length, &begin);
    const size_t kv = i / x->q_length / (x->heads / x->kv_heads);
    const bool is_whole = exact == KN_ATTENTION_CHOSEN || (seen & (seen - 1)) == 0;
    const size_t from = exact == KN_ATTENTION_CHOSEN ? chosen_key(seed, i, begin, seen) : begin;
    const float *first = v + (kv * x->kv_length + from) * width;
    for (size_t d = 0; d < width; d++) {
        double sum = 0;
        const size_t count = exact == KN_ATTENTION_CHOSEN && seen > 0 ? 1 : seen;
        for (size_t j = 0; j < count; j++) sum += (double)first[j * width + d];
        const double mean = count > 0 ? sum / (double)count : 0;
        expected[d] = is_whole ? (double)attention_exact_nearest(x->type, (float)mean) : mean;
        allowed[d] = is_whole ? 0 : (3 * 0x1p-24 + kn_type_roundoff(x->type)) * 1.01 * fabs(mean);
    }
}

bool kn_attention_exact_check(const struct kn_attention *x, enum kn_attention_exact exact,
                              uint64_t seed, const float *v, const float *out,
                              struct kn_deviation *deviation) {
    const size_t width = x->head_size;
    const struct kn_tolerance none = {0, 0};
    double *expected = malloc((2 * width + 1) * sizeof *expected);
    if (expected == NULL) return false;
    *deviation = (struct kn_deviation){.first = KN_NOWHERE, .worst = KN_NOWHERE};
    for (size_t i = 0; i < x->batch * x->heads * x->q_length; i++) {
        expect_row(x, exact, seed, i, v, expected, expected + width);
        *deviation =
            kn_deviation_join(*deviation, kn_deviation_of(KN_F32, out + i * width, expected, width,
                                                          none, expected + width));
    }
    free(expected);
    return true;
}
