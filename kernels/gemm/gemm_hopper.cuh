// What step 10 of gemm is made of: a pipeline for compute capability 9.0 (compute_90a).
//
// The idea: one thread of the first warpgroup copies boxes by tensor maps into a ring of stages;
// two warpgroups multiply what is in shared memory (wgmma), each 64 rows of the tile, and hold
// their sums in registers. A product waits neither for memory nor for the product in front of it.
// Sums leave through shared memory as boxes, and the last of them while the next tile is
// multiplied. Blocks stay: each walks tiles, in bands, so that those at work share rows and columns
// in the L2 cache. Blocks of a cluster of two have tiles one below the other; each copies half of
// B's part into the shared memory of both.
// Owner: a block owns a tile of 128 x N of C at a time; a thread the sums that wgmma gives it.
// by_boxes: C has a map; otherwise it is stored element by element.
// Requires: blockDim = (GEMM_HOPPER_THREADS, 1, 1), clusters of CLUSTER blocks, HOPPER_SHARED bytes
// of dynamic shared memory; the maps that gemm_maps.c makes; k of at least 1; shares that begin at
// multiples of 64 steps.
#pragma once

#include "../hopper.cuh"
#include "gemm.cuh"

// One defect a kernel, for gemm_hopper_planted.cu.
enum hopper_defect {
    HOPPER_RIGHT,
    HOPPER_EARLY_RELEASE, // a stage is given back before it is multiplied
    HOPPER_LOST_CONSUMER, // the second warpgroup stores nothing
    HOPPER_LOST_TILE,     // the second block of a cluster stores nothing
    HOPPER_WRONG_HALF,    // both blocks copy the first half of B's part
    HOPPER_LOST_STAGE     // the last stage of a tile is not multiplied
};

#if __CUDA_ARCH__ >= 900
enum {
    TILE_M = 128,
    STEPS = 64,
    UNIT = 128 * BOX_ROW, // bytes of 128 rows or columns of 64 steps
    CONSUMERS = 2,        // warpgroups
    CONSUMER_ROWS = TILE_M / CONSUMERS,
    HOPPER_THREADS = (1 + CONSUMERS) * WARPGROUP,
    HOPPER_STORES = 2, // boxes of C of a consumer
    HOPPER_SHARED = 226 << 10
};

template <int N> struct hopper_shared {
    static constexpr int STAGES = N == 256 ? 4 : 6;
    alignas(1024) uint8_t a[STAGES][UNIT];
    alignas(1024) uint8_t b[STAGES][N / 128 * UNIT];
    alignas(1024) uint8_t c[CONSUMERS][HOPPER_STORES][BOX];
    alignas(8) uint64_t full[STAGES], empty[STAGES];
};

