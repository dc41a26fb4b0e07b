/*
 * Asynchronous copies: ranges checked, pinned blocks marked, pageable sources staged.
 */
#include "tollens/copy.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "buffer_state.h"
#include "capture_state.h"
#include "pinned_state.h"
#include "range.h"

#include <stdlib.h>
#include <string.h>

static tol_status check_stream(const struct tol_stream *stream, const struct tol_context *context) {
    tol_status status = TOL_OK;
    TOL_CHECK(stream != NULL, TOL_INVALID_ARGUMENT, "copy: stream is NULL");
    TOL_CHECK(stream->context == context, TOL_WRONG_CONTEXT,
              "the stream belongs to device %d, the memory to device %d",
              stream->context->device.ordinal, context->device.ordinal);
out:
    return status;
}

/* A copy was queued but could not be marked as in flight: wait for it here, so that the program
 * cannot touch memory that it uses, until the deadline. The first failure is returned. */
static tol_status copy_settle(struct tol_stream *stream, tol_status failure) {
    struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
    if (failure != TOL_OK) (void)tol_deadline_settle(stream, &deadline);
    return failure;
}

/* Before a copy is queued: the block's record of it. A captured copy uses the block when the graph
 * is launched, so the capture keeps it and there is no record now. */
static tol_status copy_prepare(struct tol_pinned *pinned, struct tol_stream *stream,
                               struct tol_copy_use **use) {
    struct tol_capture *capture = atomic_load_explicit(&stream->capture, memory_order_relaxed);
    if (capture != NULL) return tol_capture_keep(capture, pinned);
    return tol_pinned_prepare(pinned, stream, use);
}

tol_status tol_copy_to_device(struct tol_stream *stream, struct tol_buffer *destination,
                              size_t destination_offset, struct tol_pinned *source,
                              size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_copy_to_device", bytes);
    tol_status status = TOL_OK;
    struct tol_copy_use *use = NULL;
    TOL_CHECK(destination != NULL && source != NULL, TOL_INVALID_ARGUMENT,
              "tol_copy_to_device: an argument is NULL");
    TOL_TRY(tol_range_check_buffer(destination, destination_offset, bytes));
    TOL_TRY(tol_range_check_pinned(source, source_offset, bytes));
    TOL_TRY(check_stream(stream, destination->context));
    TOL_TRY(check_stream(stream, source->context));
    TOL_TRY(tol_context_enter(stream->context));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(copy_prepare(source, stream, &use));
    TOL_CONTEXT_CU(stream->context, cuMemcpyHtoDAsync_v2,
                   (destination->address + destination_offset,
                    (const char *)source->data + source_offset, bytes, stream->handle),
                   "queueing a copy of %zu bytes to the device", bytes);
    if (use != NULL) status = copy_settle(stream, tol_pinned_mark(source, stream, use));
out:
    return status;
}

tol_status tol_copy_to_host(struct tol_stream *stream, struct tol_pinned *destination,
                            size_t destination_offset, const struct tol_buffer *source,
                            size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_copy_to_host", bytes);
    tol_status status = TOL_OK;
    struct tol_copy_use *use = NULL;
    TOL_CHECK(destination != NULL && source != NULL, TOL_INVALID_ARGUMENT,
              "tol_copy_to_host: an argument is NULL");
    TOL_TRY(tol_range_check_pinned(destination, destination_offset, bytes));
    TOL_TRY(tol_range_check_buffer(source, source_offset, bytes));
    TOL_TRY(check_stream(stream, destination->context));
    TOL_TRY(check_stream(stream, source->context));
    TOL_TRY(tol_context_enter(stream->context));
    if (bytes == 0) return TOL_OK;
    TOL_TRY(copy_prepare(destination, stream, &use));
    TOL_CONTEXT_CU(stream->context, cuMemcpyDtoHAsync_v2,
                   ((char *)destination->data + destination_offset, source->address + source_offset,
                    bytes, stream->handle),
                   "queueing a copy of %zu bytes to the host", bytes);
    if (use != NULL) status = copy_settle(stream, tol_pinned_mark(destination, stream, use));
out:
    return status;
}

