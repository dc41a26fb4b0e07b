// attention's backward pass, step 2: fp16 and bf16 on tensor cores.
// Target: compute_80
//
// The idea: the pipeline of attention_backward_tensor.cuh. A block of four warps keeps 128 rows
// for heads of 64 elements, and 64 for heads of 128, because the registers hold no more
// accumulators; it streams tiles of 32 rows. Two blocks fit a multiprocessor.
// Owner, bound and requirements: as attention_backward_tensor.cuh says, with four warps.
#include "attention_backward_tensor.cuh"

#define ATTENTION_BACKWARD_TENSOR(name, T, d, bands)                                               \
    static_assert(gradient_shared_bytes(d, 64 * bands, 32) <= 99 << 10, "too much for 8.9");       \
    extern "C" __global__ void __launch_bounds__(128, 2)                                           \
        attention_backward_tensor_##name##_##d(attention_backward_arguments g) {                   \
        attention_backward_tensor<T, d, bands, 32, 4, SOUND_BACKWARD>(g);                          \
    }
ATTENTION_BACKWARD_TENSOR(f16, __half, 64, 2)
ATTENTION_BACKWARD_TENSOR(f16, __half, 128, 1)
ATTENTION_BACKWARD_TENSOR(bf16, __nv_bfloat16, 64, 2)
ATTENTION_BACKWARD_TENSOR(bf16, __nv_bfloat16, 128, 1)
