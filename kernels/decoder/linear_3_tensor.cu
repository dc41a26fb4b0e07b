// linear, step 3: quantised weights on tensor cores, for one column or several.
// Target: compute_80
//
// The idea: mma.m16n8k16 multiplies quants, which bfloat16 holds exactly, by x as two bfloat16
// numbers, the second of which is what the first leaves over. So x has 17 bits, a sub-block of 32
// elements costs four instructions for 16 rows and eight columns, and its scale multiplies four
// sums instead of 32 weights. Few warps would not keep the memory busy: the eight warps of a block
// share k, chunk by chunk, and each has the next chunk in flight while it multiplies one. An
// element of y is the same bits in any tile and beside any other column.
// Owner: block (i, j) owns rows 16 i on, and columns 8 j on. Warp w takes chunks w, w + 8, ... of
// 256 elements; gated: warps 0 to 3 take W, 4 to 7 take G. Their sums are added in order.
// Bound by: reads of W; for eight columns the conversion of x as well.
// Requires: blockDim = (256, 1, 1), gridDim = (rows / 16, columns / 8), rounded up; dynamic shared
// memory of LINEAR_TENSOR_BYTES; x and its columns aligned to 16 bytes; rows of Q4_K and Q5_K too,
// matrices of Q6_K to 4 and of Q8_0 to 2 bytes.
#include "fragments.cuh"

#include "decoder_arguments.h"

enum {
    TENSOR_WARPS = LINEAR_TENSOR_THREADS / WARP,
    TILE_ROWS = 16,
    TILE_COLUMNS = 8,
    SUB_BYTES = 128 // of a sub-block of one column: first and second numbers
};

// x of a pass: sub-block by sub-block, the first numbers of all columns and then the second ones,
// 16 bytes for each t; behind them the sums of sub-blocks, column by column.
struct staged_columns {
    char *numbers;
    float *sums;
    uint32_t columns;

    __device__ inline uint4 *at(uint32_t sub, int second, uint32_t column, int t) const {
        return (uint4 *)(numbers + sub * columns * SUB_BYTES) + second * columns * 4 + column * 4 +
               t;
    }
};

// Two floats as bfloat16, the first in the lower half, and what that leaves over as well.
__device__ inline void split_two(float a, float b, uint32_t &first, uint32_t &second) {
    const __nv_bfloat162 high = __floats2bfloat162_rn(a, b);
    first = *(const uint32_t *)&high;
    const __nv_bfloat162 low = __floats2bfloat162_rn(a - __uint_as_float(first << 16),
                                                     b - __uint_as_float(first & 0xffff0000u));
    second = *(const uint32_t *)&low;
}

__device__ inline float two_sum(uint32_t first, uint32_t second) {
    return (__uint_as_float(first << 16) + __uint_as_float(second << 16)) +
           (__uint_as_float(first & 0xffff0000u) + __uint_as_float(second & 0xffff0000u));
}

// Brings chunks `chunk` to `chunk + chunks - 1` of x to shared memory. Beyond k it is 0.
template <typename Q>
__device__ inline void stage(const staged_columns &x, const linear_arguments &a, uint32_t column,
                             uint32_t chunk, uint32_t chunks) {
    const uint32_t items = chunks * SUBS * x.columns * 4; // a multiple of 32: whole warps
    for (uint32_t i = threadIdx.x; i < items; i += LINEAR_TENSOR_THREADS) {
        const int t = i % 4;
        const uint32_t c = i / 4 % x.columns, sub = i / 4 / x.columns;
        const uint32_t k = chunk * CHUNK + sub * 32;
        const float *from = (const float *)a.x + (column + c) * a.x_stride + k;
        float4 v[2] = {};
        uint32_t first[4], second[4];
        float sum = 0;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (k < a.k) v[r] = load_floats(from + Q::run(t, r));
            split_two(v[r].x, v[r].y, first[2 * r], second[2 * r]);
            split_two(v[r].z, v[r].w, first[2 * r + 1], second[2 * r + 1]);
        }
        *x.at(sub, 0, c, t) = {first[0], first[1], first[2], first[3]};
        *x.at(sub, 1, c, t) = {second[0], second[1], second[2], second[3]};
        if (Q::HAS_LEAST) {
#pragma unroll
            for (int p = 0; p < 4; p++) sum += two_sum(first[p], second[p]);
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            if (t == 0) x.sums[sub * TILE_COLUMNS + c] = sum;
        }
    }
}

