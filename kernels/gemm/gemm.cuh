// What the kernels of gemm share: which tile a block owns, and how a result is stored.
#pragma once

#include "../tile.cuh"
#include "gemm_arguments.h"

// The tile of C that a block owns, as row and column of tiles. Tiles are numbered in bands of eight
// rows, so that blocks that run concurrently share rows and columns of tiles in the L2 cache.
struct gemm_tile {
    int row, column;
};

__device__ inline gemm_tile gemm_tile_of(int block, int rows, int columns) {
    enum { BAND = 8 };
    const int band = block / (BAND * columns), first = band * BAND;
    const int height = min(rows - first, (int)BAND), inside = block - band * BAND * columns;
    return {first + inside % height, inside / height};
}

// A share of the steps: its first elements of A and B, and its number of steps. The partial sum of
// share i begins at i * batch_c.
struct gemm_share {
    long long a, b;
    int k;
};

__device__ inline gemm_share gemm_share_of(const gemm_arguments &x, int i) {
    const int matrix = i / x.splits, first = i % x.splits * x.span;
    return {matrix * x.batch_a + first * (x.transpose_a ? x.lda : 1),
            matrix * x.batch_b + first * (x.transpose_b ? 1 : x.ldb), min(x.k - first, x.span)};
}

// Stores one element of C: alpha * sum + beta * C, rounded once to its type. Where beta is 0, C is
// not read, so a NaN in C does not spread.
template <typename T>
__device__ inline void gemm_store(const gemm_arguments &x, long long at, float sum) {
    float value = x.alpha * sum;
    if (sizeof(T) == sizeof(float) || x.c_type == GEMM_C_F32) {
        float *c = (float *)x.c;
        if (x.beta != 0) value = fmaf(x.beta, c[at], value);
        c[at] = value;
    } else {
        T *c = (T *)x.c;
        if (x.beta != 0) value = fmaf(x.beta, to_float(c[at]), value);
        c[at] = from_float<T>(value);
    }
}

// Stores a tile of sums in shared memory as a tile of C. Neighbours in a warp store neighbours,
// which the fragments of an mma would not. All threads of the block call it, after a barrier.
template <typename T, int ROWS, int COLUMNS, int PITCH, int THREADS>
__device__ inline void gemm_store_tile(const gemm_arguments &x, const float *tile, int row,
                                       int column, long long first) {
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        const int r = row + i / COLUMNS, c = column + i % COLUMNS;
        if (r < x.m && c < x.n) {
            gemm_store<T>(x, first + r * x.ldc + c, tile[i / COLUMNS * PITCH + i % COLUMNS]);
        }
    }
}
