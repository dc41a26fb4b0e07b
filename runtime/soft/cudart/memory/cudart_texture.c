/*
 * Texture and surface objects. As in "Texture Object Management" and "Surface Object Management" of
 * the CUDA Runtime API 13.0. Handles and views are the driver's.
 */
#include "cudart_array.h"
#include "cudart/cudart_export.h"
#include "cudart/cudart_version.h"

#include <string.h>

/* ---- resources ---- */

static cudaError_t resource_to(const cudaResourceDesc *from, CUDA_RESOURCE_DESC *to) {
    *to = (CUDA_RESOURCE_DESC){.resType = from->resType,
                               .flags = cudart_version < 13000 ? 0 : from->flags};
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        to->res.array.hArray = from->res.array.array;
        return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        to->res.mipmap.hMipmappedArray = from->res.mipmap.mipmap;
        return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
        to->res.linear.devPtr = (CUdeviceptr)(uintptr_t)from->res.linear.devPtr;
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return cudart_channel_format(&from->res.linear.desc, &to->res.linear.format,
                                     &to->res.linear.numChannels);
    case CU_RESOURCE_TYPE_PITCH2D:
        to->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)from->res.pitch2D.devPtr;
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return cudart_channel_format(&from->res.pitch2D.desc, &to->res.pitch2D.format,
                                     &to->res.pitch2D.numChannels);
    default:
        return cudaErrorInvalidValue;
    }
}

/* Only what the edition's structure has is written. */
static cudaError_t resource_from(const CUDA_RESOURCE_DESC *from, cudaResourceDesc *to) {
    cudaResourceDesc made = {.resType = from->resType, .flags = from->flags};
    const size_t bytes = cudart_version < 13000
                             ? offsetof(cudaResourceDesc, res) + sizeof made.res.pitch2D
                             : sizeof made;
    cudaError_t error = cudaSuccess;
    switch (from->resType) {
    case CU_RESOURCE_TYPE_LINEAR:
        made.res.linear.devPtr = (void *)(uintptr_t)from->res.linear.devPtr;
        made.res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        error = cudart_channel_of(from->res.linear.format, from->res.linear.numChannels,
                                  &made.res.linear.desc);
        break;
    case CU_RESOURCE_TYPE_PITCH2D:
        made.res.pitch2D.devPtr = (void *)(uintptr_t)from->res.pitch2D.devPtr;
        made.res.pitch2D.width = from->res.pitch2D.width;
        made.res.pitch2D.height = from->res.pitch2D.height;
        made.res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        error = cudart_channel_of(from->res.pitch2D.format, from->res.pitch2D.numChannels,
                                  &made.res.pitch2D.desc);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        made.res.mipmap.mipmap = from->res.mipmap.hMipmappedArray;
        break;
    default:
        made.res.array.array = from->res.array.hArray;
    }
    if (error == cudaSuccess) memcpy(to, &made, bytes);
    return error;
}

/* ---- how a texture is sampled ---- */

static const struct choice {
    size_t offset; /* of an int in cudaTextureDesc */
    unsigned flag;
} choices[] = {
    {offsetof(cudaTextureDesc, sRGB), CU_TRSF_SRGB},
    {offsetof(cudaTextureDesc, normalizedCoords), CU_TRSF_NORMALIZED_COORDINATES},
    {offsetof(cudaTextureDesc, disableTrilinearOptimization),
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION},
    {offsetof(cudaTextureDesc, seamlessCubemap), CU_TRSF_SEAMLESS_CUBEMAP},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

static cudaError_t texture_to(const cudaTextureDesc *from, CUDA_TEXTURE_DESC *to) {
    if (from->readMode != cudaReadModeElementType &&
        from->readMode != cudaReadModeNormalizedFloat) {
        return cudaErrorInvalidValue;
    }
    *to = (CUDA_TEXTURE_DESC){.filterMode = from->filterMode,
                              .maxAnisotropy = from->maxAnisotropy,
                              .mipmapFilterMode = from->mipmapFilterMode,
                              .mipmapLevelBias = from->mipmapLevelBias,
                              .minMipmapLevelClamp = from->minMipmapLevelClamp,
                              .maxMipmapLevelClamp = from->maxMipmapLevelClamp};
    memcpy(to->addressMode, from->addressMode, sizeof to->addressMode);
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
    if (from->readMode == cudaReadModeElementType) to->flags |= CU_TRSF_READ_AS_INTEGER;
    for (int i = 0; i < CHOICES; i++) {
        int chosen = 0;
        memcpy(&chosen, (const char *)from + choices[i].offset, sizeof chosen);
        if (chosen != 0) to->flags |= choices[i].flag;
    }
    return cudaSuccess;
}

static void texture_from(const CUDA_TEXTURE_DESC *from, cudaTextureDesc *to) {
    const bool as_is = (from->flags & CU_TRSF_READ_AS_INTEGER) != 0;
    *to =
        (cudaTextureDesc){.filterMode = from->filterMode,
                          .readMode = as_is ? cudaReadModeElementType : cudaReadModeNormalizedFloat,
                          .maxAnisotropy = from->maxAnisotropy,
                          .mipmapFilterMode = from->mipmapFilterMode,
                          .mipmapLevelBias = from->mipmapLevelBias,
                          .minMipmapLevelClamp = from->minMipmapLevelClamp,
                          .maxMipmapLevelClamp = from->maxMipmapLevelClamp};
    memcpy(to->addressMode, from->addressMode, sizeof to->addressMode);
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
    for (int i = 0; i < CHOICES; i++) {
        const int chosen = (from->flags & choices[i].flag) != 0;
        memcpy((char *)to + choices[i].offset, &chosen, sizeof chosen);
    }
}

/* ---- textures ---- */

static cudaError_t texture_array_format(CUarray array, CUarray_format *format) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    const cudaError_t error = CU_CALL(cuArray3DGetDescriptor_v2, (&shape, array));
    if (error == cudaSuccess) *format = shape.Format;
    return error;
}

