// norm, step 6: step 5, beginning while the previous kernel ends.
// Target: compute_90
//
// The idea: until the previous kernel has ended nothing it may still write can be read, but rows,
// weight and bias can be prefetched to the L2 cache, which stays coherent. So memory has work
// between two kernels.
// Owner and bound: as step 3.
// Requires: as step 5, and a programmatic launch.
#include "../bulk.cuh"
#include "norm_ahead.cuh"

#if __CUDA_ARCH__ >= 900
// More blocks than fit a device before the previous kernel has ended. Later blocks have nothing to
// wait for, and would only request everything twice.
constexpr unsigned EARLY_BLOCKS = 2048;

template <typename T> __device__ inline void norm_ask_early(const norm_arguments &x) {
    const long long row = row_of_thread();
    if (blockIdx.x >= EARLY_BLOCKS || threadIdx.x != 0 || row >= x.rows) return;
    const uint32_t bytes = (uint32_t)x.columns * sizeof(T);
    prefetch_bulk((const T *)x.in + row * x.in_stride, bytes);
    if (blockIdx.x != 0 || threadIdx.y != 0) return;
    if (x.weight != nullptr) prefetch_bulk(x.weight, bytes);
    if (x.bias != nullptr) prefetch_bulk(x.bias, bytes);
}
#endif

template <typename T, int PIECES> __device__ inline void norm_early(const norm_arguments &x) {
#if __CUDA_ARCH__ >= 900
    norm_ask_early<T>(x);
    let_next_begin();
    wait_for_kernel_in_front();
    norm_ahead<T, PIECES>(x);
#endif
}

#define NORM_EARLY(name, T, pieces, threads, blocks)                                               \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        norm_early_##name##_##pieces(norm_arguments x) {                                           \
        norm_early<T, pieces>(x);                                                                  \
    }
NORM_EARLY(f16, __half, 1, 128, 12)
NORM_EARLY(f16, __half, 2, 128, 12)
NORM_EARLY(f16, __half, 4, 256, 4)
NORM_EARLY(bf16, __nv_bfloat16, 1, 128, 12)
NORM_EARLY(bf16, __nv_bfloat16, 2, 128, 12)
NORM_EARLY(bf16, __nv_bfloat16, 4, 256, 5)
