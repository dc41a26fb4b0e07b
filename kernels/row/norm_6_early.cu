// norm_5_ahead that begins while the kernel in front of it ends: until that has ended it asks for
// rows, weight and bias to come to the L2 cache, which is all that may be done with what another
// kernel may still be writing. So the memory has work between two kernels.
// Target: compute_90
#include "../bulk.cuh"
#include "norm_ahead.cuh"

#if __CUDA_ARCH__ >= 900
// More blocks than can be on a device before the kernel in front has ended: those behind have
// nothing to wait for, and would only ask twice.
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
