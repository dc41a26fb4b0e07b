// attention, step 5: merges the parts of blocks that split the keys.
//
// The idea: attention_4_decode and attention_6_grouped write each row of out over their part of
// the keys, followed by the binary logarithm of its sum of weights. All threads of a block read
// parts of its row at once: see attention_combine.cuh.
// Owner: block (h, r) owns one row of out.
// Bound by: the latency of reads, once per 8 parts of a group.
// Requires: blockDim = (KN_ATTENTION_COMBINE_THREADS, 1, 1), head_size at most that, gridDim =
// (heads, batch * q_length, 1).
#include "attention_combine.cuh"

#define ATTENTION_COMBINE(name, T)                                                                 \
    extern "C" __global__ void __launch_bounds__(KN_ATTENTION_COMBINE_THREADS)                     \
        attention_combine_##name(attention_arguments x) {                                          \
        attention_combine<T>(x);                                                                   \
    }
ATTENTION_COMBINE(f32, float)
ATTENTION_COMBINE(f16, __half)
ATTENTION_COMBINE(bf16, __nv_bfloat16)
