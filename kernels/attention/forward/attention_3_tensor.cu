// attention, step 3: fp16 and bf16 on tensor cores.
// Target: compute_80
//
// The idea: the pipeline of attention_tensor.cuh. A tile is 128 rows of q and 64 keys; 128 keys for
// heads of 64 elements; 64 rows and 32 keys for heads of 256, because the registers hold no more
// accumulators. Two blocks fit a multiprocessor, and a block needs less than the 99 KiB of shared
// memory of compute capability 8.6 and 8.9.
// Owner, bound and requirements: as attention_tensor.cuh says, with four warps.
#include "attention_tensor.cuh"

#define ATTENTION_TENSOR(name, T, d, bands, keys, blocks)                                          \
    static_assert(attention_shared_bytes(d, 64 * bands, keys) <= 99 << 10, "too much for 8.9");    \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                      \
        attention_tensor_##name##_##d(attention_arguments x) {                                     \
        attention_tensor<T, d, bands, keys, 4, SOUND>(x);                                          \
    }
#define ATTENTION_TENSOR_OF(name, T)                                                               \
    ATTENTION_TENSOR(name, T, 64, 2, 128, 2)                                                       \
    ATTENTION_TENSOR(name, T, 80, 2, 64, 2)                                                        \
    ATTENTION_TENSOR(name, T, 96, 2, 64, 2)                                                        \
    ATTENTION_TENSOR(name, T, 128, 2, 64, 2)                                                       \
    ATTENTION_TENSOR(name, T, 256, 1, 32, 2)
ATTENTION_TENSOR_OF(f16, __half)
ATTENTION_TENSOR_OF(bf16, __nv_bfloat16)
