// Programmatic dependent launch (PDL) for kernels that are compiled twice. With EARLY defined, for
// compute_90, a kernel lets the next one begin as soon as its own blocks leave room, and waits for
// its predecessor before it reads what is not constant. Without, both functions do nothing.
#pragma once

#include "bulk.cuh"

#if defined EARLY && __CUDA_ARCH__ >= 900
__device__ inline void pdl_release() {
    let_next_begin();
}
__device__ inline void pdl_wait() {
    wait_for_kernel_in_front();
}
#else
__device__ inline void pdl_release() {}
__device__ inline void pdl_wait() {}
#endif
