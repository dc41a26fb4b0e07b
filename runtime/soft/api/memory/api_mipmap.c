/*
 * Mipmapped arrays. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "queue/queue.h"
#include "state/contexts.h"
#include "state/mipmap.h"

static CUresult mipmap_find(CUmipmappedArray handle, struct soft_mipmap *mipmap) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return soft_mipmap_find(handle, mipmap) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuMipmappedArrayCreate,
       (CUmipmappedArray * handle, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)) {
    struct soft_context *context = NULL;
    struct soft_mipmap *mipmap = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || shape == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_mipmap_new(context, shape, levels, &mipmap);
    if (result == CUDA_SUCCESS) *handle = (CUmipmappedArray)(void *)mipmap;
    return result;
}

EXPORT(cuMipmappedArrayGetLevel, (CUarray * array, CUmipmappedArray handle, unsigned int level)) {
    struct soft_mipmap mipmap;
    CUresult result = mipmap_find(handle, &mipmap);
    if (result != CUDA_SUCCESS) return result;
    if (array == NULL || level >= mipmap.levels) return CUDA_ERROR_INVALID_VALUE;
    *array = (CUarray)(void *)mipmap.arrays[level];
    return CUDA_SUCCESS;
}

/* Only for sparse arrays and those whose memory is mapped later; there are none. */
EXPORT(cuMipmappedArrayGetMemoryRequirements,
       (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUmipmappedArray handle, CUdevice device)) {
    struct soft_mipmap mipmap;
    (void)requirements;
    CUresult result = mipmap_find(handle, &mipmap);
    if (result != CUDA_SUCCESS) return result;
    return soft_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuMipmappedArrayGetSparseProperties,
       (CUDA_ARRAY_SPARSE_PROPERTIES * properties, CUmipmappedArray handle)) {
    struct soft_mipmap mipmap;
    (void)properties;
    CUresult result = mipmap_find(handle, &mipmap);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuMipmappedArrayDestroy, (CUmipmappedArray handle)) {
    struct soft_context *context = NULL;
    struct soft_mipmap mipmap;
    CUresult result = mipmap_find(handle, &mipmap);
    if (result != CUDA_SUCCESS) return result;
    /* As with cuMemFree: waits for all work that may use it. */
    soft_queue_wait_device(mipmap.context->device->ordinal);
    if (!soft_mipmap_free(handle)) return CUDA_ERROR_INVALID_HANDLE;
    return soft_context_current(&context);
}
