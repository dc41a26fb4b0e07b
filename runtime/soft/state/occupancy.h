/*
 * Occupancy: the number of blocks of a kernel that a multiprocessor of an H200 runs at a time.
 *
 * A worker of the soft device runs one block after the other. But programs choose their grids by
 * occupancy, and a cooperative launch may not exceed it.
 */
#ifndef SOFT_OCCUPANCY_H
#define SOFT_OCCUPANCY_H

#include "driver_state.h"

/* Blocks on one multiprocessor; 0: not even one fits. */
unsigned soft_occupancy_blocks(const struct soft_function *function, unsigned threads,
                               uint64_t dynamic_shared);

/* The dynamic shared memory per block if this many blocks share a multiprocessor; 0 also if they do
 * not fit. */
uint64_t soft_occupancy_shared(const struct soft_function *function, unsigned blocks,
                               unsigned threads);

/* The maximum number of blocks in a cluster of a kernel. */
uint32_t soft_occupancy_cluster_max(const struct soft_function *function);

/* The cluster of a launch: what the kernel requires, what the launch requests (0: nothing), or one
 * block. CUDA_ERROR_INVALID_CLUSTER_SIZE: they disagree, the kernel needs one and there is none, or
 * it is too large. */
CUresult soft_occupancy_cluster(const struct soft_function *function, uint32_t extent[3]);

/* Multiprocessors, as the device reports them. */
unsigned soft_occupancy_processors(void);

#endif
