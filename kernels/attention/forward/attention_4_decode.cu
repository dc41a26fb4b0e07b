// attention, step 4: one row of q, or a few, over many keys.
//
// The idea: split-KV decoding. With few rows of q nothing reuses k and v, so the kernel only has to
// read them at full width: see attention_decode.cuh. If the caller gives a workspace, gridDim.x
// blocks split the keys, and attention_5_combine merges their parts.
// Owner, bound and requirements: as attention_decode.cuh says.
#include "attention_decode.cuh"

#define ATTENTION_DECODE(name, T, d)                                                               \
    extern "C" __global__ void __launch_bounds__(DECODE_THREADS)                                   \
        attention_decode_##name##_##d(attention_arguments x) {                                     \
        attention_decode<T, d>(x);                                                                 \
    }
#define ATTENTION_DECODE_OF(name, T)                                                               \
    ATTENTION_DECODE(name, T, 64)                                                                  \
    ATTENTION_DECODE(name, T, 80)                                                                  \
    ATTENTION_DECODE(name, T, 96)                                                                  \
    ATTENTION_DECODE(name, T, 128)                                                                 \
    ATTENTION_DECODE(name, T, 256)
ATTENTION_DECODE_OF(f32, float)
ATTENTION_DECODE_OF(f16, __half)
ATTENTION_DECODE_OF(bf16, __nv_bfloat16)
