/*
 * gemm: C = alpha op(A) op(B) + beta C, for each of a batch.
 *
 * Matrices lie row after row: op(A) is m x k, op(B) k x n, C m x n; op is nothing or the transpose,
 * so A itself is m x k or k x m. Any of m, n, k may be 0 or 1 or a prime. As in BLAS, where beta is
 * 0 C is written and not read, so it may hold anything; where alpha or k is 0, A and B are not read
 * and C becomes beta C. NaN and infinities in A and B go where IEEE 754 sends them.
 *
 * The same problem with a workspace of the same size gives the same bits on the same kind of
 * device. With one, the sum over k may be split into up to 64 of neighbouring steps, which are kept
 * as floats in the workspace and added in their order by a second kernel.
 * Source: spec 004 section 2.3, H5; BLAS, xGEMM.
 */
#ifndef KN_GEMM_H
#define KN_GEMM_H

#include "kernel_set.h"
#include "number.h"

/* How it is multiplied. Sums are always in float. */
enum kn_gemm_precision {
    KN_GEMM_F32,  /* float in memory, multiplied and added by fused multiply-add */
    KN_GEMM_TF32, /* float in memory, rounded to tf32, on tensor cores */
    KN_GEMM_F16,  /* on tensor cores */
    KN_GEMM_BF16, /* on tensor cores */
    KN_GEMM_PRECISIONS
};

struct kn_matrix {
    const struct tol_buffer *buffer;
    size_t offset;       /* of the first element, in elements */
    size_t leading;      /* from row to row, in elements; 0: rows without gaps */
    size_t batch_stride; /* from matrix to matrix, in elements; 0 of A or B: all use the same */
};

struct kn_gemm {
    enum kn_gemm_precision precision;
    enum kn_type c_type; /* KN_F32, or for 16 bits the type of A and B */
    bool transpose_a, transpose_b;
    size_t m, n, k;
    size_t batch; /* 0 is 1 */
    float alpha, beta;
    struct kn_matrix a, b, c;
    /* Or NULL: where few tiles of C share many steps, memory to share the steps among more blocks,
     * as much as kn_gemm_workspace says or less. Two calls that may run at once need two. */
    const struct tol_buffer *workspace;
    const char *variant;                /* a name, to force it; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_gemm_variants */
};

/*
 * Queues it. Nothing to write (m or n is 0) is TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: NULL, an unknown precision, a type of C that does not go with it, rows or
 * matrices of C that overlap, C overlapping A or B, a workspace that overlaps one of them or does
 * not begin at a multiple of 16 bytes. TOL_OUT_OF_RANGE: a matrix does not lie inside its buffer,
 * or its size overflows; the message has the numbers. TOL_OVER_LIMIT: a dimension of 2^31 - 2^12 or
 * more, a batch of 2^31 or more. TOL_WRONG_CONTEXT: stream and kernels belong to different ones.
 * TOL_UNSUPPORTED, TOL_NOT_FOUND: kn_variant_pick. Else as tol_launch.
 */
TOL_API tol_status kn_gemm(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_gemm *gemm);

/* How many bytes of workspace the problem can use; 0 where it needs none. Same failures. */
TOL_API tol_status kn_gemm_workspace(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                                     size_t *bytes);

/* Which variant kn_gemm would take. Same failures. */
TOL_API tol_status kn_gemm_pick(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                                const struct kn_variant **variant);

extern const struct kn_variants kn_gemm_variants;
/* Kernels with a defect each: what those who judge gemm must notice. */
extern const struct kn_variants kn_gemm_planted_variants;

/* The type of A's and B's elements. */
TOL_API enum kn_type kn_gemm_input_type(enum kn_gemm_precision precision);
TOL_API const char *kn_gemm_precision_name(enum kn_gemm_precision precision); /* "tf32" */

#endif
