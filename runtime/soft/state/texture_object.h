/*
 * Texture object: converts a program's descriptions of a resource and of its sampling for the
 * texture unit, with a driver's checks.
 *
 * Source: cuTexObjectCreate and cuSurfObjectCreate of the CUDA Driver API 13.0.
 */
#ifndef SOFT_TEXTURE_OBJECT_H
#define SOFT_TEXTURE_OBJECT_H

#include "driver_state.h"
#include "texture/texture.h"

/* The alignment of memory that is used as a texture, as in cuDeviceGetAttribute. */
enum {
    SOFT_TEXTURE_ALIGNMENT = 512,
    SOFT_TEXTURE_PITCH_ALIGNMENT = 32,
    SOFT_TEXTURE_LINEAR_WIDTH = 1 << 28
};

/* A texture of a context; view may be NULL. CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_NOT_SUPPORTED: a
 * format that is not modelled. */
CUresult soft_texture_of(const struct soft_context *context, const CUDA_RESOURCE_DESC *resource,
                         const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view,
                         struct soft_texture *texture);

/* The same for a surface: of an array created for it. */
CUresult soft_surface_of(const struct soft_context *context, const CUDA_RESOURCE_DESC *resource,
                         struct soft_texture *texture);

#endif
