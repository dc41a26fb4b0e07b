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
    bool is_exact;  /* small whole numbers (gemm_exact.h); distribution and scale are ignored, and
                       alpha and beta must be whole numbers up to 2 in magnitude */
    bool flips_bit; /* a planted fault: one bit of one element of C is flipped after the product */
    bool swaps_last; /* a planted fault: the last two different elements of a row are exchanged */
    uint64_t seed;  /* of the elements */
};

struct kn_gemm_outcome {
    struct kn_deviation deviation; /* of C, by the oracle's own bounds */
    size_t compared;               /* elements of C that were compared with what they must be */
    size_t workspace;              /* in bytes; 0: the steps were not split */
    size_t touched;                /* bytes around C and between its rows that were changed */
};

/*
 * C begins as NaN if beta is 0, else as numbers. Gaps and guard zones of all matrices are NaN.
 *
 * Every element of an exact product is compared (kn_gemm_exact_rows), and no deviation is allowed.
 * Of up to eight rows with a wrong element the oracle tells which elements are wrong; of the others
 * all elements count as failed. Of other large products (2^28 and more) eight rows of each matrix
 * and the last are compared with the oracle, and the others are only checked for NaN. The bound is
 * the one for drawn data if the distribution has independent signs. The status is a failure of the
 * runtime or of host memory.
 */
TOL_API tol_status kn_gemm_try(struct kn_kernels *kernels, struct tol_stream *stream,
                               const struct kn_gemm_trial *trial, struct kn_gemm_outcome *outcome);

#endif
