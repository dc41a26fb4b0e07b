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
    void **size; /* receives the number of bytes written */
};

struct soft_jit {
    const char *name; /* of the file that the image is from; NULL: of none */
    struct soft_jit_log info, errors;
    void **wall_time;
    bool verbose;
    size_t image_bytes; /* how many may be read; SIZE_MAX where the program does not say */
    int target;         /* 90 for sm_90; 0: the context's */
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

#endif
