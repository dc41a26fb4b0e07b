// What step 10 of gemm is made of: a pipeline for compute capability 9.0 (compute_90a).
//
// The idea: one thread of the first warpgroup copies boxes by tensor maps into a ring of stages;
// two warpgroups multiply what is in shared memory (wgmma), each 64 rows of the tile, and hold
// their sums in registers. A product waits neither for memory nor for the previous product.
// The four lanes that hold a row of a fragment exchange words, so that each stores 16 contiguous
// bytes; nothing waits for these stores. Persistent blocks walk tiles, in bands, so that those at
// work share rows and columns in the L2 cache.
// Where there are few tiles, SHARES blocks are a cluster that owns one tile: each multiplies a
// share of the steps, and adds up a part of the rows from the shared memory of all, in the order of
// the shares.
// Owner: a block owns a tile of 128 x N of C at a time; a thread the sums that wgmma gives it.
// Requires: blockDim = (HOPPER_THREADS, 1, 1); SHARES of 1: any number of blocks; else clusters of
// SHARES blocks, one per tile; HOPPER_SHARED bytes of dynamic shared memory; the maps that
// gemm_maps.c makes; k of at least 1; a span that is a multiple of 64 steps.
#pragma once

#include "../hopper.cuh"
#include "gemm.cuh"
#include "gemm_boxes.h"

// One defect per kernel, for gemm_hopper_planted.cu.
enum hopper_defect {
    HOPPER_RIGHT,
    HOPPER_EARLY_RELEASE, // a stage is given back before it is multiplied
    HOPPER_LOST_CONSUMER, // the second warpgroup stores nothing
    HOPPER_WRONG_STAGE,   // A of a stage is multiplied by B of the one before
    HOPPER_LOST_STAGE,    // the last stage of a tile is not multiplied
    HOPPER_LOST_BLOCK,    // the sums of the last block of a cluster are not added
    HOPPER_WRONG_WORDS,   // two rows of A are taken for each other, in the last steps of a stage
    HOPPER_LOST_PART,     // one of the products of parts is not made
    HOPPER_LOST_MEND      // what is no number is left as it is
};

#if __CUDA_ARCH__ >= 900
enum {
    TILE_M = 128,
    CONSUMERS = 2, // warpgroups
    CONSUMER_ROWS = TILE_M / CONSUMERS,
    HOPPER_THREADS = (1 + CONSUMERS) * WARPGROUP,
    STORE = 1,                    // the named barriers of consumers
    TOGETHER = STORE + CONSUMERS, // and that of both
    HOPPER_PITCH = 40, // of 32 columns of a tile: eight rows of a fragment are in different banks
    HOPPER_SHARED = 226 << 10
};

// The steps of a stage: a row of a box is as many elements.
template <typename T> __device__ constexpr int hopper_steps() {
    return BOX_ROW / (int)sizeof(T);
}

template <int N> struct hopper_stages {
    static constexpr int STAGES = N == 256 ? 4 : N == 128 ? 6 : 8;
    alignas(1024) uint8_t a[STAGES][TILE_M * BOX_ROW];
    alignas(1024) uint8_t b[STAGES][N * BOX_ROW];
};

