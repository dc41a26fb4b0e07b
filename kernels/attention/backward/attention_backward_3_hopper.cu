// attention's backward pass, step 3: Hopper's own instructions, for fp16 and bf16.
// Target: compute_90a
//
// The idea: the pipeline of attention_backward_hopper.cuh. A block keeps 128 rows and streams tiles
// of 64 rows; three stages for heads of 128 elements, four for heads of 64.
// Registers: 168 per thread at the launch; the producer keeps 24, and consumers get 240. Shared
// memory: 100 or 164 KiB for heads of 64 or 128 elements.
// Owner, bound and requirements: as attention_backward_hopper.cuh says.
#include "attention_backward_hopper.cuh"

#if __CUDA_ARCH__ >= 900
#define ATTENTION_BACKWARD_HOPPER(type, T, D)                                                      \
    extern "C" __global__ void __launch_bounds__(gradient_shape<D>::THREADS, 1)                    \
        attention_backward_wgmma_##type##_##D(                                                     \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map d_out,        \
            const __grid_constant__ tensor_map d_q, const __grid_constant__ tensor_map d_k,        \
            const __grid_constant__ tensor_map d_v,                                                \
            const __grid_constant__ attention_backward_arguments g) {                              \
        attention_backward_hopper<T, D, SOUND_GRADIENT>(g,                                         \
                                                        {&q, &k, &v, &d_out, &d_q, &d_k, &d_v});   \
    }
ATTENTION_BACKWARD_HOPPER(f16, __half, 64)
ATTENTION_BACKWARD_HOPPER(f16, __half, 128)
ATTENTION_BACKWARD_HOPPER(bf16, __nv_bfloat16, 64)
ATTENTION_BACKWARD_HOPPER(bf16, __nv_bfloat16, 128)
#endif
