// norm_3_whole with weight and bias on their way, to shared memory, before the row is asked for.
// Target: compute_80
#include "norm_ahead.cuh"

#define NORM_AHEAD(name, T, pieces, threads, blocks)                                               \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        norm_ahead_##name##_##pieces(norm_arguments x) {                                           \
        norm_ahead<T, pieces>(x);                                                                  \
    }
NORM_AHEAD(f16, __half, 1, 128, 12)
NORM_AHEAD(f16, __half, 2, 128, 12)
NORM_AHEAD(f16, __half, 4, 256, 4)
NORM_AHEAD(bf16, __nv_bfloat16, 1, 128, 12)
NORM_AHEAD(bf16, __nv_bfloat16, 2, 128, 12)
NORM_AHEAD(bf16, __nv_bfloat16, 4, 256, 5)
