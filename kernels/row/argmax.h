/*
 * argmax: the column of the largest element of each row, the first of equal ones. +0 and -0 are
 * equal. A NaN is larger than every number, so that it is noticed: the result is the column of the
 * first NaN.
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

/* Queues it. Without rows it returns TOL_OK. TOL_INVALID_ARGUMENT: rows without columns. Else fails
 * as kn_softmax does. */
TOL_API tol_status kn_argmax(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_argmax *argmax);

extern const struct kn_variants kn_argmax_variants;

/* The definition, of one row of at least one element. Pure. */
TOL_API int kn_argmax_oracle(const float *in, size_t columns);

#endif
