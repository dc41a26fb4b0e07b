// What the products of steps 2 and 3 share: y[n][m] = sum_k W[m][k] x[n][k], W of quantised blocks.
//
// The idea: the threads of a block walk along ROWS rows of W by pieces. Each thread adds for each
// row and column, and the sums meet once at the end.
// Owner: block (i, j) owns ROWS rows of y from i ROWS on, in COLUMNS columns from j COLUMNS on.
// Requires: blockDim = (PRODUCT_THREADS, 1, 1), gridDim = (rows / ROWS, columns / COLUMNS), both
// rounded up.
#pragma once

#include "../formats/quant.cuh"
#include "quant_product_arguments.h"

enum { PRODUCT_THREADS = 128, PRODUCT_WARPS = PRODUCT_THREADS / WARP };

// Rows and columns past the last are computed from the last one, and not written.
template <int ROWS> struct weight_rows {
    const uint8_t *row[ROWS];

    __device__ inline weight_rows(const kn_quant_product_arguments &a, int block_bytes) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint32_t index = min(blockIdx.x * ROWS + r, a.rows - 1);
            row[r] = (const uint8_t *)a.weights + (uint64_t)index * a.blocks * block_bytes;
        }
    }
};

// Adds the sums of all threads; each of the first ROWS * COLUMNS threads writes one.
template <int ROWS, int COLUMNS>
__device__ inline void product_write(const kn_quant_product_arguments &a,
                                     const float (&sums)[ROWS][COLUMNS]) {
    __shared__ float of_warps[PRODUCT_WARPS][ROWS * COLUMNS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const float sum = warp_sum(sums[i / COLUMNS][i % COLUMNS]);
        if (lane == 0) of_warps[warp][i] = sum;
    }
    __syncthreads();
    if (threadIdx.x >= ROWS * COLUMNS) return;
    float sum = 0;
    for (int i = 0; i < PRODUCT_WARPS; i++) sum += of_warps[i][threadIdx.x];
    const uint32_t row = blockIdx.x * ROWS + threadIdx.x / COLUMNS;
    const uint32_t column = blockIdx.y * COLUMNS + threadIdx.x % COLUMNS;
    if (row < a.rows && column < a.columns) ((float *)a.y)[column * a.y_stride + row] = sum;
}
