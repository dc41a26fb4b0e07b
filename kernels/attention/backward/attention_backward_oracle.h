/*
 * The oracle of attention's backward pass: the definition in double over the stored numbers, and
 * its error bound. For tests and claims. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_BACKWARD_ORACLE_H
#define KN_ATTENTION_BACKWARD_ORACLE_H

#include "attention/forward/attention_oracle.h"

/* One head of k and v on the host, and the heads of q that share it: heads / kv_heads times
 * q_length rows of q and d_out, and kv_length of k and v, without gaps. */
struct kn_attention_backward_heads {
    const float *q, *k, *v, *d_out;
};

/* One gradient: values, and the allowed deviation of each. Provided by the caller. */
struct kn_attention_gradient {
    double *values, *allowed;
};

struct kn_attention_gradients {
    struct kn_attention_gradient d_q, d_k, d_v; /* shaped like q, k and v above */
};

/* The gradients of one head of k and v and of the heads of q that share it. out and lse are those
 * that kn_attention may give for data of this kind: the bound has their errors too. Shape, scale,
 * window and type are those of the problem; its buffers are ignored. false: out of memory. */
TOL_API bool kn_attention_backward_oracle(const struct kn_attention *attention,
                                          enum kn_attention_data data,
                                          const struct kn_attention_backward_heads *heads,
                                          const struct kn_attention_gradients *gradients);

#endif
