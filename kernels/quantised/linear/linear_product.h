/*
 * Linear product: a struct kn_linear as a struct kn_product.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_LINEAR_PRODUCT_H
#define KN_LINEAR_PRODUCT_H

#include "quantised/linear/linear_problem.h"
#include "quantised/product/product_problem.h"

/* Rows and columns are at least 1. TOL_INVALID_ARGUMENT: the format is unknown, x is rounded and
 * there is no workspace, or a gate has a bias or a sum. */
tol_status kn_linear_product(const struct kn_linear *linear, struct kn_product *product);

#endif