// A position in the ring, and the parity of the phase that its barriers are in.
template <int STAGES> struct hopper_ring {
    uint32_t stage, parity;

    __device__ inline void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// The tiles of a cluster: its first row and column, and its share of the steps.
struct hopper_work {
    int row, column, part, k, tiles; // k: the first step; tiles: how many times 64 of them
};

template <int N, int CLUSTER>
__device__ inline hopper_work hopper_work_of(const gemm_arguments &x, int i) {
    const int rows = ceil_div(x.m, TILE_M * CLUSTER), columns = ceil_div(x.n, N);
    const int part = i / (rows * columns);
    const gemm_tile tile = gemm_tile_of(i - part * (rows * columns), rows, columns);
    const int k = part % x.splits * x.span;
    return {tile.row * TILE_M * CLUSTER, tile.column * N, part, k,
            ceil_div(min(x.k - k, x.span), STEPS)};
}

template <int N, int CLUSTER> __device__ inline int hopper_works(const gemm_arguments &x) {
    return ceil_div(x.m, TILE_M * CLUSTER) * ceil_div(x.n, N) * x.batch * x.splits;
}

// Copies a unit. Boxes that would begin at or behind `end` are copies of the first: what they are
// multiplied to is not stored.
template <bool K_MAJOR, int BLOCKS>
__device__ inline void hopper_load(const tensor_map *map, uint8_t *to, uint64_t *barrier, int first,
                                   int end, int k, int matrix) {
    const int boxes = K_MAJOR ? 1 : UNIT / BOX;
#pragma unroll
    for (int i = 0; i < boxes; i++) {
        const int at = first + i * BOX_ROWS < end ? first + i * BOX_ROWS : first;
        const int x = K_MAJOR ? k : at, y = K_MAJOR ? at : k;
        if (BLOCKS == 1) {
            load_box(map, to + i * BOX, barrier, x, y, matrix);
        } else {
            load_box_of_all(map, to + i * BOX, barrier, x, y, matrix, (1 << BLOCKS) - 1);
        }
    }
}

template <bool A_K_MAJOR, bool B_K_MAJOR, int N, int CLUSTER, hopper_defect DEFECT>
__device__ inline void hopper_produce(const gemm_arguments &x, hopper_shared<N> *s,
                                      const tensor_map *a, const tensor_map *b) {
    enum { STAGES = hopper_shared<N>::STAGES, UNITS = N / 128 / CLUSTER };
    const int rank = CLUSTER > 1 ? cluster_rank() : 0, works = hopper_works<N, CLUSTER>(x);
    hopper_ring<STAGES> ring = {0, 1}; // a new barrier counts as being behind its phase 1
#pragma unroll 1
    for (int i = blockIdx.x / CLUSTER; i < works; i += gridDim.x / CLUSTER) {
        const hopper_work work = hopper_work_of<N, CLUSTER>(x, i);
        const int below = work.row + rank * TILE_M, row = below < x.m ? below : work.row;
        const int matrix = work.part / x.splits;
        const int a_matrix = x.batch_a != 0 ? matrix : 0, b_matrix = x.batch_b != 0 ? matrix : 0;
#pragma unroll 1
        for (int step = 0; step < work.tiles; step++) {
            const int k = work.k + step * STEPS;
            uint64_t *full = &s->full[ring.stage];
            barrier_wait_cluster(&s->empty[ring.stage], ring.parity);
            barrier_expect(full, (1 + N / 128) * UNIT);
            hopper_load<A_K_MAJOR, 1>(a, s->a[ring.stage], full, row, x.m, k, a_matrix);
#pragma unroll
            for (int j = 0; j < UNITS; j++) {
                const int unit = rank * UNITS + j;
                const int column = work.column + (DEFECT == HOPPER_WRONG_HALF ? j : unit) * 128;
                hopper_load<B_K_MAJOR, CLUSTER>(b, s->b[ring.stage] + unit * UNIT, full,
                                                column < x.n ? column : work.column, x.n, k,
                                                b_matrix);
            }
            ring.next();
        }
    }
}

// A thread of each consumer tells each block whose boxes come into the stage that it is free.
template <int CLUSTER> __device__ inline void hopper_release(uint64_t *empty) {
    const uint32_t thread = threadIdx.x % WARPGROUP;
    if (thread < CLUSTER) barrier_arrive_at(empty, CLUSTER > 1 ? thread : 0);
}

// The sums of a tile's 64 rows; the stage that was read last is released.
template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, int CLUSTER, hopper_defect DEFECT>
__device__ inline void hopper_multiply(hopper_shared<N> *s, int consumer, int tiles,
                                       hopper_ring<hopper_shared<N>::STAGES> &ring,
                                       float (&sum)[N / 2]) {
    enum { STAGES = hopper_shared<N>::STAGES };
    uint32_t before = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        barrier_wait_cluster(&s->full[ring.stage], ring.parity);
        if (DEFECT == HOPPER_EARLY_RELEASE) {
            hopper_release<CLUSTER>(&s->empty[ring.stage]);
            if (i + STAGES < tiles) barrier_wait_cluster(&s->full[ring.stage], ring.parity ^ 1);
        }
        wgmma_fence();
        uint64_t a = factor_of<A_K_MAJOR>(s->a[ring.stage] + consumer * BOX);
        uint64_t b = factor_of<B_K_MAJOR>(s->b[ring.stage]);
#pragma unroll
        for (int step = 0; step < STEPS * (int)sizeof(T) / 32; step++) {
            if (DEFECT == HOPPER_LOST_STAGE && i + 1 == tiles) break;
            product<T, N>::template add<A_K_MAJOR, B_K_MAJOR>(sum, a, b, i > 0 || step > 0);
            a += factor_step<A_K_MAJOR>();
            b += factor_step<B_K_MAJOR>();
        }
        wgmma_commit();
        // The products of this stage run while the next is waited for.
        wgmma_wait<1>();
        if (i > 0 && DEFECT != HOPPER_EARLY_RELEASE) hopper_release<CLUSTER>(&s->empty[before]);
        before = ring.stage;
        ring.next();
    }
    wgmma_wait<0>();
    hold(sum);
    if (DEFECT != HOPPER_EARLY_RELEASE) hopper_release<CLUSTER>(&s->empty[before]);
}

