// What steps 6, 7 and 9 of gemm share: a pipeline of tiles in shared memory.
//
// The idea: cp.async carries tiles past the registers, two tiles ahead of the one that is
// multiplied. Fragments are loaded from shared memory while the previous ones are multiplied, also
// across the end of a tile.
// Owner: a block of WARPS_M x WARPS_N warps owns a tile of C, each warp 64 x 64.
// Requires: blockDim = (32 WARPS_M WARPS_N, 1, 1), STAGES * STAGE_BYTES of dynamic shared memory,
// gridDim.x = tiles, gridDim.y walks the shares; rows of A, B and C at multiples of 16 bytes.
#pragma once

#include "gemm_carrier.cuh"

enum { STAGES = 3, WARP_TILE = 64 };

// The fragments of a warp for one mma step, loaded by ldmatrix: 64 rows of op(matrix), as four
// fragments of A or eight of B (two in each of the four). Where steps are not contiguous, ldmatrix
// transposes, which it does for 16-bit elements only.
template <typename T, bool BY_STEP, bool IS_A> struct fragments {
    uint32_t row, turn, half;

    __device__ fragments(int lane, int warp_first) {
        static_assert(BY_STEP || sizeof(T) == 2, "ldmatrix turns numbers of 16 bits");
        // The order of ldmatrix's four matrices: the second half of the steps comes last in A, the
        // second eight rows in B. Its rows are rows of op(matrix), or steps.
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
    // The row, of the warp's 64, that is row g of the upper or lower half of fragment i of A.
    static __device__ int row_of(int i, int lower, int g) {
        return 16 * i + 8 * lower + g;
    }
};

// Converts the words of a fragment from memory to what the mma needs.
template <typename T> __device__ inline void take(uint32_t (&)[4][4]) {}
template <> __device__ inline void take<float>(uint32_t (&part)[4][4]) {
#pragma unroll
    for (int i = 0; i < 16; i++) part[i / 4][i % 4] = to_tf32(__uint_as_float(part[i / 4][i % 4]));
}

// Stores the sums of one piece, 16 bytes of A's type, as neighbours in C.
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

// The pipeline. A_BY_STEP, B_BY_STEP: whether steps are contiguous in the tiles. A, B: the carriers
// that fill them. PIECES: rows of C begin at multiples of 16 bytes.
template <typename T, bool A_BY_STEP, bool B_BY_STEP, typename A, typename B, int WARPS_M,
          int WARPS_N, bool PIECES>
__device__ inline void gemm_pipeline(const gemm_arguments &x) {
    typedef fragments<T, A_BY_STEP, true> a_fragments;
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
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums overwrite the stages");
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    float *sums = (float *)shared;
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, ROWS), ceil_div(x.n, COLUMNS));
    const int row = tile.row * ROWS, column = tile.column * COLUMNS;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int warp_row = warp / WARPS_N * WARP_TILE, warp_column = warp % WARPS_N * WARP_TILE;
    const a_fragments from_a(lane, warp_row);
    const fragments<T, B_BY_STEP, false> from_b(lane, warp_column);
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const int tiles = ceil_div(share.k, STEPS);
        const A a((const T *)x.a + share.a, x.lda, row, x.m, !x.transpose_a);
        const B b((const T *)x.b + share.b, x.ldb, column, x.n, x.transpose_b);
        float sum[4][8][4] = {};
        for (int i = 0; i < STAGES - 1; i++) {
            if (i < tiles) {
                a.load(base + i * STAGE_BYTES, i * STEPS, share.k);
                b.load(base + i * STAGE_BYTES + A_BYTES, i * STEPS, share.k);
            }
            copy_async_commit(); // an empty group too, so that groups can be counted
        }
        copy_async_wait<STAGES - 2>();
        __syncthreads();
        // The stages that are read and filled; the fragments of this step and the next.
        uint32_t now = base, free = base + (STAGES - 1) * STAGE_BYTES;
        uint32_t a_part[2][4][4], b_part[2][4][4];
        if (tiles > 0) {
            from_a.load(a_part[0], now, 0);
            from_b.load(b_part[0], now + A_BYTES, 0);
        }
#pragma unroll 1
        for (int i = 0; i < tiles; i++) {
#pragma unroll
            for (int step = 0; step < 4; step++) { // 32 bytes of each row: one mma
                const int own = step % 2, other = 1 - own;
                if (step == 3) {
                    copy_async_wait<STAGES - 2>();
                    __syncthreads(); // all see tile i + 1, and have tile i in registers
                    free = now;
                    const uint32_t next = now + STAGE_BYTES;
                    now = next < base + STAGES * STAGE_BYTES ? next : base;
                    if (i + 1 == tiles) now = free; // no next tile: read this one again
                }
                from_a.load(a_part[other], now, (step + 1) % 4);
                from_b.load(b_part[other], now + A_BYTES, (step + 1) % 4);
                if (step == 0) {
                    const int ahead = i + STAGES - 1;
                    if (ahead < tiles) {
                        a.load(free, ahead * STEPS, share.k);
                        b.load(free + A_BYTES, ahead * STEPS, share.k);
                    }
                    copy_async_commit();
                }
                take<T>(a_part[own]);
                take<T>(b_part[own]);
#pragma unroll
                for (int j = 0; j < 4; j++) {
#pragma unroll
                    for (int l = 0; l < 8; l++) {
                        const uint32_t *of_b = &b_part[own][l / 2][l % 2 * 2];
                        mma_32_bytes<T>(sum[j][l], a_part[own][j], of_b[0], of_b[1]);
                    }
                }
            }
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
        if (PIECES) {
#pragma unroll 1
            for (int i = threadIdx.x; i < ROWS * COLUMNS / PIECE; i += THREADS) {
                const int r = i / (COLUMNS / PIECE), c = i % (COLUMNS / PIECE) * PIECE;
                if (row + r < x.m && column + c < x.n) {
                    store_piece<T>(x, part * x.batch_c + (row + r) * x.ldc + column + c,
                                   x.n - column - c, sums + r * PITCH + c);
                }
            }
        } else {
            gemm_store_tile<T, ROWS, COLUMNS, PITCH, THREADS>(x, sums, row, column,
                                                              part * x.batch_c);
        }
        __syncthreads(); // the next share overwrites the sums
    }
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B, int WARPS_M, int WARPS_N>
__device__ inline void gemm_async(const gemm_arguments &x) {
    constexpr int THREADS = WARPS_M * WARPS_N * WARP;
    gemm_pipeline<T, !TRANSPOSE_A, TRANSPOSE_B,
                  carrier<T, !TRANSPOSE_A, WARPS_M * WARP_TILE, THREADS>,
                  carrier<T, TRANSPOSE_B, WARPS_N * WARP_TILE, THREADS>, WARPS_M, WARPS_N, true>(x);
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
