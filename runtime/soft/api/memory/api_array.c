/*
 * CUDA arrays. As in "Memory Management" of the CUDA Driver API 13.0.
 *
 * Sparse and multi-planar arrays are not supported; api_mipmap.c has the mipmapped ones.
 */
#include "api/export.h"
#include "queue/queue.h"
#include "state/array.h"
#include "state/contexts.h"

static CUresult array_create(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    struct soft_context *context = NULL;
    struct soft_array *array = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || shape == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_array_new(context, shape, &array);
    if (result == CUDA_SUCCESS) *handle = (CUarray)(void *)array;
    return result;
}

/* The array of a handle; the errors of the context come before its own. */
static CUresult array_find(CUarray handle, struct soft_array *array) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    return soft_array_find(handle, array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT(cuArrayCreate_v2, (CUarray * handle, const CUDA_ARRAY_DESCRIPTOR *description)) {
    if (description == NULL) return array_create(handle, NULL);
    const CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = description->Width,
                                           .Height = description->Height,
                                           .Format = description->Format,
                                           .NumChannels = description->NumChannels};
    return array_create(handle, &shape);
}

EXPORT(cuArray3DCreate_v2, (CUarray * handle, const CUDA_ARRAY3D_DESCRIPTOR *description)) {
    return array_create(handle, description);
}

EXPORT(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * description, CUarray handle)) {
    struct soft_array array;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS) return result;
    if (description == NULL) return CUDA_ERROR_INVALID_VALUE;
    *description = (CUDA_ARRAY_DESCRIPTOR){.Width = array.shape.Width,
                                           .Height = array.shape.Height,
                                           .Format = array.shape.Format,
                                           .NumChannels = array.shape.NumChannels};
    return CUDA_SUCCESS;
}

EXPORT(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * description, CUarray handle)) {
    struct soft_array array;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS) return result;
    if (description == NULL) return CUDA_ERROR_INVALID_VALUE;
    *description = array.shape;
    return CUDA_SUCCESS;
}

/* Only for arrays whose memory is mapped later; there are none. */
EXPORT(cuArrayGetMemoryRequirements,
       (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUarray handle, CUdevice device)) {
    struct soft_array array;
    (void)requirements;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS) return result;
    return soft_device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

/* Likewise of sparse ones, and of planes. */
EXPORT(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES * properties, CUarray handle)) {
    struct soft_array array;
    (void)properties;
    CUresult result = array_find(handle, &array);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuArrayGetPlane, (CUarray * plane, CUarray handle, unsigned int index)) {
    struct soft_array array;
    (void)plane;
    (void)index;
    CUresult result = array_find(handle, &array);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuArrayDestroy, (CUarray handle)) {
    struct soft_context *context = NULL;
    struct soft_array array;
    CUresult result = array_find(handle, &array);
    if (result != CUDA_SUCCESS) return result;
    if (array.is_level) return CUDA_ERROR_INVALID_VALUE;
    /* As with cuMemFree: waits for all work that may use it. */
    soft_queue_wait_device(array.context->device->ordinal);
    if (!soft_array_free(handle)) return CUDA_ERROR_INVALID_HANDLE;
    return soft_context_current(&context);
}
