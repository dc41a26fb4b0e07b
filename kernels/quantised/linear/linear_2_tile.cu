// linear, step 2: four columns per warp, so that a weight is converted once for four products.
//
// An element of y is the same bits as in step 1. linear.cuh has the idea, and what it requires.
#include "linear.cuh"

#define LINEAR(format)                                                                    \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        linear_##format##_4(linear_arguments a) {                                          \
        linear<of_##format, 4, false>(a);                                                    \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(WARPS *WARP)                                      \
        linear_gated_##format##_4(linear_arguments a) {                                    \
        linear<of_##format, 4, true>(a);                                                     \
    }
LINEAR(f32)
LINEAR(f16)
LINEAR(bf16)
LINEAR(q8_0)
LINEAR(q4_k)
LINEAR(q5_k)
LINEAR(q6_k)
