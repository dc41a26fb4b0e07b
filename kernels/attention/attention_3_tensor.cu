// attention_2_tiled for fp16 and bf16 on tensor cores; attention_tensor.cuh is all of it. 128 rows
// of q and 64 keys a tile; with heads of 64 elements 128 keys, and with those of 256 elements 64
// rows and 32 keys, as more accumulators than that do not fit the registers. Two blocks share a
// multiprocessor. Shared memory stays below the 99 KiB that devices of 8.6 and 8.9 have. q, k, v
// and out begin at multiples of 16 bytes, row by row.
// Target: compute_80
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
