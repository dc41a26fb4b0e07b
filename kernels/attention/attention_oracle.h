/*
 * The oracle of attention: the definition, in double, over numbers as they lie in memory; and how
 * far a result may be from it. For tests and claims. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_ORACLE_H
#define KN_ATTENTION_ORACLE_H

#include "attention/attention.h"

/* One head on the host: q_length, kv_length and kv_length rows of head_size, without gaps. */
struct kn_attention_head {
    const float *q, *k, *v;
};

struct kn_attention_row {
    double *out;     /* head_size of them, for the caller to give */
    double *allowed; /* how far each may be from that, derived in attention_oracle.c */
    double lse, lse_allowed;
};

/* One row of one head. Shape, scale and type are the problem's; its buffers are not looked at.
 * false: no memory. */
TOL_API bool kn_attention_oracle(const struct kn_attention *attention,
                                 const struct kn_attention_head *head, size_t index,
                                 struct kn_attention_row *row);

#endif
