// gemm, step 5: tensor cores, for matrices of any alignment.
// Target: compute_80
//
// The idea: mma.sync multiplies 16 x 8 x 16 with one instruction of a warp, out of registers. Tiles
// of a and b are in shared memory with k contiguous, as fragments need them, so that two
// neighbours of 16 bits, or one number of 32, are one word; rows are four words longer than needed,
// so that the eight rows and four words of a fragment are in 32 banks.
// Owner: a block of four warps owns 64 x 64 of c, each warp 32 x 32: fragments as in tile.cuh.
// Requires: blockDim = (128, 1, 1), gridDim.x = tiles of 64 x 64, gridDim.y walks the shares.
#include "gemm.cuh"

enum { TILE = 64, THREADS = 128, WORDS = 16, PITCH = WORDS + 4, SUMS = TILE + 8 };

// How a type is stored in a word of shared memory, and how many elements a word holds.
template <typename T> struct element {
    enum { PER_WORD = 2 };
    typedef T stored;
    static __device__ T zero() { return from_float<T>(0.0f); }
    static __device__ T take(T x) { return x; }
};
template <> struct element<float> {
    enum { PER_WORD = 1 };
    typedef uint32_t stored;
    static __device__ uint32_t zero() { return 0; }
    static __device__ uint32_t take(float x) { return to_tf32(x); }
};

// tile[i][l] = op(matrix)(first + i, step + l), 0 outside; by_step says that steps are contiguous
// in memory, so that neighbours in a warp read neighbours.
template <typename T>
__device__ inline void load_tile(uint32_t (&tile)[TILE][PITCH], const T *matrix, long long leading,
                                 int first, int count, int step, int steps, bool by_step) {
    enum { STEP = WORDS * element<T>::PER_WORD };
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        const int l = by_step ? i % STEP : i / TILE, other = by_step ? i / STEP : i % TILE;
        const bool inside = first + other < count && step + l < steps;
        const long long at =
            by_step ? (first + other) * leading + step + l : (step + l) * leading + first + other;
        ((typename element<T>::stored *)tile[other])[l] =
            inside ? element<T>::take(matrix[at]) : element<T>::zero();
    }
}

template <typename T> __device__ inline void gemm_tensor(const gemm_arguments &x) {
    __shared__ __align__(16) union {
        uint32_t tiles[2][TILE][PITCH];
        float sums[TILE][SUMS];
    } shared;
    auto &a_tile = shared.tiles[0], &b_tile = shared.tiles[1];
    auto &sums = shared.sums;
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, TILE), ceil_div(x.n, TILE));
    const int row = tile.row * TILE, column = tile.column * TILE;
    const int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const T *a = (const T *)x.a + share.a;
        const T *b = (const T *)x.b + share.b;
        float sum[2][4][4] = {};
        for (int l = 0; l < share.k; l += WORDS * element<T>::PER_WORD) {
            load_tile(a_tile, a, x.lda, row, x.m, l, share.k, !x.transpose_a);
            load_tile(b_tile, b, x.ldb, column, x.n, l, share.k, x.transpose_b);
            __syncthreads(); // other threads wrote what this one reads
#pragma unroll
            for (int word = 0; word < WORDS; word += 8) { // the words of one mma
                uint32_t a_part[2][4];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int r = warp_row + 16 * i + g;
                    a_part[i][0] = a_tile[r][word + t];
                    a_part[i][1] = a_tile[r + 8][word + t];
                    a_part[i][2] = a_tile[r][word + t + 4];
                    a_part[i][3] = a_tile[r + 8][word + t + 4];
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const uint32_t *b_row = b_tile[warp_column + 8 * j + g];
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        mma_32_bytes<T>(sum[i][j], a_part[i], b_row[word + t], b_row[word + t + 4]);
                    }
                }
            }
            __syncthreads(); // the tiles are overwritten next
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float *at = &sums[warp_row + 16 * i + g][warp_column + 8 * j + 2 * t];
                *(float2 *)at = make_float2(sum[i][j][0], sum[i][j][1]);
                *(float2 *)(at + 8 * SUMS) = make_float2(sum[i][j][2], sum[i][j][3]);
            }
        }
        __syncthreads(); // other threads wrote what this one stores
        gemm_store_tile<T, TILE, TILE, SUMS, THREADS>(x, sums[0], row, column, part * x.batch_c);
        __syncthreads(); // the next tiles overwrite the sums
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm_tensor_f16(gemm_arguments x) {
    gemm_tensor<__half>(x);
}
extern "C" __global__ void __launch_bounds__(THREADS) gemm_tensor_bf16(gemm_arguments x) {
    gemm_tensor<__nv_bfloat16>(x);
}
extern "C" __global__ void __launch_bounds__(THREADS) gemm_tensor_tf32(gemm_arguments x) {
    gemm_tensor<float>(x);
}
