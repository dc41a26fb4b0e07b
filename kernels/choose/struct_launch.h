/*
 * Struct launch: the launch of a variant's kernel whose only parameter is a struct.
 * Internal to the operations: not installed. Thread-safe.
 */
#ifndef KN_STRUCT_LAUNCH_H
#define KN_STRUCT_LAUNCH_H

#include "choose/kernel_set.h"

/* Finds the variant's kernel and queues it, with programmatic dependent launch if the row says so.
 * Fails as kn_kernels_find, tol_launch and tol_launch_programmatic do. */
tol_status kn_struct_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_variant *variant, struct tol_launch_shape shape,
                            const void *argument, size_t bytes);

#endif
