/*
 * Managed memory: allocation, advice, prefetching, attributes of ranges. As in "Memory Management"
 * and "Unified Addressing" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "queue/queue.h"
#include "state/contexts.h"
#include "state/managed.h"

EXPORT(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (dptr == NULL || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return soft_managed_alloc(context, bytesize, flags, dptr);
}

static CUresult api_managed_advise(CUdeviceptr address, size_t count, CUmem_advise advice,
                                   const CUmemLocation *location) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* These have no location and ignore it. */
    const bool is_placeless = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                              advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                              advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    if (!is_placeless && !soft_managed_is_place(location)) {
        return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    return soft_managed_advise(address, count, advice, location);
}

EXPORT(cuMemAdvise, (CUdeviceptr pointer, size_t count, CUmem_advise advice, CUdevice device)) {
    CUmemLocation location;
    (void)soft_managed_place(device, &location);
    return api_managed_advise(pointer, count, advice, &location);
}

EXPORT(cuMemAdvise_v2,
       (CUdeviceptr pointer, size_t count, CUmem_advise advice, CUmemLocation location)) {
    return api_managed_advise(pointer, count, advice, &location);
}

/* The bytes do not move: only query results change, at once. */
static CUresult managed_prefetch(CUdeviceptr address, size_t count, const CUmemLocation *location,
                                 CUstream handle) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_managed_is_place(location)) {
        return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    return soft_managed_prefetch(address, count, location);
}

EXPORT(cuMemPrefetchAsync, (CUdeviceptr pointer, size_t count, CUdevice device, CUstream stream)) {
    CUmemLocation location;
    (void)soft_managed_place(device, &location);
    return managed_prefetch(pointer, count, &location, stream);
}

EXPORT(cuMemPrefetchAsync_v2, (CUdeviceptr pointer, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream stream)) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return managed_prefetch(pointer, count, &location, stream);
}

EXPORT(cuMemRangeGetAttribute, (void *data, size_t bytes, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, size_t count)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (data == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_managed_ask(pointer, count, attribute, data, bytes);
}

EXPORT(cuMemRangeGetAttributes, (void **data, size_t *bytes, CUmem_range_attribute *attributes,
                                 size_t attribute_count, CUdeviceptr pointer, size_t count)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (data == NULL || bytes == NULL || attributes == NULL || attribute_count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < attribute_count && result == CUDA_SUCCESS; i++) {
        if (data[i] == NULL) return CUDA_ERROR_INVALID_VALUE;
        result = soft_managed_ask(pointer, count, attributes[i], data[i], bytes[i]);
    }
    return result;
}
