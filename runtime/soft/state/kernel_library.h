/*
 * Libraries: PTX that belongs to no context and is loaded into each context that uses it, and its
 * kernels.
 */
#ifndef SOFT_KERNEL_LIBRARY_H
#define SOFT_KERNEL_LIBRARY_H

#include "driver_state.h"
#include "jit.h"

/* What a CUkernel points to. */
struct soft_library_kernel {
    struct soft_library *library;
    const struct soft_function *prototype;
    uint32_t dynamic_shared_max[SOFT_DEVICES_MAX];
    int carveout[SOFT_DEVICES_MAX];
    struct soft_cluster_settings clusters[SOFT_DEVICES_MAX];
};

struct soft_library {
    void *image;                   /* a copy of its image */
    struct soft_module *prototype; /* loaded into no context: the properties of its kernels */
    struct soft_library_kernel *kernels;
    unsigned kernel_count;
    struct soft_loaded *loaded; /* one module per context that has used it */
};

/* Makes a library of an image and registers it. */
CUresult soft_library_load(const void *image, const struct soft_jit *jit,
                           struct soft_library **library);
void soft_library_unload(struct soft_library *library);

/* The library's module in a context, loaded if need be. */
CUresult soft_library_module(struct soft_library *library, struct soft_context *context,
                             struct soft_module **module);

/* Forgets a module whose context ends. The caller holds soft_lock. */
void soft_library_forget(struct soft_library *library, const struct soft_module *module);

/* A kernel's function in a context. */
CUresult soft_library_function(struct soft_library_kernel *kernel, struct soft_context *context,
                               struct soft_function **function);

/* Sets the maximum dynamic shared memory of a kernel's functions on a device. */
void soft_library_allow_shared(struct soft_library_kernel *kernel, int device, uint32_t bytes);

/* The same of its clusters. */
void soft_library_set_clusters(struct soft_library_kernel *kernel, int device,
                               const struct soft_cluster_settings *clusters);

/* The function of a handle in a context: a CUfunction, or a CUkernel instead.
 * CUDA_ERROR_INVALID_HANDLE: it is neither. */
CUresult soft_function_find(CUfunction handle, struct soft_context *context,
                            struct soft_function **function);

/* The same; the caller holds soft_lock, which is released while a library's module is loaded. */
CUresult soft_function_find_locked(CUfunction handle, struct soft_context *context,
                                   struct soft_function **function);

/* The context of a function; NULL: the handle is no function. */
struct soft_context *soft_function_home(CUfunction handle);

#endif
