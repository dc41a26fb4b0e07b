/*
 * Struct launch: the launch of a variant's kernel whose only parameter is a struct.
 * Internal to the operations: not installed. Thread-safe.
 */
#ifndef KN_STRUCT_LAUNCH_H
#define KN_STRUCT_LAUNCH_H

#include "choose/kernel_set.h"

/* Finds the variant's kernel and queues it, by tol_launch. Fails as kn_kernels_find and tol_launch
 * do. */
tol_status kn_struct_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_variant *variant, struct tol_launch_shape shape,
                            const void *argument, size_t bytes);

/* The same with programmatic dependent launch (PDL) if the variant is named "early", "stay", "kept"
 * or "long", whose kernels wait for their predecessor themselves. */
tol_status kn_struct_launch_pdl(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_variant *variant, struct tol_launch_shape shape,
                                const void *argument, size_t bytes);

#endif
