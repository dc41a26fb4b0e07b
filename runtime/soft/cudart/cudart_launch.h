/*
 * Launches.
 */
#ifndef CUDART_LAUNCH_H
#define CUDART_LAUNCH_H

#include "cudart_types.h"

/* Launches the kernel that a host address stands for. cudaErrorInvalidConfiguration: the grid, the
 * block or the dynamic shared memory is beyond the device's limits. */
cudaError_t cudart_launch(const void *kernel, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream);

#endif
