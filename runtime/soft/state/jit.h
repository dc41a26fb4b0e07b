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
    const char *name; /* of the image's file; NULL: none */
    struct soft_jit_log info, errors;
    void **wall_time;
    bool verbose;
    size_t image_bytes; /* the readable bytes; SIZE_MAX if unknown */
    int target;         /* 90 for sm_90; 0: the context's */
    bool is_part;       /* of a link, which may do without it: then it does not count as refused */
    uint64_t begin_ns;
};

/* Parses options. CUDA_ERROR_INVALID_VALUE: one is unknown, or has an invalid value. */
CUresult soft_jit_read(unsigned count, const CUjit_option *options, void **values,
                       struct soft_jit *jit);

/* Loads texts, and answers. */
CUresult soft_jit_load(const struct soft_source *sources, unsigned count,
                       const struct soft_reach *home, const struct soft_jit *jit,
                       struct soft_module **module);

/* Sets the results of a load that failed before it began. */
void soft_jit_fail(const struct soft_jit *jit, const char *text);

#endif
