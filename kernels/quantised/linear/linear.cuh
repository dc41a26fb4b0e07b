// The steps of linear: y[c] = W x[c] (+ bias) (+ y[c]) for a few columns c, and silu(G x) * (W x).
//
// The idea: a decoder's product reads each weight once for all columns of its tile. A warp takes
// two rows, or one row of each of two matrices, and walks along them in chunks of 256 elements; a
// lane adds the products of its eight elements by fused multiply-adds in their order, and the
// lanes' sums are added by halving. So an element of y is the same bits in any tile and beside any
// other column: what a session gets does not depend on the sessions that run with it.
// Owner: warp w of block (i, j) owns rows 2 (WARPS i + w) and the next of columns COLUMNS j on.
// Bound by: reads of W for few columns; the conversion of weights for many.
// Requires: blockDim = (32 WARPS, 1, 1), gridDim = (rows / (2 WARPS), columns / COLUMNS), rounded
// up; gated: a warp has one row. x, its columns, and rows of W aligned to 16 bytes, but Q6_K and
// Q8_0 to 2; k whole blocks, or a multiple of 8.
#pragma once

#include "../formats/weights.cuh"

#include "../formats/linear_arguments.h"

enum { WARPS = 4, ROWS = 2 };

template <typename Q, int COLUMNS>
__device__ inline void add_chunks(float (&sums)[ROWS][COLUMNS], const uint8_t *(&rows)[ROWS],
                                  const float *(&x)[COLUMNS], uint32_t k) {
    const int lane = threadIdx.x % WARP;
#pragma unroll(COLUMNS == 1 ? 2 : 1)
    for (uint32_t chunk = 0; chunk * CHUNK + (Q::GRAIN < CHUNK ? lane * 8 : 0) < k; chunk++) {
        eight weights[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) weights[r] = Q::load(rows[r], chunk, lane);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const float4 a = load_floats(x[c] + chunk * CHUNK + Q::run(lane, 0));
            const float4 b = load_floats(x[c] + chunk * CHUNK + Q::run(lane, 1));
            const float in[2 * RUN] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
#pragma unroll
                for (int i = 0; i < 2 * RUN; i++) {
                    sums[r][c] = fmaf(weights[r].w[i], in[i], sums[r][c]);
                }
            }
        }
    }
}

template <typename Q, int COLUMNS, bool GATED> __device__ inline void linear(linear_arguments a) {
    constexpr int OWN = GATED ? 1 : ROWS;
    const uint32_t first = (blockIdx.x * WARPS + threadIdx.x / WARP) * OWN;
    const uint32_t column = blockIdx.y * COLUMNS;
    if (first >= a.rows) return;
    const uint64_t bytes = Q::row_bytes(a.k);
    const uint8_t *rows[ROWS];
    const float *x[COLUMNS];
    float sums[ROWS][COLUMNS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        // Past the last row and column the last is computed again, and not written.
        const uint32_t row = GATED ? first : min(first + r, a.rows - 1);
        rows[r] = (const uint8_t *)(GATED && r == 0 ? a.gate : a.weights) + row * bytes;
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        x[c] = (const float *)a.x + min(column + c, a.columns - 1) * a.x_stride;
    }
    add_chunks<Q, COLUMNS>(sums, rows, x, a.k);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) sums[r][c] = warp_sum(sums[r][c]);
        if (GATED) sums[0][c] = sums[0][c] / (1 + expf(-sums[0][c])) * sums[1][c];
#pragma unroll
        for (int r = 0; r < OWN; r++) {
            if (threadIdx.x % WARP != 0 || first + r >= a.rows || column + c >= a.columns) continue;
            float *y = (float *)a.y + (column + c) * a.y_stride + first + r;
            float sum = sums[r][c];
            if (a.bias != 0) sum += ((const float *)a.bias)[first + r];
            if (a.adds) sum += *y;
            *y = sum;
        }
    }
}