template <int N> struct hopper_shared {
    static constexpr int STAGES = hopper_stages<N>::STAGES;
    static constexpr int PITCH = N + 8; // so that eight rows of a fragment are in different banks
    union {
        hopper_stages<N> stages;
        float sums[TILE_M][PITCH]; // of a share, once all stages were multiplied
    };
    float part[CONSUMERS][CONSUMER_ROWS][HOPPER_PITCH]; // of a tile that is stored
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

// A tile: its first row and column, its matrix, and the share of the steps.
struct hopper_work {
    int row, column, matrix, k, tiles; // k: the first step; tiles: how many stages of them
};

template <typename T, int N, int SHARES>
__device__ inline hopper_work hopper_work_of(const gemm_arguments &x, int i) {
    const int rows = ceil_div(x.m, TILE_M), columns = ceil_div(x.n, N);
    const int matrix = i / (rows * columns);
    const gemm_tile tile = gemm_tile_of(i - matrix * (rows * columns), rows, columns);
    const int k = SHARES > 1 ? (int)cluster_rank() * x.span : 0;
    return {tile.row * TILE_M, tile.column * N, matrix, k,
            ceil_div(max(0, min(x.k - k, x.span)), hopper_steps<T>())};
}

template <int N> __device__ inline int hopper_works(const gemm_arguments &x) {
    return ceil_div(x.m, TILE_M) * ceil_div(x.n, N) * x.batch;
}

// How many rows or columns a box of a tile's may have.
template <typename T, bool K_MAJOR, int COUNT> __device__ constexpr int hopper_wide() {
    return !K_MAJOR ? hopper_steps<T>() : COUNT > 128 ? COUNT / 2 : COUNT;
}

// The bytes of the boxes of a stage; a box may have fewer rows than its place.
template <typename T, bool K_MAJOR, int COUNT> __device__ inline int hopper_bytes(int rows) {
    return COUNT / hopper_wide<T, K_MAJOR, COUNT>() * rows * BOX_ROW;
}

// Makes the rows zero that no box is copied to, in all stages; `first` is one of `threads`. What
// they are multiplied to is not stored, but is computed.
template <typename T, bool K_MAJOR, int COUNT, int STAGES>
__device__ inline void hopper_clear(uint8_t (&to)[STAGES][COUNT * BOX_ROW], int rows, int first,
                                    int threads) {
    const int wide = hopper_wide<T, K_MAJOR, COUNT>(), pieces = (wide - rows) * (BOX_ROW / 16);
    if (!K_MAJOR || pieces == 0) return;
#pragma unroll 1
    for (int i = first; i < STAGES * (COUNT / wide) * pieces; i += threads) {
        uint8_t *box = &to[0][0] + i / pieces * wide * BOX_ROW;
        *(uint4 *)(box + rows * BOX_ROW + i % pieces * 16) = {0, 0, 0, 0};
    }
}

// Copies the steps of a stage of COUNT rows or columns. Boxes that would begin at or after `end`
// are copies of the first: what they are multiplied to is not stored.
template <typename T, bool K_MAJOR, int COUNT>
__device__ inline void hopper_load(const tensor_map *map, uint8_t *to, uint64_t *barrier, int first,
                                   int end, int k, int matrix) {
    const int wide = hopper_wide<T, K_MAJOR, COUNT>();
#pragma unroll
    for (int i = 0; i < COUNT / wide; i++) {
        const int at = first + i * wide < end ? first + i * wide : first;
        load_box(map, to + i * wide * BOX_ROW, barrier, K_MAJOR ? k : at, K_MAJOR ? at : k, matrix);
    }
}

// PLANES: the matrices of each factor, which lie one after the other, and a stage has one of each.
template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, int SHARES, int PLANES = 1>
__device__ inline void hopper_produce(const gemm_arguments &x, const gemm_boxes &boxes,
                                      hopper_shared<N> *s, const tensor_map *a,
                                      const tensor_map *b) {
    const int works = hopper_works<N>(x);
    const int bytes = hopper_bytes<T, A_K_MAJOR, TILE_M>(boxes.a_rows) +
                      hopper_bytes<T, B_K_MAJOR, N>(boxes.b_rows);
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 1}; // a new barrier has completed phase 1
#pragma unroll 1
    for (int i = blockIdx.x / SHARES; i < works; i += gridDim.x / SHARES) {
        const hopper_work work = hopper_work_of<T, N, SHARES>(x, i);
        const int a_matrix = x.batch_a != 0 ? work.matrix : 0;
        const int b_matrix = x.batch_b != 0 ? work.matrix : 0;
#pragma unroll 1
        for (int step = 0; step < work.tiles * PLANES; step++) {
            const int k = work.k + step / PLANES * hopper_steps<T>(), plane = step % PLANES;
            uint64_t *full = &s->full[ring.stage];
            barrier_wait(&s->empty[ring.stage], ring.parity);
            barrier_expect(full, bytes);
            hopper_load<T, A_K_MAJOR, TILE_M>(a, s->stages.a[ring.stage], full, work.row, x.m, k,
                                              plane * (x.batch_a != 0 ? x.batch : 1) + a_matrix);
            hopper_load<T, B_K_MAJOR, N>(b, s->stages.b[ring.stage], full, work.column, x.n, k,
                                         plane * (x.batch_b != 0 ? x.batch : 1) + b_matrix);
            ring.next();
        }
    }
}