#if __CUDA_ARCH__ >= 800
// Adds a chunk's products to the sums of the fragment: rows g and g + 8, columns 2 t and 2 t + 1.
template <typename Q>
__device__ inline void add_chunk(float (&sums)[4], Q &weights, const staged_columns &x,
                                 uint32_t first_sub) {
    const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    float own[2][4];
    weights.scales(own, t);
#pragma unroll
    for (int s = 0; s < SUBS; s++) {
        uint32_t a[2][4];
        uint4 high = {}, low = {};
        if (g < x.columns)
            high = *x.at(first_sub + s, 0, g, t), low = *x.at(first_sub + s, 1, g, t);
        weights.quants(s, a);
        const int from = (lane & ~3u) | Q::scale_lane(s);
        const uint32_t b[2][2][2] = {{{high.x, high.y}, {high.z, high.w}},
                                     {{low.x, low.y}, {low.z, low.w}}};
        float products[4] = {};
#pragma unroll
        for (int step = 0; step < 2; step++) {
            mma_16<__nv_bfloat16>(products, a[step], b[0][step][0], b[0][step][1]);
            mma_16<__nv_bfloat16>(products, a[step], b[1][step][0], b[1][step][1]);
            if (!Q::BY_STEP && step == 0) continue;
#pragma unroll
            for (int row = 0; row < 2; row++) {
                const float scale = __shfl_sync(~0u, own[row][Q::scale_at(s, step)], from);
                sums[2 * row] = fmaf(scale, products[2 * row], sums[2 * row]);
                sums[2 * row + 1] = fmaf(scale, products[2 * row + 1], sums[2 * row + 1]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) products[i] = 0;
        }
        if (Q::HAS_LEAST) {
            const float *of_x = x.sums + (first_sub + s) * TILE_COLUMNS + 2 * t;
            const float x0 = 2 * t < x.columns ? of_x[0] : 0;
            const float x1 = 2 * t + 1 < x.columns ? of_x[1] : 0;
#pragma unroll
            for (int row = 0; row < 2; row++) {
                const float least = __shfl_sync(~0u, own[row][2 + s % 2], from);
                sums[2 * row] = fmaf(least, x0, sums[2 * row]);
                sums[2 * row + 1] = fmaf(least, x1, sums[2 * row + 1]);
            }
        }
    }
}

template <typename Q, typename FORMAT, bool GATED>
__device__ inline void linear_tensor(const linear_arguments &a) {
    enum { SHARES = GATED ? TENSOR_WARPS / 2 : TENSOR_WARPS };
    extern __shared__ uint4 shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t row = blockIdx.x * TILE_ROWS, column = blockIdx.y * TILE_COLUMNS;
    const uint32_t chunks = (a.k + CHUNK - 1) / CHUNK, share = warp % SHARES;
    const staged_columns x = {(char *)shared, (float *)((char *)shared + LINEAR_TENSOR_NUMBERS),
                              min(a.columns - column, (uint32_t)TILE_COLUMNS)};
    // So many chunks fit, a multiple of the warps.
    const uint32_t pass = LINEAR_TENSOR_NUMBERS / (SUBS * SUB_BYTES) / x.columns / 8 * 8;
    const uint8_t *matrix = (const uint8_t *)(GATED && warp >= SHARES ? a.gate : a.weights);
    const uint8_t *rows[2];
    Q next;
    float sums[4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) { // past the last row the last is computed again, and not written
        const uint32_t index = min(row + lane / 4 + 8 * r, a.rows - 1);
        rows[r] = matrix + index * FORMAT::row_bytes(a.k);
    }
    if (share < chunks) next.load(rows, share, a.k, lane % 4);
    for (uint32_t begin = 0; begin < chunks; begin += pass) {
        const uint32_t here = min(pass, chunks - begin);
        if (begin > 0) __syncthreads();
        stage<Q>(x, a, column, begin, here);
        __syncthreads();
        for (uint32_t chunk = begin + share; chunk < begin + here; chunk += SHARES) {
            Q weights = next;
            if (chunk + SHARES < chunks) next.load(rows, chunk + SHARES, a.k, lane % 4);
            add_chunk<Q>(sums, weights, x, (chunk - begin) * SUBS);
        }
    }
    __syncthreads();
    float *of_warps = (float *)shared; // [warp][row][column]
#pragma unroll
    for (int i = 0; i < 4; i++) {
        of_warps[warp * TILE_ROWS * TILE_COLUMNS + (lane / 4 + i / 2 * 8) * TILE_COLUMNS +
                 lane % 4 * 2 + i % 2] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x >= TILE_ROWS * TILE_COLUMNS) return;
    const uint32_t r = row + threadIdx.x % TILE_ROWS, c = threadIdx.x / TILE_ROWS;
    if (r >= a.rows || c >= x.columns) return;
    float both[2] = {};
#pragma unroll
    for (int w = 0; w < TENSOR_WARPS; w++) {
        both[w / SHARES] += of_warps[(w * TILE_ROWS + threadIdx.x % TILE_ROWS) * TILE_COLUMNS + c];
    }
    float *y = (float *)a.y + (column + c) * a.y_stride + r;
    float sum = both[0];
    if (GATED) sum *= both[1] / (1 + expf(-both[1]));
    if (a.bias != 0) sum += ((const float *)a.bias)[r];
    if (a.adds) sum += *y;
    *y = sum;
}

#else
template <typename Q, typename FORMAT, bool GATED>
__device__ inline void linear_tensor(const linear_arguments &) {}
#endif

#define LINEAR(format, fragments)                                                                  \
    extern "C" __global__ void __launch_bounds__(LINEAR_TENSOR_THREADS, 2)                         \
        linear_tensor_##format(linear_arguments a) {                                               \
        linear_tensor<fragments, of_##format, false>(a);                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_TENSOR_THREADS, 2)                         \
        linear_tensor_gated_##format(linear_arguments a) {                                         \
        linear_tensor<fragments, of_##format, true>(a);                                            \
    }
LINEAR(q8_0, fragments_q8_0)
LINEAR(q4_k, fragments_k<false>)
LINEAR(q5_k, fragments_k<true>)
LINEAR(q6_k, fragments_q6_k)
