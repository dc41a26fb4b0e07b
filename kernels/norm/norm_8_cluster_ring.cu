// norm, step 8: long whole rows, by clusters that stay on their multiprocessors.
// Target: compute_90
//
// The idea: step 7 with the ring of step 7 of softmax (row_cluster_ring.cuh). A block's share of
// weight and bias stays in shared memory for all rows.
// Owner: the blocks of cluster r own rows r, r + clusters, ...; neighbouring pieces each.
// Bound by: memory.
// Requires: compute capability 9.0; as step 7, but gridDim.x any multiple of BLOCKS; dynamic shared
// memory for one to three shares of a row, and a share for each of weight and bias.
#include "../row/row_cluster_ring.cuh"
#include "norm_whole.cuh"

#if __CUDA_ARCH__ >= 900
// Weight and bias of a block's pieces, in shared memory.
struct norm_parameters_kept {
    const uint4 *weights, *biases;
    uint64_t *arrived;

    template <typename RING>
    __device__ inline norm_parameters_kept(const norm_arguments &x, const RING &ring, int kept)
        : weights(ring.kept(0)), biases(ring.kept(kept - 1)), arrived(ring.kept_barrier()) {
        if (threadIdx.x != 0) return;
        barrier_expect(arrived, kept * ring.count * 16);
        if (x.weight != nullptr) ring.keep(x.weight, 0);
        if (x.bias != nullptr) ring.keep(x.bias, kept - 1);
    }
    __device__ inline void wait() const { barrier_wait(arrived, 0); }
    __device__ inline uint4 weight(int p) const { return weights[piece_of_thread(p)]; }
    __device__ inline uint4 bias(int p) const { return biases[piece_of_thread(p)]; }
};

template <typename T, int PIECES, int BLOCKS>
__device__ inline void norm_cluster_ring(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ float2 places[2][BLOCKS];
    __shared__ uint64_t arrived[CLUSTER_RING_STAGES + 1];
    extern __shared__ uint4 shared[];
    typedef cluster_ring<T, PIECES, BLOCKS> ring_of_rows;
    const int kept = (x.weight != nullptr) + (x.bias != nullptr);
    ring_of_rows ring(x, kept, shared, arrived);
    const norm_parameters_kept parameters(x, ring, kept);
    ring_reducer<BLOCKS, ring_of_rows> reducer = {{parts, 0}, {places, 0}, ring};
    T *out = (T *)x.out + (long long)ring.first * PIECE<T>;
    ring.meet();
    for (; ring.row < x.rows; ring.row += ring.step) {
        uint4 bits[PIECES];
        float values[PIECES][PIECE<T>];
        ring.take(bits, 0);
        norm_of_pieces<T>(values, bits, ring.count, x, reducer, parameters);
        store_whole<T>(values, out + ring.row * x.out_stride, ring.count);
    }
}

#define NORM_CLUSTER_RING(name, T, pieces, blocks)                                                 \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 2)            \
        norm_cluster_ring_##name##_##blocks(norm_arguments x) {                                    \
        norm_cluster_ring<T, pieces, blocks>(x);                                                   \
    }
NORM_CLUSTER_RING(f16, __half, 4, 2)
NORM_CLUSTER_RING(f16, __half, 4, 4)
NORM_CLUSTER_RING(f16, __half, 4, 8)
NORM_CLUSTER_RING(bf16, __nv_bfloat16, 4, 2)
NORM_CLUSTER_RING(bf16, __nv_bfloat16, 4, 4)
NORM_CLUSTER_RING(bf16, __nv_bfloat16, 4, 8)
NORM_CLUSTER_RING(f32, float, 8, 2)
NORM_CLUSTER_RING(f32, float, 8, 4)
NORM_CLUSTER_RING(f32, float, 8, 8)
#endif