__device__ inline void hopper_release(uint64_t *empty) {
    if (threadIdx.x % WARPGROUP == 0) barrier_arrive(empty);
}

// The sums of a tile's 64 rows; the stage that was read last is released.
template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, hopper_defect DEFECT>
__device__ inline void hopper_multiply(hopper_shared<N> *s, int consumer, int tiles,
                                       hopper_ring<hopper_shared<N>::STAGES> &ring,
                                       float (&sum)[N / 2]) {
    enum { STAGES = hopper_shared<N>::STAGES };
    uint32_t before = 0;
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        barrier_wait(&s->full[ring.stage], ring.parity);
        if (DEFECT == HOPPER_EARLY_RELEASE) {
            hopper_release(&s->empty[ring.stage]);
            if (i + STAGES < tiles) barrier_wait(&s->full[ring.stage], ring.parity ^ 1);
        }
        wgmma_fence();
        uint64_t a = factor_of<A_K_MAJOR>(s->stages.a[ring.stage] + consumer * BOX);
        uint64_t b = factor_of<B_K_MAJOR>(
            s->stages.b[DEFECT == HOPPER_WRONG_STAGE && i > 0 ? before : ring.stage]);
#pragma unroll
        for (int step = 0; step < BOX_ROW / 32; step++) {
            if (DEFECT == HOPPER_LOST_STAGE && i + 1 == tiles) break;
            product<T, N>::template add<A_K_MAJOR, B_K_MAJOR>(sum, a, b, i > 0 || step > 0);
            a += factor_step<A_K_MAJOR>();
            b += factor_step<B_K_MAJOR>();
        }
        wgmma_commit();
        // The products of this stage run while the next is waited for.
        wgmma_wait<1>();
        if (i > 0 && DEFECT != HOPPER_EARLY_RELEASE) hopper_release(&s->empty[before]);
        before = ring.stage;
        ring.next();
    }
    wgmma_wait<0>();
    hold(sum);
    if (DEFECT != HOPPER_EARLY_RELEASE) hopper_release(&s->empty[before]);
}

// Stores alpha * sum + beta * C, where it is in C.
template <typename C>
__device__ inline void hopper_put(const gemm_arguments &x, C *c, int row, int column, float sum) {
    if (row >= x.m || column >= x.n) return;
    C *to = c + row * x.ldc + column;
    float value = x.alpha * sum;
    if (x.beta != 0) value = fmaf(x.beta, to_float(*to), value);
    *to = from_float<C>(value);
}

// Stores the 64 rows of a consumer, whatever C is: 32 columns at a time through shared memory, so
// that neighbours in a warp store neighbours. `row` is the first row of the consumer, `down` that
// of the thread in it.
template <typename C, int N>
__device__ inline void hopper_store_any(const gemm_arguments &x, C *c, float (*part)[HOPPER_PITCH],
                                        int consumer, int row, int down, int column,
                                        const float (&sum)[N / 2]) {
    const int warp = threadIdx.x % WARPGROUP / WARP, lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < N / WARP; i++) {
        if (column + i * WARP >= x.n) break;
#pragma unroll
        for (int j = 0; j < 8; j++) { // pairs of neighbours of the thread
            const int at = i * 16 + j * 2;
            *(float2 *)&part[down + j % 2 * 8][j / 2 * 8 + lane % 4 * 2] = {sum[at], sum[at + 1]};
        }
        named_barrier(STORE + consumer, WARPGROUP);
#pragma unroll 4
        for (int r = warp; r < CONSUMER_ROWS; r += WARPGROUP / WARP) {
            hopper_put(x, c, row + r, column + i * WARP + lane, part[r][lane]);
        }
        named_barrier(STORE + consumer, WARPGROUP);
    }
}