static cudaError_t texture_format(const CUDA_RESOURCE_DESC *of, CUarray_format *format) {
    CUarray level = NULL;
    switch (of->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return texture_array_format(of->res.array.hArray, format);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
        const cudaError_t error =
            CU_CALL(cuMipmappedArrayGetLevel, (&level, of->res.mipmap.hMipmappedArray, 0));
        return error != cudaSuccess ? error : texture_array_format(level, format);
    }
    case CU_RESOURCE_TYPE_PITCH2D:
        *format = of->res.pitch2D.format;
        return cudaSuccess;
    default: /* no filter applies to linear memory */
        *format = CU_AD_FORMAT_FLOAT;
        return cudaSuccess;
    }
}

/* The driver takes a linear filter of integers that are read as integers; the runtime refuses it,
 * as cudaTextureDesc's filterMode says it is for floats alone. So does the runtime on an H200. */
static cudaError_t texture_judge(const CUDA_RESOURCE_DESC *of, const CUDA_TEXTURE_DESC *how) {
    CUarray_format format = CU_AD_FORMAT_FLOAT;
    if (how->filterMode != CU_TR_FILTER_MODE_LINEAR) return cudaSuccess;
    if ((how->flags & CU_TRSF_READ_AS_INTEGER) == 0) return cudaSuccess;
    const cudaError_t error = texture_format(of, &format);
    if (error != cudaSuccess) return error;
    return format <= CU_AD_FORMAT_SIGNED_INT32 ? cudaErrorInvalidFilterSetting : cudaSuccess;
}

RT(cudaCreateTextureObject,
   (cudaTextureObject_t * object, const cudaResourceDesc *resource,
    const cudaTextureDesc *description, const cudaResourceViewDesc *view)) {
    CUDA_RESOURCE_DESC of;
    CUDA_TEXTURE_DESC how;
    if (object == NULL || resource == NULL || description == NULL) return cudaErrorInvalidValue;
    cudaError_t error = resource_to(resource, &of);
    if (error == cudaSuccess) error = texture_to(description, &how);
    if (error == cudaSuccess) error = texture_judge(&of, &how);
    return error != cudaSuccess ? error : CU_CALL(cuTexObjectCreate, (object, &of, &how, view));
}

RT(cudaDestroyTextureObject, (cudaTextureObject_t object)) {
    return CU_CALL(cuTexObjectDestroy, (object));
}

RT(cudaGetTextureObjectResourceDesc, (cudaResourceDesc * resource, cudaTextureObject_t object)) {
    CUDA_RESOURCE_DESC of;
    if (resource == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuTexObjectGetResourceDesc, (&of, object));
    return error != cudaSuccess ? error : resource_from(&of, resource);
}

RT(cudaGetTextureObjectTextureDesc, (cudaTextureDesc * description, cudaTextureObject_t object)) {
    CUDA_TEXTURE_DESC how;
    if (description == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuTexObjectGetTextureDesc, (&how, object));
    if (error == cudaSuccess) texture_from(&how, description);
    return error;
}

RT(cudaGetTextureObjectResourceViewDesc,
   (cudaResourceViewDesc * view, cudaTextureObject_t object)) {
    return CU_CALL(cuTexObjectGetResourceViewDesc, (view, object));
}

RT(cudaDeviceGetTexture1DLinearMaxWidth,
   (size_t * width, const cudaChannelFormatDesc *desc, int device)) {
    CUarray_format format = 0;
    unsigned channels = 0;
    if (width == NULL || desc == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_channel_format(desc, &format, &channels);
    if (error != cudaSuccess) return error;
    return CU_PLAIN(cuDeviceGetTexture1DLinearMaxWidth, (width, format, channels, device));
}

/* ---- surfaces ---- */

RT(cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const cudaResourceDesc *resource)) {
    CUDA_RESOURCE_DESC of;
    if (object == NULL || resource == NULL) return cudaErrorInvalidValue;
    cudaError_t error = resource_to(resource, &of);
    return error != cudaSuccess ? error : CU_CALL(cuSurfObjectCreate, (object, &of));
}

RT(cudaDestroySurfaceObject, (cudaSurfaceObject_t object)) {
    return CU_CALL(cuSurfObjectDestroy, (object));
}

RT(cudaGetSurfaceObjectResourceDesc, (cudaResourceDesc * resource, cudaSurfaceObject_t object)) {
    CUDA_RESOURCE_DESC of;
    if (resource == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuSurfObjectGetResourceDesc, (&of, object));
    return error != cudaSuccess ? error : resource_from(&of, resource);
}
