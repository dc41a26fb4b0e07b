/*
 * Image: the source of a module.
 */
#ifndef SOFT_IMAGE_H
#define SOFT_IMAGE_H

#include "jit.h"

/* The kind of an image: a text; a container of texts; a fat binary, which may have PTX; a cubin,
 * which this device cannot run; or unknown. */
enum soft_image_kind {
    SOFT_IMAGE_TEXT,
    SOFT_IMAGE_CONTAINER,
    SOFT_IMAGE_FATBIN,
    SOFT_IMAGE_CUBIN,
    SOFT_IMAGE_NONE
};
enum soft_image_kind soft_image_kind(const void *image);

/* The texts of an image, in an array to be freed; texts from a fat binary end with the array, the
 * others are in the image. CUDA_ERROR_NO_BINARY_FOR_GPU: it has no PTX for this device, and the log
 * lists its contents; CUDA_ERROR_INVALID_IMAGE: it is damaged. */
CUresult soft_image_sources(const void *image, const struct soft_jit *jit,
                            struct soft_source **sources, unsigned *count);

/* Loads an image of any kind into a context, adds the module to the context's list and registers
 * it. */
CUresult soft_image_load(struct soft_context *context, const void *image,
                         const struct soft_jit *jit, struct soft_module **module);

/* Unregisters and releases a module. The caller does not hold soft_lock. */
void soft_image_unload(struct soft_context *context, struct soft_module *module);

#endif