// Two floats as a word of the type.
template <typename C> __device__ inline uint32_t hopper_word(float first, float second) {
    const C two[2] = {from_float<C>(first), from_float<C>(second)};
    return *(const uint16_t *)&two[0] | (uint32_t) * (const uint16_t *)&two[1] << 16;
}

// Two lanes whose numbers differ by `bit`: the lower keeps `low` and gets the other's as `high`,
// the upper keeps `high` and gets the other's as `low`.
__device__ inline void hopper_exchange(uint32_t &low, uint32_t &high, int bit) {
    const bool is_upper = (threadIdx.x & bit) != 0;
    const uint32_t got = __shfl_xor_sync(~0u, is_upper ? low : high, bit);
    low = is_upper ? got : low;
    high = is_upper ? high : got;
}

// Stores the 64 rows of a consumer where c_is_whole. The four lanes of a row hold one word each of
// four groups of eight columns; after the exchange each lane holds the four words of one group and
// stores them as 16 bytes.
template <typename C, int N>
__device__ inline void hopper_store_whole(const gemm_arguments &x, C *c, int row, int column,
                                          const float (&sum)[N / 2]) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < N / 32; i++) {
        if (column + i * 32 >= x.n) break;
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            uint32_t words[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int at = (i * 4 + j) * 4 + lower * 2;
                words[j] = hopper_word<C>(x.alpha * sum[at], x.alpha * sum[at + 1]);
            }
            hopper_exchange(words[0], words[1], 1);
            hopper_exchange(words[2], words[3], 1);
            hopper_exchange(words[0], words[2], 2);
            hopper_exchange(words[1], words[3], 2);
            const int down = row + lower * 8, across = column + i * 32 + quarter * 8;
            if (down < x.m && across < x.n) {
                *(uint4 *)(c + down * x.ldc + across) = {words[0], words[1], words[2], words[3]};
            }
        }
    }
}

// Adds up the sums of all blocks of the cluster, of this block's part of the rows, and stores them.
// Each block keeps its sums in its own shared memory. A thread issues all its loads from there
// before it adds the first.
template <typename C, int N, int SHARES, hopper_defect DEFECT>
__device__ inline void hopper_gather(const gemm_arguments &x, hopper_shared<N> *s, C *c,
                                     const hopper_work &work) {
    enum { THREADS = CONSUMERS * WARPGROUP, COLUMNS = 4, ACROSS = N / COLUMNS };
    enum { PIECES = TILE_M / SHARES * ACROSS / THREADS };
    const int first = threadIdx.x - WARPGROUP, above = cluster_rank() * (TILE_M / SHARES);
    float4 parts[PIECES][SHARES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        const int piece = first + i * THREADS;
        const float *place = &s->sums[above + piece / ACROSS][piece % ACROSS * COLUMNS];
#pragma unroll
        for (int share = 0; share < SHARES; share++) parts[i][share] = load_of_block(place, share);
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        const int piece = first + i * THREADS;
        const int row = work.row + above + piece / ACROSS;
        const int column = work.column + piece % ACROSS * COLUMNS;
        float sum[COLUMNS] = {0, 0, 0, 0};
#pragma unroll
        for (int share = 0; share < SHARES - (DEFECT == HOPPER_LOST_BLOCK ? 1 : 0); share++) {
            const float4 part = parts[i][share];
            sum[0] += part.x, sum[1] += part.y, sum[2] += part.z, sum[3] += part.w;
        }
#pragma unroll
        for (int e = 0; e < COLUMNS; e++) hopper_put(x, c, row, column + e, sum[e]);
    }
}

// Writes the sums of a consumer to shared memory.
template <int N>
__device__ inline void hopper_keep(hopper_shared<N> *s, int row, const float (&sum)[N / 2]) {
#pragma unroll
    for (int group = 0; group < N / 8; group++) {
#pragma unroll
        for (int lower = 0; lower < 2; lower++) {
            const int at = group * 4 + lower * 2;
            *(float2 *)&s->sums[row + lower * 8][group * 8 + threadIdx.x % 4 * 2] = {sum[at],
                                                                                     sum[at + 1]};
        }
    }
}

