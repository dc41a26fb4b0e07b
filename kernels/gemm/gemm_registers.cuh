// The share of a thread in a tile of 128 x 128 of a block of 256: 8 x 8 elements in registers.
//
// The warps form 2 x 4, each with 64 x 32; the lanes form 8 x 4. Lane (x, y) owns the rows 4 y to 4
// y + 3 and 32 + 4 y to 32 + 4 y + 3, and the columns 4 x to 4 x + 3 and 16 + 4 x to 16 + 4 x + 3.
// So a warp reads 128 contiguous bytes of A's tile and 64 of B's at a time, and two lanes meet in a
// bank only at the same word.
#pragma once

#include "gemm.cuh"

enum { BLOCK_TILE = 128, BLOCK_THREADS = 256, STEP = 8, PITCH = BLOCK_TILE + 4 };

struct gemm_place {
    int row, column; // of the thread's first element in the tile
};

__device__ inline gemm_place gemm_place_of(int thread) {
    const int warp = thread / WARP, lane = thread % WARP;
    return {warp / 4 * 64 + lane / 4 * 4, warp % 4 * 32 + lane % 4 * 4};
}

__device__ inline int gemm_row_of(int i) {
    return i / 4 * 32 + i % 4;
}
__device__ inline int gemm_column_of(int j) {
    return j / 4 * 16 + j % 4;
}

// sum += a b over the steps of one tile, where a_tile is [step][row] and b_tile [step][column].
__device__ inline void gemm_multiply(float (&sum)[8][8], const float (&a_tile)[STEP][PITCH],
                                     const float (&b_tile)[STEP][PITCH], gemm_place place) {
#pragma unroll
    for (int l = 0; l < STEP; l++) {
        float a[8], b[8];
        *(float4 *)&a[0] = *(const float4 *)&a_tile[l][place.row];
        *(float4 *)&a[4] = *(const float4 *)&a_tile[l][place.row + 32];
        *(float4 *)&b[0] = *(const float4 *)&b_tile[l][place.column];
        *(float4 *)&b[4] = *(const float4 *)&b_tile[l][place.column + 16];
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
    }
}
