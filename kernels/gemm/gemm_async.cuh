// What the steps of gemm share that carry tiles by cp.async: a pipeline of tiles in shared memory.
//
// The idea: cp.async carries tiles past the registers, two tiles ahead of the one that is
// multiplied. A tile is kept in rows of 128 bytes, whatever its orientation: the steps of one row
// of op(a) (or column of op(b)), or neighbours of one step. The 16-byte chunks of a row are
// permuted by the row's number, so that those of a fragment lie in different banks.
// Owner: a block of WARPS_M x WARPS_N warps owns a tile of c, each warp 64 x 64.
// Requires: blockDim = (32 WARPS_M WARPS_N, 1, 1), STAGES times STAGE_BYTES of dynamic shared
// memory, gridDim.x = tiles, gridDim.y walks the shares; rows of a, b, c at multiples of 16 bytes.
#pragma once

#include "gemm.cuh"

enum { ROW_BYTES = 128, STAGES = 3, WARP_TILE = 64 };

// Where the chunks of row r of a tile lie: chunk i at i ^ turn_of(r). ldmatrix reads a chunk of
// eight rows at once; words across the steps are read from two chunks of four rows.
template <typename T, bool BY_STEP> __device__ inline int turn_of(int r) {
    return sizeof(T) == 4 && !BY_STEP ? r % 4 * 2 : r % 8;
}

// A thread's chunks of a tile of ROWS rows of shared memory, APART rows apart. BY_STEP: a row is
// the STEPS steps of one row of op(matrix); else it is one step of STEPS of them, and STEPS such
// rows are a slab.
template <typename T, bool BY_STEP, int ROWS, int THREADS> struct carrier {
    enum {
        STEPS = ROW_BYTES / sizeof(T),
        CHUNK = 16 / sizeof(T),
        APART = THREADS / 8,
        PASSES = ROWS / APART
    };
    static_assert(STEPS % APART == 0 && APART % 8 == 0 && ROWS % APART == 0, "see below");
    const T *at; // the thread's first chunk of the tile at step 0
    long long leading;
    int left;       // rows of op(matrix) from the chunk's first on
    int own_step;   // of the thread's first chunk, in the tile
    uint32_t place; // in a stage; all rows of a thread have the same r % 8

    __device__ carrier(const T *matrix, long long leading, int first, int count)
        : leading(leading) {
        const int r = threadIdx.x / 8, chunk = threadIdx.x % 8;
        const int other = first + (BY_STEP ? r : chunk * CHUNK);
        own_step = BY_STEP ? chunk * CHUNK : r;
        left = count - other;
        at = matrix + (BY_STEP ? other * leading + own_step : own_step * leading + other);
        place = r * ROW_BYTES + (chunk ^ turn_of<T, BY_STEP>(r)) * 16;
    }
    // Begins to carry the tile at `step` to a stage; what lies outside of the matrix becomes 0.
    __device__ void load(uint32_t stage, int step, int steps) const {
        const T *source = at + (BY_STEP ? step : step * leading);
        const int steps_left = steps - step - own_step;
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            const int r = pass * APART, down = BY_STEP ? r : r % STEPS, slab = r - down;
            const int inside =
                BY_STEP ? (r < left ? steps_left : 0) : (down < steps_left ? left - slab : 0);
            copy_async_16(stage + place + r * ROW_BYTES, source + down * leading + slab,
                          max(0, min(inside, (int)CHUNK)) * (int)sizeof(T));
        }
    }
};

