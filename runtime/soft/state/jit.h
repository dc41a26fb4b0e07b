/*
 * Jit: the options of CUjit_option for loading a module, and the values returned through them.
 */
#ifndef SOFT_JIT_H
#define SOFT_JIT_H

#include "driver_state.h"

/* A log that goes to the caller's buffer. */
struct soft_jit_log {
    char *buffer;
    size_t bytes;
    void **size; /* where the bytes written are told */
};

struct soft_jit {
    const char *name; /* of the file that the image is from; NULL: of none */
    struct soft_jit_log info, errors;
    void **wall_time;
    bool verbose;
    int target; /* 90 for sm_90; 0: the context's */
    uint64_t begin_ns;
};

/* Reads options. CUDA_ERROR_INVALID_VALUE: one is not known, or has a value that makes no sense. */
CUresult soft_jit_read(unsigned count, const CUjit_option *options, void **values,
                       struct soft_jit *jit);

/* Loads texts, and answers. */
CUresult soft_jit_load(const struct soft_source *sources, unsigned count,
                       const struct soft_reach *home, const struct soft_jit *jit,
                       struct soft_module **module);

/* Answers for a loading that failed before it began. */
void soft_jit_fail(const struct soft_jit *jit, const char *text);

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
