/*
 * Linear bytes: the variants "early" and "bytes" of linear, which multiply x rounded to bytes.
 * Thread-safe.
 */
#ifndef KN_LINEAR_BYTES_H
#define KN_LINEAR_BYTES_H

#include "quantised/linear_problem.h"

/* Whether the products of a format are of x rounded to bytes on the device, if they have a
 * workspace and name no variant. */
TOL_API bool kn_linear_is_bytes(const struct tol_device *device, enum kn_weight_format format);

/* The bytes of tickets that a product of so many columns and rows needs to round its result. */
TOL_API size_t kn_linear_tickets(size_t columns, size_t rows);

/* For linear alone: whether one of the two computes this problem. It has a workspace and blocks
 * of 256, names one of them or none, and the device can. */
bool kn_linear_bytes_serves(const struct tol_device *device, const struct kn_linear *linear);

/* For linear alone: writes the kernels' arguments for a problem, and checks the buffer for
 * rounded y. */
struct linear_bytes_arguments; /* linear_arguments.h */
tol_status kn_linear_bytes_prepare(const struct kn_linear *linear,
                                   struct linear_bytes_arguments *arguments);

/* For linear alone: queues the product of a checked problem that it serves, and before it, unless
 * x is rounded already, what rounds x into the workspace. */
tol_status kn_linear_bytes(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_linear *linear);

#endif
