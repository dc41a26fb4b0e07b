/*
 * A trial of attention: runs a kernel on generated rows and compares the result with the oracle.
 * For tests and claims.
 */
#ifndef KN_ATTENTION_TRIAL_H
#define KN_ATTENTION_TRIAL_H

#include "attention/forward/attention.h"
#include "deviation.h"
#include "inputs.h"

struct kn_attention_trial {
    /* q, k, v, out, lse and workspace are ignored: the trial makes its own. */
    struct kn_attention attention;
    const float *given[3];             /* q, k and v without gaps, or NULL to draw them */
    enum kn_distribution distribution; /* of q and k; values: of v */
    enum kn_distribution values;
    double scale, values_scale; /* of the elements; 0 is 1 */
    bool heads_inside;          /* [batch][row][head][element], else [batch][head][row][element] */
    size_t gap;                 /* elements after each row */
    size_t skew;                /* elements by which each begins past a multiple of 256 bytes */
    bool lse, workspace;        /* whether to request one, and to give one */
    uint64_t seed;              /* of the elements */
    bool swaps_last; /* a planted fault: the last two different elements of a row are exchanged */
    float *result;   /* receives out without gaps; may be NULL */
};

struct kn_attention_outcome {
    struct kn_deviation deviation; /* of out, by the oracle's own bounds */
    struct kn_deviation lse;
    size_t touched; /* bytes around out and lse and between the rows of out that were changed */
};

/* out and lse begin as NaN, as do gaps and guard zones. The status is a failure of the runtime
 * or of host memory. */
TOL_API tol_status kn_attention_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                    const struct kn_attention_trial *trial,
                                    struct kn_attention_outcome *outcome);

#endif
