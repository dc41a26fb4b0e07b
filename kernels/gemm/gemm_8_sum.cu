// gemm, step 8: adds the partial sums of blocks that split k.
//
// C[m][n] = alpha sum_s part[s][m][n] + beta C[m][n], for each matrix of the batch.
//
// The idea: a product of few rows or columns has too few tiles to keep a device busy, so blocks
// split its steps too, and each writes a partial sum (gemm_arguments.h). This kernel adds them in
// their order, so the same problem always gives the same bits; atomic additions would not.
// Owner: a thread owns four neighbours of a row of C.
// Bound by: reads of the partial sums.
// Requires: blockDim = (128, 1, 1), gridDim.x = m * (n / 4, rounded up) / 128, rounded up;
// gridDim.y walks the batch. a, lda and batch_a locate the partial sums, which are floats; their
// rows, and the matrices of two shares, are multiples of 16 bytes apart.
#include "gemm.cuh"

template <typename T> __device__ inline void gemm_sum(const gemm_arguments &x) {
    const int pieces = ceil_div(x.n, 4);
    const long long piece = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (piece >= (long long)x.m * pieces) return;
    const int row = (int)(piece / pieces), column = (int)(piece % pieces) * 4;
    const int count = min(x.n - column, 4);
    for (int matrix = blockIdx.y; matrix < x.batch; matrix += gridDim.y) {
        const float *at = (const float *)x.a + matrix * x.splits * x.batch_a + row * x.lda + column;
        float sum[4] = {};
#pragma unroll 8
        for (int share = 0; share < x.splits; share++, at += x.batch_a) {
            float4 four = {0, 0, 0, 0};
            if (count == 4) {
                four = *(const float4 *)at;
            } else { // past the end of the row nothing was written
                four.x = at[0];
                if (count > 1) four.y = at[1];
                if (count > 2) four.z = at[2];
            }
            sum[0] += four.x;
            sum[1] += four.y;
            sum[2] += four.z;
            sum[3] += four.w;
        }
        const long long first = matrix * x.batch_c + row * x.ldc + column;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j < count) gemm_store<T>(x, first + j, sum[j]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) gemm_sum_f32(gemm_arguments x) {
    gemm_sum<float>(x);
}
extern "C" __global__ void __launch_bounds__(128) gemm_sum_f16(gemm_arguments x) {
    gemm_sum<__half>(x);
}
extern "C" __global__ void __launch_bounds__(128) gemm_sum_bf16(gemm_arguments x) {
    gemm_sum<__nv_bfloat16>(x);
}
