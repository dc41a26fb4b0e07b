// What the products of quantised rows with columns share: a block's threads go along a few rows of
// weights by pieces, each adds for each row and column, and the sums meet at the end.
#pragma once

#include "quant.cuh"
#include "quant_product_arguments.h"

enum { PRODUCT_THREADS = 128, PRODUCT_WARPS = PRODUCT_THREADS / WARP };

// Rows and columns past the last are read as the last one again, and not written.
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

// The sums of all threads; the first ROWS * COLUMNS threads write one each.
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