// alpha * sum + beta * C of two neighbours in a row.
template <typename C>
__device__ inline float2 hopper_result(const gemm_arguments &x, const C *c, int row, int column,
                                       float first, float second) {
    float2 both = {x.alpha * first, x.alpha * second};
    if (x.beta != 0 && row < x.m) {
        const C *old = c + row * x.ldc + column;
        if (column < x.n) both.x = fmaf(x.beta, to_float(old[0]), both.x);
        if (column + 1 < x.n) both.y = fmaf(x.beta, to_float(old[1]), both.y);
    }
    return both;
}

// Two floats as a word of the type.
template <typename C> __device__ inline uint32_t hopper_word(float2 both) {
    const C two[2] = {from_float<C>(both.x), from_float<C>(both.y)};
    return *(const uint16_t *)&two[0] | (uint32_t) * (const uint16_t *)&two[1] << 16;
}

// Writes a box of C, 128 bytes of each of 64 rows, swizzled, from the sums behind `sum`.
template <typename C>
__device__ inline void hopper_write(const gemm_arguments &x, const C *c, uint8_t *box, int row,
                                    int column, const float *sum) {
    enum { COLUMNS = BOX_ROW / sizeof(C) };
    const int thread = threadIdx.x % WARPGROUP, lane = thread % WARP, turn = lane / 4;
    const int down = thread / WARP * 16 + turn, across = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++) {
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const float2 both = hopper_result(x, c, row + down + lower * 8, column + i * 8 + across,
                                              sum[i * 4 + lower * 2], sum[i * 4 + lower * 2 + 1]);
            uint8_t *at = box + (down + lower * 8) * BOX_ROW;
            if constexpr (sizeof(C) == sizeof(float)) {
                *(float2 *)(at + ((i * 2 + across / 4) ^ turn) * 16 + across % 4 * 4) = both;
            } else {
                *(uint32_t *)(at + (i ^ turn) * 16 + across * 2) = hopper_word<C>(both);
            }
        }
    }
}

// Copies what hopper_write wrote to C element by element, where no map describes C.
template <typename C>
__device__ inline void hopper_copy(const gemm_arguments &x, C *c, const uint8_t *box, int row,
                                   int column) {
    enum { COLUMNS = BOX_ROW / sizeof(C), WARPS = WARPGROUP / WARP };
    const int thread = threadIdx.x % WARPGROUP, lane = thread % WARP;
#pragma unroll 1
    for (int r = thread / WARP; r < min(BOX_ROWS, x.m - row); r += WARPS) {
        C *to = c + (row + r) * x.ldc + column;
#pragma unroll
        for (int i = lane; i < COLUMNS; i += WARP) {
            const int byte = i * sizeof(C);
            const uint8_t *at = box + r * BOX_ROW + (byte / 16 ^ r % 8) * 16 + byte % 16;
            if (column + i < x.n) to[i] = *(const C *)at;
        }
    }
}

