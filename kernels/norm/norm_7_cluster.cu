// norm, step 7: long whole rows, each by the blocks of a cluster.
// Target: compute_90
//
// The idea: step 3 for a row that is spread over two, four or eight blocks, as step 6 of softmax.
// The sums of the blocks are added in their order, by each from the shared memory of all: once for
// RMSNorm, twice for layernorm.
// Owner: the blocks of cluster r own row r, neighbouring pieces each. Bound by: memory.
// Requires: compute capability 9.0; as step 3; gridDim.x = rows * BLOCKS, blockDim.x a multiple of
// 32 up to 512, with PIECES pieces per thread for a block's share of the row.
#include "../row/row_cluster.cuh"
#include "norm_whole.cuh"

#if __CUDA_ARCH__ >= 900
// Weight and bias of a block's pieces.
struct norm_parameters_of_block {
    const norm_arguments &x;
    int first;
    __device__ inline void wait() const {}
    __device__ inline uint4 weight(int p) const {
        return ((const uint4 *)x.weight)[first + piece_of_thread(p)];
    }
    __device__ inline uint4 bias(int p) const {
        return ((const uint4 *)x.bias)[first + piece_of_thread(p)];
    }
};

template <typename T, int PIECES, int BLOCKS>
__device__ inline void norm_cluster(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ float4 places[2];
    const cluster_pieces own = cluster_pieces::of<BLOCKS>(whole_pieces<T>(x.columns));
    const long long in = own.row * x.in_stride + own.first * PIECE<T>;
    const long long out = own.row * x.out_stride + own.first * PIECE<T>;
    cluster_reducer<BLOCKS> reducer = {{parts, 0}, {places, 0}};
    uint4 bits[PIECES];
    float values[PIECES][PIECE<T>];
    load_whole<T>(bits, (const T *)x.in + in, own.count, 0);
    norm_of_pieces<T>(values, bits, own.count, x, reducer, norm_parameters_of_block{x, own.first});
    store_whole<T>(values, (T *)x.out + out, own.count);
    cluster_sync(); // others may still read this block's numbers
}

#define NORM_CLUSTER(name, T, pieces, blocks)                                                      \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 2)            \
        norm_cluster_##name##_##blocks(norm_arguments x) {                                         \
        norm_cluster<T, pieces, blocks>(x);                                                        \
    }
NORM_CLUSTER(f16, __half, 4, 2)
NORM_CLUSTER(f16, __half, 4, 4)
NORM_CLUSTER(f16, __half, 4, 8)
NORM_CLUSTER(bf16, __nv_bfloat16, 4, 2)
NORM_CLUSTER(bf16, __nv_bfloat16, 4, 4)
NORM_CLUSTER(bf16, __nv_bfloat16, 4, 8)
NORM_CLUSTER(f32, float, 8, 4)
NORM_CLUSTER(f32, float, 8, 8)
#endif
