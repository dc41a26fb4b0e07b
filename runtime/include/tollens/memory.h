/*
 * Memory: device buffers, and synchronous copies and fills.
 *
 * A buffer knows its size. Every access is checked against it before the driver is called,
 * including overflow of sums and products. Copies and fills have completed when they return;
 * copy.h has asynchronous ones. Only tol_buffer_address exposes the device address.
 *
 * Threads: several threads may use a buffer; the program orders their accesses. A call on zero
 * bytes succeeds without a driver call. Offsets and sizes are in bytes.
 * Source: spec 004 CRT-005, D-21, D-39.
 */
#ifndef TOLLENS_MEMORY_H
#define TOLLENS_MEMORY_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_buffer;

/*
 * Allocates count elements of element_bytes each. The content is undefined. The caller destroys the
 * buffer with tol_buffer_destroy.
 * TOL_INVALID_ARGUMENT: the size is 0. TOL_OUT_OF_RANGE: the product does not fit a size_t.
 * TOL_OUT_OF_DEVICE_MEMORY: the message has the requested, the free and the total bytes.
 */
TOL_API tol_status tol_buffer_create(struct tol_context *context, size_t count,
                                     size_t element_bytes, struct tol_buffer **buffer);

/* Frees the memory once the context's work is done. Waits up to tol_context_set_patience; if work
 * still runs then, the memory is freed later. NULL is a no-op. The buffer must not be used after
 * this. For the few hundred latest destroyed buffers, calls return TOL_INVALID_ARGUMENT, and size
 * and address are 0. */
TOL_API void tol_buffer_destroy(struct tol_buffer *buffer);

/* The size in bytes. */
TOL_API size_t tol_buffer_bytes(const struct tol_buffer *buffer);

/* The device address, for kernel arguments. Valid until the buffer is destroyed. */
TOL_API CUdeviceptr tol_buffer_address(const struct tol_buffer *buffer);

/* Copies bytes from host memory to offset in the buffer. TOL_OUT_OF_RANGE: the range is not inside
 * the buffer; nothing is copied, and the message has offset, length and size. */
TOL_API tol_status tol_buffer_write_at(struct tol_buffer *buffer, size_t offset, const void *source,
                                       size_t bytes);

/* Copies bytes from offset in the buffer to host memory. TOL_OUT_OF_RANGE as above. */
TOL_API tol_status tol_buffer_read_at(const struct tol_buffer *buffer, size_t offset,
                                      void *destination, size_t bytes);

/* Copy a whole buffer. TOL_SIZE_MISMATCH: bytes is not the size of the buffer. */
TOL_API tol_status tol_buffer_write(struct tol_buffer *buffer, const void *source, size_t bytes);
TOL_API tol_status tol_buffer_read(const struct tol_buffer *buffer, void *destination,
                                   size_t bytes);

/* Copies from one buffer to another, or within one buffer. TOL_OUT_OF_RANGE: a range is not inside
 * its buffer. TOL_INVALID_ARGUMENT: the ranges overlap. TOL_WRONG_CONTEXT: the buffers belong to
 * different contexts. */
TOL_API tol_status tol_buffer_copy(struct tol_buffer *destination, size_t destination_offset,
                                   const struct tol_buffer *source, size_t source_offset,
                                   size_t bytes);

/* Fills count elements of element_bytes (1, 2 or 4), starting at offset, with the low bits of
 * value. TOL_INVALID_ARGUMENT: another element size, or offset is not a multiple of it.
 * TOL_OUT_OF_RANGE. */
TOL_API tol_status tol_buffer_fill_at(struct tol_buffer *buffer, size_t offset, unsigned value,
                                      size_t element_bytes, size_t count);

#ifdef __cplusplus
}
#endif
#endif
