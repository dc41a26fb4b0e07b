// Target: compute_90
// Clusters: blocks that read, write and count in each other's shared memory.
#include <cooperative_groups.h>
#include <stdint.h>

namespace cg = cooperative_groups;

enum { THREADS = 128, BINS = 64 };

// Each block of four holds a quarter of the bins, and all of them count in all.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    count_bins(const uint32_t *in, uint32_t *out, uint32_t count) {
    __shared__ uint32_t bins[BINS / 4];
    auto cluster = cg::this_cluster();
    for (uint32_t i = threadIdx.x; i < BINS / 4; i += THREADS) bins[i] = 0;
    cluster.sync();
    for (uint32_t i = cluster.thread_rank(); i < count; i += cluster.num_threads()) {
        uint32_t bin = in[i] % BINS;
        atomicAdd(cluster.map_shared_rank(bins, bin / (BINS / 4)) + bin % (BINS / 4), 1);
    }
    cluster.sync();
    for (uint32_t i = threadIdx.x; i < BINS / 4; i += THREADS) {
        atomicAdd(&out[cluster.block_rank() * (BINS / 4) + i], bins[i]);
    }
}

// Rows of a block go to the next one of the cluster, repeatedly, in two buffers.
extern "C" __global__ void __cluster_dims__(2, 2, 1) pass_on(int32_t *data, uint32_t steps) {
    __shared__ int32_t row[2][THREADS];
    auto cluster = cg::this_cluster();
    uint32_t block = blockIdx.y * gridDim.x + blockIdx.x, t = threadIdx.x;
    uint32_t next = (cluster.block_rank() + 1) % cluster.num_blocks();
    row[0][t] = data[block * THREADS + t];
    cluster.sync();
    for (uint32_t step = 0; step < steps; step++) {
        int32_t *to = cluster.map_shared_rank(row[(step + 1) % 2], next);
        to[THREADS - 1 - t] = row[step % 2][t] + 1;
        cluster.sync();
    }
    data[block * THREADS + t] = row[steps % 2][t];
}

// The sum of a cluster's numbers: its first block adds the blocks' sums, and the others go on with
// something else before they wait for it.
extern "C" __global__ void sum_clusters(const int32_t *in, int32_t *sums, int32_t *twice) {
    __shared__ int32_t sum;
    auto cluster = cg::this_cluster();
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[i]);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        int32_t all = 0;
        for (uint32_t r = 0; r < cluster.num_blocks(); r++) {
            all += *cluster.map_shared_rank(&sum, r);
        }
        sums[blockIdx.x / cluster.num_blocks()] = all;
    }
    auto token = cluster.barrier_arrive();
    twice[i] = 2 * in[i] + (int32_t)cluster.query_shared_rank(&sum);
    cluster.barrier_wait(std::move(token));
}
