/*
 * Checks descriptions of textures and surfaces.
 */
#include "texture_object.h"

#include "mipmap.h"

static enum soft_channel texture_object_channel_of(CUarray_format format) {
    switch (format) {
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT:
        return SOFT_CHANNEL_FLOAT;
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
        return SOFT_CHANNEL_SIGNED;
    default:
        return SOFT_CHANNEL_UNSIGNED;
    }
}

static CUresult texture_object_set_format(struct soft_texels *texels, CUarray_format format,
                                          unsigned channels) {
    if (!soft_format_is(format)) return CUDA_ERROR_INVALID_VALUE;
    if (soft_format_bytes(format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    texels->channels = (uint8_t)channels;
    texels->channel_bytes = (uint8_t)soft_format_bytes(format);
    texels->channel = texture_object_channel_of(format);
    return CUDA_SUCCESS;
}

static CUresult of_array(CUarray handle, struct soft_texels *texels, unsigned *flags) {
    struct soft_array array;
    if (!soft_array_find(handle, &array)) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR *shape = &array.shape;
    *flags = shape->Flags;
    *texels = (struct soft_texels){.address = array.address,
                                   .pitch = array.pitch,
                                   .slice = array.slice,
                                   .width = (uint32_t)shape->Width,
                                   .height = (uint32_t)array.rows,
                                   .layers = (uint32_t)array.layers,
                                   .layered = (shape->Flags & CUDA_ARRAY3D_LAYERED) != 0,
                                   .cube = (shape->Flags & CUDA_ARRAY3D_CUBEMAP) != 0};
    bool is_flat = texels->layered || texels->cube || shape->Depth == 0;
    texels->dimensions = shape->Height == 0 ? 1 : is_flat ? 2 : 3;
    return texture_object_set_format(texels, shape->Format, shape->NumChannels);
}

static CUresult of_mipmap(CUmipmappedArray handle, struct soft_texture *texture, unsigned *flags) {
    struct soft_mipmap mipmap;
    struct soft_array array;
    if (!soft_mipmap_find(handle, &mipmap)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < mipmap.levels; i++) {
        if (!soft_array_find((CUarray)(void *)mipmap.arrays[i], &array)) {
            return CUDA_ERROR_INVALID_VALUE; /* destroyed meanwhile */
        }
        texture->level_addresses[i] = array.address;
    }
    texture->levels = (uint8_t)mipmap.levels;
    return of_array((CUarray)(void *)mipmap.arrays[0], &texture->texels, flags);
}

static CUresult of_memory(const CUDA_RESOURCE_DESC *resource, struct soft_texels *texels) {
    bool flat = resource->resType == CU_RESOURCE_TYPE_PITCH2D;
    CUdeviceptr address = flat ? resource->res.pitch2D.devPtr : resource->res.linear.devPtr;
    *texels = (struct soft_texels){.address = address,
                                   .height = 1,
                                   .layers = 1,
                                   .dimensions = flat ? 2 : 1,
                                   .in_memory = !flat};
    CUresult result = flat ? texture_object_set_format(texels, resource->res.pitch2D.format,
                                                       resource->res.pitch2D.numChannels)
                           : texture_object_set_format(texels, resource->res.linear.format,
                                                       resource->res.linear.numChannels);
    if (result != CUDA_SUCCESS) return result;
    unsigned bytes = soft_texel_bytes(texels);
    if (address == 0 || address % SOFT_TEXTURE_ALIGNMENT != 0) return CUDA_ERROR_INVALID_VALUE;
    if (flat) {
        enum { WIDTH_MAX = 131072, HEIGHT_MAX = 65000, PITCH_MAX = 2097120 };
        size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
        size_t pitch = resource->res.pitch2D.pitchInBytes;
        if (width == 0 || width > WIDTH_MAX || height == 0 || height > HEIGHT_MAX ||
            pitch > PITCH_MAX || pitch % SOFT_TEXTURE_PITCH_ALIGNMENT != 0 ||
            pitch < width * bytes) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        texels->width = (uint32_t)width;
        texels->height = (uint32_t)height;
        texels->pitch = pitch;
        return CUDA_SUCCESS;
    }
    size_t count = resource->res.linear.sizeInBytes / bytes;
    if (count == 0 || count > SOFT_TEXTURE_LINEAR_WIDTH) return CUDA_ERROR_INVALID_VALUE;
    texels->width = (uint32_t)count;
    return CUDA_SUCCESS;
}

/* The formats of views: three numbers of channels for each of eight. */
static bool view_format(CUresourceViewFormat view, CUarray_format *format, unsigned *channels) {
    static const CUarray_format formats[] = {CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
                                             CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
                                             CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
                                             CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
    if (view < CU_RES_VIEW_FORMAT_UINT_1X8 || view > CU_RES_VIEW_FORMAT_FLOAT_4X32) return false;
    *format = formats[(view - 1) / 3];
    *channels = 1u << (view - 1) % 3;
    return true;
}

/* Another format of the same size, and some of the layers. */
static CUresult look_through(const CUDA_RESOURCE_VIEW_DESC *view, struct soft_texture *texture) {
    struct soft_texels *texels = &texture->texels;
    enum { BLOCKS_FIRST = 0x19, BLOCKS_LAST = 0x22 };
    const unsigned bytes = soft_texel_bytes(texels);
    unsigned per_layer = texels->cube ? 6 : 1, channels = 0;
    CUarray_format format = 0;
    if (view->format >= BLOCKS_FIRST && view->format <= BLOCKS_LAST)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (view->format != CU_RES_VIEW_FORMAT_NONE) {
        if (!view_format(view->format, &format, &channels)) return CUDA_ERROR_INVALID_VALUE;
        CUresult result = texture_object_set_format(texels, format, channels);
        if (result != CUDA_SUCCESS) return result;
        if (soft_texel_bytes(texels) != bytes) return CUDA_ERROR_INVALID_VALUE;
    }
    uint32_t height = texels->dimensions > 1 ? texels->height : 0;
    if (view->width != texels->width || view->height != height ||
        view->firstMipmapLevel > view->lastMipmapLevel ||
        view->lastMipmapLevel >= texture->levels) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned first = view->firstMipmapLevel;
    *texels = soft_texture_level(texture, first);
    texture->levels = (uint8_t)(view->lastMipmapLevel - first + 1);
    for (unsigned i = 0; i < texture->levels && first > 0; i++) {
        texture->level_addresses[i] = texture->level_addresses[first + i];
    }
    if (!texels->layered) {
        return view->firstLayer == 0 && view->lastLayer == 0 ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    if (view->firstLayer > view->lastLayer || view->lastLayer >= texels->layers / per_layer) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < texture->levels; i++) {
        uint64_t slice = soft_texture_level(texture, i).slice;
        texture->level_addresses[i] += slice * per_layer * view->firstLayer;
    }
    texels->address += texels->slice * per_layer * view->firstLayer;
    texels->layers = (view->lastLayer - view->firstLayer + 1) * per_layer;
    return CUDA_SUCCESS;
}

static bool texture_object_is_sound(const CUDA_TEXTURE_DESC *description, bool is_cube) {
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    for (int i = 0; i < 3; i++) {
        CUaddress_mode mode = description->addressMode[i];
        if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER) return false;
    }
    bool seamless = (description->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    return (description->flags & ~known) == 0 && (!seamless || is_cube) &&
           (description->filterMode == CU_TR_FILTER_MODE_POINT ||
            description->filterMode == CU_TR_FILTER_MODE_LINEAR) &&
           (description->mipmapFilterMode == CU_TR_FILTER_MODE_POINT ||
            description->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR);
}

CUresult soft_texture_of(const struct soft_context *context, const CUDA_RESOURCE_DESC *resource,
                         const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view,
                         struct soft_texture *texture) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    unsigned flags = 0;
    *texture = (struct soft_texture){.slot = context->reach.slot, .resource = *resource};
    texture->description = *description;
    struct soft_texels *texels = &texture->texels;
    texture->levels = 1;
    if (resource->flags != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        result = of_array(resource->res.array.hArray, texels, &flags);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D:
        result = of_memory(resource, texels);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        result = of_mipmap(resource->res.mipmap.hMipmappedArray, texture, &flags);
        break;
    default:
        break;
    }
    if (result != CUDA_SUCCESS) return result;
    const bool has_levels = resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (!texture_object_is_sound(description, texels->cube)) return CUDA_ERROR_INVALID_VALUE;
    /* As the manual demands of mipmapped arrays. */
    if (has_levels && (description->flags & CU_TRSF_NORMALIZED_COORDINATES) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (view != NULL) {
        if (resource->resType != CU_RESOURCE_TYPE_ARRAY && !has_levels) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        result = look_through(view, texture);
        if (result != CUDA_SUCCESS) return result;
        texture->view = *view;
        texture->has_view = true;
    }
    bool is_whole = texels->channel != SOFT_CHANNEL_FLOAT;
    texture->promotes = is_whole && texels->channel_bytes < 4 &&
                        (description->flags & CU_TRSF_READ_AS_INTEGER) == 0;
    texture->is_srgb = (description->flags & CU_TRSF_SRGB) != 0 && texels->channel_bytes == 1 &&
                       texels->channel == SOFT_CHANNEL_UNSIGNED;
    texture->is_seamless = (description->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    texture->is_normalised = (description->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    texture->filters = description->filterMode == CU_TR_FILTER_MODE_LINEAR && !texels->in_memory;
    /* Integers that stay integers cannot be mixed. An H200 accepts the filter for 8 and 16 bits,
     * and FFmpeg uses it; here texels are sampled as points, which was not compared with a GPU. */
    if (texture->filters && is_whole && !texture->promotes) {
        if (texels->channel_bytes == 4) return CUDA_ERROR_INVALID_VALUE;
        texture->filters = false;
    }
    texture->mixes_levels = description->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    texture->level_bias = description->mipmapLevelBias;
    texture->least_level = description->minMipmapLevelClamp;
    texture->most_level = description->maxMipmapLevelClamp;
    for (int i = 0; i < 3; i++) texture->modes[i] = (uint8_t)description->addressMode[i];
    for (int i = 0; i < 4; i++) texture->border[i] = description->borderColor[i];
    return CUDA_SUCCESS;
}

CUresult soft_surface_of(const struct soft_context *context, const CUDA_RESOURCE_DESC *resource,
                         struct soft_texture *texture) {
    unsigned flags = 0;
    *texture = (struct soft_texture){
        .is_surface = true, .levels = 1, .slot = context->reach.slot, .resource = *resource};
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY || resource->flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = of_array(resource->res.array.hArray, &texture->texels, &flags);
    if (result != CUDA_SUCCESS) return result;
    return (flags & CUDA_ARRAY3D_SURFACE_LDST) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
