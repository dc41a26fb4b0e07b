// The column of the largest of each row of floats, in two kernels.
#pragma once

#include "../row/argmax_key.cuh"
#include "../pdl.cuh"

#include "decode_arguments.h"

// Block (i, r) finds the largest of part i of row r.
__device__ inline void best_of_part(const best_arguments &a) {
    __shared__ unsigned long long keys[BEST_THREADS / WARP];
    const float *row = (const float *)a.in + blockIdx.y * a.in_stride;
    const uint32_t step = gridDim.x * BEST_THREADS;
    unsigned long long best = 0; // below all keys
    pdl_release();
    pdl_wait();
#pragma unroll 8
    for (uint32_t c = blockIdx.x * BEST_THREADS + threadIdx.x; c < a.columns; c += step) {
        best = max(best, argmax_key(row[c], c));
    }
    best = largest_key(best);
    if (threadIdx.x % WARP == 0) keys[threadIdx.x / WARP] = best;
    __syncthreads(); // the keys of all warps are there
    if (threadIdx.x >= WARP) return;
    best = largest_key(threadIdx.x < BEST_THREADS / WARP ? keys[threadIdx.x] : 0);
    if (threadIdx.x == 0) {
        ((unsigned long long *)a.keys)[blockIdx.y * gridDim.x + blockIdx.x] = best;
    }
}

// Block r finds the largest of the parts of row r.
__device__ inline void best_of_parts(const best_arguments &a) {
    unsigned long long best = 0;
    pdl_release();
    pdl_wait();
    for (uint32_t i = threadIdx.x; i < BEST_PARTS; i += WARP) {
        best = max(best, ((const unsigned long long *)a.keys)[blockIdx.x * BEST_PARTS + i]);
    }
    best = largest_key(best);
    if (threadIdx.x == 0) ((int *)a.out)[blockIdx.x] = column_of_key(best);
}
