/*
 * Product check: the operands of a product, checked once for all kernels.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_PRODUCT_CHECK_H
#define KN_PRODUCT_CHECK_H

#include "quantised/product/product_problem.h"

/* TOL_INVALID_ARGUMENT: a place is NULL or not aligned, k is not whole grains, a stride is below
 * the length of a column, or what is written overlaps what is read. TOL_OUT_OF_RANGE: a place is
 * too small. TOL_OVER_LIMIT: too many rows or columns, or a too large k. */
tol_status kn_product_check(const struct kn_product *product);

#endif
