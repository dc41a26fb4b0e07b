/*
 * Linear bytes: the variants "early" and "bytes" of linear. Internal to the operation.
 * Thread-safe.
 */
#ifndef KN_LINEAR_BYTES_H
#define KN_LINEAR_BYTES_H

#include "decoder/linear.h"

/* Whether one of the two computes this problem: it has a workspace, blocks of 256, names one of
 * them or none, and the device can. */
bool kn_linear_bytes_serves(const struct tol_device *device, const struct kn_linear *linear);

/* Queues the product of a checked problem that it serves, and before it, unless x is rounded
 * already, what rounds x into the workspace. */
tol_status kn_linear_bytes(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_linear *linear);

#endif
