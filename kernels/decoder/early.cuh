// What kernels that are compiled twice have: with EARLY defined, for compute_90, they may be
// launched programmatically. Then the kernel behind begins when this one's blocks leave room, and
// this one waits for the kernel in front before it reads what is not constant.
#pragma once

#include "../bulk.cuh"

#if defined EARLY && __CUDA_ARCH__ >= 900
__device__ inline void begin_early() {
    let_next_begin();
}
__device__ inline void wait_in_front() {
    wait_for_kernel_in_front();
}
#else
__device__ inline void begin_early() {}
__device__ inline void wait_in_front() {}
#endif
