/*
 * Module: code on the device, and its kernels, found by name.
 *
 * tol_module_kernel resolves a name to a kernel once; a launch needs the resolved kernel. Loading
 * the same image again in a context returns the same module, with the same variables and one more
 * reference (D-26), so a program needs no cache of its own.
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

/* Options of the JIT compiler and of the module cache. All zero are the defaults. */
struct tol_module_options {
    int max_registers; /* most registers per thread; 0: the driver chooses */
    int optimization;  /* 1 + the JIT's level: 1 is level 0, 5 is level 4; 0: the JIT's default */
    bool line_info;    /* keep source line information for tools */
    bool debug_info;   /* keep debug information; generates slow code */
    bool unshared;     /* load a separate module with its own variables, even if cached */
};

/*
 * Loads PTX text, a cubin or a fatbin; the driver compiles PTX for the context's device.
 *
 * bytes is the size of image. PTX may end in NULs but need not; a NUL inside the text is refused.
 * The image is copied and need not outlive the call. options may be NULL. The caller returns the
 * reference with tol_module_destroy.
 *
 * TOL_INVALID_ARGUMENT: NULL, zero bytes, or a NUL inside PTX text. TOL_INVALID_MODULE: the driver
 * rejected the image; the message includes the JIT's error log. TOL_OUT_OF_HOST_MEMORY,
 * TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_module_load(struct tol_context *context, const void *image, size_t bytes,
                                   const struct tol_module_options *options,
                                   struct tol_module **module);

/* Returns one reference. The last one waits up to TOL_DEADLINE_MS for the context's running work
 * and unloads the module. If work still runs then, the code stays loaded until the context ends, so
 * that no running kernel loses it. The module's kernels are invalid after this. NULL is a no-op. */
TOL_API void tol_module_destroy(struct tol_module *module);

/* The JIT's log from compiling the image; "" if it is empty. Valid while the module lives. */
TOL_API const char *tol_module_log(const struct tol_module *module);

/*
 * Finds a kernel by name. The first lookup calls the driver; later ones take no lock. The kernel
 * belongs to the module and is valid until the module is destroyed.
 * TOL_NOT_FOUND: the module has no kernel of that name.
 */
TOL_API tol_status tol_module_kernel(struct tol_module *module, const char *name,
                                     struct tol_kernel **kernel);

/*
 * Creates a buffer that is a view of a __device__ or __constant__ variable, for the functions of
 * memory.h. It does not own the memory, and it keeps the module loaded. Destroy it like any buffer.
 * TOL_NOT_FOUND: the module has no variable of that name.
 */
TOL_API tol_status tol_module_global(struct tol_module *module, const char *name,
                                     struct tol_buffer **buffer);

/* The properties of a kernel, as the driver reports them. */
struct tol_kernel_properties {
    const char *name; /* valid while the context lives */
    unsigned block_threads_max;
    unsigned shared_static_bytes;
    unsigned shared_dynamic_bytes_max; /* current limit for a launch */
    int local_bytes_per_thread;
    int registers_per_thread;
    int parameter_count;            /* -1 if the driver does not report it (before CUDA 12.4) */
    unsigned parameter_bytes_total; /* 0 if the driver does not report it */
};
TOL_API struct tol_kernel_properties tol_kernel_properties(const struct tol_kernel *kernel);

/* Allows launches of this kernel up to bytes of dynamic shared memory; the default limit is 48 KiB.
 * TOL_OVER_LIMIT: more than the device has per block. Must not run at the same time as launches of
 * the same kernel. */
TOL_API tol_status tol_kernel_allow_shared(struct tol_kernel *kernel, unsigned bytes);

/* The driver's handle, for calls that the runtime does not wrap. Valid while the kernel is. */
TOL_API CUfunction tol_kernel_handle(const struct tol_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