// Stores the 64 rows of a consumer. `turn` counts boxes: two take turns.
template <typename C, int N>
__device__ inline void hopper_store(const gemm_arguments &x, hopper_shared<N> *s,
                                    const tensor_map *map, int consumer, const hopper_work &work,
                                    int row, int by_boxes, uint32_t &turn,
                                    const float (&sum)[N / 2]) {
    enum { COLUMNS = BOX_ROW / sizeof(C) };
    C *c = (C *)x.c + work.part * x.batch_c;
    const bool is_first = threadIdx.x % WARPGROUP == 0;
    if (row >= x.m) return;
#pragma unroll
    for (int i = 0; i < N / COLUMNS; i++) {
        const int column = work.column + i * COLUMNS;
        if (column >= x.n) break;
        uint8_t *box = s->c[consumer][turn++ % HOPPER_STORES];
        if (is_first) wait_boxes_read<HOPPER_STORES - 1>();
        named_barrier(1 + consumer, WARPGROUP); // the box is free
        hopper_write(x, c, box, row, column, sum + i * COLUMNS / 2);
        fence_copies();
        named_barrier(1 + consumer, WARPGROUP); // and full
        if (!by_boxes) {
            hopper_copy(x, c, box, row, column);
        } else if (is_first) {
            store_box(map, box, column, row, work.part);
        }
    }
}

template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, int CLUSTER, hopper_defect DEFECT>
__device__ inline void hopper_consume(const gemm_arguments &x, hopper_shared<N> *s, int consumer,
                                      const tensor_map *map, int by_boxes) {
    const int rank = CLUSTER > 1 ? cluster_rank() : 0, works = hopper_works<N, CLUSTER>(x);
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 0};
    uint32_t turn = 0;
    float sum[N / 2];
#pragma unroll 1
    for (int i = blockIdx.x / CLUSTER; i < works; i += gridDim.x / CLUSTER) {
        const hopper_work work = hopper_work_of<N, CLUSTER>(x, i);
        const int row = work.row + rank * TILE_M + consumer * CONSUMER_ROWS;
        hopper_multiply<T, A_K_MAJOR, B_K_MAJOR, N, CLUSTER, DEFECT>(s, consumer, work.tiles, ring,
                                                                     sum);
        if (DEFECT == HOPPER_LOST_CONSUMER && consumer == 1) continue;
        if (DEFECT == HOPPER_LOST_TILE && rank == 1) continue;
        if (x.c_type == GEMM_C_F32) {
            hopper_store<float, N>(x, s, map, consumer, work, row, by_boxes, turn, sum);
        } else {
            hopper_store<T, N>(x, s, map, consumer, work, row, by_boxes, turn, sum);
        }
    }
    if (threadIdx.x % WARPGROUP == 0) wait_boxes_read<0>();
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B, int N, int CLUSTER,
          hopper_defect DEFECT = HOPPER_RIGHT>
__device__ inline void gemm_hopper(const gemm_arguments &x, const tensor_map *a,
                                   const tensor_map *b, const tensor_map *c, int by_boxes) {
    enum { STAGES = hopper_shared<N>::STAGES };
    static_assert(sizeof(hopper_shared<N>) + 1024 <= HOPPER_SHARED, "the launch has room for it");
    extern __shared__ uint8_t room[];
    hopper_shared<N> *s =
        reinterpret_cast<hopper_shared<N> *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        prefetch_map(a);
        prefetch_map(b);
        prefetch_map(c);
        for (int i = 0; i < STAGES; i++) {
            barrier_make(&s->full[i], 1);
            barrier_make(&s->empty[i], CONSUMERS * CLUSTER);
        }
        barriers_made();
    }
    if (CLUSTER > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    if (threadIdx.x < WARPGROUP) {
        give_registers<40>();
        if (threadIdx.x == 0)
            hopper_produce<!TRANSPOSE_A, TRANSPOSE_B, N, CLUSTER, DEFECT>(x, s, a, b);
        __syncwarp();
    } else {
        take_registers<232>();
        hopper_consume<T, !TRANSPOSE_A, TRANSPOSE_B, N, CLUSTER, DEFECT>(
            x, s, threadIdx.x / WARPGROUP - 1, c, by_boxes);
    }
    // The other block may still arrive here, and its boxes come.
    if (CLUSTER > 1) cluster_sync();
}

#define GEMM_HOPPER_KERNEL(name, CLUSTER_DIMS, ...)                                                \
    extern "C" __global__ void CLUSTER_DIMS __launch_bounds__(HOPPER_THREADS, 1)                   \
        name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,           \
             const __grid_constant__ tensor_map c, const __grid_constant__ gemm_arguments x,       \
             int by_boxes) {                                                                       \
        gemm_hopper<__VA_ARGS__>(x, &a, &b, &c, by_boxes);                                         \
    }
#endif
