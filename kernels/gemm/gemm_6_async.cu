// gemm, step 6: tensor cores that never wait for memory.
// Target: compute_80
//
// The idea: cp.async carries tiles to shared memory past the registers, two tiles ahead of the one
// that is multiplied; ldmatrix takes fragments from there, also turned, so that transposed matrices
// cost the same. A tile is kept in rows of 128 bytes, whatever its orientation: 64 steps of one row
// of a (or column of b), or 64 neighbours of one step. Of row r the 16-byte chunk i lies at
// i ^ r % 8, so the eight rows of a fragment lie in different banks, and so do the chunks of a row.
// Owner: a block of WARPS_M x WARPS_N warps owns a tile of c, each warp 64 x 64.
// Requires: blockDim = (32 WARPS_M WARPS_N, 1, 1), STAGES times STAGE_BYTES of dynamic shared
// memory, gridDim.x = tiles, gridDim.y walks the batch; rows of a, b, c at multiples of 16 bytes.
// Bound by: mma.sync; at 128 x 256 each byte of a tile is used for 85 multiplications.
#include "gemm.cuh"

enum { STEPS = 64, ROW_BYTES = 128, STAGES = 3, WARP_TILE = 64 };

// A thread's chunks of a tile of ROWS rows of shared memory, APART rows apart. BY_STEP: a row is 64
// steps of one row of op(matrix); else it is one step of 64 of them, and 64 such rows are a slab.
template <typename T, bool BY_STEP, int ROWS, int THREADS> struct carrier {
    enum { CHUNK = 16 / sizeof(T), APART = THREADS / 8, PASSES = ROWS / APART };
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
        place = r * ROW_BYTES + (chunk ^ r % 8) * 16;
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

// Where a lane finds its part of fragments: of 16 rows of op(matrix) by 16 steps. STEPS_LAST says
// in which order ldmatrix's four matrices come: those of the second eight steps last, as a wants
// it, or those of the second eight rows, as b does.
template <bool BY_STEP, bool STEPS_LAST> struct picker {
    uint32_t row, swizzle, half;

    __device__ picker(int lane, int warp_first) {
        // ldmatrix's rows are rows of op(matrix) where steps are contiguous, else they are steps.
        const bool by_sixteen = BY_STEP == STEPS_LAST;
        const int own = by_sixteen ? lane % 16 : lane % 8 + lane / 16 * 8;
        half = by_sixteen ? lane / 16 : lane / 8 % 2;
        row = (warp_first + own) * ROW_BYTES; // a warp's 64 are 64 rows, or the slab of that number
        swizzle = own % 8;
    }
    // Fragment i of four, of the sixteen steps `step` of four.
    __device__ void load(uint32_t (&part)[4], uint32_t stage, int i, int step) const {
        const int down = BY_STEP ? i : step, across = BY_STEP ? step : i;
        const uint32_t at =
            stage + row + down * 16 * ROW_BYTES + ((across * 2 + half) ^ swizzle) * 16;
        if (BY_STEP) {
            load_matrix_4(part, at);
        } else {
            load_matrix_4_transposed(part, at);
        }
    }
};

// Eight neighbours of c out of shared memory.
template <typename T>
__device__ inline void store_8(const gemm_arguments &x, long long at, int count, const float *sum) {
    if (count < 8 || x.c_type == GEMM_C_F32 || x.beta != 0) {
        for (int j = 0; j < min(count, 8); j++) gemm_store<T>(x, at + j, sum[j]);
        return;
    }
    T eight[8];
#pragma unroll
    for (int j = 0; j < 8; j++) eight[j] = from_float<T>(x.alpha * sum[j]);
    *(uint4 *)((T *)x.c + at) = *(const uint4 *)eight;
}

template <typename T, bool TRANSPOSE_A, bool TRANSPOSE_B, int WARPS_M, int WARPS_N>
__device__ inline void gemm_async(const gemm_arguments &x) {
    enum {
        ROWS = WARPS_M * WARP_TILE,
        COLUMNS = WARPS_N * WARP_TILE,
        THREADS = WARPS_M * WARPS_N * WARP,
        A_BYTES = ROWS * ROW_BYTES,
        STAGE_BYTES = A_BYTES + COLUMNS * ROW_BYTES,
        PITCH = COLUMNS + 8
    };
    static_assert(ROWS * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums lie where the stages were");
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    float *sums = (float *)shared;
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, ROWS), ceil_div(x.n, COLUMNS));
    const int row = tile.row * ROWS, column = tile.column * COLUMNS;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int warp_row = warp / WARPS_N * WARP_TILE, warp_column = warp % WARPS_N * WARP_TILE;
    const picker<!TRANSPOSE_A, true> pick_a(lane, warp_row);
    const picker<TRANSPOSE_B, false> pick_b(lane, warp_column);
    const int tiles = ceil_div(x.k, STEPS);
    for (int batch = blockIdx.y; batch < x.batch; batch += gridDim.y) {
        const carrier<T, !TRANSPOSE_A, ROWS, THREADS> a((const T *)x.a + batch * x.batch_a, x.lda,
                                                        row, x.m);
        const carrier<T, TRANSPOSE_B, COLUMNS, THREADS> b((const T *)x.b + batch * x.batch_b, x.ldb,
                                                          column, x.n);
        float sum[4][8][4] = {};
        int now = 0, next = 0; // the stages that are read and written
        for (int i = 1 - STAGES; i < tiles; i++) {
            const int ahead = i + STAGES - 1;
            if (i >= 0) {
                copy_async_wait<STAGES - 2>();
                __syncthreads(); // all have tile i, and nobody reads the one before it any more
            }
            if (ahead < tiles) {
                a.load(base + next * STAGE_BYTES, ahead * STEPS, x.k);
                b.load(base + next * STAGE_BYTES + A_BYTES, ahead * STEPS, x.k);
            }
            copy_async_commit(); // also of nothing, so that groups can be counted
            next = next + 1 < STAGES ? next + 1 : 0;
            if (i < 0) continue;
            const uint32_t a_stage = base + now * STAGE_BYTES, b_stage = a_stage + A_BYTES;
#pragma unroll 2
            for (int step = 0; step < STEPS / 16; step++) {
                uint32_t a_part[4][4], b_part[4][4];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    pick_a.load(a_part[j], a_stage, j, step);
                    pick_b.load(b_part[j], b_stage, j, step);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
#pragma unroll
                    for (int l = 0; l < 8; l++) {
                        mma_16<T>(sum[j][l], a_part[j], b_part[l / 2][l % 2 * 2],
                                  b_part[l / 2][l % 2 * 2 + 1]);
                    }
                }
            }
            now = now + 1 < STAGES ? now + 1 : 0;
        }
        copy_async_wait<0>();
        __syncthreads(); // the sums overwrite what others read
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int l = 0; l < 8; l++) {
                float *at = sums + (warp_row + 16 * j + lane / 4) * PITCH + warp_column + 8 * l +
                            lane % 4 * 2;
                *(float2 *)at = make_float2(sum[j][l][0], sum[j][l][1]);
                *(float2 *)(at + 8 * PITCH) = make_float2(sum[j][l][2], sum[j][l][3]);
            }
        }
        __syncthreads(); // other threads wrote what this one stores
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * COLUMNS / 8; i += THREADS) {
            const int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
            if (row + r < x.m && column + c < x.n) {
                store_8<T>(x, batch * x.batch_c + (row + r) * x.ldc + column + c, x.n - column - c,
                           sums + r * PITCH + c);
            }
        }
        __syncthreads(); // the next of the batch begins where the sums are
    }
}

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
GEMM_ASYNC_ALL(f16, __half)
GEMM_ASYNC_ALL(bf16, __nv_bfloat16)