template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, int SHARES, hopper_defect DEFECT>
__device__ inline void hopper_consume(const gemm_arguments &x, const gemm_boxes &boxes,
                                      hopper_shared<N> *s, int consumer) {
    enum { THREADS = CONSUMERS * WARPGROUP };
    const int works = hopper_works<N>(x), thread = threadIdx.x % WARPGROUP;
    const int inside = consumer * CONSUMER_ROWS + thread / WARP * 16 + thread % WARP / 4;
    hopper_ring<hopper_shared<N>::STAGES> ring = {0, 0};
    float sum[N / 2];
    hopper_clear<T, A_K_MAJOR, TILE_M>(s->stages.a, boxes.a_rows, threadIdx.x - WARPGROUP, THREADS);
    hopper_clear<T, B_K_MAJOR, N>(s->stages.b, boxes.b_rows, threadIdx.x - WARPGROUP, THREADS);
    fence_copies();
    named_barrier(TOGETHER, THREADS);
#pragma unroll 1
    for (int i = blockIdx.x / SHARES; i < works; i += gridDim.x / SHARES) {
        const hopper_work work = hopper_work_of<T, N, SHARES>(x, i);
        const long long c = work.matrix * x.batch_c;
        if (SHARES > 1 && work.tiles == 0) {
#pragma unroll
            for (int e = 0; e < N / 2; e++) sum[e] = 0;
        } else {
            hopper_multiply<T, A_K_MAJOR, B_K_MAJOR, N, DEFECT>(s, consumer, work.tiles, ring, sum);
        }
        if (SHARES > 1) {
            named_barrier(TOGETHER, THREADS); // no stage is read any more
            hopper_keep<N>(s, inside, sum);
            cluster_sync();
            if (x.c_type == GEMM_C_F32) {
                hopper_gather<float, N, SHARES, DEFECT>(x, s, (float *)x.c + c, work);
            } else {
                hopper_gather<T, N, SHARES, DEFECT>(x, s, (T *)x.c + c, work);
            }
            continue;
        }
        if (DEFECT == HOPPER_LOST_CONSUMER && consumer == 1) continue;
        if (work.row + consumer * CONSUMER_ROWS >= x.m) continue;
        const int row = work.row + consumer * CONSUMER_ROWS, down = inside % CONSUMER_ROWS;
        if (x.c_type == GEMM_C_F32) {
            hopper_store_any<float, N>(x, (float *)x.c + c, s->part[consumer], consumer, row, down,
                                       work.column, sum);
        } else if (boxes.c_is_whole) {
            hopper_store_whole<T, N>(x, (T *)x.c + c, row + down, work.column, sum);
        } else {
            hopper_store_any<T, N>(x, (T *)x.c + c, s->part[consumer], consumer, row, down,
                                   work.column, sum);
        }
    }
}

// Stores two neighbours of a row of C; `whole`: as 8 bytes.
__device__ inline void hopper_put_two(const gemm_arguments &x, float *c, int row, int column,
                                      float first, float second, int rows, int columns,
                                      bool whole) {
    if (row >= rows || column >= columns) return;
    float *to = c + row * x.ldc + column;
    if (whole) {
        *(float2 *)to = {x.alpha * first, x.alpha * second};
        return;
    }
    const float sums[2] = {first, second};
    for (int i = 0; i < 2 && column + i < columns; i++) {
        float value = x.alpha * sums[i];
        if (x.beta != 0) value = fmaf(x.beta, to[i], value);
        to[i] = value;
    }
}

// Stores the 64 rows of a consumer as floats. A thread has rows `row` and `row` + APART; its
// columns are pairs.
template <int N, int APART, bool IS_TURNED>
__device__ inline void hopper_store_pairs(const gemm_arguments &x, float *c, int row, int column,
                                          bool whole, const float (&sum)[N / 2]) {
    static_assert(!IS_TURNED || APART == 1, "rows of a transpose are neighbours");
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        const int across = column + i * 8 + threadIdx.x % 4 * 2;
        const float *four = &sum[i * 4];
        if (IS_TURNED) {
            hopper_put_two(x, c, across, row, four[0], four[2], x.n, x.m, whole);
            hopper_put_two(x, c, across + 1, row, four[1], four[3], x.n, x.m, whole);
        } else {
            hopper_put_two(x, c, row, across, four[0], four[1], x.m, x.n, whole);
            hopper_put_two(x, c, row + APART, across, four[2], four[3], x.m, x.n, whole);
        }
    }
}

