// softmax, step 7: long whole rows, by clusters that stay on their multiprocessors.
// Target: compute_90
//
// The idea: in step 6 a block requests its share of a row, waits, reduces and stores, and only
// another block of its multiprocessor uses memory meanwhile. Here as many clusters as run at once
// go from row to row, and bulk copies bring the next rows into shared memory while a row is
// reduced, exchanged and stored (row_cluster_ring.cuh).
// Owner: the blocks of cluster r own rows r, r + clusters, ...; neighbouring pieces each.
// Bound by: memory.
// Requires: compute capability 9.0; as step 6, but gridDim.x any multiple of BLOCKS; dynamic shared
// memory for one to three shares of a row.
#include "softmax_cluster_ring.cuh"

#if __CUDA_ARCH__ >= 900
#define SOFTMAX_CLUSTER_RING(name, T, pieces, blocks)                                              \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 2)            \
        softmax_cluster_ring_##name##_##blocks(softmax_arguments x) {                              \
        softmax_cluster_ring<T, pieces, blocks>(x);                                                \
    }
SOFTMAX_CLUSTER_RING(f16, __half, 4, 2)
SOFTMAX_CLUSTER_RING(f16, __half, 4, 4)
SOFTMAX_CLUSTER_RING(f16, __half, 4, 8)
SOFTMAX_CLUSTER_RING(bf16, __nv_bfloat16, 4, 2)
SOFTMAX_CLUSTER_RING(bf16, __nv_bfloat16, 4, 4)
SOFTMAX_CLUSTER_RING(bf16, __nv_bfloat16, 4, 8)
SOFTMAX_CLUSTER_RING(f32, float, 8, 2)
SOFTMAX_CLUSTER_RING(f32, float, 8, 4)
SOFTMAX_CLUSTER_RING(f32, float, 8, 8)
#endif
