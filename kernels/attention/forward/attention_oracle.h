/*
 * The oracle of attention: the definition in double over the stored numbers, and its error bound.
 * For tests and claims. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_ORACLE_H
#define KN_ATTENTION_ORACLE_H

#include "attention/forward/attention.h"

/* One head on the host: q_length, kv_length and kv_length rows of head_size, without gaps. */
struct kn_attention_head {
    const float *q, *k, *v;
};

struct kn_attention_row {
    double *out;     /* head_size of them, provided by the caller */
    double *allowed; /* the allowed deviation of each, which attention_oracle.c derives */
    double lse, lse_allowed;
};

/* What is known of q, k and v, which decides how errors may add up. */
enum kn_attention_data {
    KN_ATTENTION_ANY,  /* nothing: the bound is the worst case */
    KN_ATTENTION_DRAWN /* elements are independent of each other, and those of v have independent
                          signs: the bound fails once in 2^28 elements with a probability of less
                          than 1e-9 (chance.h), and is never above the worst case */
};

/* How many keys a row of q sees, and the first of them. */
TOL_API size_t kn_attention_seen(const struct kn_attention *attention, size_t row, size_t *first);

/* One row of one head. Shape, scale and type are those of the problem; its buffers are ignored.
 * false: out of memory. */
TOL_API bool kn_attention_oracle(const struct kn_attention *attention, enum kn_attention_data data,
                                 const struct kn_attention_head *head, size_t index,
                                 struct kn_attention_row *row);

#endif
