// norm, step 4: whole rows, with persistent blocks.
// Target: compute_80
//
// The idea: a block processes row after row, and cp.async loads the next ones into a ring in shared
// memory (row_ring.cuh), so that memory is not idle at barriers.
// Owner: blockDim.x threads own a row at a time, thread t its pieces t, t + blockDim.x, ...; then
// the row gridDim.x * blockDim.y further on.
// Bound by: memory.
// Requires: as step 3; blockDim.x * blockDim.y at most RING_THREADS.
#include "norm_whole.cuh"
#include "../row/row_ring.cuh"

template <typename T, int PIECES> __device__ inline void norm_ring(const norm_arguments &x) {
#if __CUDA_ARCH__ >= 800
    __shared__ float parts[2][WARP];
    __shared__ uint4 slots[RING_ROWS * PIECES * RING_THREADS];
    row_ring<T, PIECES> ring = ring_of<T, PIECES>(x, 0, slots);
    row_reducer reducer = {parts, 0};
    for (long long row = row_of_thread(); row < x.rows; row += ring.step) {
        uint4 bits[PIECES];
        float values[PIECES][PIECE<T>];
        ring.take(bits);
        norm_of_pieces<T>(values, bits, ring.count, x, reducer, norm_parameters_in_place{x});
        store_whole<T>(values, (T *)x.out + row * x.out_stride, ring.count);
    }
#endif
}

#define NORM_RING(name, T, pieces)                                                                 \
    extern "C" __global__ void __launch_bounds__(RING_THREADS, 8)                                  \
        norm_ring_##name##_##pieces(norm_arguments x) {                                            \
        norm_ring<T, pieces>(x);                                                                   \
    }
NORM_RING(f16, __half, 1)
NORM_RING(f16, __half, 2)
NORM_RING(f16, __half, 4)
NORM_RING(bf16, __nv_bfloat16, 1)
NORM_RING(bf16, __nv_bfloat16, 2)
NORM_RING(bf16, __nv_bfloat16, 4)
