/*
 * Launches. As in "Execution Control" of the CUDA Runtime API 13.0.
 */
#include "cudart_launch.h"

#include "cudart_export.h"
#include "cudart_registry.h"
#include "cudart_version.h"

#include <limits.h>

_Thread_local const void *cudart_launch_site;

static bool launch_is_within(int device, CUdevice_attribute attribute, unsigned value) {
    int limit = 0;
    if (value == 0) return false;
    return CU(cuDeviceGetAttribute)(&limit, attribute, device) != CUDA_SUCCESS ||
           value <= (unsigned)limit;
}

/* Whether a device could run such a grid with some kernel. */
static bool is_possible(dim3 grid, dim3 block) {
    CUdevice device = 0;
    if (CU(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return true;
    return launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid.x) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, grid.y) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, grid.z) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block.x) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, block.y) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, block.z) &&
           launch_is_within(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                            block.x * block.y * block.z);
}

/* The driver has one code for all mistakes in a launch. The runtime of CUDA 12 has a separate code
 * for the grid; that of CUDA 13 does not (fixtures/cudart/README.md). */
static bool tells_apart(void) {
    return cudart_version < 13000;
}

static cudaError_t launch_outcome(CUresult result, dim3 grid, dim3 block) {
    if (tells_apart() && result == CUDA_ERROR_INVALID_VALUE && !is_possible(grid, block)) {
        return cudaErrorInvalidConfiguration;
    }
    return (cudaError_t)result;
}

static cudaError_t launch_prepare(const void *host, size_t shared, CUfunction *function) {
    CUkernel kernel = NULL;
    cudaError_t error = cudart_context();
    if (error == cudaSuccess) error = cudart_kernel(host, &kernel);
    if (error != cudaSuccess) return error;
    *function = (CUfunction)kernel; /* the driver takes one for the other */
    return shared > UINT_MAX ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudart_launch(const void *kernel, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream) {
    CUfunction function = NULL;
    if (cudart_launch_site != NULL && cudart_driver_site != NULL) {
        cudart_driver_site(cudart_launch_site);
    }
    cudart_launch_site = NULL;
    cudaError_t error = launch_prepare(kernel, shared, &function);
    if (error != cudaSuccess) return error;
    CUresult result = CU(cuLaunchKernel)(function, grid.x, grid.y, grid.z, block.x, block.y,
                                         block.z, (unsigned)shared, stream, arguments, NULL);
    return launch_outcome(result, grid, block);
}

RT(cudaLaunchKernel, (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                      cudaStream_t stream)) {
    return cudart_launch(kernel, grid, block, arguments, shared, stream);
}

RT(cudaLaunchCooperativeKernel, (const void *kernel, dim3 grid, dim3 block, void **arguments,
                                 size_t shared, cudaStream_t stream)) {
    CUfunction function = NULL;
    cudaError_t error = launch_prepare(kernel, shared, &function);
    if (error != cudaSuccess) return error;
    CUresult result =
        CU(cuLaunchCooperativeKernel)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                      (unsigned)shared, stream, arguments);
    return launch_outcome(result, grid, block);
}

/* The driver's configuration; attributes are the same in both. */
static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config) {
    return (CUlaunchConfig){.gridDimX = config->gridDim.x,
                            .gridDimY = config->gridDim.y,
                            .gridDimZ = config->gridDim.z,
                            .blockDimX = config->blockDim.x,
                            .blockDimY = config->blockDim.y,
                            .blockDimZ = config->blockDim.z,
                            .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                            .hStream = config->stream,
                            .attrs = config->attrs,
                            .numAttrs = config->numAttrs};
}

RT(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *kernel, void **arguments)) {
    CUfunction function = NULL;
    if (config == NULL) return cudaErrorInvalidConfiguration;
    cudaError_t error = launch_prepare(kernel, config->dynamicSmemBytes, &function);
    if (error != cudaSuccess) return error;
    const CUlaunchConfig wanted = driver_config(config);
    CUresult result = CU(cuLaunchKernelEx)(&wanted, function, arguments, NULL);
    return launch_outcome(result, config->gridDim, config->blockDim);
}

RT(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data)) {
    return CU_CALL(cuLaunchHostFunc, (stream, function, data));
}

/* ---- occupancy: "Occupancy" ---- */

static cudaError_t launch_find(const void *kernel, CUfunction *function) {
    cudaError_t error = cudart_context();
    return error != cudaSuccess ? error : cudart_function(kernel, function);
}

RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
   (int *blocks, const void *kernel, int threads, size_t shared)) {
    CUfunction function = NULL;
    cudaError_t error = launch_find(kernel, &function);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(blocks, function, threads,
                                                                        shared);
}

RT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
   (int *blocks, const void *kernel, int threads, size_t shared, unsigned int flags)) {
    CUfunction function = NULL;
    cudaError_t error = launch_find(kernel, &function);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
        blocks, function, threads, shared, flags);
}

RT(cudaOccupancyAvailableDynamicSMemPerBlock,
   (size_t * shared, const void *kernel, int blocks, int threads)) {
    CUfunction function = NULL;
    cudaError_t error = launch_find(kernel, &function);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuOccupancyAvailableDynamicSMemPerBlock)(shared, function, blocks,
                                                                    threads);
}

RT(cudaOccupancyMaxPotentialClusterSize,
   (int *size, const void *kernel, const cudaLaunchConfig_t *config)) {
    CUfunction function = NULL;
    cudaError_t error = launch_find(kernel, &function);
    if (error != cudaSuccess) return error;
    if (config == NULL) return cudaErrorInvalidValue;
    const CUlaunchConfig wanted = driver_config(config);
    return (cudaError_t)CU(cuOccupancyMaxPotentialClusterSize)(size, function, &wanted);
}

RT(cudaOccupancyMaxActiveClusters,
   (int *count, const void *kernel, const cudaLaunchConfig_t *config)) {
    CUfunction function = NULL;
    cudaError_t error = launch_find(kernel, &function);
    if (error != cudaSuccess) return error;
    if (config == NULL) return cudaErrorInvalidValue;
    const CUlaunchConfig wanted = driver_config(config);
    return (cudaError_t)CU(cuOccupancyMaxActiveClusters)(count, function, &wanted);
}
