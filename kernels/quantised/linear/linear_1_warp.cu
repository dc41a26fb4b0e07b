// linear, step 1: one column. linear.cuh has the idea, and what it requires.
//
// Two chunks of 256 elements of two rows are in flight.
#include "linear.cuh"

#define LINEAR(format)                                                                    \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        linear_##format##_1(linear_arguments a) {                                          \
        linear<of_##format, 1, false>(a);                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        linear_gated_##format##_1(linear_arguments a) {                                    \
        linear<of_##format, 1, true>(a);                                                     \
    }
LINEAR(f32)
LINEAR(f16)
LINEAR(bf16)
LINEAR(q8_0)
LINEAR(q4_k)
LINEAR(q5_k)
LINEAR(q6_k)
