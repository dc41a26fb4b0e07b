/*
 * Device memory. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "state/device_memory.h"
#include "api/export.h"
#include "state/graph_memory.h"
#include "state/memory_pool.h"
#include "queue/queue.h"
#include "state/managed.h"

/* Pitches are multiples of this, so that rows are aligned for the hardware. */
enum { PITCH_BYTES = 512 };

EXPORT(cuMemGetInfo_v2, (size_t * free, size_t *total)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    const struct soft_device *device = context->device;
    if (free != NULL) *free = (size_t)(device->memory_bytes - device->memory_used);
    if (total != NULL) *total = (size_t)device->memory_bytes;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

EXPORT(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (dptr == NULL || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    return soft_memory_alloc(context, bytesize, dptr);
}

EXPORT(cuMemAllocPitch_v2,
       (CUdeviceptr * dptr, size_t *pitch, size_t width, size_t height, unsigned int element)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    bool sized = element == 4 || element == 8 || element == 16;
    if (dptr == NULL || pitch == NULL || width == 0 || height == 0 || !sized) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (width > INT32_MAX) return CUDA_ERROR_INVALID_VALUE; /* CU_DEVICE_ATTRIBUTE_MAX_PITCH */
    size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
    if (height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
    result = soft_memory_alloc(context, row * height, dptr);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
}

EXPORT(cuMemFree_v2, (CUdeviceptr dptr)) {
    const unsigned kinds = 1u << SOFT_KIND_DEVICE | 1u << SOFT_KIND_POOL | 1u << SOFT_KIND_MANAGED;
    struct soft_context *context = NULL;
    struct soft_allocation was;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (dptr == 0) return CUDA_SUCCESS; /* as an H200's driver does */
    if (soft_space_find(dptr, &was) && was.name[0] != '\0') return CUDA_ERROR_INVALID_VALUE;
    if (!soft_space_claim(dptr, kinds, &was)) return CUDA_ERROR_INVALID_VALUE;
    /* As on a GPU, freeing waits for all work that may use the memory, except for a pool's memory,
     * where the program guarantees that none does. */
    if (was.kind == SOFT_KIND_POOL) {
        soft_graph_memory_freed(dptr);
        soft_pool_free(dptr);
        return CUDA_SUCCESS;
    }
    soft_queue_wait_device(was.kind == SOFT_KIND_MANAGED ? -1 : was.device);
    soft_space_free(dptr, kinds, &was);
    if (was.kind == SOFT_KIND_MANAGED) soft_managed_forget(dptr);
    soft_memory_refund(&was);
    return soft_context_current(&context);
}

EXPORT(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr dptr)) {
    struct soft_context *context = NULL;
    struct soft_allocation found;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_space_find(dptr, &found)) return CUDA_ERROR_NOT_FOUND;
    if (base != NULL) *base = found.address;
    if (size != NULL) *size = (size_t)found.bytes;
    return CUDA_SUCCESS;
}
