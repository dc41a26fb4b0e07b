/*
 * A trial of gemm: runs a kernel on generated matrices and compares the result with the oracle. For
 * tests and claims.
 */
#ifndef KN_GEMM_TRIAL_H
#define KN_GEMM_TRIAL_H

#include "deviation.h"
#include "gemm.h"
#include "inputs.h"

struct kn_gemm_trial {
    struct kn_gemm gemm; /* a, b, c and workspace are ignored: the trial makes its own */
    enum kn_distribution distribution;
    double scale;   /* of the elements of A and B; 0 is 1 */
    size_t gap;     /* elements between the rows, and between the matrices of a batch */
    size_t align;   /* rows begin at multiples of this many elements; 0: anywhere */
    size_t skew;    /* elements by which each matrix begins past a multiple of 256 bytes */
    bool workspace; /* gives kn_gemm_workspace bytes, which begin as NaN */
    uint64_t seed;  /* of the elements */
};

struct kn_gemm_outcome {
    struct kn_deviation deviation; /* of C, by the oracle's own bounds */
    size_t workspace;              /* in bytes; 0: the steps were not split */
    size_t touched;                /* bytes around C and between its rows that were changed */
};

/*
 * C begins as NaN if beta is 0, else as numbers. Gaps and guard zones of all matrices are NaN. Of
 * large products (2^28 and more) eight rows of each matrix are compared with the oracle, and the
 * others are only checked for NaN. The status is a failure of the runtime or of host memory.
 */
TOL_API tol_status kn_gemm_try(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_gemm_trial *trial, struct kn_gemm_outcome *outcome);

#endif
