/*
 * Occupancy. As in "Occupancy" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "export.h"
#include "state/kernel_library.h"
#include "state/occupancy.h"

static CUresult find(CUfunction handle, const void *answer, struct soft_function **function) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_function_find(handle, context, function);
}

/* The flag is about caches that this device does not have. */
static bool are_flags(unsigned flags) {
    return flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;
}

EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, CUfunction handle, int threads, size_t shared, unsigned int flags)) {
    struct soft_function *function = NULL;
    CUresult result = find(handle, blocks, &function);
    if (result != CUDA_SUCCESS) return result;
    if (threads <= 0 || !are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)soft_occupancy_blocks(function, (unsigned)threads, shared);
    return CUDA_SUCCESS;
}

EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *blocks, CUfunction handle, int threads, size_t shared)) {
    return soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads,
                                                                     shared, 0);
}

/* The largest block among those with which the most threads are active. */
EXPORT(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared,
        int limit, unsigned int flags)) {
    struct soft_function *function = NULL;
    CUresult result = find(handle, grid, &function);
    if (result != CUDA_SUCCESS) return result;
    if (block == NULL || limit < 0 || !are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    unsigned most = function->code->block_threads_max, best = 0, best_blocks = 0;
    if (limit > 0 && (unsigned)limit < most) most = (unsigned)limit;
    /* Whole warps, from the largest block that is one, and the limit itself. */
    for (unsigned threads = most; threads > 0; threads = (threads - 1) / SOFT_LANES * SOFT_LANES) {
        uint64_t bytes = shared_of != NULL ? shared_of((int)threads) : shared;
        unsigned blocks = soft_occupancy_blocks(function, threads, bytes);
        if (blocks * threads > best_blocks * best) {
            best = threads;
            best_blocks = blocks;
        }
    }
    *block = (int)best;
    *grid = (int)(best_blocks * soft_occupancy_processors());
    return CUDA_SUCCESS;
}

EXPORT(cuOccupancyMaxPotentialBlockSize, (int *grid, int *block, CUfunction handle,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit)) {
    return soft_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of, shared,
                                                          limit, 0);
}

EXPORT(cuOccupancyAvailableDynamicSMemPerBlock,
       (size_t * bytes, CUfunction handle, int blocks, int threads)) {
    struct soft_function *function = NULL;
    CUresult result = find(handle, bytes, &function);
    if (result != CUDA_SUCCESS) return result;
    if (blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)soft_occupancy_shared(function, (unsigned)blocks, (unsigned)threads);
    return CUDA_SUCCESS;
}

/* Clusters are not offered, which CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH says. */
EXPORT(cuOccupancyMaxPotentialClusterSize,
       (int *size, CUfunction handle, const CUlaunchConfig *config)) {
    struct soft_function *function = NULL;
    CUresult result = find(handle, size, &function);
    if (result != CUDA_SUCCESS) return result;
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT(cuOccupancyMaxActiveClusters,
       (int *count, CUfunction handle, const CUlaunchConfig *config)) {
    struct soft_function *function = NULL;
    CUresult result = find(handle, count, &function);
    if (result != CUDA_SUCCESS) return result;
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}
