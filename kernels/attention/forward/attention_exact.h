/*
 * Exact attention: problems of which every kernel must give the same result, which is known without
 * softmax. For tests and claims. Pure; thread-safe.
 *
 * The values are whole numbers up to 7 in magnitude.
 *   KN_ATTENTION_EQUAL   All scores of a row are the same power of two, so that every weight is 1
 *                        and the result is the mean of the values that the row sees. If their
 *                        number is a power of two, the mean is exact and is rounded once, to the
 *                        type; else 1 / n and its product with the sum are rounded too. Scores are
 *                        the same to the bit, and their difference is 0, of which exp2 is 1. Not
 *                        with a workspace: parts of the keys are merged by their logarithms.
 *   KN_ATTENTION_CHOSEN  A row's score with one of the keys that it sees is 2^14 times the scale,
 *                        and smaller by 2^11 times the scale or more with the others. Their weights
 *                        are below 2^-180, which is 0 in float, so the result is one value, bit by
 *                        bit: a wrong row, key, head or mask shows.
 */
#ifndef KN_ATTENTION_EXACT_H
#define KN_ATTENTION_EXACT_H

#include "attention/forward/attention.h"
#include "deviation.h"

enum kn_attention_exact { KN_ATTENTION_EQUAL, KN_ATTENTION_CHOSEN };

/* A problem, as the caller's arrays without gaps: [batch][head][row][element]. */
struct kn_attention_exact_problem {
    float *q, *k, *v;
};

/*
 * Fills q, k and v. The shape must have at least 16 elements a head and at most 2^16 keys; with
 * KN_ATTENTION_CHOSEN the scale must be at least 1 / 16. Its buffers are ignored.
 */
TOL_API void kn_attention_exact_fill(const struct kn_attention *attention,
                                     enum kn_attention_exact exact, uint64_t seed,
                                     const struct kn_attention_exact_problem *problem);

/* Compares out, as floats without gaps, with what it must be. The seed is that of the filling.
 * false: out of memory. */
TOL_API bool kn_attention_exact_check(const struct kn_attention *attention,
                                      enum kn_attention_exact exact, uint64_t seed, const float *v,
                                      const float *out, struct kn_deviation *deviation);

#endif
