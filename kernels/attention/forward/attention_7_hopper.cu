// attention, step 7: Hopper's own instructions, for fp16 and bf16.
// Target: compute_90a
//
// The idea: the pipeline of attention_hopper.cuh. A tile is 128 rows of q and 128 keys; for heads
// of up to 64 elements, 192 rows; of more than 128, 64 keys.
// Registers: ptxas 13.0 gives 168 per thread at the launch and spills none; the producer keeps 24,
// and consumers get 240. With three consumers it is 128, 32 and 160. Shared memory: 90, 162 or
// 194 KiB for heads of 64, 128 or 256 elements.
// Owner, bound and requirements: as attention_hopper.cuh says.
#include "attention_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define ATTENTION_HOPPER(type, T, D)                                                               \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_wgmma_##type##_##D(                                                              \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_arguments x) {                                       \
        attention_hopper<T, D>(x, &q, &k, &v, &out);                                               \
    }
ATTENTION_HOPPER(f16, __half, 64)
ATTENTION_HOPPER(f16, __half, 128)
ATTENTION_HOPPER(f16, __half, 256)
ATTENTION_HOPPER(bf16, __nv_bfloat16, 64)
ATTENTION_HOPPER(bf16, __nv_bfloat16, 128)
ATTENTION_HOPPER(bf16, __nv_bfloat16, 256)
#endif
