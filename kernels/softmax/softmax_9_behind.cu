// softmax, step 9: rows by clusters of persistent blocks, stored after the sums of the next row.
// Target: compute_90
//
// The idea: where the blocks of a row are not on neighbouring multiprocessors, a number takes
// microseconds from one to the other while memory is busy. Here it has the time of a row: a block
// tells its numbers of a row, goes on to the sums of the next one, and then makes the results of
// the first (row_slices.cuh). Exponentials are taken twice, since no register holds them so long.
// Owner: the blocks of cluster r own rows r, r + clusters, ...; each warp neighbouring pieces.
// Bound by: memory.
// Requires: as step 8.
#include "softmax_slices.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_BEHIND(name, T, blocks)                                                            \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 1)            \
        softmax_behind_##name##_##blocks(softmax_arguments x) {                                    \
        softmax_behind<T, 8, blocks>(x);                                                           \
    }
SOFTMAX_BEHIND(f16, __half, 2)
SOFTMAX_BEHIND(f16, __half, 8)
SOFTMAX_BEHIND(bf16, __nv_bfloat16, 2)
SOFTMAX_BEHIND(bf16, __nv_bfloat16, 8)
SOFTMAX_BEHIND(f32, float, 2)
SOFTMAX_BEHIND(f32, float, 8)
#endif