// Prepares the stages, and has a warpgroup do each tile of the block.
template <typename T, bool A_K_MAJOR, bool B_K_MAJOR, int N, typename DO>
__device__ inline void hopper_each(const gemm_arguments &x, const gemm_boxes &boxes,
                                   hopper_shared<N> *s, const DO &work) {
    enum { THREADS = CONSUMERS * WARPGROUP };
    const int works = hopper_works<N>(x), first = threadIdx.x - WARPGROUP;
    hopper_clear<T, A_K_MAJOR, TILE_M>(s->stages.a, boxes.a_rows, first, THREADS);
    hopper_clear<T, B_K_MAJOR, N>(s->stages.b, boxes.b_rows, first, THREADS);
    fence_copies();
    named_barrier(TOGETHER, THREADS);
#pragma unroll 1
    for (int i = blockIdx.x; i < works; i += gridDim.x) work(hopper_work_of<T, N, 1>(x, i));
}

// What a block does: `produce` is for the one thread that copies, `consume` for the warpgroups that
// multiply. A stage is released by this many arrivals.
template <int N, int SHARES, int ARRIVALS, typename PRODUCE, typename CONSUME>
__device__ inline void hopper_run(const tensor_map *a, const tensor_map *b, const PRODUCE &produce,
                                  const CONSUME &consume) {
    enum { STAGES = hopper_shared<N>::STAGES };
    static_assert(sizeof(hopper_shared<N>) + 1024 <= HOPPER_SHARED, "the launch has room for it");
    extern __shared__ uint8_t room[];
    hopper_shared<N> *s =
        reinterpret_cast<hopper_shared<N> *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        prefetch_map(a);
        prefetch_map(b);
        for (int i = 0; i < STAGES; i++) {
            barrier_make(&s->full[i], 1);
            barrier_make(&s->empty[i], ARRIVALS);
        }
        barriers_made();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        give_registers<40>();
        if (threadIdx.x == 0) produce(s);
        __syncwarp();
        if (SHARES > 1) cluster_sync();
    } else {
        take_registers<232>();
        consume(s, threadIdx.x / WARPGROUP - 1);
    }
    // Other blocks may still read the sums of this one.
    if (SHARES > 1) cluster_sync();
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B, int N, int SHARES = 1,
          hopper_defect DEFECT = HOPPER_RIGHT>
__device__ inline void gemm_hopper(const gemm_arguments &x, const gemm_boxes &boxes,
                                   const tensor_map *a, const tensor_map *b) {
    hopper_run<N, SHARES, CONSUMERS>(
        a, b,
        [&](hopper_shared<N> *s) {
            hopper_produce<T, !TRANSPOSE_A, TRANSPOSE_B, N, SHARES>(x, boxes, s, a, b);
        },
        [&](hopper_shared<N> *s, int consumer) {
            hopper_consume<T, !TRANSPOSE_A, TRANSPOSE_B, N, SHARES, DEFECT>(x, boxes, s, consumer);
        });
}

#define GEMM_HOPPER_MAPS(name, CLUSTER_DIMS, ...)                                                  \
    extern "C" __global__ void CLUSTER_DIMS __launch_bounds__(HOPPER_THREADS, 1)                   \
        name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,           \
             const __grid_constant__ gemm_arguments x, const __grid_constant__ gemm_boxes boxes) { \
        __VA_ARGS__(x, boxes, &a, &b);                                                             \
    }
#define GEMM_HOPPER_KERNEL(name, CLUSTER_DIMS, ...)                                                \
    GEMM_HOPPER_MAPS(name, CLUSTER_DIMS, gemm_hopper<__VA_ARGS__>)
#endif
