/*
 * The oracle of gemm: the definition, in double, over numbers as they lie in memory; and how far
 * a result may be from it. For tests and claims. Pure; thread-safe.
 */
#ifndef KN_GEMM_ORACLE_H
#define KN_GEMM_ORACLE_H

#include "gemm.h"

/* A matrix on the host; as struct kn_matrix. */
struct kn_gemm_oracle_matrix {
    const void
        *elements; /* of the type that the precision says; of c_type in C, as it was before */
    size_t leading, batch_stride;
};

/*
 * One row of one matrix of the batch: result[j] is what C[row][j] should become, and allowed[j] how
 * far from it the precision may be, derived in gemm_oracle.c. alpha, beta, shapes, transpositions
 * and types are the problem's; its buffers are not looked at. Both have n elements.
 */
TOL_API void kn_gemm_oracle(const struct kn_gemm *gemm, size_t index, size_t row,
                            const struct kn_gemm_oracle_matrix *a,
                            const struct kn_gemm_oracle_matrix *b,
                            const struct kn_gemm_oracle_matrix *c, double *result, double *allowed);

#endif
