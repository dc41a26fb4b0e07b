/*
 * Range: checks of ranges inside buffers, without overflow.
 */
#ifndef TOLLENS_RANGE_H
#define TOLLENS_RANGE_H

#include "buffer_state.h"
#include "pinned_state.h"

/* TOL_OUT_OF_RANGE: bytes at offset are not inside whole bytes. what names the memory. */
static inline tol_status tol_range_check(const char *what, size_t whole, size_t offset,
                                         size_t bytes) {
    if (bytes <= whole && offset <= whole - bytes) return TOL_OK;
    return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_RANGE,
                    "%zu bytes at offset %zu are not inside a %s of %zu bytes", bytes, offset, what,
                    whole);
}

/* The same for a buffer and for a pinned block, which must not have been destroyed. */
static inline tol_status tol_range_check_buffer(const struct tol_buffer *buffer, size_t offset,
                                                size_t bytes) {
    tol_status status = tol_check_alive("buffer", &buffer->life);
    return status != TOL_OK ? status : tol_range_check("buffer", buffer->bytes, offset, bytes);
}
static inline tol_status tol_range_check_pinned(const struct tol_pinned *pinned, size_t offset,
                                                size_t bytes) {
    tol_status status = tol_check_alive("pinned block", &pinned->life);
    return status != TOL_OK ? status
                            : tol_range_check("pinned block", pinned->bytes, offset, bytes);
}

/* The checks of a copy between two buffers. */
static inline tol_status tol_range_check_copy(const struct tol_buffer *destination,
                                              size_t destination_offset,
                                              const struct tol_buffer *source, size_t source_offset,
                                              size_t bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(destination != NULL && source != NULL, TOL_INVALID_ARGUMENT,
              "copy between buffers: a buffer is NULL");
    TOL_TRY(tol_range_check_buffer(destination, destination_offset, bytes));
    TOL_TRY(tol_range_check_buffer(source, source_offset, bytes));
    TOL_CHECK(destination->context == source->context, TOL_WRONG_CONTEXT,
              "the buffers belong to device %d and device %d", destination->context->device.ordinal,
              source->context->device.ordinal);
    CUdeviceptr to = destination->address + destination_offset;
    CUdeviceptr from = source->address + source_offset;
    TOL_CHECK(bytes == 0 || to + bytes <= from || from + bytes <= to, TOL_INVALID_ARGUMENT,
              "the ranges of a copy of %zu bytes overlap", bytes);
out:
    return status;
}

/* The checks of a fill. */
static inline tol_status tol_range_check_fill(const struct tol_buffer *buffer, size_t offset,
                                              size_t element_bytes, size_t count) {
    tol_status status = TOL_OK;
    TOL_CHECK(buffer != NULL, TOL_INVALID_ARGUMENT, "fill: buffer is NULL");
    TOL_TRY(tol_check_alive("buffer", &buffer->life));
    TOL_CHECK(element_bytes == 1 || element_bytes == 2 || element_bytes == 4, TOL_INVALID_ARGUMENT,
              "the elements of a fill must have 1, 2 or 4 bytes, not %zu", element_bytes);
    TOL_CHECK(count <= buffer->bytes / element_bytes, TOL_OUT_OF_RANGE,
              "%zu elements of %zu bytes are not inside a buffer of %zu bytes", count,
              element_bytes, buffer->bytes);
    TOL_TRY(tol_range_check_buffer(buffer, offset, count * element_bytes));
    TOL_CHECK(offset % element_bytes == 0 && buffer->address % element_bytes == 0,
              TOL_INVALID_ARGUMENT, "offset %zu is not a multiple of the element size %zu", offset,
              element_bytes);
out:
    return status;
}

#endif
