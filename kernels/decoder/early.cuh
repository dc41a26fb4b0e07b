// What kernels that are compiled twice have: with EARLY defined, for compute_90, they may be
// launched programmatically. Then the kernel behind begins when this one's blocks leave room, and
// this one waits for the kernel in front before it reads what is not constant.
#pragma once

#include "../bulk.cuh"

#include "decoder_arguments.h"

#if defined EARLY && __CUDA_ARCH__ >= 900
__device__ inline void begin_early() {
    let_next_begin();
}
__device__ inline void wait_in_front() {
    wait_for_kernel_in_front();
}
// Brings this block's shares of what kernels behind will read to the L2 cache.
__device__ inline void fetch_ahead(const linear_bytes_arguments &a) {
    enum { AT_ONCE = 4096 };
    if (blockIdx.y > 0) return;
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        const uint64_t begin = (uint64_t)blockIdx.x * a.ahead_share[i];
        const uint64_t end = min(begin + a.ahead_share[i], a.ahead_bytes[i]);
        for (uint64_t at = begin + threadIdx.x * AT_ONCE; at < end; at += blockDim.x * AT_ONCE) {
            prefetch_bulk((const uint8_t *)a.ahead[i] + at,
                          (uint32_t)min(end - at, (uint64_t)AT_ONCE));
        }
    }
}
#else
__device__ inline void begin_early() {}
__device__ inline void wait_in_front() {}
__device__ inline void fetch_ahead(const linear_bytes_arguments &) {}
#endif
