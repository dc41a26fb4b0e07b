/*
 * Exact products: matrices of small whole numbers, of which every product and every partial sum, in
 * any order, is representable in the accumulator (float) and in C's type. So each kernel in each
 * precision must give the exact result, to the bit. For tests and claims. Thread-safe.
 *
 * Every element of C is checked, at the cost of a few passes over A, B and C: the check multiplies
 * C and op(A) (op(B) r) by the same random vector r modulo the prime 2^31 - 1 (Freivalds,
 * Probabilistic machines can use less running time, IFIP 1977). The rows of both must be equal. A
 * row of C with a wrong element passes with a probability of 2^-31, whatever the error is.
 */
#ifndef KN_GEMM_EXACT_H
#define KN_GEMM_EXACT_H

#include "gemm_oracle.h"

/*
 * The whole numbers of a problem. Elements of B are from 1 to largest in magnitude, those of C (if
 * beta is not 0) too. Those of op(A) are so where (row + step) % apart is 0, else 0. apart is above
 * 1 where C's type is too narrow for k nonzero products.
 */
struct kn_gemm_whole {
    int largest;
    size_t apart;
};

/* For alpha and beta of whole numbers up to 2 in magnitude and k up to 2^22. */
TOL_API struct kn_gemm_whole kn_gemm_whole_of(const struct kn_gemm *gemm);

/* Turns values from -1 to 1 into such numbers. */
TOL_API void kn_gemm_whole_values(struct kn_gemm_whole whole, float *values, size_t count);

/*
 * Checks all rows of C. right has an element for each row of each matrix of the batch, and tells
 * whether the row is exact; a row with a value that is not a whole number is not. old is C before
 * the product, and is read if beta is not 0. The seed is that of r. false: out of memory.
 */
TOL_API bool kn_gemm_exact_rows(const struct kn_gemm *gemm, const struct kn_gemm_oracle_matrix *a,
                                const struct kn_gemm_oracle_matrix *b,
                                const struct kn_gemm_oracle_matrix *old,
                                const struct kn_gemm_oracle_matrix *c, uint64_t seed, bool *right);

#endif
