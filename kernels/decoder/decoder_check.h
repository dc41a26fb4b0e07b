/*
 * Decoder check: what the operations of a decoder check of a place before they launch a kernel with
 * one struct as its parameter.
 * Internal to the operations: not installed. Thread-safe.
 */
#ifndef KN_DECODER_CHECK_H
#define KN_DECODER_CHECK_H

#include "choose/kernel_set.h"
#include "place.h"

/* TOL_INVALID_ARGUMENT: the place is NULL or not aligned. TOL_OUT_OF_RANGE: count rows of length
 * elements, stride apart, do not fit it. name is used in the message. */
tol_status kn_decoder_rows(const char *name, struct kn_place place, size_t count, size_t stride,
                           size_t length, size_t element_bytes, size_t alignment);

/* TOL_INVALID_ARGUMENT: the place is NULL or not aligned. TOL_OUT_OF_RANGE: it is shorter. */
tol_status kn_decoder_bytes(const char *name, struct kn_place place, size_t bytes,
                            size_t alignment);

/* tol_launch of a variant's kernel with one struct. */
tol_status kn_decoder_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_variant *variant, struct tol_launch_shape shape,
                             const void *argument, size_t bytes);

/* The same by tol_launch_programmatic if the variant is named "early", "stay", "kept" or
 * "long". */
tol_status kn_decoder_launch_early(struct kn_kernels *kernels, struct tol_stream *stream,
                                   const struct kn_variant *variant, struct tol_launch_shape shape,
                                   const void *argument, size_t bytes);

#endif
