/*
 * Array: a CUDA array, the memory of textures and surfaces.
 *
 * Its rows, and its layers, slices or faces, are contiguous; a driver's layout is opaque, so no
 * program can see the difference. Its bytes are an allocation of the space like any other, of a
 * kind that loads and stores cannot reach.
 *
 * Source: cuArray3DCreate of the CUDA Driver API 13.0; the limits are those of compute capability
 * 9.0 in "Compute Capabilities" of the CUDA Programming Guide.
 */
#ifndef SOFT_ARRAY_H
#define SOFT_ARRAY_H

#include "driver_state.h"

struct soft_array {
    CUDA_ARRAY3D_DESCRIPTOR shape; /* as requested: absent dimensions are 0 */
    struct soft_context *context;
    unsigned element_bytes;
    uint64_t address;                /* of its allocation */
    uint64_t pitch, slice;           /* bytes of a row, and of a layer */
    uint64_t rows, layers;           /* at least 1 each */
    bool is_level;                   /* of a mipmapped array, with which it is destroyed */
    struct soft_array *next, **link; /* in the list of all */
};

/* The bytes of one channel of a format; 0 if the format is not modelled. */
unsigned soft_format_bytes(CUarray_format format);

/* Whether a format is one that CUDA has, modelled or not. */
bool soft_format_is(CUarray_format format);

/* Makes one. CUDA_ERROR_INVALID_VALUE: invalid dimensions or flags; CUDA_ERROR_NOT_SUPPORTED: soft
 * devices do not have this kind; CUDA_ERROR_OUT_OF_MEMORY. The caller does not hold soft_lock. */
CUresult soft_array_new(struct soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                        struct soft_array **array);

/* Whether a handle is a live array. The caller holds soft_lock. */
bool soft_array_is(CUarray handle);

/* Copies the description of a live array. false: it is none. Takes soft_lock. */
bool soft_array_find(CUarray handle, struct soft_array *array);

/* Destroys one, even if it is in use; the caller does not hold soft_lock. false: it is none, or a
 * level of a mipmapped array. The second function destroys such a level. */
bool soft_array_free(CUarray handle);
void soft_array_free_level(struct soft_array *array);

/* Destroys all that a context has made. */
void soft_array_free_all(const struct soft_context *context);

#endif
