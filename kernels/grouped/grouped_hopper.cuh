// What step 3 of grouped is made of: the pipeline of gemm_hopper.cuh for tiles of groups.
//
// The idea: one map of A serves all groups, wherever they begin: a tile may copy rows of the next
// group, and what they are multiplied to is not stored. B_g is matrix g of the map of B. Blocks
// stay, and the threads that copy and those that multiply walk the groups on their own. e4m3: tensor cores add 14 digits, so the sums of a
// stage, which has 128 steps, are added to those of the tile as floats.
// Owner: a block owns a tile of 128 x N of C at a time; a thread the sums that wgmma gives it.
// Requires: blockDim = (HOPPER_THREADS, 1, 1); any number of blocks; HOPPER_SHARED bytes of dynamic
// shared memory; maps of A and B with boxes of x.a_rows and x.b_rows; k of at least 1; e4m3 only
// with steps contiguous in B.
#pragma once

#include "../gemm/gemm_hopper_words.cuh"
#include "grouped.cuh"

// One defect per kernel, for grouped_planted.cu.
enum grouped_defect {
    GROUPED_RIGHT,
    GROUPED_EARLY_RELEASE, // a stage is given back before it is multiplied
    GROUPED_WRONG_GROUP,   // B is that of the group in front
    GROUPED_OVER_END,      // rows of the next group are stored as well
    GROUPED_LOST_CONSUMER, // the second warpgroup stores nothing
    GROUPED_LOST_SCALE,    // columns beyond the first 32 of a tile have the scale of those
    GROUPED_NO_PROMOTION,  // e4m3: sums stay in the tensor cores' digits
    GROUPED_LOST_STAGE,    // e4m3: the last stage of a tile is not added
    GROUPED_LOST_HALF      // pairs: both blocks copy the same half of B
};

#if __CUDA_ARCH__ >= 900
HOPPER_K_PRODUCT(e4m3, "e4m3", 128, 32, HOPPER_SUMS_64, HOPPER_ALL_64, "%64", "%65", "%66", "%67",
                 "%68", "%69")

template <typename T>
__device__ inline hopper_work grouped_work_of(const grouped_arguments &x, const grouped_walk &walk,
                                              int i, int n) {
    const gemm_tile tile =
        gemm_tile_of(i - walk.first, ceil_div(walk.end - walk.begin, TILE_M), ceil_div(x.n, n));
    return {walk.begin + tile.row * TILE_M, tile.column * n, walk.group, 0,
            ceil_div(x.k, hopper_steps<T>())};
}

template <typename T, bool B_K_MAJOR, int N, grouped_defect DEFECT>
__device__ inline void grouped_produce(const grouped_arguments &x, hopper_shared<N> *s,
                                       const tensor_map *a, const tensor_map *b) {
    const int bytes =
        hopper_bytes<T, true, TILE_M>(x.a_rows) + hopper_bytes<T, B_K_MAJOR, N>(x.b_rows);
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 1}; // a new barrier has completed phase 1
    grouped_walk walk(x);
#pragma unroll 1
    for (int i = blockIdx.x; walk.find(x, i, TILE_M, ceil_div(x.n, N)); i += gridDim.x) {
        const hopper_work work = grouped_work_of<T>(x, walk, i, N);
        const int of = DEFECT == GROUPED_WRONG_GROUP ? max(work.matrix - 1, 0) : work.matrix;
        const int matrix = x.group_b != 0 ? of : 0;
#pragma unroll 1
        for (int step = 0; step < work.tiles; step++) {
            uint64_t *full = &s->full[ring.stage];
            barrier_wait(&s->empty[ring.stage], ring.parity);
            barrier_expect(full, bytes);
            hopper_load<T, true, TILE_M>(a, s->stages.a[ring.stage], full, work.row, x.m,
                                         step * hopper_steps<T>(), 0);
            hopper_load<T, B_K_MAJOR, N>(b, s->stages.b[ring.stage], full, work.column, x.n,
                                         step * hopper_steps<T>(), matrix);
            ring.next();
        }
    }
}

// The sums of a tile's 64 rows, of e4m3. The other warpgroup's products run while this one adds.
// `release` gives a stage back.
template <int N, grouped_defect DEFECT, typename RELEASE>
__device__ inline void grouped_multiply_bytes(hopper_shared<N> *s, int consumer, int tiles,
                                              hopper_ring<hopper_shared<N>::STAGES> &ring,
                                              float (&sum)[N / 2], const RELEASE &release) {
    float part[N / 2];
#pragma unroll
    for (int e = 0; e < N / 2; e++) sum[e] = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        const bool adds = DEFECT == GROUPED_NO_PROMOTION && i > 0;
        barrier_wait(&s->full[ring.stage], ring.parity);
        wgmma_fence();
        uint64_t a = factor_of<true>(s->stages.a[ring.stage] + consumer * BOX);
        uint64_t b = factor_of<true>(s->stages.b[ring.stage]);
#pragma unroll
        for (int step = 0; step < BOX_ROW / 32; step++) {
            product<e4m3, N>::template add<true, true>(part, a, b, adds || step > 0);
            a += factor_step<true>();
            b += factor_step<true>();
        }
        wgmma_commit();
        wgmma_wait<0>();
        hold(part);
        release(&s->empty[ring.stage]);
        ring.next();
        if (DEFECT == GROUPED_LOST_STAGE && i + 1 == tiles) break;
#pragma unroll
        for (int e = 0; e < N / 2; e++) {
            sum[e] = DEFECT == GROUPED_NO_PROMOTION ? part[e] : sum[e] + part[e];
        }
    }
}

