// grouped, step 2: tensor cores, for rows of any alignment.
// Target: compute_80
//
// The idea: step 5 of gemm for tiles of groups. e4m3 becomes fp16, which has all its numbers, on
// the way to shared memory.
// Owner: a block of four warps owns 64 x 64 of C at a time, each warp 32 x 32: fragments as in
// tile.cuh. No tile has rows of two groups.
// Requires: blockDim = (128, 1, 1); any number of blocks, which walk the tiles.
#include "grouped.cuh"

enum { TILE = 64, THREADS = 128, WORDS = 16, STEP = 2 * WORDS, PITCH = WORDS + 4 };
enum { SUMS = TILE + 8, ACROSS = TILE / 4 }; // floats of a row; threads that finish it

// What is multiplied.
template <typename T> struct factor {
    typedef T type;
    static __device__ T of(T x) { return x; }
};
template <> struct factor<e4m3> {
    typedef __half type;
    static __device__ __half of(e4m3 x) { return e4m3_half(x); }
};

// tile[i][l] = op(matrix)(first + i, step + l), 0 outside; by_step says that steps are contiguous
// in memory, so that neighbours in a warp read neighbours.
template <typename T>
__device__ inline void load_tile(uint32_t (&tile)[TILE][PITCH], const T *matrix, long long leading,
                                 int first, int end, int step, int steps, bool by_step) {
    typedef typename factor<T>::type F;
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        const int l = by_step ? i % STEP : i / TILE, other = by_step ? i / STEP : i % TILE;
        const bool inside = first + other < end && step + l < steps;
        const long long at =
            by_step ? (first + other) * leading + step + l : (step + l) * leading + first + other;
        ((F *)tile[other])[l] = inside ? factor<T>::of(matrix[at]) : from_float<F>(0.0f);
    }
}

template <typename T> __device__ inline void grouped_tensor(const grouped_arguments &x) {
    typedef typename factor<T>::type F;
    __shared__ __align__(16) union {
        uint32_t tiles[2][TILE][PITCH];
        float sums[TILE][SUMS];
    } shared;
    auto &a_tile = shared.tiles[0], &b_tile = shared.tiles[1];
    auto &sums = shared.sums;
    const int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int columns = ceil_div(x.n, TILE);
    grouped_walk walk(x);
    for (int i = blockIdx.x; walk.find(x, i, TILE, columns); i += gridDim.x) {
        const gemm_tile tile =
            gemm_tile_of(i - walk.first, ceil_div(walk.end - walk.begin, TILE), columns);
        const int row = walk.begin + tile.row * TILE, column = tile.column * TILE;
        const T *a = (const T *)x.a, *b = (const T *)x.b + walk.group * x.group_b;
        float sum[2][4][4] = {};
        for (int l = 0; l < x.k; l += STEP) {
            load_tile(a_tile, a, x.lda, row, walk.end, l, x.k, true);
            load_tile(b_tile, b, x.ldb, column, x.n, l, x.k, x.transpose_b);
            __syncthreads(); // other threads wrote what this one reads
#pragma unroll
            for (int word = 0; word < WORDS; word += 8) { // the words of one mma
                uint32_t a_part[2][4];
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int at = warp_row + 16 * r + g;
                    a_part[r][0] = a_tile[at][word + t];
                    a_part[r][1] = a_tile[at + 8][word + t];
                    a_part[r][2] = a_tile[at][word + t + 4];
                    a_part[r][3] = a_tile[at + 8][word + t + 4];
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const uint32_t *b_row = b_tile[warp_column + 8 * j + g];
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        mma_16<F>(sum[r][j], a_part[r], b_row[word + t], b_row[word + t + 4]);
                    }
                }
            }
            __syncthreads(); // the tiles are overwritten next
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float *at = &sums[warp_row + 16 * r + g][warp_column + 8 * j + 2 * t];
                *(float2 *)at = make_float2(sum[r][j][0], sum[r][j][1]);
                *(float2 *)(at + 8 * SUMS) = make_float2(sum[r][j][2], sum[r][j][3]);
            }
        }
        __syncthreads(); // other threads wrote what this one stores
        const int inner = threadIdx.x % ACROSS * 4, own = column + inner;
        if (own < x.n) {
            const grouped_columns<4> of(x, walk.group, own);
#pragma unroll 1
            for (int r = threadIdx.x / ACROSS; r < TILE && row + r < walk.end;
                 r += THREADS / ACROSS) {
                const float *at = &sums[r][inner];
                grouped_finish<4>(x, of, row + r, own, {at[0], at[1], at[2], at[3]});
            }
        }
        __syncthreads(); // the next tiles overwrite the sums
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) grouped_tensor_f16(grouped_arguments x) {
    grouped_tensor<__half>(x);
}
extern "C" __global__ void __launch_bounds__(THREADS) grouped_tensor_bf16(grouped_arguments x) {
    grouped_tensor<__nv_bfloat16>(x);
}
extern "C" __global__ void __launch_bounds__(THREADS) grouped_tensor_e4m3(grouped_arguments x) {
    grouped_tensor<e4m3>(x);
}
