/*
 * A trial of attention's backward pass: runs the forward kernel and a backward one on generated
 * rows, and compares the gradients with the oracle. For tests and claims.
 */
#ifndef KN_ATTENTION_BACKWARD_TRIAL_H
#define KN_ATTENTION_BACKWARD_TRIAL_H

#include "attention/backward/attention_backward.h"
#include "deviation.h"
#include "inputs.h"

struct kn_attention_backward_trial {
    /* Buffers are ignored: the trial makes its own. */
    struct kn_attention_backward backward;
    enum kn_distribution distribution; /* of q and k; values: of v and d_out */
    enum kn_distribution values;
    double scale, values_scale; /* of the elements; 0 is 1 */
    bool heads_inside;          /* [batch][row][head][element], else [batch][head][row][element] */
    size_t gap;                 /* elements after each row */
    size_t skew;                /* elements by which each begins past a multiple of 256 bytes */
    uint64_t seed;              /* of the elements */
    bool swaps_last;   /* a planted fault: the last two different elements of d_k are exchanged */
    float *results[3]; /* receive d_q, d_k and d_v without gaps; may be NULL */
};

struct kn_attention_backward_outcome {
    struct kn_deviation d_q, d_k, d_v; /* by the oracle's own bounds */
    size_t touched; /* bytes around the gradients, and between their rows, that were changed */
};

/* The gradients and the workspace begin as NaN, as do gaps and guard zones. The status is a failure
 * of the runtime or of host memory. */
TOL_API tol_status kn_attention_backward_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                             const struct kn_attention_backward_trial *trial,
                                             struct kn_attention_backward_outcome *outcome);

#endif
