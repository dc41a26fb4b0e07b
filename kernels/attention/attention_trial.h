/*
 * A trial of attention: made-up rows go through a kernel, and what comes is held against the
 * oracle. For tests and claims.
 */
#ifndef KN_ATTENTION_TRIAL_H
#define KN_ATTENTION_TRIAL_H

#include "attention/attention.h"
#include "deviation.h"
#include "inputs.h"

struct kn_attention_trial {
    /* Its rows are made here, and what it says of them, lse and workspace is not looked at. */
    struct kn_attention attention;
    const float *given[3];             /* q, k and v without gaps, or NULL to draw them */
    enum kn_distribution distribution; /* of q and k, and with values of v */
    enum kn_distribution values;
    double scale, values_scale; /* of them; 0 is 1 */
    bool heads_inside;          /* [batch][row][head][element], else [batch][head][row][element] */
    size_t gap;                 /* elements behind each row */
    size_t skew;                /* elements by which each begins behind a multiple of 256 bytes */
    bool lse, workspace;        /* wanted, given */
    uint64_t seed;              /* of the elements */
    float *result;              /* out, without gaps, for the caller; or NULL */
};

struct kn_attention_outcome {
    struct kn_deviation deviation; /* of out, by the oracle's own bounds */
    struct kn_deviation lse;
    size_t touched; /* bytes around out and lse and between the rows of out that were changed */
};

/* out and lse begin as NaN; gaps and surroundings of all are NaN. A failure of the runtime or of
 * the host's memory is the status. */
TOL_API tol_status kn_attention_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                    const struct kn_attention_trial *trial,
                                    struct kn_attention_outcome *outcome);

#endif
