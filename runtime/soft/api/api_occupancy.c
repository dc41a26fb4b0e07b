/*
 * Occupancy. As in "Occupancy" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "export.h"
#include "state/kernel_library.h"
#include "state/occupancy.h"

static CUresult occupancy_find(CUfunction handle, const void *answer,
                               struct soft_function **function) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (answer == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_function_find(handle, context, function);
}

/* The flag concerns caches that this device does not have. */
static bool occupancy_are_flags(unsigned flags) {
    return flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;
}

EXPORT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, CUfunction handle, int threads, size_t shared, unsigned int flags)) {
    struct soft_function *function = NULL;
    CUresult result = occupancy_find(handle, blocks, &function);
    if (result != CUDA_SUCCESS) return result;
    if (threads <= 0 || !occupancy_are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
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
    CUresult result = occupancy_find(handle, grid, &function);
    if (result != CUDA_SUCCESS) return result;
    if (block == NULL || limit < 0 || !occupancy_are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
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
    CUresult result = occupancy_find(handle, bytes, &function);
    if (result != CUDA_SUCCESS) return result;
    if (blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)soft_occupancy_shared(function, (unsigned)blocks, (unsigned)threads);
    return CUDA_SUCCESS;
}

/* The blocks of a cluster of a launch, as far as the kernel or the launch says. */
static CUresult find_cluster(CUfunction handle, const int *answer, const CUlaunchConfig *config,
                             struct soft_function **function, uint32_t extent[3]) {
    CUresult result = occupancy_find(handle, answer, function);
    if (result != CUDA_SUCCESS) return result;
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if ((int)attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        extent[0] = attribute->value.clusterDim.x;
        extent[1] = attribute->value.clusterDim.y;
        extent[2] = attribute->value.clusterDim.z;
        if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    return soft_occupancy_cluster(*function, extent);
}

static unsigned occupancy_blocks_of(const struct soft_function *function,
                                    const CUlaunchConfig *config) {
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (threads > UINT32_MAX) return 0;
    return soft_occupancy_blocks(function, (unsigned)threads, config->sharedMemBytes);
}

EXPORT(cuOccupancyMaxPotentialClusterSize,
       (int *size, CUfunction handle, const CUlaunchConfig *config)) {
    struct soft_function *function = NULL;
    uint32_t extent[3] = {0};
    CUresult result = find_cluster(handle, size, config, &function, extent);
    if (result != CUDA_SUCCESS) return result;
    *size =
        occupancy_blocks_of(function, config) > 0 ? (int)soft_occupancy_cluster_max(function) : 0;
    return CUDA_SUCCESS;
}

/* If one block fits, a cluster fits, because one worker runs all of its blocks. */
EXPORT(cuOccupancyMaxActiveClusters,
       (int *count, CUfunction handle, const CUlaunchConfig *config)) {
    struct soft_function *function = NULL;
    uint32_t extent[3] = {0};
    CUresult result = find_cluster(handle, count, config, &function, extent);
    if (result != CUDA_SUCCESS) return result;
    unsigned blocks = occupancy_blocks_of(function, config) * soft_occupancy_processors();
    unsigned each = extent[0] * extent[1] * extent[2];
    *count = blocks == 0 ? 0 : blocks < each ? 1 : (int)(blocks / each);
    return CUDA_SUCCESS;
}
