// gemm, step 5: tensor cores, for matrices of any alignment.
// Target: compute_80
//
// The idea: mma.sync multiplies 16 x 8 x 16 with one instruction of a warp, out of registers; tiles
// of a and b lie in shared memory as its fragments need them (tensor_tile.cuh).
// Owner: a block of four warps owns 64 x 64 of c.
// Requires: blockDim = (128, 1, 1), gridDim.x = tiles of 64 x 64, gridDim.y walks the shares.
#include "gemm.cuh"
#include "../tensor_tile.cuh"

template <typename T> __device__ inline void gemm_tensor(const gemm_arguments &x) {
    __shared__ __align__(16) tensor_tile shared;
    auto &a_tile = shared.factors[0], &b_tile = shared.factors[1];
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, TILE), ceil_div(x.n, TILE));
    const int row = tile.row * TILE, column = tile.column * TILE;
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const T *a = (const T *)x.a + share.a;
        const T *b = (const T *)x.b + share.b;
        float sum[2][4][4] = {};
        for (int l = 0; l < share.k; l += WORDS * element<T>::PER_WORD) {
            load_tile(a_tile, a, x.lda, row, x.m, l, share.k, !x.transpose_a);
            load_tile(b_tile, b, x.ldb, column, x.n, l, share.k, x.transpose_b);
            __syncthreads(); // other threads wrote what this one reads
            multiply_tiles<T>(sum, a_tile, b_tile);
            __syncthreads(); // the tiles are overwritten next
        }
        store_sums(shared.sums, sum);
        __syncthreads(); // other threads wrote what this one stores
        gemm_store_tile<T, TILE, TILE, SUMS, THREADS>(x, shared.sums[0], row, column,
                                                      part * x.batch_c);
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
