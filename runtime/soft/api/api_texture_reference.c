/*
 * Texture and surface references. As in "Texture Reference Management" and "Surface Reference
 * Management" of the CUDA Driver API 13.0.
 *
 * The manual marks them as deprecated, but PTX may still declare them.
 */
#include "export.h"
#include "lower/loaded_module.h"
#include "state/mipmap.h"
#include "state/contexts.h"
#include "state/handle_set.h"
#include "state/texture_reference.h"

#include <string.h>

typedef struct soft_texture_reference reference;

/* ---- finding ---- */

/* The calling thread's context and a live reference. */
static CUresult texture_reference_find(const void *handle, bool is_surface,
                                       struct soft_context **context, reference **found) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    *found = soft_texture_reference_find(handle, is_surface);
    return *found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult find_in_module(CUmodule handle, const char *name, bool is_surface,
                               reference **found) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_MODULE, handle);
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_INVALID_HANDLE;
    if (name == NULL || name[0] == '\0') return CUDA_ERROR_INVALID_VALUE;
    const struct ptx_variable *variable =
        soft_module_variable((const struct soft_module *)(const void *)handle, name);
    if (variable == NULL || !variable->is_opaque || variable->is_surface != is_surface) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *found = soft_texture_reference_of(variable->address, is_surface);
    return *found != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT(cuModuleGetTexRef, (CUtexref * handle, CUmodule module, const char *name)) {
    reference *found = NULL;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_in_module(module, name, false, &found);
    if (result == CUDA_SUCCESS) *handle = (CUtexref)(void *)found;
    return result;
}

EXPORT(cuModuleGetSurfRef, (CUsurfref * handle, CUmodule module, const char *name)) {
    reference *found = NULL;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_in_module(module, name, true, &found);
    if (result == CUDA_SUCCESS) *handle = (CUsurfref)(void *)found;
    return result;
}

EXPORT(cuTexRefCreate, (CUtexref * handle)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL) return CUDA_ERROR_INVALID_VALUE;
    reference *made = soft_texture_reference_new();
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUtexref)(void *)made;
    return CUDA_SUCCESS;
}

EXPORT(cuTexRefDestroy, (CUtexref handle)) {
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    return soft_texture_reference_free(found) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- binding ---- */

/* Binds a resource, or leaves the reference unchanged. */
static CUresult texture_reference_bind(const struct soft_context *context, reference *to,
                                       const CUDA_RESOURCE_DESC *resource) {
    const CUDA_RESOURCE_DESC before = to->resource;
    bool was_bound = to->is_bound;
    to->resource = *resource;
    to->is_bound = true;
    CUresult result = soft_texture_reference_apply(context, to);
    if (result == CUDA_SUCCESS) return result;
    to->resource = before;
    to->is_bound = was_bound;
    (void)soft_texture_reference_apply(context, to);
    return result;
}

static CUresult bind_array(const void *handle, bool is_surface, CUarray array) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    struct soft_context *context = NULL;
    struct soft_array shape;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, is_surface, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_array_find(array, &shape)) return CUDA_ERROR_INVALID_VALUE;
    found->format = shape.shape.Format;
    found->channels = shape.shape.NumChannels;
    resource.res.array.hArray = array;
    return texture_reference_bind(context, found, &resource);
}

static CUresult bound_array(const void *handle, bool is_surface, CUarray *array) {
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, is_surface, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    if (array == NULL || !found->is_bound || found->resource.resType != CU_RESOURCE_TYPE_ARRAY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *array = found->resource.res.array.hArray;
    return CUDA_SUCCESS;
}

EXPORT(cuTexRefSetArray, (CUtexref handle, CUarray array, unsigned int flags)) {
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    return bind_array(handle, false, array);
}

EXPORT(cuTexRefGetArray, (CUarray * array, CUtexref handle)) {
    return bound_array(handle, false, array);
}

EXPORT(cuTexRefSetMipmappedArray, (CUtexref handle, CUmipmappedArray array, unsigned int flags)) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    struct soft_context *context = NULL;
    struct soft_mipmap mipmap;
    reference *found = NULL;
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_mipmap_find(array, &mipmap)) return CUDA_ERROR_INVALID_VALUE;
    found->format = mipmap.shape.Format;
    found->channels = mipmap.shape.NumChannels;
    resource.res.mipmap.hMipmappedArray = array;
    return texture_reference_bind(context, found, &resource);
}