static tol_status new_staging(struct tol_context *context, size_t bytes,
                              struct tol_staging **result) {
    tol_status status = TOL_OK;
    struct tol_staging *block = calloc(1, sizeof *block);
    TOL_CHECK(block != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a staging block");
    TOL_CONTEXT_CU(context, cuEventCreate, (&block->done, CU_EVENT_DISABLE_TIMING),
                   "preparing a staging block");
    TOL_CONTEXT_CU(context, cuMemHostAlloc, (&block->data, bytes, CU_MEMHOSTALLOC_PORTABLE),
                   "pinning %zu bytes to stage a copy", bytes);
    block->bytes = bytes;
    block->taken = true;
    pthread_mutex_lock(&context->lock);
    block->next = context->staging;
    context->staging = block;
    pthread_mutex_unlock(&context->lock);
    *result = block;
    block = NULL;
out:
    if (block != NULL && block->done != NULL) context->functions->cuEventDestroy_v2(block->done);
    free(block);
    return status;
}

/* Takes a free staging block that is large enough, but not wastefully large; creates one if there
 * is none. */
static tol_status take_staging(struct tol_context *context, size_t bytes,
                               struct tol_staging **result) {
    struct tol_staging *block = NULL;
    pthread_mutex_lock(&context->lock);
    for (block = context->staging; block != NULL; block = block->next) {
        if (!block->taken && block->bytes >= bytes && block->bytes / 4 <= bytes &&
            context->functions->cuEventQuery(block->done) == CUDA_SUCCESS) {
            block->taken = true;
            break;
        }
    }
    pthread_mutex_unlock(&context->lock);
    if (block == NULL) return new_staging(context, bytes, result);
    *result = block;
    return TOL_OK;
}

tol_status tol_copy_from_pageable(struct tol_stream *stream, struct tol_buffer *destination,
                                  size_t destination_offset, const void *source, size_t bytes) {
    TOL_RANGE("tol_copy_from_pageable", bytes);
    tol_status status = TOL_OK;
    struct tol_staging *block = NULL;
    bool queued = false;
    TOL_CHECK(destination != NULL && source != NULL, TOL_INVALID_ARGUMENT,
              "tol_copy_from_pageable: an argument is NULL");
    TOL_TRY(tol_range_check_buffer(destination, destination_offset, bytes));
    TOL_TRY(check_stream(stream, destination->context));
    TOL_TRY(tol_context_enter(stream->context));
    if (bytes == 0) return TOL_OK;
    TOL_CHECK(atomic_load_explicit(&stream->capture, memory_order_relaxed) == NULL,
              TOL_INVALID_ARGUMENT,
              "stream %u is being captured, and pageable memory may be gone when the graph is "
              "launched: copy from a pinned block",
              stream->number);
    TOL_TRY(take_staging(stream->context, bytes, &block));
    memcpy(block->data, source, bytes);
    TOL_CONTEXT_CU(stream->context, cuMemcpyHtoDAsync_v2,
                   (destination->address + destination_offset, block->data, bytes, stream->handle),
                   "queueing a copy of %zu bytes to the device", bytes);
    queued = true;
    TOL_CONTEXT_CU(stream->context, cuEventRecord, (block->done, stream->handle),
                   "recording a copy on stream %u", stream->number);
out:
    if (queued) status = copy_settle(stream, status);
    if (block != NULL) {
        pthread_mutex_lock(&stream->context->lock);
        block->taken = false;
        pthread_mutex_unlock(&stream->context->lock);
    }
    return status;
}

tol_status tol_copy_on_device(struct tol_stream *stream, struct tol_buffer *destination,
                              size_t destination_offset, const struct tol_buffer *source,
                              size_t source_offset, size_t bytes) {
    TOL_RANGE("tol_copy_on_device", bytes);
    tol_status status = TOL_OK;
    TOL_TRY(tol_range_check_copy(destination, destination_offset, source, source_offset, bytes));
    TOL_TRY(check_stream(stream, destination->context));
    TOL_TRY(tol_context_enter(stream->context));
    if (bytes == 0) return TOL_OK;
    TOL_CONTEXT_CU(stream->context, cuMemcpyDtoDAsync_v2,
                   (destination->address + destination_offset, source->address + source_offset,
                    bytes, stream->handle),
                   "queueing a copy of %zu bytes on the device", bytes);
out:
    return status;
}

tol_status tol_copy_fill(struct tol_stream *stream, struct tol_buffer *buffer, size_t offset,
                         unsigned value, size_t element_bytes, size_t count) {
    TOL_RANGE("tol_copy_fill", 0);
    tol_status status = TOL_OK;
    TOL_TRY(tol_range_check_fill(buffer, offset, element_bytes, count));
    TOL_TRY(check_stream(stream, buffer->context));
    TOL_TRY(tol_context_enter(stream->context));
    if (count == 0) return TOL_OK;
    CUdeviceptr address = buffer->address + offset;
    if (element_bytes == 1) {
        TOL_CONTEXT_CU(stream->context, cuMemsetD8Async,
                       (address, (unsigned char)value, count, stream->handle),
                       "queueing a fill of %zu bytes", count);
    } else if (element_bytes == 2) {
        TOL_CONTEXT_CU(stream->context, cuMemsetD16Async,
                       (address, (unsigned short)value, count, stream->handle),
                       "queueing a fill of %zu halfwords", count);
    } else {
        TOL_CONTEXT_CU(stream->context, cuMemsetD32Async, (address, value, count, stream->handle),
                       "queueing a fill of %zu words", count);
    }
out:
    return status;
}
