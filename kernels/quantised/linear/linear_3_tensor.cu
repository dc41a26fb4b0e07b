// linear, step 3: quantised weights on tensor cores, for one column or several.
// Target: compute_80
//
// The idea: mma.m16n8k16 multiplies quants, which bfloat16 holds exactly, by x as the sum of two
// bfloat16 numbers. So x has 17 bits, a sub-block of 32 elements takes four instructions for 16
// rows and eight columns, and its scale multiplies four sums instead of 32 weights. One or two
// warps per tile would leave the memory idle. Therefore the eight warps of a block split k by
// chunks (split-K within the block), and each prefetches its next chunk while it multiplies one. An
// element of y is the same bits in any tile and beside any other column.
// Owner: block (i, j) owns rows 16 i on, and columns 8 j on. Warp w takes chunks w, w + 8, ... of
// 256 elements; gated: warps 0 to 3 take W, 4 to 7 take G. Their sums are added in order.
// Bound by: reads of W; for eight columns the conversion of x as well.
// Requires: blockDim = (256, 1, 1), gridDim = (rows / 16, columns / 8), rounded up; dynamic shared
// memory of LINEAR_TENSOR_BYTES; x and its columns aligned to 16 bytes; rows of Q4_K and Q5_K too,
// matrices of Q6_K to 4 and of Q8_0 to 2 bytes.
#include "split.cuh"

enum { TENSOR_WARPS = LINEAR_TENSOR_THREADS / WARP, TILE_ROWS = 16, TILE_COLUMNS = 8 };

// x of a pass: sub-block by sub-block, the first numbers of all columns and then the second ones,
// 16 bytes for each t; after them the sums of sub-blocks, chunk by chunk and column by column.
struct staged_columns {
    char *numbers;
    uint16_t *sums;
    uint32_t columns;

    __device__ inline uint4 *at(uint32_t sub, int second, uint32_t column, int t) const {
        return (uint4 *)(numbers + sub * columns * SUB_BYTES) + second * columns * 4 + column * 4 +
               t;
    }
    __device__ inline uint16_t *sums_at(uint32_t chunk, uint32_t column) const {
        return sums + (chunk * columns + column) * CHUNK_SUMS;
    }
};

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
        const split_eight eight = split<Q>(k < a.k ? from : NULL, t);
        *x.at(sub, 0, c, t) = eight.first;
        *x.at(sub, 1, c, t) = eight.second;
        if (Q::HAS_LEAST && t == 0) put_sum(x.sums_at(sub / SUBS, c), sub % SUBS, eight.sum);
    }
}

#if __CUDA_ARCH__ >= 800
// Adds the products of chunk `chunk` of the pass to the sums of the fragment.
template <typename Q>
__device__ inline void add_chunk(float (&sums)[1][1][4], Q &weights, const staged_columns &x,
                                 uint32_t chunk) {
    const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    float own[2][4];
    weights.scales(own, t);
#pragma unroll
    for (int s = 0; s < SUBS; s++) {
        uint32_t a[1][2][4];
        float scales[1][2][2];
        uint4 first[1] = {}, second[1] = {};
        if (g < x.columns) {
            first[0] = *x.at(chunk * SUBS + s, 0, g, t);
            second[0] = *x.at(chunk * SUBS + s, 1, g, t);
        }
        weights.quants(s, a[0]);
        scales_of<Q>(scales[0], own, s);
        add_subs<Q, 1, 1>(sums, a, scales, first, second);
    }
    if constexpr (Q::HAS_LEAST) {
        uint32_t a[4], first = 0, second = 0;
        float factors[2];
        if (g < x.columns) {
            const uint32_t *of_x = (const uint32_t *)x.sums_at(chunk, g);
            first = of_x[t], second = of_x[4 + t];
        }
        weights.least(a, factors, t);
        add_least(sums[0][0], a, factors, first, second);
    }
}

template <typename Q, typename FORMAT, bool GATED>
__device__ inline void linear_tensor(const linear_arguments &a) {
    enum { SHARES = GATED ? TENSOR_WARPS / 2 : TENSOR_WARPS };
    extern __shared__ uint4 shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t row = blockIdx.x * TILE_ROWS, column = blockIdx.y * TILE_COLUMNS;
    const uint32_t chunks = (a.k + CHUNK - 1) / CHUNK, share = warp % SHARES;
    const staged_columns x = {(char *)shared, (uint16_t *)((char *)shared + LINEAR_TENSOR_NUMBERS),
                              min(a.columns - column, (uint32_t)TILE_COLUMNS)};
    // So many chunks fit, a multiple of the warps.
    const uint32_t pass = LINEAR_TENSOR_NUMBERS / (SUBS * SUB_BYTES) / x.columns / 8 * 8;
    const uint8_t *matrix = (const uint8_t *)(GATED && warp >= SHARES ? a.gate : a.weights);
    const uint8_t *rows[2];
    Q next;
    float sums[1][1][4] = {};
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
            add_chunk<Q>(sums, weights, x, chunk - begin);
        }
    }
    __syncthreads();
    float *of_warps = (float *)shared; // [warp][row][column]
#pragma unroll
    for (int i = 0; i < 4; i++) {
        of_warps[warp * TILE_ROWS * TILE_COLUMNS + (lane / 4 + i / 2 * 8) * TILE_COLUMNS +
                 lane % 4 * 2 + i % 2] = sums[0][0][i];
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
    put_element<GATED>(a, r, column + c, both[0], both[1]);
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