EXPORT(cuTexRefGetMipmappedArray, (CUmipmappedArray * array, CUtexref handle)) {
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    if (array == NULL || !found->is_bound ||
        found->resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *array = found->resource.res.mipmap.hMipmappedArray;
    return CUDA_SUCCESS;
}

EXPORT(cuSurfRefSetArray, (CUsurfref handle, CUarray array, unsigned int flags)) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return bind_array(handle, true, array);
}

EXPORT(cuSurfRefGetArray, (CUarray * array, CUsurfref handle)) {
    return bound_array(handle, true, array);
}

/* The memory may begin at any address. The texture begins at the aligned address before it, and the
 * call returns the offset of the memory in bytes. */
EXPORT(cuTexRefSetAddress_v2,
       (size_t * byte_offset, CUtexref handle, CUdeviceptr pointer, size_t bytes)) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    size_t offset = (size_t)(pointer % SOFT_TEXTURE_ALIGNMENT);
    if (byte_offset == NULL && offset != 0) return CUDA_ERROR_INVALID_VALUE;
    if (pointer == 0) {
        found->is_bound = false;
        return soft_texture_reference_apply(context, found);
    }
    resource.res.linear.devPtr = pointer - offset;
    resource.res.linear.format = found->format;
    resource.res.linear.numChannels = found->channels;
    resource.res.linear.sizeInBytes = bytes + offset;
    result = texture_reference_bind(context, found, &resource);
    if (result == CUDA_SUCCESS && byte_offset != NULL) *byte_offset = offset;
    return result;
}

static CUresult bind_rows(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr pointer,
                          size_t pitch) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    if (shape == NULL) return CUDA_ERROR_INVALID_VALUE;
    resource.res.pitch2D.devPtr = pointer;
    resource.res.pitch2D.format = shape->Format;
    resource.res.pitch2D.numChannels = shape->NumChannels;
    resource.res.pitch2D.width = shape->Width;
    resource.res.pitch2D.height = shape->Height;
    resource.res.pitch2D.pitchInBytes = pitch;
    result = texture_reference_bind(context, found, &resource);
    if (result != CUDA_SUCCESS) return result;
    found->format = shape->Format;
    found->channels = shape->NumChannels;
    return CUDA_SUCCESS;
}

EXPORT(cuTexRefSetAddress2D_v2,
       (CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr pointer, size_t pitch)) {
    return bind_rows(handle, shape, pointer, pitch);
}

EXPORT(cuTexRefSetAddress2D_v3,
       (CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr pointer, size_t pitch)) {
    return bind_rows(handle, shape, pointer, pitch);
}

EXPORT(cuTexRefGetAddress_v2, (CUdeviceptr * pointer, CUtexref handle)) {
    struct soft_context *context = NULL;
    reference *found = NULL;
    CUresult result = texture_reference_find(handle, false, &context, &found);
    if (result != CUDA_SUCCESS) return result;
    bool is_row = found->resource.resType == CU_RESOURCE_TYPE_LINEAR;
    bool is_memory = is_row || found->resource.resType == CU_RESOURCE_TYPE_PITCH2D;
    if (pointer == NULL || !found->is_bound || !is_memory) return CUDA_ERROR_INVALID_VALUE;
    *pointer = is_row ? found->resource.res.linear.devPtr : found->resource.res.pitch2D.devPtr;
    return CUDA_SUCCESS;
}

/* ---- settings ---- */

/* Settings may come in any order, so a setting that does not fit what is bound is no error: a
 * later one may correct it. Until then a kernel that uses the reference reports that nothing is
 * bound. */
#define SETTER(name, parameters, is_sound, ...)                                                    \
    EXPORT(name, parameters) {                                                                     \
        struct soft_context *context = NULL;                                                       \
        reference *found = NULL;                                                                   \
        CUresult result = texture_reference_find(handle, false, &context, &found);                 \
        if (result != CUDA_SUCCESS) return result;                                                 \
        if (!(is_sound)) return CUDA_ERROR_INVALID_VALUE;                                          \
        __VA_ARGS__;                                                                               \
        (void)soft_texture_reference_apply(context, found);                                        \
        return CUDA_SUCCESS;                                                                       \
    }

