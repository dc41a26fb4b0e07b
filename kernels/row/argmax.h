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
    struct kn_rows out;  /* rows values of int32 */
    const char *variant; /* forces the variant of this name; NULL: the best */
};

/* Queues it. Without rows it returns TOL_OK. TOL_INVALID_ARGUMENT: rows without columns. Else fails
 * as kn_softmax does. */
TOL_API tol_status kn_argmax(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_argmax *argmax);

/* "warp": a warp has a whole row of up to 2 KiB; "whole": a block has one of any length. A row is
 * whole if it begins at a multiple of 16 bytes and consists of pieces of 16 bytes. "block": any. */
extern const struct kn_variants kn_argmax_variants;

/* The definition, of one row of at least one element. Pure. */
TOL_API int kn_argmax_oracle(const float *in, size_t columns);

#endif
