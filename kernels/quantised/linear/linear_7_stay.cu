// linear, step 7: step 6 for up to eight columns, with persistent thread blocks.
// Target: compute_90
//
// The idea: if k is 4096, a warp of step 6 has two chunks; then its block ends, and the memory
// idles until the next block starts. Here the grid has only the blocks that run at once. Each takes
// one tile of 16 rows after the other and fills its rings with chunks of the next tile while it
// multiplies the last ones. A gated tile has eight rows of each matrix, which balances better. The
// same bits as step 5.
// Owner: block (i, j) owns tiles i, i + gridDim.x, ... of 16 rows (8 with a gate), and the columns
// from 8 j on.
// Bound by: reads of W.
// Requires: as step 6, but gridDim = (tiles at most, columns / 8 rounded up), rows in whole tiles,
// and LINEAR_STAY_SHARED of dynamic shared memory.
#define EARLY
#include "linear_stay.cuh"

#define LINEAR_STAY(format, Q)                                                                     \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_stay_##format(linear_bytes_arguments a) {                                           \
        linear_stay<Q, false, LINEAR_BYTES_STAGES(Q::STRIDE)>(a, {blockIdx.x, gridDim.x});         \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_stay_gated_##format(linear_bytes_arguments a) {                                     \
        linear_stay<Q, true, LINEAR_BYTES_STAGES(Q::STRIDE)>(a, {blockIdx.x, gridDim.x});          \
    }
LINEAR_STAY(q4_k, bytes_k<false>)
LINEAR_STAY(q5_k, bytes_k<true>)
LINEAR_STAY(q6_k, bytes_q6_k)

// Two products of the same x, each by blocks of its own.
#define LINEAR_PAIR(first, second, Q, P)                                                           \
    extern "C" __global__ void __launch_bounds__(LINEAR_BYTES_WARPS *WARP, 2)                      \
        linear_pair_##first##_##second(linear_pair_arguments a) {                                  \
        if (blockIdx.x < a.first_blocks) {                                                         \
            linear_stay<Q, false, LINEAR_BYTES_STAGES(Q::STRIDE)>(a.of[0],                         \
                                                                  {blockIdx.x, a.first_blocks});   \
        } else {                                                                                   \
            linear_stay<P, false, LINEAR_BYTES_STAGES(P::STRIDE)>(                                 \
                a.of[1], {blockIdx.x - a.first_blocks, gridDim.x - a.first_blocks});               \
        }                                                                                          \
    }
LINEAR_PAIR(q4_k, q6_k, bytes_k<false>, bytes_q6_k)
LINEAR_PAIR(q5_k, q6_k, bytes_k<true>, bytes_q6_k)
