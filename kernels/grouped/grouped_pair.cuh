// What step 4 of grouped is made of: the pipeline of grouped_hopper.cuh for pairs of blocks.
//
// The idea: a tile of 128 x 192 of e4m3 is multiplied in less time than its five stages take from the
// L2 cache. Two blocks of a cluster own tiles that lie one above the other: each copies half of their
// columns of B to both (multicast), so 28 KiB a stage are read instead of 40. A stage is given back
// by the consumers of both blocks to both. A wider tile has fewer boxes for a product, and sums and
// parts of 256 columns would not fit the registers.
// Owner: a cluster owns 256 x N of C at a time, a block 128 rows of them.
// Requires: as grouped_hopper.cuh, with clusters of two blocks, an even number of blocks, and boxes of
// B of at most N / 2 columns.
#pragma once

#include "../multicast.cuh"
#include "grouped_hopper.cuh"

#if __CUDA_ARCH__ >= 900
enum { PAIR = 2 };

#define GROUPED_SUMS_96                                                                            \
    HOPPER_SUMS_64 ", "                                                                            \
                   "%64, %65, %66, %67, %68, %69, %70, %71, "                                      \
                   "%72, %73, %74, %75, %76, %77, %78, %79, "                                      \
                   "%80, %81, %82, %83, %84, %85, %86, %87, "                                      \
                   "%88, %89, %90, %91, %92, %93, %94, %95"
#define GROUPED_ALL_96 HOPPER_ALL_64, HOPPER_32(sum, 64)
HOPPER_K_PRODUCT(e4m3, "e4m3", 192, 32, GROUPED_SUMS_96, GROUPED_ALL_96, "%96", "%97", "%98", "%99",
                 "%100", "%101")

template <> struct hopper_stages<192> {
    static constexpr int STAGES = 5;
    alignas(1024) uint8_t a[STAGES][TILE_M * BOX_ROW];
    alignas(1024) uint8_t b[STAGES][192 * BOX_ROW];
};

template <int N>
__device__ inline hopper_work grouped_pair_work_of(const grouped_arguments &x,
                                                   const grouped_walk &walk, int i) {
    const gemm_tile tile = gemm_tile_of(
        i - walk.first, ceil_div(walk.end - walk.begin, PAIR * TILE_M), ceil_div(x.n, N));
    const int down = tile.row * PAIR + (int)cluster_rank();
    return {walk.begin + down * TILE_M, tile.column * N, walk.group, 0,
            ceil_div(x.k, hopper_steps<e4m3>())};
}

template <int N, grouped_defect DEFECT>
__device__ inline void grouped_pair_produce(const grouped_arguments &x, hopper_shared<N> *s,
                                            const tensor_map *a, const tensor_map *b) {
    enum { HALF = N / PAIR, BOTH = 3 };
    const int rank = cluster_rank(), bytes = (x.a_rows + PAIR * x.b_rows) * BOX_ROW;
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 1}; // a new barrier has completed phase 1
    grouped_walk walk(x);
#pragma unroll 1
    for (int i = blockIdx.x / PAIR; walk.find(x, i, PAIR * TILE_M, ceil_div(x.n, N));
         i += gridDim.x / PAIR) {
        const hopper_work work = grouped_pair_work_of<N>(x, walk, i);
        // Boxes that would begin after the last row or column are copies of others: nothing of
        // what they are multiplied to is stored.
        const int row = work.row < x.m ? work.row : 0;
        const int half = work.column + (DEFECT == GROUPED_LOST_HALF ? 0 : rank * HALF);
        const int column = half < x.n ? half : work.column;
        const int matrix = x.group_b != 0 ? work.matrix : 0;
#pragma unroll 1
        for (int step = 0; step < work.tiles; step++) {
            const int k = step * hopper_steps<e4m3>();
            uint64_t *full = &s->full[ring.stage];
            barrier_wait(&s->empty[ring.stage], ring.parity);
            barrier_expect(full, bytes);
            load_box(a, s->stages.a[ring.stage], full, k, row, 0);
            load_box_for(b, s->stages.b[ring.stage] + rank * HALF * BOX_ROW, full, k, column,
                         matrix, BOTH);
            ring.next();
        }
    }
}

template <int N, grouped_defect DEFECT>
__device__ inline void grouped_pair_consume(const grouped_arguments &x, hopper_shared<N> *s,
                                            int consumer) {
    enum { ALL = CONSUMERS * WARPGROUP, STAGES = hopper_shared<N>::STAGES };
    const int thread = threadIdx.x % WARPGROUP, first = threadIdx.x - WARPGROUP;
    const int down = thread / WARP * 16 + thread % WARP / 4;
    hopper_ring<STAGES> ring = {0, 0};
    float sum[N / 2];
    using halves = uint8_t[STAGES * PAIR][N / PAIR * BOX_ROW];
    hopper_clear<e4m3, true, TILE_M>(s->stages.a, x.a_rows, first, ALL);
    hopper_clear<e4m3, true, N / PAIR>((halves &)s->stages.b, x.b_rows, first, ALL);
    fence_copies();
    named_barrier(TOGETHER, ALL);
    grouped_walk walk(x);
#pragma unroll 1
    for (int i = blockIdx.x / PAIR; walk.find(x, i, PAIR * TILE_M, ceil_div(x.n, N));
         i += gridDim.x / PAIR) {
        const hopper_work work = grouped_pair_work_of<N>(x, walk, i);
        grouped_prefetch_residual<N>(x, work, consumer, walk.end);
        grouped_multiply_bytes<N, DEFECT>(s, consumer, work.tiles, ring, sum, [](uint64_t *empty) {
            const int block = threadIdx.x % WARPGROUP;
            if (block < PAIR) barrier_arrive_at(empty, block);
        });
        if (work.row + consumer * CONSUMER_ROWS >= walk.end) continue;
        grouped_finish_all<N, DEFECT>(x, s->part[consumer], work, consumer, walk.end, down, sum);
    }
}

// No block ends, or is copied to, before both are there and have made their barriers.
template <int N, grouped_defect DEFECT = GROUPED_RIGHT>
__device__ inline void grouped_pair(const grouped_arguments &x, const tensor_map *a,
                                    const tensor_map *b) {
    static_assert(sizeof(hopper_shared<N>) + 1024 <= HOPPER_SHARED, "the launch has room for it");
    extern __shared__ uint8_t room[];
    hopper_shared<N> *s =
        reinterpret_cast<hopper_shared<N> *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        prefetch_map(a);
        prefetch_map(b);
        for (int i = 0; i < hopper_shared<N>::STAGES; i++) {
            barrier_make(&s->full[i], 1);
            barrier_make(&s->empty[i], PAIR * CONSUMERS);
        }
        barriers_made();
    }
    cluster_sync();
    if (threadIdx.x < WARPGROUP) {
        give_registers<40>();
        if (threadIdx.x == 0) grouped_pair_produce<N, DEFECT>(x, s, a, b);
        __syncwarp();
    } else {
        take_registers<232>();
        grouped_pair_consume<N, DEFECT>(x, s, threadIdx.x / WARPGROUP - 1);
    }
    cluster_sync();
}

#define GROUPED_PAIR_KERNEL(name, ...)                                                             \
    extern "C" __global__ void __cluster_dims__(PAIR, 1, 1) __launch_bounds__(HOPPER_THREADS, 1)   \
        name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,           \
             const __grid_constant__ grouped_arguments x) {                                        \
        grouped_pair<__VA_ARGS__>(x, &a, &b);                                                      \
    }
#endif
