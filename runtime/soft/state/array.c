/*
 * Makes and destroys CUDA arrays.
 */
#include "array.h"

#include "device_memory.h"
#include "handle_set.h"

#include <stdlib.h>

static struct soft_array *all;

unsigned soft_format_bytes(CUarray_format format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

/* Compressed and planar formats, and formats with normalised names. */
bool soft_format_is(CUarray_format format) {
    enum { UNORM_101010_2 = 0x50, YUV444_16 = 0xb5 };
    return soft_format_bytes(format) > 0 || format == UNORM_101010_2 ||
           (format >= CU_AD_FORMAT_BC1_UNORM && format <= YUV444_16) ||
           (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4);
}

struct extent {
    size_t width, height, depth;
};

/* The largest array of a kind; 0: it has no such dimension. */
static struct extent limit_of(const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    bool layered = (shape->Flags & CUDA_ARRAY3D_LAYERED) != 0;
    if (shape->Flags & CUDA_ARRAY3D_CUBEMAP) {
        return (struct extent){32768, 32768, layered ? 2046 : 6};
    }
    if (shape->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) return (struct extent){32768, 32768, 0};
    if (layered) return (struct extent){32768, shape->Height > 0 ? 32768 : 0, 2048};
    if (shape->Depth > 0) return (struct extent){16384, 16384, 16384};
    if (shape->Height > 0) return (struct extent){131072, 65536, 0};
    bool surface = (shape->Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0;
    return (struct extent){surface ? 32768 : 131072, 0, 0};
}

static CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    const unsigned known = 0x1ff, absent = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
                                           CUDA_ARRAY3D_DEPTH_TEXTURE | 0x100;
    const unsigned flags = shape->Flags, channels = shape->NumChannels;
    bool layered = (flags & CUDA_ARRAY3D_LAYERED) != 0, cube = (flags & CUDA_ARRAY3D_CUBEMAP) != 0;
    if (!soft_format_is(shape->Format) || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (soft_format_bytes(shape->Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    const struct extent limit = limit_of(shape);
    if (shape->Width == 0 || shape->Width > limit.width || shape->Height > limit.height ||
        shape->Depth > limit.depth) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((layered || cube) && shape->Depth == 0) return CUDA_ERROR_INVALID_VALUE;
    /* Only layers may be above absent rows. */
    if (shape->Depth > 0 && shape->Height == 0 && !layered) return CUDA_ERROR_INVALID_VALUE;
    if (cube && (shape->Width != shape->Height || shape->Depth % 6 != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && (shape->Height == 0 || layered || cube)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return (flags & absent) != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult soft_array_new(struct soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                        struct soft_array **result) {
    CUresult checked = array_check(shape);
    if (checked != CUDA_SUCCESS) return checked;
    struct soft_array *array = calloc(1, sizeof *array);
    if (array == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    array->shape = *shape;
    array->context = context;
    array->element_bytes = soft_format_bytes(shape->Format) * shape->NumChannels;
    array->rows = shape->Height > 0 ? shape->Height : 1;
    array->layers = shape->Depth > 0 ? shape->Depth : 1;
    array->pitch = shape->Width * array->element_bytes;
    array->slice = array->pitch * array->rows;
    checked = soft_memory_alloc_array(context, array->slice * array->layers, &array->address);
    if (checked != CUDA_SUCCESS) {
        free(array);
        return checked;
    }
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_ARRAY, array);
    if (added) {
        array->next = all;
        array->link = &all;
        if (all != NULL) all->link = &array->next;
        all = array;
    }
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        soft_memory_free(array->address);
        free(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result = array;
    return CUDA_SUCCESS;
}

bool soft_array_is(CUarray handle) {
    return soft_handle_is(SOFT_HANDLE_ARRAY, handle);
}

bool soft_array_find(CUarray handle, struct soft_array *array) {
    pthread_mutex_lock(&soft_lock);
    bool is = soft_array_is(handle);
    if (is) *array = *(const struct soft_array *)(const void *)handle;
    pthread_mutex_unlock(&soft_lock);
    return is;
}

/* Removes one from the list. The caller holds soft_lock. */
static void array_take(struct soft_array *array) {
    soft_handle_remove(SOFT_HANDLE_ARRAY, array);
    *array->link = array->next;
    if (array->next != NULL) array->next->link = array->link;
}

bool soft_array_free(CUarray handle) {
    struct soft_array *array = (struct soft_array *)(void *)handle;
    pthread_mutex_lock(&soft_lock);
    bool is = soft_array_is(handle) && !array->is_level;
    if (is) array_take(array);
    pthread_mutex_unlock(&soft_lock);
    if (!is) return false;
    soft_memory_free(array->address);
    free(array);
    return true;
}

void soft_array_free_level(struct soft_array *array) {
    pthread_mutex_lock(&soft_lock);
    array_take(array);
    pthread_mutex_unlock(&soft_lock);
    soft_memory_free(array->address);
    free(array);
}

void soft_array_free_all(const struct soft_context *context) {
    for (;;) {
        pthread_mutex_lock(&soft_lock);
        struct soft_array *array = all;
        while (array != NULL && array->context != context) array = array->next;
        if (array != NULL) array_take(array);
        pthread_mutex_unlock(&soft_lock);
        if (array == NULL) return;
        soft_memory_free(array->address);
        free(array);
    }
}
