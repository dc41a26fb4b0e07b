/*
 * What programs registered: images, and the host addresses that represent their kernels and
 * variables.
 *
 * An image is loaded as a library of the driver when something in it is first needed, so a program
 * whose kernels this device cannot run still starts, as with CUDA's runtime. Libraries do not
 * belong to a context: they survive a reset of the device.
 */
#ifndef CUDART_REGISTRY_H
#define CUDART_REGISTRY_H

#include "cudart_driver.h"

#include <stdbool.h>

/* Registers an image, given the argument of __cudaRegisterFatBinary. NULL: out of memory. */
struct cudart_image;
struct cudart_image *cudart_image_add(const void *wrapper);

/* Removes the image and everything that it registered, and unloads its library. */
void cudart_image_remove(struct cudart_image *image);

/* Loads the image's managed variables, and gives the program their addresses. */
cudaError_t cudart_image_begin(struct cudart_image *image);

/* Names the kernel or the variable of a host address. name must outlive the image. */
void cudart_kernel_add(struct cudart_image *image, const void *host, const char *name);
void cudart_variable_add(struct cudart_image *image, const void *host, const char *name,
                         size_t bytes);
void cudart_managed_add(struct cudart_image *image, void **pointer, const char *name, size_t bytes);

/* A kernel that the program got from a library of its own represents itself. */
void cudart_kernel_know(CUkernel kernel, CUlibrary library);
void cudart_library_forget(CUlibrary library);

/* The kernel of a host address. If there is none: cudaErrorInvalidResourceHandle, in CUDA 12
 * cudaErrorInvalidDeviceFunction. */
cudaError_t cudart_kernel(const void *host, CUkernel *kernel);

/* Likewise in the current context; there must be one. */
cudaError_t cudart_function(const void *host, CUfunction *function);

/* The host address of a kernel node's kernel; kernel itself if there is none. */
void *cudart_kernel_host(CUkernel kernel, CUfunction function);

/* A variable in the current context; bytes may be NULL. cudaErrorInvalidSymbol: none. */
cudaError_t cudart_variable(const void *host, CUdeviceptr *address, size_t *bytes);

#endif
