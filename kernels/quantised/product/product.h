/*
 * Product: checks a product of quantised weights, chooses its kernels and queues them.
 * Internal to the operations: not installed. Thread-safe, as tol_launch is.
 */
#ifndef KN_PRODUCT_H
#define KN_PRODUCT_H

#include "quantised/product/product_problem.h"

/* Fails as kn_product_check, kn_kernels_pick and kn_product_launch do. */
tol_status kn_product(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_product *product);

#endif