#define GETTER(name, parameters, is_sound, ...)                                                    \
    EXPORT(name, parameters) {                                                                     \
        struct soft_context *context = NULL;                                                       \
        reference *found = NULL;                                                                   \
        CUresult result = texture_reference_find(handle, false, &context, &found);                 \
        if (result != CUDA_SUCCESS) return result;                                                 \
        if (!(is_sound)) return CUDA_ERROR_INVALID_VALUE;                                          \
        __VA_ARGS__;                                                                               \
        return CUDA_SUCCESS;                                                                       \
    }

static bool is_filter(CUfilter_mode mode) {
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

static bool is_address(CUaddress_mode mode) {
    return mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER;
}

enum {
    FLAGS = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
            CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
};

/* The format of linear memory, which is bound without a format. */
static void texture_reference_set_format(reference *found, CUarray_format format,
                                         unsigned channels) {
    found->format = format;
    found->channels = channels;
    if (found->resource.resType != CU_RESOURCE_TYPE_LINEAR) return;
    found->resource.res.linear.format = format;
    found->resource.res.linear.numChannels = channels;
}

SETTER(cuTexRefSetFormat, (CUtexref handle, CUarray_format format, int channels),
       soft_format_bytes(format) > 0 && (channels == 1 || channels == 2 || channels == 4),
       texture_reference_set_format(found, format, (unsigned)channels))
GETTER(cuTexRefGetFormat, (CUarray_format * format, int *channels, CUtexref handle),
       format != NULL && channels != NULL, *format = found->format;
       *channels = (int)found->channels)

SETTER(cuTexRefSetAddressMode, (CUtexref handle, int dimension, CUaddress_mode mode),
       dimension >= 0 && dimension < 3 && is_address(mode),
       found->description.addressMode[dimension] = mode)
GETTER(cuTexRefGetAddressMode, (CUaddress_mode * mode, CUtexref handle, int dimension),
       mode != NULL && dimension >= 0 && dimension < 3,
       *mode = found->description.addressMode[dimension])

SETTER(cuTexRefSetFilterMode, (CUtexref handle, CUfilter_mode mode), is_filter(mode),
       found->description.filterMode = mode)
GETTER(cuTexRefGetFilterMode, (CUfilter_mode * mode, CUtexref handle), mode != NULL,
       *mode = found->description.filterMode)

SETTER(cuTexRefSetMipmapFilterMode, (CUtexref handle, CUfilter_mode mode), is_filter(mode),
       found->description.mipmapFilterMode = mode)
GETTER(cuTexRefGetMipmapFilterMode, (CUfilter_mode * mode, CUtexref handle), mode != NULL,
       *mode = found->description.mipmapFilterMode)

SETTER(cuTexRefSetMipmapLevelBias, (CUtexref handle, float bias), true,
       found->description.mipmapLevelBias = bias)
GETTER(cuTexRefGetMipmapLevelBias, (float *bias, CUtexref handle), bias != NULL,
       *bias = found->description.mipmapLevelBias)

SETTER(cuTexRefSetMipmapLevelClamp, (CUtexref handle, float least, float most), true,
       found->description.minMipmapLevelClamp = least;
       found->description.maxMipmapLevelClamp = most)
GETTER(cuTexRefGetMipmapLevelClamp, (float *least, float *most, CUtexref handle),
       least != NULL && most != NULL, *least = found->description.minMipmapLevelClamp;
       *most = found->description.maxMipmapLevelClamp)

SETTER(cuTexRefSetMaxAnisotropy, (CUtexref handle, unsigned int most), true,
       found->description.maxAnisotropy = most)
GETTER(cuTexRefGetMaxAnisotropy, (int *most, CUtexref handle), most != NULL,
       *most = (int)found->description.maxAnisotropy)

SETTER(cuTexRefSetBorderColor, (CUtexref handle, float *color), color != NULL,
       memcpy(found->description.borderColor, color, sizeof found->description.borderColor))
GETTER(cuTexRefGetBorderColor, (float *color, CUtexref handle), color != NULL,
       memcpy(color, found->description.borderColor, sizeof found->description.borderColor))

SETTER(cuTexRefSetFlags, (CUtexref handle, unsigned int flags), (flags & ~(unsigned)FLAGS) == 0,
       found->description.flags = flags)
GETTER(cuTexRefGetFlags, (unsigned int *flags, CUtexref handle), flags != NULL,
       *flags = found->description.flags)
