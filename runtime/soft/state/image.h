/*
 * Image: what a program loads a module from.
 */
#ifndef SOFT_IMAGE_H
#define SOFT_IMAGE_H

#include "jit.h"

/* What an image is: machine code, of which this device runs none; texts that were linked; or else a
 * text. */
enum soft_image_kind { SOFT_IMAGE_TEXT, SOFT_IMAGE_LINKED, SOFT_IMAGE_BINARY, SOFT_IMAGE_NONE };
enum soft_image_kind soft_image_kind(const void *image);

/* The texts of an image, in an array to be freed. CUDA_ERROR_NO_BINARY_FOR_GPU: it is machine code,
 * which the log says; CUDA_ERROR_INVALID_IMAGE: it is damaged. */
CUresult soft_image_sources(const void *image, const struct soft_jit *jit,
                            struct soft_source **sources, unsigned *count);

/* Loads an image of any kind into a context, and puts the module into the context's list and the
 * register. */
CUresult soft_image_load(struct soft_context *context, const void *image,
                         const struct soft_jit *jit, struct soft_module **module);

/* Takes a module out of both again, and gives it back. The caller does not hold soft_lock. */
void soft_image_unload(struct soft_context *context, struct soft_module *module);

#endif