// Whether what follows the product is one factor for all elements, and C has 16 bits and rows of
// whole pieces of 16 bytes.
__device__ inline bool grouped_is_plain(const grouped_arguments &x) {
    return x.bias == nullptr && x.residual == nullptr && x.a_scale == nullptr &&
           x.b_scale == nullptr && x.activation == GROUPED_PLAIN && x.n % 8 == 0 &&
           x.ldc % 8 == 0 && (unsigned long long)x.c % 16 == 0 &&
           (x.c_type == GROUPED_F16 || x.c_type == GROUPED_BF16);
}

// Stores a thread's rows `row` and `row` + 8, if below `end`, from its registers.
template <int N>
__device__ inline void grouped_store_plain(const grouped_arguments &x, int row, int end, int column,
                                           const float (&sum)[N / 2]) {
    gemm_arguments to = {};
    to.m = end, to.n = x.n, to.ldc = x.ldc, to.alpha = x.alpha * x.c_inverse;
    if (x.c_type == GROUPED_F16) {
        hopper_store_whole<__half, N>(to, (__half *)x.c, row, column, sum);
    } else {
        hopper_store_whole<__nv_bfloat16, N>(to, (__nv_bfloat16 *)x.c, row, column, sum);
    }
}

// Requests the residual of a consumer's 64 rows into the L2 cache before the product of the tile.
template <int N>
__device__ inline void grouped_prefetch_residual(const grouped_arguments &x,
                                                 const hopper_work &work, int consumer, int end) {
    enum { LINE = 128, LANES = WARPGROUP / CONSUMER_ROWS };
    const int thread = threadIdx.x % WARPGROUP, size = x.residual_type == GROUPED_F32 ? 4 : 2;
    const long long row = work.row + consumer * CONSUMER_ROWS + thread / LANES;
    if (x.residual == nullptr || row >= end) return;
    const char *from = (const char *)x.residual + (row * x.ld_residual + work.column) * size;
    const int bytes = min(N, x.n - work.column) * size;
#pragma unroll 1
    for (int at = thread % LANES * LINE; at < bytes; at += LANES * LINE) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(from + at)));
    }
}

// Puts a thread's sums of a chunk of 32 columns into shared memory: those of its rows `down` and
// `down` + 8. Registers have no index, so it finds the chunk among COUNT by branches.
template <int N, int COUNT = N / WARP, int FIRST = 0>
__device__ inline void grouped_put_chunk(float (*part)[HOPPER_PITCH], int down, int chunk,
                                         const float (&sum)[N / 2]) {
    if constexpr (COUNT > 1) {
        if (chunk < FIRST + COUNT / 2) {
            grouped_put_chunk<N, COUNT / 2, FIRST>(part, down, chunk, sum);
        } else {
            grouped_put_chunk<N, COUNT - COUNT / 2, FIRST + COUNT / 2>(part, down, chunk, sum);
        }
    } else {
#pragma unroll
        for (int j = 0; j < 8; j++) { // pairs of neighbours of the thread
            const int at = FIRST * 16 + j * 2;
            *(float2 *)&part[down + j % 2 * 8][j / 2 * 8 + threadIdx.x % 4 * 2] = {sum[at],
                                                                                   sum[at + 1]};
        }
    }
}

