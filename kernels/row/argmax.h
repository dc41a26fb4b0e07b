/*
 * argmax: the column of the largest element of each row; of equal ones the first, always. +0 and -0
 * are equal. A NaN is larger than all numbers: the column of the first NaN, so that it is noticed.
 */
#ifndef KN_ARGMAX_H
#define KN_ARGMAX_H

#include "row/rows.h"

struct kn_argmax {
    enum kn_type type; /* of in */
    size_t rows, columns;
    struct kn_rows in;
    struct kn_rows out; /* rows values of int32 */
};

/* Queues it. No rows are TOL_OK. TOL_INVALID_ARGUMENT: rows of no columns, of which none is the
 * largest. Else as kn_softmax. */
TOL_API tol_status kn_argmax(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_argmax *argmax);

extern const struct kn_variants kn_argmax_variants;

/* The definition, of one row of at least one element. Pure. */
TOL_API int kn_argmax_oracle(const float *in, size_t columns);

#endif
