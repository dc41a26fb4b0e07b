/*
 * A trial of attention over numbers of 8 bits: generates rows and scales, runs a kernel and
 * compares the result with the oracle. For tests and claims.
 */
#ifndef KN_ATTENTION_E4M3_TRIAL_H
#define KN_ATTENTION_E4M3_TRIAL_H

#include "attention/e4m3/attention_e4m3.h"
#include "deviation.h"
#include "inputs.h"

struct kn_attention_e4m3_trial {
    /* q, k, v, out, lse and scales are ignored: the trial makes its own. */
    struct kn_attention_e4m3 e4m3;
    enum kn_distribution distribution; /* of q and k; values: of v */
    enum kn_distribution values;
    double scale, values_scale; /* of the elements before they are rounded; 0 is 1 */
    bool has_scales;            /* of heads, between a quarter and 2; else they are left out */
    bool heads_inside;          /* [batch][row][head][element], else [batch][head][row][element] */
    size_t gap;                 /* elements after each row */
    size_t skew;                /* elements by which each begins past a multiple of 256 bytes */
    uint64_t seed;              /* of the elements and scales */
    /* A planted fault: on the device the first head of v has twice its scale. It has_scales. */
    bool doubles_scale;
};

struct kn_attention_e4m3_outcome {
    struct kn_deviation out, lse; /* by the oracle's own bounds */
    size_t touched; /* bytes around out and lse and between the rows of out that were changed */
};

/* out and lse begin as NaN, and gaps and guard zones are NaN in every type. The status is a failure
 * of the runtime or of host memory. */
TOL_API tol_status kn_attention_e4m3_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                         const struct kn_attention_e4m3_trial *trial,
                                         struct kn_attention_e4m3_outcome *outcome);

#endif