// The epilogue of the 64 rows of a consumer: 32 columns at a time through shared memory, so that a
// lane has four neighbours of four rows, and eight lanes a row. A warp keeps to the 16 rows that
// wgmma gives it, so no warp waits for another. `down` is the first row of the thread in the sums.
// The residual, scales and bias of a chunk are loaded while the one before is computed. The loop is
// not unrolled, because an epilogue is long.
template <int N, grouped_defect DEFECT>
__device__ inline void grouped_finish_all(const grouped_arguments &x, float (*part)[HOPPER_PITCH],
                                          const hopper_work &work, int consumer, int end, int down,
                                          const float (&sum)[N / 2]) {
    enum { ACROSS = WARP / 4, STEP = WARP / ACROSS, WARP_ROWS = 16, ROWS = WARP_ROWS / STEP };
    const int lane = threadIdx.x % WARP, inner = lane % ACROSS * 4;
    const int above = threadIdx.x % WARPGROUP / WARP * WARP_ROWS + lane / ACROSS;
    const int first = work.row + consumer * CONSUMER_ROWS, row = first + above;
    if (grouped_is_plain(x)) {
        grouped_store_plain<N>(x, first + down, end, work.column, sum);
        return;
    }
    grouped_columns<4> next_of(x, work.matrix, work.column + inner);
    grouped_residual<ROWS, 4, STEP> next_residual;
    next_residual.load(x, row, end, work.column + inner);
    float row_scales[ROWS];
    grouped_row_scales<STEP>(x, row, end, row_scales);
#pragma unroll 1
    for (int chunk = 0; chunk < N / WARP; chunk++) {
        const int column = work.column + chunk * WARP + inner, next = column + WARP;
        if (work.column + chunk * WARP >= x.n) break;
#pragma unroll
        for (int i = 0; i < N / WARP; i++) {
            if (i != chunk) continue;
#pragma unroll
            for (int j = 0; j < 8; j++) { // pairs of neighbours of the thread
                const int at = i * 16 + j * 2;
                *(float2 *)&part[down + j % 2 * 8][j / 2 * 8 + lane % 4 * 2] = {sum[at],
                                                                                sum[at + 1]};
            }
        }
        __syncwarp();
        float v[ROWS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 at = *(const float4 *)&part[above + r * STEP][inner];
            v[r][0] = at.x, v[r][1] = at.y, v[r][2] = at.z, v[r][3] = at.w;
        }
        __syncwarp(); // all lanes have read
        const auto of = next_of;
        const auto residual = next_residual;
        if (chunk + 1 < N / WARP) {
            if (DEFECT != GROUPED_LOST_SCALE) next_of = {x, work.matrix, next};
            next_residual.load(x, row, end, next);
        }
        if (column < x.n) grouped_finish(x, of, row_scales, residual, row, end, column, v);
    }
}

template <typename T, bool B_K_MAJOR, int N, grouped_defect DEFECT>
__device__ inline void grouped_consume(const grouped_arguments &x, hopper_shared<N> *s,
                                       int consumer) {
    enum { ALL = CONSUMERS * WARPGROUP };
    const int thread = threadIdx.x % WARPGROUP, first = threadIdx.x - WARPGROUP;
    const int down = thread / WARP * 16 + thread % WARP / 4;
    constexpr hopper_defect EARLY =
        DEFECT == GROUPED_EARLY_RELEASE ? HOPPER_EARLY_RELEASE : HOPPER_RIGHT;
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 0};
    float sum[N / 2];
    hopper_clear<T, true, TILE_M>(s->stages.a, x.a_rows, first, ALL);
    hopper_clear<T, B_K_MAJOR, N>(s->stages.b, x.b_rows, first, ALL);
    fence_copies();
    named_barrier(TOGETHER, ALL);
    grouped_walk walk(x);
#pragma unroll 1
    for (int i = blockIdx.x; walk.find(x, i, TILE_M, ceil_div(x.n, N)); i += gridDim.x) {
        const hopper_work work = grouped_work_of<T>(x, walk, i, N);
        const int end = DEFECT == GROUPED_OVER_END ? x.m : walk.end;
        grouped_prefetch_residual<N>(x, work, consumer, end);
        if constexpr (sizeof(T) == 1) {
            grouped_multiply_bytes<N, DEFECT>(s, consumer, work.tiles, ring, sum, hopper_release);
        } else {
            hopper_multiply<T, true, B_K_MAJOR, N, EARLY>(s, consumer, work.tiles, ring, sum);
        }
        if (work.row + consumer * CONSUMER_ROWS >= end) continue;
        if (DEFECT == GROUPED_LOST_CONSUMER && consumer == 1) continue;
        grouped_finish_all<N, DEFECT>(x, s->part[consumer], work, consumer, end, down, sum);
    }
}

template <typename T, bool TRANSPOSE_B, int N, grouped_defect DEFECT = GROUPED_RIGHT>
__device__ inline void grouped_hopper(const grouped_arguments &x, const tensor_map *a,
                                      const tensor_map *b) {
    hopper_run<N, 1, CONSUMERS>(
        a, b, [&](hopper_shared<N> *s) { grouped_produce<T, TRANSPOSE_B, N, DEFECT>(x, s, a, b); },
        [&](hopper_shared<N> *s, int consumer) {
            grouped_consume<T, TRANSPOSE_B, N, DEFECT>(x, s, consumer);
        });
}

#define GROUPED_HOPPER_KERNEL(name, ...)                                                           \
    extern "C" __global__ void __launch_bounds__(HOPPER_THREADS, 1)                                \
        name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,           \
             const __grid_constant__ grouped_arguments x) {                                        \
        grouped_hopper<__VA_ARGS__>(x, &a, &b);                                                    \
    }
#endif