// What a warp multiplies at once: 64 rows of op(matrix) by the steps of one mma, as four fragments
// of a or eight of b (two in each of the four), by ldmatrix. Where steps are not contiguous it turns
// matrices of 16 bits as it reads them.
template <typename T, bool BY_STEP, bool IS_A> struct fragments {
    uint32_t row, turn, half;

    __device__ fragments(int lane, int warp_first) {
        static_assert(BY_STEP || sizeof(T) == 2, "ldmatrix turns numbers of 16 bits");
        // ldmatrix's four matrices: those of the second half of the steps come last in a, those
        // of the second eight rows in b. Its rows are rows of op(matrix), or steps.
        const bool by_sixteen = BY_STEP == IS_A;
        const int own = by_sixteen ? lane % 16 : lane % 8 + lane / 16 * 8;
        half = by_sixteen ? lane / 16 : lane / 8 % 2;
        row = (warp_first + own) * ROW_BYTES; // a warp's 64 are 64 rows, or the slab of that number
        turn = own % 8;
    }
    __device__ void load(uint32_t (&part)[4][4], uint32_t stage, int step) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int down = BY_STEP ? i : step, across = BY_STEP ? step : i;
            const uint32_t at =
                stage + row + down * 16 * ROW_BYTES + ((across * 2 + half) ^ turn) * 16;
            if (BY_STEP) {
                load_matrix_4(part[i], at);
            } else {
                load_matrix_4_transposed(part[i], at);
            }
        }
    }
    // Which of the warp's 64 rows is row g of the upper or lower half of fragment i of a.
    static __device__ int row_of(int i, int lower, int g) {
        return 16 * i + 8 * lower + g;
    }
};

// Makes of what lies in memory what an mma takes.
template <typename T> __device__ inline void take(uint32_t (&)[4][4]) {}
template <> __device__ inline void take<float>(uint32_t (&part)[4][4]) {
#pragma unroll
    for (int i = 0; i < 16; i++) part[i / 4][i % 4] = to_tf32(__uint_as_float(part[i / 4][i % 4]));
}

// 16 bytes of a's type out of shared memory become neighbours of c.
template <typename T>
__device__ inline void store_piece(const gemm_arguments &x, long long at, int count,
                                   const float *sum) {
    enum { PIECE = 16 / sizeof(T) };
    if (count < PIECE || x.beta != 0) {
        for (int j = 0; j < min(count, (int)PIECE); j++) gemm_store<T>(x, at + j, sum[j]);
    } else if (sizeof(T) == sizeof(float) || x.c_type == GEMM_C_F32) {
#pragma unroll
        for (int j = 0; j < PIECE; j += 4) {
            *(float4 *)((float *)x.c + at + j) = make_float4(
                x.alpha * sum[j], x.alpha * sum[j + 1], x.alpha * sum[j + 2], x.alpha * sum[j + 3]);
        }
    } else {
        T piece[PIECE];
#pragma unroll
        for (int j = 0; j < PIECE; j++) piece[j] = from_float<T>(x.alpha * sum[j]);
        *(uint4 *)((T *)x.c + at) = *(const uint4 *)piece;
    }
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B, int WARPS_M, int WARPS_N>
__device__ inline void gemm_async(const gemm_arguments &x) {
    typedef fragments<T, !TRANSPOSE_A, true> a_fragments;
    enum {
        STEPS = ROW_BYTES / sizeof(T),
        ROWS = WARPS_M * WARP_TILE,
        COLUMNS = WARPS_N * WARP_TILE,
        THREADS = WARPS_M * WARPS_N * WARP,
        A_BYTES = ROWS * ROW_BYTES,
        STAGE_BYTES = A_BYTES + COLUMNS * ROW_BYTES,
        PITCH = COLUMNS + 8,
        PIECE = 16 / sizeof(T)
    };
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums lie where the stages were");
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    float *sums = (float *)shared;
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, ROWS), ceil_div(x.n, COLUMNS));
    const int row = tile.row * ROWS, column = tile.column * COLUMNS;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int warp_row = warp / WARPS_N * WARP_TILE, warp_column = warp % WARPS_N * WARP_TILE;
    const a_fragments from_a(lane, warp_row);
    const fragments<T, TRANSPOSE_B, false> from_b(lane, warp_column);
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const int tiles = ceil_div(share.k, STEPS);
        const carrier<T, !TRANSPOSE_A, ROWS, THREADS> a((const T *)x.a + share.a, x.lda, row, x.m);
        const carrier<T, TRANSPOSE_B, COLUMNS, THREADS> b((const T *)x.b + share.b, x.ldb, column,
                                                          x.n);
        float sum[4][8][4] = {};
        int now = 0, next = 0; // the stages that are read and written
        for (int i = 1 - STAGES; i < tiles; i++) {
            const int ahead = i + STAGES - 1;
            if (i >= 0) {
                copy_async_wait<STAGES - 2>();
                __syncthreads(); // all have tile i, and nobody reads the one before it any more
            }
            if (ahead < tiles) {
                a.load(base + next * STAGE_BYTES, ahead * STEPS, share.k);
                b.load(base + next * STAGE_BYTES + A_BYTES, ahead * STEPS, share.k);
            }
            copy_async_commit(); // also of nothing, so that groups can be counted
            next = next + 1 < STAGES ? next + 1 : 0;
            if (i < 0) continue;
            const uint32_t a_stage = base + now * STAGE_BYTES, b_stage = a_stage + A_BYTES;
#pragma unroll 2
            for (int step = 0; step < 4; step++) { // 32 bytes of each row: what one mma takes
                uint32_t a_part[4][4], b_part[4][4];
                from_a.load(a_part, a_stage, step);
                from_b.load(b_part, b_stage, step);
                take<T>(a_part);
                take<T>(b_part);
#pragma unroll
                for (int j = 0; j < 4; j++) {
#pragma unroll
                    for (int l = 0; l < 8; l++) {
                        mma_32_bytes<T>(sum[j][l], a_part[j], b_part[l / 2][l % 2 * 2],
                                        b_part[l / 2][l % 2 * 2 + 1]);
                    }
                }
            }
            now = now + 1 < STAGES ? now + 1 : 0;
        }
        copy_async_wait<0>();
        __syncthreads(); // the sums overwrite what others read
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int r = warp_row + a_fragments::row_of(j / 2, j % 2, lane / 4);
            float *at = sums + r * PITCH + warp_column + lane % 4 * 2;
