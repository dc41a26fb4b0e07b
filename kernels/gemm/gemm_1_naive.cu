// gemm, step 1: a thread for each element of c.
//
// The idea: none; this is the definition, with which the others are compared on a device. Each
// element of a is read n times from device memory and each of b m times, or from the caches.
// Owner: thread (x, y) of block b owns c[16 row + y][16 column + x] of its tile.
// Requires: blockDim = (256, 1, 1), gridDim.x = tiles of 16 x 16, gridDim.y walks the shares.
#include "gemm.cuh"

enum { TILE = 16 };

template <typename T> __device__ inline void gemm_naive(const gemm_arguments &x) {
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, TILE), ceil_div(x.n, TILE));
    const int row = tile.row * TILE + threadIdx.x / TILE;
    const int column = tile.column * TILE + threadIdx.x % TILE;
    if (row >= x.m || column >= x.n) return;
    const long long a_row = x.transpose_a ? 1 : x.lda, a_step = x.transpose_a ? x.lda : 1;
    const long long b_column = x.transpose_b ? x.ldb : 1, b_step = x.transpose_b ? 1 : x.ldb;
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const T *a = (const T *)x.a + share.a + row * a_row;
        const T *b = (const T *)x.b + share.b + column * b_column;
        float sum = 0;
        for (int l = 0; l < share.k; l++) {
            sum = fmaf(to_float(a[l * a_step]), to_float(b[l * b_step]), sum);
        }
        gemm_store<T>(x, part * x.batch_c + row * x.ldc + column, sum);
    }
}

extern "C" __global__ void gemm_naive_f32(gemm_arguments x) {
    gemm_naive<float>(x);
}
extern "C" __global__ void gemm_naive_f16(gemm_arguments x) {
    gemm_naive<__half>(x);
}
extern "C" __global__ void gemm_naive_bf16(gemm_arguments x) {
    gemm_naive<__nv_bfloat16>(x);
}
