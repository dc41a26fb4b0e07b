/*
 * Module: code on the device, and the kernels found in it by name.
 *
 * A name is not a kernel: tol_module_kernel resolves one into the other, once, and only a resolved
 * kernel can be launched. Loading the same image again in a context gives the same module, with the
 * same variables, and one more reference (D-26), so a program need not keep its own cache.
 *
 * All functions are thread-safe. Source: spec 004 CRT-003.
 */
#ifndef TOLLENS_MODULE_H
#define TOLLENS_MODULE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_module;
struct tol_kernel;
struct tol_buffer;

struct tol_module_options {
    int max_registers; /* registers a thread may use; 0 leaves it to the driver */
    int optimization;  /* 1 + the JIT's level, so that 0 means its default: 5 is level 4 */
    bool line_info;    /* keep source lines for tools */
    bool debug_info;   /* keep all for a debugger; slow code */
    bool unshared;     /* a module of its own, with its own variables, even if loaded before */
};

/*
 * Loads PTX text, a cubin or a fatbin; the driver compiles PTX for the context's device.
 *
 * image is bytes long. PTX need not end in a NUL; a NUL inside it is refused, one or more at the
 * end are not. The image is copied: it need not outlive the call. options may be NULL.
 *
 * TOL_INVALID_ARGUMENT: NULL, no bytes, or a NUL inside PTX text. TOL_INVALID_MODULE: the driver
 * refused it; the message holds the JIT's error log. TOL_OUT_OF_HOST_MEMORY, TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_module_load(struct tol_context *context, const void *image, size_t bytes,
                                   const struct tol_module_options *options,
                                   struct tol_module **module);

/* Gives one reference back. The last one waits for the context's work in flight, TOL_DEADLINE_MS at
 * most, and unloads; where work does not end by then, the code stays loaded as long as the context
 * rather than vanish under a running kernel. The module's kernels end with it. NULL is a no-op. */
TOL_API void tol_module_destroy(struct tol_module *module);

/* What the JIT had to say when it compiled the image; "" if nothing. Valid
 * while the module lives. */
TOL_API const char *tol_module_log(const struct tol_module *module);

/*
 * Finds a kernel by name. The first lookup asks the driver; later ones take no lock. The kernel
 * belongs to the module and is valid until the module is destroyed.
 * TOL_NOT_FOUND: the module has no kernel of that name.
 */
TOL_API tol_status tol_module_kernel(struct tol_module *module, const char *name,
                                     struct tol_kernel **kernel);

/*
 * A view of a __device__ or __constant__ variable: a buffer for the calls of memory.h that does not
 * own its memory, and keeps the module alive. Destroy it like any buffer. TOL_NOT_FOUND.
 */
TOL_API tol_status tol_module_global(struct tol_module *module, const char *name,
                                     struct tol_buffer **buffer);

/* What the driver knows of a kernel. */
struct tol_kernel_properties {
    const char *name; /* lives as long as the context */
    unsigned block_threads_max;
    unsigned shared_static_bytes;
    unsigned shared_dynamic_bytes_max; /* what a launch may ask for now */
    int local_bytes_per_thread;
    int registers_per_thread;
    int parameter_count;            /* -1 where the driver cannot tell (before CUDA 12.4) */
    unsigned parameter_bytes_total; /* 0 where the driver cannot tell */
};
TOL_API struct tol_kernel_properties tol_kernel_properties(const struct tol_kernel *kernel);

/* Lets launches of this kernel ask for up to bytes of dynamic shared memory, above the 48 KiB that
 * every kernel may have. TOL_OVER_LIMIT: more than the device offers a block. Not beside launches
 * of the same kernel. */
TOL_API tol_status tol_kernel_allow_shared(struct tol_kernel *kernel, unsigned bytes);

/* The driver's handle, for calls that the runtime does not wrap. */
TOL_API CUfunction tol_kernel_handle(const struct tol_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
