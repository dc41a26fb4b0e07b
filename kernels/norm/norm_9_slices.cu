// norm, step 9: long whole rows by large persistent blocks, one slice of a row per warp.
// Target: compute_90
//
// The idea: in step 8 the threads that reduce a row also store it, and wait for memory. Here bulk
// copies do both ways (row_slices.cuh), and a share of 64 KiB, where step 8 has 32, has three
// stages: weights stay in registers. So a row has the time of two others to arrive. It begins while
// the previous kernel ends, as step 6.
// Owner: the blocks of cluster r own rows r, r + clusters, ...; each warp neighbouring pieces.
// Bound by: memory.
// Requires: compute capability 9.0; as step 7, but gridDim.x any multiple of BLOCKS, blockDim.x up
// to 512 with 8 pieces per thread, dynamic shared memory for three slices of rows, a programmatic
// launch, and a driver of CUDA 12.1 (row_slices.cuh).
#include "../row/row_slices.cuh"
#include "norm_slices.cuh"

#if __CUDA_ARCH__ >= 900
template <typename T, int PIECES, int BLOCKS>
__device__ inline void norm_slices(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ uint64_t arrived[SLICE_WARPS][SLICE_STAGES];
    __shared__ slices_place<BLOCKS, 1> places[SLICE_PLACES];
    extern __shared__ uint4 shared[];
    row_slices<T, BLOCKS, SLICES_RIGHT, norm_arguments> slices(x, shared, arrived);
    slices_reducer<BLOCKS> reducer = {{parts, 0}, {places}};
    uint4 weight[PIECES];
    slices.begin();
    norm_weights_of_slice(weight, slices, x);
    slices.begin_others();
    while (slices.has_row()) {
        float mean = 0, square = 0, y[PIECE<T>];
        uint4 bits[PIECES];
        slices.take(bits, 0);
        if (x.centred) {
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                unpack_piece<T>(y, bits[p]);
#pragma unroll
                for (int i = 0; i < PIECE<T>; i++) mean += y[i];
            }
            mean = reducer.sum(mean) / (float)x.columns;
        }
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            keep_packed(bits[p]);
            unpack_piece<T>(y, bits[p]);
            if (x.centred && !slices.has(p)) continue;
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) {
                if (x.centred) y[i] -= mean;
                square = fmaf(y[i], y[i], square);
            }
        }
        const float share = norm_share(reducer.sum(square), x);
        slices.refill();
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (!slices.has(p)) continue;
            norm_piece<T>(y, bits[p], weight[p], slices.first + slices.piece(p), mean, share, x);
            slices.results()[slices.piece(p)] = pack_piece<T>(y);
        }
        slices.give();
        slices.next();
    }
    slices.end();
}

#define NORM_SLICES(name, T, blocks)                                                               \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 1)            \
        norm_slices_##name##_##blocks(norm_arguments x) {                                          \
        norm_slices<T, 8, blocks>(x);                                                              \
    }
NORM_SLICES(f16, __half, 1)
NORM_SLICES(bf16, __nv_bfloat16, 1)
NORM_SLICES(f32, float, 1)
NORM_SLICES(f32, float, 2)
#endif
