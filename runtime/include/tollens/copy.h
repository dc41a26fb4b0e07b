/*
 * Copy: transfers and fills that are queued on a stream and done later.
 *
 * Host memory takes part only as a pinned block (pinned.h), which knows that it is in use; a source
 * in ordinary memory goes through tol_copy_from_pageable, which has copied it before it returns.
 * All ranges are checked before anything is queued, and then everything or nothing is.
 *
 * All functions: TOL_OUT_OF_RANGE, TOL_WRONG_CONTEXT, TOL_OUT_OF_HOST_MEMORY, TOL_POISONED,
 * TOL_DRIVER_ERROR. Threads: as for streams and buffers. Source: D-24, D-40.
 */
#ifndef TOLLENS_COPY_H
#define TOLLENS_COPY_H

#include "memory.h"
#include "pinned.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Host to device. The pinned block must not be written by the host until tol_pinned_access. */
TOL_API tol_status tol_copy_to_device(struct tol_stream *stream, struct tol_buffer *destination,
                                      size_t destination_offset, struct tol_pinned *source,
                                      size_t source_offset, size_t bytes);

/* Device to host. The pinned block has the data at the next tol_pinned_access. */
TOL_API tol_status tol_copy_to_host(struct tol_stream *stream, struct tol_pinned *destination,
                                    size_t destination_offset, const struct tol_buffer *source,
                                    size_t source_offset, size_t bytes);

/* Host to device from ordinary memory: the source is free again when this returns, though the copy
 * may not be done. Blocks of the context's staging memory carry it; they are kept for the next.
 * TOL_INVALID_ARGUMENT: the stream is captured (graph.h). */
TOL_API tol_status tol_copy_from_pageable(struct tol_stream *stream, struct tol_buffer *destination,
                                          size_t destination_offset, const void *source,
                                          size_t bytes);

/* Device to device, as tol_buffer_copy. */
TOL_API tol_status tol_copy_on_device(struct tol_stream *stream, struct tol_buffer *destination,
                                      size_t destination_offset, const struct tol_buffer *source,
                                      size_t source_offset, size_t bytes);

/* A fill, as tol_buffer_fill_at. */
TOL_API tol_status tol_copy_fill(struct tol_stream *stream, struct tol_buffer *buffer,
                                 size_t offset, unsigned value, size_t element_bytes, size_t count);

#ifdef __cplusplus
}
#endif
#endif
