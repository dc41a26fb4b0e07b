/*
 * Matrix check: what an operation checks of a matrix of weights before it launches a kernel.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_MATRIX_CHECK_H
#define KN_MATRIX_CHECK_H

#include "place.h"
#include "quantised/formats/weight_format.h"

/* TOL_INVALID_ARGUMENT: the format is unknown, k is not whole grains, or the place is NULL or not
 * aligned; alignment 0 is that of the format. TOL_OVER_LIMIT: 2^31 rows or k, or more.
 * TOL_OUT_OF_RANGE: the place is too small. name is used in the message. */
tol_status kn_matrix_check(const char *name, enum kn_weight_format format, struct kn_place place,
                           size_t rows, size_t k, size_t alignment);

#endif
