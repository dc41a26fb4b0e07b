/*
 * Rows: a matrix in a device buffer, stored row after row. What every operation on rows takes.
 *
 * An operation checks all of its matrices before it queues anything, and refuses with
 * TOL_INVALID_ARGUMENT a matrix without a buffer, rows that overlap, an address that is not aligned
 * to an element, and an output that overlaps an input without being the same matrix; with
 * TOL_OUT_OF_RANGE a matrix that does not fit its buffer; with TOL_OVER_LIMIT 2^31 rows or columns,
 * or more.
 */
#ifndef KN_ROWS_H
#define KN_ROWS_H

#include "choose/kernel_set.h"
#include "number.h"

struct kn_rows {
    const struct tol_buffer *buffer;
    size_t offset; /* of the first element, in elements */
    size_t stride; /* from row to row, in elements; 0: rows without gaps */
};

#endif
