// attention's backward pass, step 4: five products, whose sums have one order, for fp16 and bf16.
// Target: compute_90a
//
// The idea: the pipeline of attention_backward_ordered.cuh. A block keeps 128 keys and streams
// tiles of 64 rows of q; three stages for heads of 128 elements, four for heads of 64. The
// prologue computes figures and clears turns; the epilogue computes d_q from the sums.
// Registers: 168 per thread at the launch; the producer keeps 24, and consumers get 240. Shared
// memory: 148 or 227 KiB for heads of 64 or 128 elements.
// Owner, bound and requirements: as attention_backward_ordered.cuh says.
#include "attention_backward_ordered_ends.cuh"

#if __CUDA_ARCH__ >= 900
#define ATTENTION_BACKWARD_ORDERED(type, T, D)                                                     \
    extern "C" __global__ void __launch_bounds__(ordered_shape<D>::THREADS, 1)                     \
        attention_backward_ordered_##type##_##D(                                                   \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map d_out,        \
            const __grid_constant__ tensor_map d_q, const __grid_constant__ tensor_map d_k,        \
            const __grid_constant__ tensor_map d_v,                                                \
            const __grid_constant__ attention_backward_arguments g) {                              \
        attention_backward_ordered<T, D, SOUND_ORDER>(g, {&q, &k, &v, &d_out, &d_q, &d_k, &d_v});  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(ORDERED_THREADS)                                  \
        attention_begin_##type##_##D(const __grid_constant__ attention_backward_arguments g) {     \
        ordered_begin<T, D>(g);                                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(4 * D)                                            \
        attention_finish_##type##_##D(const __grid_constant__ attention_backward_arguments g) {    \
        ordered_finish<T, D>(g);                                                                   \
    }
ATTENTION_BACKWARD_ORDERED(f16, __half, 64)
ATTENTION_BACKWARD_ORDERED(f16, __half, 128)
ATTENTION_BACKWARD_ORDERED(bf16, __nv_bfloat16, 64)
ATTENTION_BACKWARD_ORDERED(bf16, __nv_bfloat16, 128)
#endif
