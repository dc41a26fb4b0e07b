// softmax, step 8: long whole rows by large persistent blocks, one slice of a row per warp.
// Target: compute_90
//
// The idea: in step 7 the threads that reduce a row also store it, and wait for memory. Here bulk
// copies do both ways, and a block's share of a row is up to 64 KiB, with three stages
// (row_slices.cuh). It begins while the previous kernel ends.
// Owner: the blocks of cluster r own rows r, r + clusters, ...; each warp neighbouring pieces.
// Bound by: memory.
// Requires: compute capability 9.0; as step 6, but gridDim.x any multiple of BLOCKS, blockDim.x up
// to 512 with 8 pieces per thread, dynamic shared memory for three slices of rows, a programmatic
// launch, and a driver of CUDA 12.1 (row_slices.cuh).
#include "softmax_slices.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_SLICES(name, T, blocks)                                                            \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 1)            \
        softmax_slices_##name##_##blocks(softmax_arguments x) {                                    \
        softmax_slices<T, 8, blocks>(x);                                                           \
    }
SOFTMAX_SLICES(f16, __half, 1)
SOFTMAX_SLICES(bf16, __nv_bfloat16, 1)
SOFTMAX_SLICES(f32, float, 1)
#endif
