// Grids whose blocks wait for each other: at a barrier of the whole grid, and an earlier block for
// a later one.
#include <cooperative_groups.h>
#include <stdint.h>

namespace cg = cooperative_groups;

// Each number becomes its right neighbour's, plus one; repeated.
extern "C" __global__ void rotate(int32_t *data, uint32_t steps) {
    auto grid = cg::this_grid();
    uint64_t i = grid.thread_rank();
    for (uint32_t step = 0; step < steps; step++) {
        int32_t value = data[(i + 1) % grid.size()];
        grid.sync();
        data[i] = value + 1;
        grid.sync();
    }
}

// The sum of all, by blocks and then by one of them.
extern "C" __global__ void sum_all(const int32_t *in, int32_t *sums, int32_t *out) {
    __shared__ int32_t sum;
    auto grid = cg::this_grid();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[grid.thread_rank()]);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    grid.sync();
    if (grid.thread_rank() != 0) return;
    int32_t all = 0;
    for (uint32_t b = 0; b < gridDim.x; b++) all += sums[b];
    *out = all;
}

// A block waits for its successor; the last one for none.
extern "C" __global__ void from_the_end(volatile int32_t *values) {
    if (threadIdx.x != 0) return;
    uint32_t block = blockIdx.x;
    int32_t next = 0;
    while (block + 1 < gridDim.x && next == 0) next = values[block + 1];
    values[block] = next + 1;
}
