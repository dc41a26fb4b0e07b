/*
 * gemm: C = alpha op(A) op(B) + beta C, for each matrix of a batch.
 *
 * Matrices are stored row by row. op(A) is m x k, op(B) k x n, C m x n. op is the identity or the
 * transpose, so A is stored as m x k or k x m. Any of m, n and k may be 0. As in BLAS, if beta is 0
 * C is written and not read, so it may hold anything; if alpha or k is 0, A and B are not read and
 * C becomes beta C. NaN and infinities in A and B propagate as IEEE 754 says.
 *
 * The same problem with a workspace of the same size gives the same bits on the same kind of
 * device. With a workspace the sum over k may be split into up to 64 partial sums over neighbouring
 * steps. They are kept as floats in the workspace, and a second kernel adds them in their order.
 * Source: spec 004 section 2.3, H5; BLAS, xGEMM.
 */
#ifndef KN_GEMM_H
#define KN_GEMM_H

#include "choose/kernel_set.h"
#include "number.h"

/* The arithmetic of the products. Sums are always in float. */
enum kn_gemm_precision {
    KN_GEMM_F32, /* float in memory, multiplied and added by fused multiply-add */
    KN_GEMM_F32_STRICT = KN_GEMM_F32,
    /* Float in memory, rounded to the nearest tf32, on tensor cores. Of two that are as near either
     * is taken, the same by the same kernel. */
    KN_GEMM_TF32,
    KN_GEMM_F16,  /* on tensor cores */
    KN_GEMM_BF16, /* on tensor cores */
    /* Float in memory; where that is sooner, as products of parts on tensor cores, whose errors are
     * at most twice those of KN_GEMM_F32. That needs the workspace. Elements are taken to multiples
     * of 2^-133. */
    KN_GEMM_F32_TENSOR,
    KN_GEMM_PRECISIONS
};

struct kn_matrix {
    const struct tol_buffer *buffer;
    size_t offset;       /* of the first element, in elements */
    size_t leading;      /* from row to row, in elements; 0: rows without gaps */
    size_t batch_stride; /* from matrix to matrix, in elements; 0 in A or B: all use one matrix */
};

struct kn_gemm {
    enum kn_gemm_precision precision;
    enum kn_type c_type; /* KN_F32, or for 16 bits the type of A and B */
    bool transpose_a, transpose_b;
    size_t m, n, k;
    size_t batch; /* 0 is 1 */
    float alpha, beta;
    struct kn_matrix a, b, c;
    /* May be NULL. If few tiles of C have many steps, memory that lets more blocks share the steps:
     * up to kn_gemm_workspace bytes are used. Calls that may run concurrently need one each. */
    const struct tol_buffer *workspace;
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_gemm_variants */
};

/*
 * Queues the product. If m or n is 0 it queues nothing and returns TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: an argument is NULL, the precision is unknown, the type of C does not match
 * it, rows or matrices of C overlap, C overlaps A or B, or the workspace overlaps one of them or
 * does not begin at a multiple of 16 bytes. TOL_OUT_OF_RANGE: a matrix is not inside its buffer, or
 * its size overflows; the message has the numbers. TOL_OVER_LIMIT: a dimension of 2^31 - 2^12 or
 * more, or a batch of 2^31 or more. TOL_WRONG_CONTEXT: stream and kernels belong to different
 * contexts. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. Else fails as tol_launch does.
 */
TOL_API tol_status kn_gemm(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_gemm *gemm);

/* The bytes of workspace that the problem can use; 0 if it needs none. Fails as kn_gemm does. */
TOL_API tol_status kn_gemm_workspace(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                                     size_t *bytes);

/* The variant that kn_gemm would pick. Fails as kn_gemm does. */
TOL_API tol_status kn_gemm_pick(struct kn_kernels *kernels, const struct kn_gemm *gemm,
                                const struct kn_variant **variant);

/* What a tuning knows the problem by: shape, types, alignment, and whether there are a workspace
 * and a beta. Fails as kn_gemm does. */
TOL_API tol_status kn_gemm_key(const struct kn_gemm *gemm, struct kn_tuning_key *key);

extern const struct kn_variants kn_gemm_variants;
/* Kernels with one planted defect each, which tests and claims must notice. */
extern const struct kn_variants kn_gemm_planted_variants;

/* The type of A's and B's elements. */
TOL_API enum kn_type kn_gemm_input_type(enum kn_gemm_precision precision);
TOL_API const char *kn_gemm_precision_name(enum kn_gemm_precision precision); /* "tf32" */

#endif
