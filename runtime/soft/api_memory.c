/*
 * Device and pinned memory, copies and fills. As in "Memory Management" of the CUDA Driver API
 * 13.0.
 *
 * Ranges are checked when an operation is queued, as a driver does; what is freed before it runs is
 * a fault of the program and fails the context then.
 */
#include "driver_state.h"
#include "export.h"
#include "queue.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

/* Device memory is given out in these steps, and charged so. */
enum { GRANULE_BYTES = 512 };

EXPORT(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (dptr == NULL || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!soft_device_charge(context->device, bytesize)) return CUDA_ERROR_OUT_OF_MEMORY;
    const struct soft_allocation *allocation =
        soft_space_alloc(bytesize, GRANULE_BYTES, SOFT_KIND_DEVICE, context->device->ordinal, NULL);
    if (allocation == NULL) {
        soft_device_refund(context->device, bytesize);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *dptr = allocation->address;
    return CUDA_SUCCESS;
}

EXPORT(cuMemFree_v2, (CUdeviceptr dptr)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    /* As on a device, freeing waits for everything that may use the memory. */
    result = soft_queue_wait_context(context);
    if (result != CUDA_SUCCESS) return result;
    uint64_t bytes = 0;
    int device = 0;
    if (!soft_space_free(dptr, SOFT_KIND_DEVICE, &bytes, &device)) return CUDA_ERROR_INVALID_VALUE;
    soft_device_refund(soft_device_of(device), bytes);
    return CUDA_SUCCESS;
}

EXPORT(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pp == NULL || bytesize == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_allocation *allocation =
        soft_space_alloc(bytesize, GRANULE_BYTES, SOFT_KIND_PINNED, context->device->ordinal, NULL);
    if (allocation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    /* The host may write it at any time, unseen: all of it counts as written. */
    soft_shadow_mark(allocation->shadow, 0, bytesize);
    *pp = allocation->host;
    return CUDA_SUCCESS;
}

EXPORT(cuMemFreeHost, (void *p)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    result = soft_queue_wait_context(context);
    if (result != CUDA_SUCCESS) return result;
    bool freed = soft_space_free((uint64_t)(uintptr_t)p, SOFT_KIND_PINNED, NULL, NULL);
    return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_pinned(const void *pointer, size_t bytes) {
    return soft_space_is_live((uint64_t)(uintptr_t)pointer, bytes);
}

/* Queues a copy. A pageable source is copied first; a pageable destination is waited for. */
static CUresult queue_copy(CUstream handle, enum soft_copy_kind kind, uint64_t destination,
                           uint64_t source, size_t bytes, bool wait) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    bool to_device = kind != SOFT_COPY_TO_HOST, from_device = kind != SOFT_COPY_TO_DEVICE;
    if (destination == 0 || source == 0 || destination + bytes < destination ||
        source + bytes < source || (to_device && !soft_space_is_live(destination, bytes)) ||
        (from_device && !soft_space_is_live(source, bytes))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->kind = SOFT_OPERATION_COPY;
    operation->copy = kind;
    operation->destination = destination;
    operation->source = source;
    operation->bytes = bytes;
    const void *host = (const void *)(uintptr_t)(to_device ? source : destination);
    if (!wait && kind == SOFT_COPY_TO_DEVICE && !is_pinned(host, bytes)) {
        operation->staged = malloc(bytes);
        if (operation->staged == NULL) {
            free(operation);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memcpy(operation->staged, host, bytes);
    }
    wait = wait || (kind == SOFT_COPY_TO_HOST && !is_pinned(host, bytes));
    result = soft_queue_add(stream, operation);
    return result == CUDA_SUCCESS && wait ? soft_queue_wait_stream(stream) : result;
}

EXPORT(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes)) {
    return queue_copy(NULL, SOFT_COPY_TO_DEVICE, dst, (uint64_t)(uintptr_t)src, bytes, true);
}

EXPORT(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes)) {
    return queue_copy(NULL, SOFT_COPY_TO_HOST, (uint64_t)(uintptr_t)dst, src, bytes, true);
}

EXPORT(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes)) {
    return queue_copy(NULL, SOFT_COPY_ON_DEVICE, dst, src, bytes, false);
}

EXPORT(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)) {
    return queue_copy(stream, SOFT_COPY_TO_DEVICE, dst, (uint64_t)(uintptr_t)src, bytes, false);
}

EXPORT(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream)) {
    return queue_copy(stream, SOFT_COPY_TO_HOST, (uint64_t)(uintptr_t)dst, src, bytes, false);
}

EXPORT(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)) {
    return queue_copy(stream, SOFT_COPY_ON_DEVICE, dst, src, bytes, false);
}

static CUresult queue_fill(CUstream handle, CUdeviceptr address, uint32_t pattern,
                           unsigned pattern_bytes, size_t count) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (count == 0) return CUDA_SUCCESS;
    if (address % pattern_bytes != 0 || count > SIZE_MAX / pattern_bytes ||
        !soft_space_is_live(address, count * pattern_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->kind = SOFT_OPERATION_FILL;
    operation->destination = address;
    operation->bytes = count;
    operation->pattern = pattern;
    operation->pattern_bytes = pattern_bytes;
    return soft_queue_add(stream, operation);
}

EXPORT(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t count)) {
    return queue_fill(NULL, dst, value, 1, count);
}

EXPORT(cuMemsetD16_v2, (CUdeviceptr dst, unsigned short value, size_t count)) {
    return queue_fill(NULL, dst, value, 2, count);
}

EXPORT(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t count)) {
    return queue_fill(NULL, dst, value, 4, count);
}

EXPORT(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)) {
    return queue_fill(stream, dst, value, 1, count);
}

EXPORT(cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)) {
    return queue_fill(stream, dst, value, 2, count);
}

EXPORT(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)) {
    return queue_fill(stream, dst, value, 4, count);
}
