// norm, step 5: whole rows, with weight and bias loaded before the row.
// Target: compute_80
//
// The idea: step 3, but cp.async brings weight and bias to shared memory before the row is
// requested: norm_ahead.cuh.
// Owner and bound: as step 3.
// Requires: as step 3; 16 PIECES bytes of dynamic shared memory a thread for each of weight and
// bias.
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
