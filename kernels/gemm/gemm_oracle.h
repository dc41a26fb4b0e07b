/*
 * The oracle of gemm: the definition in double over the stored numbers, and the error bound of each
 * precision, for any data and for drawn data. For tests and claims. Pure; thread-safe.
 */
#ifndef KN_GEMM_ORACLE_H
#define KN_GEMM_ORACLE_H

#include "gemm.h"

/* A matrix on the host; as struct kn_matrix. */
struct kn_gemm_oracle_matrix {
    const void *elements; /* of the precision's type; C: of c_type, before the product */
    size_t leading, batch_stride;
};

/* What is known of A and B, which decides how errors may add up. */
enum kn_gemm_data {
    KN_GEMM_ANY,  /* nothing: the bound is the worst case */
    KN_GEMM_DRAWN /* independent signs: the bound fails once in 2^28 elements with a probability of
                     less than 1e-9 (chance.h), and is never above the worst case */
};

/*
 * One row of matrix `index` of the batch. result[j] becomes the exact C[row][j], and allowed[j] the
 * deviation that the precision allows, which gemm_oracle.c derives. Both have n elements. In tf32
 * the exact result is that of factors rounded by kn_tf32_of. alpha, beta, shapes,
 * transpositions and types are those of the problem; its buffers are ignored. c may be NULL if beta
 * is 0.
 */
TOL_API void kn_gemm_oracle(const struct kn_gemm *gemm, enum kn_gemm_data data, size_t index,
                            size_t row, const struct kn_gemm_oracle_matrix *a,
                            const struct kn_gemm_oracle_matrix *b,
                            const struct kn_gemm_oracle_matrix *c, double *result, double *allowed);

#endif
