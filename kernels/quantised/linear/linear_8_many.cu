// linear, step 8: step 7 for up to 32 columns.
// Target: compute_90
//
// The idea: with 32 columns a block of step 6 reads 1.8 bytes of x per byte of weights, and ends
// after two chunks per warp. Here each multiprocessor runs one persistent thread block. Up to a k
// of 4096 a warp keeps all of its x in registers, so the loop reads only weights; beyond, a warp
// loads x of the next chunk over what it has used, and uses it for 32 rows. The same bits as step
// 5.
// Owner: block (i, j) owns tiles i, i + gridDim.x, ... of 16 rows, or 32 of a long k, half of them
// with a gate; and the columns from 32 j on.
// Bound by: reads of W.
// Requires: as step 6, but gridDim = (tiles at most, columns / 32 rounded up), rows in whole tiles,
// and LINEAR_KEPT_SHARED or LINEAR_LONG_SHARED of dynamic shared memory.
#define EARLY
#include "linear_many.cuh"

#define LINEAR_MANY(format, Q)                                                                     \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_kept_##format(linear_bytes_arguments a) {                                           \
        linear_kept<Q, false>(a.linear, {blockIdx.x, gridDim.x});                                  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_kept_gated_##format(linear_bytes_arguments a) {                                     \
        linear_kept<Q, true>(a.linear, {blockIdx.x, gridDim.x});                                   \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_long_##format(linear_bytes_arguments a) {                                           \
        linear_long<Q, false>(a.linear, {blockIdx.x, gridDim.x});                                  \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 1)                      \
        linear_long_gated_##format(linear_bytes_arguments a) {                                     \
        linear_long<Q, true>(a.linear, {blockIdx.x, gridDim.x});                                   \
    }
LINEAR_MANY(q4_k, bytes_k<false>)
LINEAR_MANY(q5_k, bytes_k<true>)
LINEAR_MANY(q6_k, bytes_q6_k)
