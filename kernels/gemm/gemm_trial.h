/*
 * A trial of gemm: made-up matrices go through a kernel, and what comes is held against the oracle.
 * For tests and claims.
 */
#ifndef KN_GEMM_TRIAL_H
#define KN_GEMM_TRIAL_H

#include "deviation.h"
#include "gemm.h"
#include "inputs.h"

struct kn_gemm_trial {
    struct kn_gemm gemm; /* its matrices are made here, and what it says of them is not looked at */
    enum kn_distribution distribution;
    double scale;   /* of the elements of A and B; 0 is 1 */
    size_t gap;     /* elements between the rows, and between the matrices of a batch */
    size_t align;   /* rows begin at multiples of so many elements; 0: wherever that is */
    size_t skew;    /* elements by which each matrix begins behind a multiple of 256 bytes */
    bool workspace; /* with as much as kn_gemm_workspace says; it begins as NaN */
    uint64_t seed;  /* of the elements */
};

struct kn_gemm_outcome {
    struct kn_deviation deviation; /* of C, by the oracle's own bounds */
    size_t workspace;              /* bytes it had; 0: the steps were not split */
    size_t touched;                /* bytes around C and between its rows that were changed */
};

/*
 * C begins as NaN where beta is 0, else as numbers; gaps and surroundings of all are NaN. Large
 * products (2^28 and more) are held against the oracle in eight rows of each matrix, the others
 * only against being NaN. A failure of the runtime or of the host's memory is the status.
 */
TOL_API tol_status kn_gemm_try(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_gemm_trial *trial, struct kn_gemm_outcome *outcome);

#endif
