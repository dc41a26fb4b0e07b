/*
 * Best: the column of the largest element of each row of floats, the first of equal ones; of a row
 * with a NaN, the column of the first. As kn_argmax, for few long rows.
 *
 * Queues two kernels and waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_BEST_H
#define KN_BEST_H

#include "choose/kernel_set.h"
#include "place.h"

struct kn_best {
    size_t rows, columns;
    struct kn_place in;        /* floats */
    size_t in_stride;          /* from row to row, in elements */
    struct kn_place out;       /* rows int32 */
    struct kn_place workspace; /* kn_best_workspace bytes at a multiple of 8 */
    const char *variant;       /* "early" or "parts"; NULL: the best */
};

TOL_API size_t kn_best_workspace(size_t rows);

/* How large the largest element of a row is: a number that orders the results of several calls.
 * keys is what the workspace has after the kernels, on the host. */
TOL_API uint32_t kn_best_order(const void *keys, size_t row);

/*
 * Without rows it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, there are
 * no columns, or a stride is below them. TOL_OUT_OF_RANGE: a place is too small. TOL_OVER_LIMIT:
 * 2^31 columns or 2^16 rows or more. TOL_UNSUPPORTED, TOL_NOT_FOUND: as kn_variant_pick. A refused
 * call queues nothing.
 */
TOL_API tol_status kn_best(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_best *best);

#endif
