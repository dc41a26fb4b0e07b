// Rows rounded to bytes as rounded.cuh says: as they are, and after a norm.
#pragma once

#include "../../pdl.cuh"
#include "rounded.cuh"
#include "weights.cuh"

enum { ROUND_WARPS = ROUNDED_THREADS / WARP, NORM_CHUNKS = ROUNDED_NORM_CHUNKS };

__device__ inline void load_own(float (&x)[OWN], const float *from) {
    const float4 a = load_floats(from), b = load_floats(from + 4);
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}

// A warp owns a chunk of a column.
__device__ inline void round_row(const rounded_arguments &a) {
    const uint32_t chunks = a.k / LINEAR_CHUNK, lane = threadIdx.x % WARP;
    const uint32_t chunk = blockIdx.x * ROUND_WARPS + threadIdx.x / WARP;
    pdl_release();
    pdl_wait();
    if (chunk >= chunks) return;
    float x[OWN];
    load_own(x, (const float *)a.x + blockIdx.y * a.x_stride + chunk * LINEAR_CHUNK + lane * OWN);
    put_rounded(rounded_tile(a.out, blockIdx.y, chunk, chunks), blockIdx.y % ROUNDED_COLUMNS, x);
}

// A block owns a column, a warp of it every ROUND_WARPS-th chunk, in registers.
__device__ inline void norm_row(const rounded_arguments &a) {
    __shared__ float parts[ROUND_WARPS];
    const uint32_t chunks = a.k / LINEAR_CHUNK, lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP, column = blockIdx.x;
    const float *row = (const float *)a.x + column * a.x_stride + lane * OWN;
    const float *weight = (const float *)a.weight + lane * OWN;
    float x[NORM_CHUNKS][OWN], w[NORM_CHUNKS][OWN], squares = 0;
    pdl_release();
#pragma unroll
    for (int c = 0; c < NORM_CHUNKS; c++) {
        const uint32_t chunk = c * ROUND_WARPS + warp;
        if (chunk < chunks) load_own(w[c], weight + chunk * LINEAR_CHUNK);
    }
    pdl_wait();
#pragma unroll
    for (int c = 0; c < NORM_CHUNKS; c++) {
        const uint32_t chunk = c * ROUND_WARPS + warp;
        if (chunk < chunks) load_own(x[c], row + chunk * LINEAR_CHUNK);
    }
#pragma unroll
    for (int c = 0; c < NORM_CHUNKS; c++) {
        if (c * ROUND_WARPS + warp >= chunks) continue;
#pragma unroll
        for (int i = 0; i < OWN; i++) squares = fmaf(x[c][i], x[c][i], squares);
    }
    squares = warp_sum(squares);
    if (lane == 0) parts[warp] = squares;
    __syncthreads();
    squares = warp_sum(lane < ROUND_WARPS ? parts[lane] : 0);
    const float share = 1 / sqrtf(squares / (float)a.k + a.epsilon);
#pragma unroll
    for (int c = 0; c < NORM_CHUNKS; c++) {
        const uint32_t chunk = c * ROUND_WARPS + warp;
        if (chunk >= chunks) continue;
#pragma unroll
        for (int i = 0; i < OWN; i++) x[c][i] = x[c][i] * share * w[c][i];
        put_rounded(rounded_tile(a.out, column, chunk, chunks), column % ROUNDED_COLUMNS, x[c]);
    }
}
