// Four floats at once, at a multiple of 16 bytes, of which some may be outside the matrix.
#pragma once

#include "gemm.cuh"

// Loads four neighbours in memory. `count` of them, which may be negative, are inside the matrix.
__device__ inline float4 load_4(const float *at, int count) {
    float4 four = {0, 0, 0, 0};
    if (count >= 4) {
        four = *(const float4 *)at;
    } else {
        if (count > 0) four.x = at[0];
        if (count > 1) four.y = at[1];
        if (count > 2) four.z = at[2];
    }
    return four;
}

// Stores alpha sum[0..3] + beta C at element `at` of C and its neighbours. `count` of them are inside.
__device__ inline void store_4(const gemm_arguments &x, long long at, int count, const float *sum) {
    float *c = (float *)x.c + at;
    if (count < 4) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j < count) gemm_store<float>(x, at + j, sum[j]);
        }
        return;
    }
    float4 four = {x.alpha * sum[0], x.alpha * sum[1], x.alpha * sum[2], x.alpha * sum[3]};
    if (x.beta != 0) {
        const float4 old = *(const float4 *)c;
        four.x = fmaf(x.beta, old.x, four.x);
        four.y = fmaf(x.beta, old.y, four.y);
        four.z = fmaf(x.beta, old.z, four.z);
        four.w = fmaf(x.beta, old.w, four.w);
    }
    *(float4 *)c = four;
}
