// What kernels of collectives share: pieces of 16 bytes, and sums of their elements.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "collective_arguments.h"

static __device__ inline float number(float x) { return x; }
static __device__ inline float number(__half x) { return __half2float(x); }
static __device__ inline float number(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ inline void round_to(float &to, float x) { to = x; }
static __device__ inline void round_to(__half &to, float x) { to = __float2half_rn(x); }
static __device__ inline void round_to(__nv_bfloat16 &to, float x) { to = __float2bfloat16_rn(x); }

// BYTES bytes as elements.
template <typename T, int BYTES, typename WORD> union piece {
    WORD word;
    T elements[BYTES / sizeof(T)];
    __device__ piece() {}
};
