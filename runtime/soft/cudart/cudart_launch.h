/*
 * Launches.
 */
#ifndef CUDART_LAUNCH_H
#define CUDART_LAUNCH_H

#include "cudart_types.h"

/* The program's call site of the thread's latest launch configuration; NULL: already launched.
 * nvcc's code launches from a separate function. */
extern _Thread_local const void *cudart_launch_site;

/* Launches the kernel of a host address. If the grid or the block exceeds the device's limits:
 * cudaErrorInvalidValue, in CUDA 12 cudaErrorInvalidConfiguration. */
cudaError_t cudart_launch(const void *kernel, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream);

#endif
