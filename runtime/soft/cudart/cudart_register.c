/*
 * The functions that nvcc's generated code calls: it registers images, kernels and variables before
 * main, and writes a launch as __cudaPushCallConfiguration, a call of the kernel's host function,
 * and __cudaPopCallConfiguration in it.
 *
 * Source: crt/host_runtime.h and cuda_runtime.h of CUDA 12.9 and 13.0.
 */
#include "cudart_export.h"
#include "cudart_launch.h"
#include "cudart_registry.h"

struct uint3;

CUDART_VISIBLE void **__cudaRegisterFatBinary(void *wrapper);
CUDART_VISIBLE void __cudaRegisterFatBinaryEnd(void **image);
CUDART_VISIBLE void __cudaUnregisterFatBinary(void **image);
CUDART_VISIBLE void __cudaRegisterFunction(void **image, const char *host, char *device,
                                           const char *name, int threads, void *thread_index,
                                           void *block_index, void *block, void *grid, int *warp);
CUDART_VISIBLE void __cudaRegisterVar(void **image, char *host, char *device, const char *name,
                                      int is_extern, size_t bytes, int is_constant, int is_global);
CUDART_VISIBLE void __cudaRegisterManagedVar(void **image, void **pointer, char *device,
                                             const char *name, int is_extern, size_t bytes,
                                             int is_constant, int is_global);
CUDART_VISIBLE char __cudaInitModule(void **image);
CUDART_VISIBLE unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                    cudaStream_t stream);
CUDART_VISIBLE cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                      void *stream);
CUDART_VISIBLE cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
CUDART_VISIBLE cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                              void **arguments, size_t shared, cudaStream_t stream);
CUDART_VISIBLE cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                   void **arguments, size_t shared,
                                                   cudaStream_t stream);

void **__cudaRegisterFatBinary(void *wrapper) {
    return (void **)cudart_image_add(wrapper);
}

/* Nothing is loaded before it is needed. */
void __cudaRegisterFatBinaryEnd(void **image) {
    (void)image;
}

void __cudaUnregisterFatBinary(void **image) {
    cudart_image_remove((struct cudart_image *)image);
}

void __cudaRegisterFunction(void **image, const char *host, char *device, const char *name,
                            int threads, void *thread_index, void *block_index, void *block,
                            void *grid, int *warp) {
    (void)device, (void)threads, (void)thread_index, (void)block_index, (void)block, (void)grid;
    (void)warp;
    cudart_kernel_add((struct cudart_image *)image, host, name);
}

void __cudaRegisterVar(void **image, char *host, char *device, const char *name, int is_extern,
                       size_t bytes, int is_constant, int is_global) {
    (void)device, (void)is_extern, (void)is_constant, (void)is_global;
    cudart_variable_add((struct cudart_image *)image, host, name, bytes);
}

void __cudaRegisterManagedVar(void **image, void **pointer, char *device, const char *name,
                              int is_extern, size_t bytes, int is_constant, int is_global) {
    (void)device, (void)is_extern, (void)is_constant, (void)is_global;
    cudart_managed_add((struct cudart_image *)image, pointer, name, bytes);
}

/* Called before the program's first access to a managed variable. The value says that it is
 * done. */
char __cudaInitModule(void **image) {
    cudart_begin(false, __builtin_return_address(0));
    (void)cudart_end(cudart_image_begin((struct cudart_image *)image));
    return 1;
}

/* ---- launches ---- */

/* Launches may nest: a launch's argument may be computed by a call that launches. */
enum { CONFIGURATIONS = 16 };

static _Thread_local struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    const void *site; /* of the launch in the program */
} configurations[CONFIGURATIONS];
static _Thread_local int pushed;

/* The generated code skips the launch if this is not zero. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    if (pushed == CONFIGURATIONS) {
        return (unsigned)cudart_end(cudaErrorMemoryAllocation);
    }
    configurations[pushed++] =
        (struct configuration){grid, block, shared, stream, __builtin_return_address(0)};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (pushed == 0) return cudart_end(cudaErrorMissingConfiguration);
    const struct configuration *last = &configurations[--pushed];
    *grid = last->grid;
    *block = last->block;
    *shared = last->shared;
    *(cudaStream_t *)stream = last->stream;
    cudart_launch_site = last->site;
    return cudaSuccess;
}

/* The generated code calls this once, before the first launch of a kernel, and keeps the result:
 * the host function, for which each launch finds the kernel. So every launch that fails reports
 * why. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    *kernel = (cudaKernel_t)(uintptr_t)host;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    cudart_begin(false, __builtin_return_address(0));
    return cudart_end(cudart_launch(kernel, grid, block, arguments, shared, stream));
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream) {
    cudart_begin(true, __builtin_return_address(0));
    return cudart_end(cudart_launch(kernel, grid, block, arguments, shared, stream));
}
