/*
 * The driver's parameters of graph nodes.
 */
#ifndef CUDART_NODE_H
#define CUDART_NODE_H

#include "cudart/cudart_types.h"

/* Each needs a context, and uses the current one for the node. cudaErrorInvalidDeviceFunction: the
 * kernel is not registered. */
cudaError_t cudart_node_kernel(const cudaKernelNodeParams *from, CUDA_KERNEL_NODE_PARAMS *to);
cudaError_t cudart_node_any(const cudaGraphNodeParams *from, CUgraphNodeParams *to);

/* And back: the kernel by its host address. */
void cudart_node_kernel_runtime(const CUDA_KERNEL_NODE_PARAMS *from, cudaKernelNodeParams *to);

#endif
