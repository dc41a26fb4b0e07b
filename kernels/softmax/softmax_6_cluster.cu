// softmax, step 6: long whole rows, each by the blocks of a cluster.
// Target: compute_90
//
// The idea: a row that the registers of one block do not hold, or whose block has a multiprocessor
// to itself, is spread over two, four or eight blocks. It is read once. Each block takes the
// exponentials against its own largest element, and one exchange of both numbers gives all blocks
// the largest and the sum of the row.
// Owner: the blocks of cluster r own row r, neighbouring pieces each. Bound by: memory.
// Requires: compute capability 9.0; as step 4; gridDim.x = rows * BLOCKS, blockDim.x a multiple of
// 32 up to 512, with PIECES pieces per thread for a block's share of the row.
#include "softmax_cluster.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_CLUSTER(name, T, pieces, blocks)                                                   \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 2)            \
        softmax_cluster_##name##_##blocks(softmax_arguments x) {                                   \
        softmax_cluster<T, pieces, blocks>(x);                                                     \
    }
SOFTMAX_CLUSTER(f16, __half, 4, 2)
SOFTMAX_CLUSTER(f16, __half, 4, 4)
SOFTMAX_CLUSTER(f16, __half, 4, 8)
SOFTMAX_CLUSTER(bf16, __nv_bfloat16, 4, 2)
SOFTMAX_CLUSTER(bf16, __nv_bfloat16, 4, 4)
SOFTMAX_CLUSTER(bf16, __nv_bfloat16, 4, 8)
SOFTMAX_CLUSTER(f32, float, 8, 4)
SOFTMAX_CLUSTER(f32, float, 8, 8)
#endif
