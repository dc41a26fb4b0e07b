/*
 * Texture and surface objects. As in "Texture Object Management" and "Surface Object Management" of
 * the CUDA Driver API 13.0.
 */
#include "export.h"
#include "queue/queue.h"
#include "state/array.h"
#include "state/contexts.h"
#include "state/texture_object.h"

static CUresult texture_add(const struct soft_texture *texture, unsigned long long *object) {
    uint64_t handle = soft_texture_add(texture);
    if (handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *object = handle;
    return CUDA_SUCCESS;
}

/* The live object of a handle, if it has this kind. */
static CUresult texture_find(unsigned long long object, bool is_surface,
                             struct soft_texture *texture) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    bool found = soft_texture_copy(object, texture) && texture->is_surface == is_surface;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult texture_destroy(unsigned long long object, bool is_surface) {
    struct soft_texture texture;
    CUresult result = texture_find(object, is_surface, &texture);
    if (result != CUDA_SUCCESS) return result;
    const bool removed = soft_texture_remove(object, soft_operation_last());
    return removed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuTexObjectCreate,
       (CUtexObject * object, const CUDA_RESOURCE_DESC *resource,
        const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view)) {
    struct soft_context *context = NULL;
    struct soft_texture texture;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (object == NULL || resource == NULL || description == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_texture_of(context, resource, description, view, &texture);
    return result == CUDA_SUCCESS ? texture_add(&texture, object) : result;
}

EXPORT(cuTexObjectDestroy, (CUtexObject object)) {
    return texture_destroy(object, false);
}

EXPORT(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * resource, CUtexObject object)) {
    struct soft_texture texture;
    CUresult result = texture_find(object, false, &texture);
    if (result != CUDA_SUCCESS) return result;
    if (resource == NULL) return CUDA_ERROR_INVALID_VALUE;
    *resource = texture.resource;
    return CUDA_SUCCESS;
}

EXPORT(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC * description, CUtexObject object)) {
    struct soft_texture texture;
    CUresult result = texture_find(object, false, &texture);
    if (result != CUDA_SUCCESS) return result;
    if (description == NULL) return CUDA_ERROR_INVALID_VALUE;
    *description = texture.description;
    return CUDA_SUCCESS;
}

EXPORT(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC * view, CUtexObject object)) {
    struct soft_texture texture;
    CUresult result = texture_find(object, false, &texture);
    if (result != CUDA_SUCCESS) return result;
    /* An object without a view returns none. */
    if (view == NULL || !texture.has_view) return CUDA_ERROR_INVALID_VALUE;
    *view = texture.view;
    return CUDA_SUCCESS;
}

EXPORT(cuSurfObjectCreate, (CUsurfObject * object, const CUDA_RESOURCE_DESC *resource)) {
    struct soft_context *context = NULL;
    struct soft_texture texture;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (object == NULL || resource == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = soft_surface_of(context, resource, &texture);
    return result == CUDA_SUCCESS ? texture_add(&texture, object) : result;
}

EXPORT(cuSurfObjectDestroy, (CUsurfObject object)) {
    return texture_destroy(object, true);
}

EXPORT(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC * resource, CUsurfObject object)) {
    struct soft_texture texture;
    CUresult result = texture_find(object, true, &texture);
    if (result != CUDA_SUCCESS) return result;
    if (resource == NULL) return CUDA_ERROR_INVALID_VALUE;
    *resource = texture.resource;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGetTexture1DLinearMaxWidth,
       (size_t * width, CUarray_format format, unsigned channels, CUdevice device)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (soft_device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
    bool whole = channels == 1 || channels == 2 || channels == 4;
    if (width == NULL || soft_format_bytes(format) == 0 || !whole) return CUDA_ERROR_INVALID_VALUE;
    *width = SOFT_TEXTURE_LINEAR_WIDTH;
    return CUDA_SUCCESS;
}
