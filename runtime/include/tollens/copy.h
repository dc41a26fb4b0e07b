/*
 * Copy: asynchronous transfers and fills, queued on a stream.
 *
 * The host side of an asynchronous copy must be a pinned block (pinned.h), which tracks the copies
 * that use it. tol_copy_from_pageable accepts pageable memory: it has read all of it when it
 * returns. Every function checks its ranges first; if one fails, nothing is queued.
 *
 * Offsets and sizes are in bytes. Threads: as for streams and buffers.
 * Errors of all functions: TOL_OUT_OF_RANGE, TOL_WRONG_CONTEXT, TOL_OUT_OF_HOST_MEMORY,
 * TOL_POISONED, TOL_DRIVER_ERROR. Source: D-24, D-40.
 */
#ifndef TOLLENS_COPY_H
#define TOLLENS_COPY_H

#include "memory.h"
#include "pinned.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies from host to device. The host must not write to the pinned block before it has called
 * tol_pinned_access. */
TOL_API tol_status tol_copy_to_device(struct tol_stream *stream, struct tol_buffer *destination,
                                      size_t destination_offset, struct tol_pinned *source,
                                      size_t source_offset, size_t bytes);

/* Copies from device to host. The data is in the pinned block after tol_pinned_access. */
TOL_API tol_status tol_copy_to_host(struct tol_stream *stream, struct tol_pinned *destination,
                                    size_t destination_offset, const struct tol_buffer *source,
                                    size_t source_offset, size_t bytes);

/* Copies from pageable host memory to the device. The caller may change the source when this
 * returns, even if the copy is still queued. The data passes through pinned staging blocks that the
 * context keeps for later copies. TOL_INVALID_ARGUMENT: the stream is being captured (graph.h). */
TOL_API tol_status tol_copy_from_pageable(struct tol_stream *stream, struct tol_buffer *destination,
                                          size_t destination_offset, const void *source,
                                          size_t bytes);

/* Copies from device to device on the stream, with the rules of tol_buffer_copy. */
TOL_API tol_status tol_copy_on_device(struct tol_stream *stream, struct tol_buffer *destination,
                                      size_t destination_offset, const struct tol_buffer *source,
                                      size_t source_offset, size_t bytes);

/* Fills device memory on the stream, with the rules of tol_buffer_fill_at. */
TOL_API tol_status tol_copy_fill(struct tol_stream *stream, struct tol_buffer *buffer,
                                 size_t offset, unsigned value, size_t element_bytes, size_t count);

#ifdef __cplusplus
}
#endif
#endif
