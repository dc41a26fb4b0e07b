/*
 * Memory: device buffers, and the copies and fills that are done when they return.
 *
 * A buffer knows its size, and every access is checked against it before the driver sees it, sums
 * and products included. The device address does not leave the runtime but through the accessor
 * named for it. Copies that return before they are done are in copy.h.
 *
 * Threads: a buffer may be used from several threads; who writes where is the program's to order.
 * A call on no bytes succeeds without asking the driver. Source: spec 004 CRT-005, D-21, D-39.
 */
#ifndef TOLLENS_MEMORY_H
#define TOLLENS_MEMORY_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_buffer;

/*
 * Allocates count elements of element_bytes each; their content is not defined.
 * TOL_INVALID_ARGUMENT: no bytes. TOL_OUT_OF_RANGE: the product does not fit a size_t.
 * TOL_OUT_OF_DEVICE_MEMORY: the message has the bytes asked for, free and in all.
 */
TOL_API tol_status tol_buffer_create(struct tol_context *context, size_t count,
                                     size_t element_bytes, struct tol_buffer **buffer);

/* Frees the memory when the context's work is done: waits for it as long as the context has
 * patience (tol_context_set_patience), and leaves it for later where it is not done by then. NULL
 * is a no-op. A buffer must not be used after; for the few hundred that ended last, calls with it
 * say TOL_INVALID_ARGUMENT and its size and address are 0. */
TOL_API void tol_buffer_destroy(struct tol_buffer *buffer);

/* The size in bytes. */
TOL_API size_t tol_buffer_bytes(const struct tol_buffer *buffer);

/* The address on the device, to be given to kernels. Valid until the buffer is destroyed. */
TOL_API CUdeviceptr tol_buffer_address(const struct tol_buffer *buffer);

/* Copies bytes from the host to offset in the buffer. TOL_OUT_OF_RANGE: the range is not inside the
 * buffer; nothing is copied, and the message has offset, length and size. */
TOL_API tol_status tol_buffer_write_at(struct tol_buffer *buffer, size_t offset, const void *source,
                                       size_t bytes);

/* Copies bytes at offset in the buffer to the host. TOL_OUT_OF_RANGE as above. */
TOL_API tol_status tol_buffer_read_at(const struct tol_buffer *buffer, size_t offset,
                                      void *destination, size_t bytes);

/* Copy a whole buffer. TOL_SIZE_MISMATCH unless bytes is exactly its size. */
TOL_API tol_status tol_buffer_write(struct tol_buffer *buffer, const void *source, size_t bytes);
TOL_API tol_status tol_buffer_read(const struct tol_buffer *buffer, void *destination,
                                   size_t bytes);

/* Copies from one buffer to another, or within one where the ranges do not overlap.
 * TOL_OUT_OF_RANGE; TOL_INVALID_ARGUMENT when they overlap; TOL_WRONG_CONTEXT. */
TOL_API tol_status tol_buffer_copy(struct tol_buffer *destination, size_t destination_offset,
                                   const struct tol_buffer *source, size_t source_offset,
                                   size_t bytes);

/* Fills count elements of element_bytes (1, 2 or 4) from offset with the low bits of value.
 * TOL_INVALID_ARGUMENT: another element size, or an offset that is no multiple of it. */
TOL_API tol_status tol_buffer_fill_at(struct tol_buffer *buffer, size_t offset, unsigned value,
                                      size_t element_bytes, size_t count);

#ifdef __cplusplus
}
#endif
#endif
