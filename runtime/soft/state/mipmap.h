/*
 * Mipmap: a mipmapped CUDA array, one array per level of detail, each half as large as the previous
 * one.
 *
 * Source: cuMipmappedArrayCreate of the CUDA Driver API 13.0.
 */
#ifndef SOFT_MIPMAP_H
#define SOFT_MIPMAP_H

#include "array.h"
#include "texture/texture.h"

struct soft_mipmap {
    CUDA_ARRAY3D_DESCRIPTOR shape; /* of the first level */
    struct soft_context *context;
    unsigned levels;
    struct soft_array *arrays[SOFT_LEVELS_MAX];
    struct soft_mipmap *next, **link; /* in the list of all */
};

/* Makes one with the requested number of levels, limited to at least one and at most the possible
 * number. The codes of soft_array_new. The caller does not hold soft_lock. */
CUresult soft_mipmap_new(struct soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                         unsigned levels, struct soft_mipmap **mipmap);

/* Copies the description of a live one. false: it is none. Takes soft_lock. */
bool soft_mipmap_find(CUmipmappedArray handle, struct soft_mipmap *mipmap);

/* Destroys one with its levels, even if it is in use; the caller does not hold soft_lock. false: it
 * is none. */
bool soft_mipmap_free(CUmipmappedArray handle);

/* Destroys all that a context has made. */
void soft_mipmap_free_all(const struct soft_context *context);

#endif
