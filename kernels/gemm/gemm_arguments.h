/*
 * The parameter of every kernel of gemm: the same struct on host and device. Internal to the
 * operation.
 *
 * c[i][j] = alpha * sum over l of op(a)[i][l] * op(b)[l][j] + beta * c[i][j], for each matrix of a
 * batch.
 *
 * The steps may be split into shares. Then the partial sums of each share are written as if it were
 * a matrix of the batch, the partial sums of a matrix one after the other, and step 8 adds them.
 */
#ifndef KN_GEMM_ARGUMENTS_H
#define KN_GEMM_ARGUMENTS_H

#ifdef __CUDACC__
#define GEMM_ADDRESS void *
#else
#include "tollens.h"
#define GEMM_ADDRESS CUdeviceptr
#endif

enum { GEMM_C_F32 }; /* else of the type of a and b */

struct gemm_arguments {
    GEMM_ADDRESS a;
    GEMM_ADDRESS b;
    GEMM_ADDRESS c;
    long long lda, ldb, ldc;             /* from row to row as stored, in elements */
    long long batch_a, batch_b, batch_c; /* from matrix to matrix, in elements */
    int m, n, k, batch;
    int splits, span; /* into how many shares the steps are split, and how many a share has */
    int transpose_a, transpose_b; /* whether op is the transpose */
    int c_type;
    float alpha, beta; /* where beta is 0, c is not read */
};

#endif
