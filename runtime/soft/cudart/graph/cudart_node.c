/*
 * Parameters of nodes, from the runtime's structures to the driver's.
 */
#include "cudart_node.h"

#include "cudart/memory/cudart_copy.h"
#include "cudart/cudart_registry.h"
#include "cudart/cudart_thread.h"

#include <string.h>

cudaError_t cudart_node_kernel(const cudaKernelNodeParams *from, CUDA_KERNEL_NODE_PARAMS *to) {
    CUkernel kernel = NULL;
    if (from == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_context();
    if (error == cudaSuccess) error = cudart_kernel(from->func, &kernel);
    if (error != cudaSuccess) return error;
    *to = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = from->gridDim.x,
                                    .gridDimY = from->gridDim.y,
                                    .gridDimZ = from->gridDim.z,
                                    .blockDimX = from->blockDim.x,
                                    .blockDimY = from->blockDim.y,
                                    .blockDimZ = from->blockDim.z,
                                    .sharedMemBytes = from->sharedMemBytes,
                                    .kernelParams = from->kernelParams,
                                    .extra = from->extra,
                                    .kern = kernel};
    return cudaSuccess;
}

void cudart_node_kernel_runtime(const CUDA_KERNEL_NODE_PARAMS *from, cudaKernelNodeParams *to) {
    *to = (cudaKernelNodeParams){.func = cudart_kernel_host(from->kern, from->func),
                                 .gridDim = {from->gridDimX, from->gridDimY, from->gridDimZ},
                                 .blockDim = {from->blockDimX, from->blockDimY, from->blockDimZ},
                                 .sharedMemBytes = from->sharedMemBytes,
                                 .kernelParams = from->kernelParams,
                                 .extra = from->extra};
}

static cudaError_t node_find_current(CUcontext *context) {
    cudaError_t error = cudart_context();
    return error != cudaSuccess ? error : (cudaError_t)CU(cuCtxGetCurrent)(context);
}

cudaError_t cudart_node_any(const cudaGraphNodeParams *from, CUgraphNodeParams *to) {
    CUcontext context = NULL;
    if (from == NULL) return cudaErrorInvalidValue;
    cudaError_t error = node_find_current(&context);
    if (error != cudaSuccess) return error;
    *to = (CUgraphNodeParams){.type = from->type};
    switch (from->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cudart_node_kernel(&from->kernel, &to->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        to->memcpy.flags = from->memcpy.flags;
        to->memcpy.copyCtx = context;
        return cudart_copy_3d(&from->memcpy.copyParams, &to->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&to->memset, &from->memset, sizeof from->memset);
        to->memset.ctx = context;
        return cudaSuccess;
    default: /* the others are the same in both */
        memcpy(to->reserved1, from->reserved1, sizeof to->reserved1);
        return cudaSuccess;
    }
}
