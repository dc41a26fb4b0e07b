// grouped, step 2: tensor cores, for rows of any alignment.
// Target: compute_80
//
// The idea: step 5 of gemm for tiles of groups (tensor_tile.cuh). e4m3 becomes fp16, which has all
// its numbers, on the way to shared memory.
// Owner: a block of four warps owns 64 x 64 of C at a time. No tile has rows of two groups.
// Requires: blockDim = (128, 1, 1); any number of blocks, which walk the tiles.
#include "grouped.cuh"
#include "../tensor_tile.cuh"

enum { STEP = 2 * WORDS, ACROSS = TILE / 4 }; // elements of k a step; threads that finish a row

template <> struct element<e4m3> {
    enum { PER_WORD = 2 };
    typedef __half stored;
    static __device__ __half zero() { return from_float<__half>(0.0f); }
    static __device__ __half take(e4m3 x) { return e4m3_half(x); }
};

template <typename T> __device__ inline void grouped_tensor(const grouped_arguments &x) {
    __shared__ __align__(16) tensor_tile shared;
    auto &a_tile = shared.factors[0], &b_tile = shared.factors[1];
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
            multiply_tiles<typename element<T>::stored>(sum, a_tile, b_tile);
            __syncthreads(); // the tiles are overwritten next
        }
        store_sums(shared.sums, sum);
        __syncthreads(); // other threads wrote what this one stores
        const int inner = threadIdx.x % ACROSS * 4, own = column + inner;
        if (own < x.n) {
            const grouped_columns<4> of(x, walk.group, own);
#pragma unroll 1
            for (int r = threadIdx.x / ACROSS; r < TILE && row + r < walk.end;
                 r += THREADS / ACROSS) {
                const float *at = &shared.sums[r][inner];
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