#pragma unroll
            for (int l = 0; l < 8; l++) {
                const float *two = &sum[j / 2][l][j % 2 * 2];
                *(float2 *)(at + 8 * l) = make_float2(two[0], two[1]);
            }
        }
        __syncthreads(); // other threads wrote what this one stores
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * COLUMNS / PIECE; i += THREADS) {
            const int r = i / (COLUMNS / PIECE), c = i % (COLUMNS / PIECE) * PIECE;
            if (row + r < x.m && column + c < x.n) {
                store_piece<T>(x, part * x.batch_c + (row + r) * x.ldc + column + c,
                               x.n - column - c, sums + r * PITCH + c);
            }
        }
        __syncthreads(); // the next share begins where the sums are
    }
}

// A tile of 128 x 256 for products that have many of them, one of 128 x 128 for the others.
#define GEMM_ASYNC(type, T, which, transpose_a, transpose_b)                                       \
    extern "C" __global__ void __launch_bounds__(256, 1)                                           \
        gemm_async_256_##type##_##which(gemm_arguments x) {                                        \
        gemm_async<T, transpose_a, transpose_b, 2, 4>(x);                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(128, 2)                                           \
        gemm_async_128_##type##_##which(gemm_arguments x) {                                        \
        gemm_async<T, transpose_a, transpose_b, 2, 2>(x);                                          \
    }
#define GEMM_ASYNC_ALL(type, T)                                                                    \
    GEMM_ASYNC(type, T, nn, false, false)                                                          \
    GEMM_ASYNC(type, T, nt, false, true)                                                           \
    GEMM_ASYNC(type, T, tn, true, false)                                                           \
    GEMM_ASYNC(type, T, tt, true, true)
