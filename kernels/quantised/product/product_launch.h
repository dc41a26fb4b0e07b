/*
 * Product launch: queues the kernels of a checked product: a prologue that makes x ready, the
 * product, and for some an epilogue.
 * Internal to the operations: not installed. Thread-safe.
 */
#ifndef KN_PRODUCT_LAUNCH_H
#define KN_PRODUCT_LAUNCH_H

#include "quantised/product/product_problem.h"

struct linear_bytes_arguments; /* linear_arguments.h */

/* The bytes from the beginning of the workspace to the scales of x as bytes (KN_PRODUCT_Q8_1). */
size_t kn_product_scales_at(size_t columns, size_t k);

/* Writes the arguments of the kernels of kn_linear that read x as bytes. TOL_INVALID_ARGUMENT,
 * TOL_OUT_OF_RANGE: y cannot be rounded, or the place for it or the tickets is wrong. */
tol_status kn_product_bytes_arguments(const struct kn_product *product,
                                      struct linear_bytes_arguments *arguments);

/* Queues a checked product by the kernel of a row that the chooser picked. TOL_OVER_LIMIT: more
 * columns than a grid can have. Else fails as kn_product_bytes_arguments, kn_kernels_map,
 * kn_kernels_find, kn_rounded and tol_launch do. */
tol_status kn_product_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_variant *row, const struct tol_kernel *kernel,
                             const struct kn_product *product);

#endif
