// softmax, step 5: whole rows, with persistent blocks.
// Target: compute_80
//
// The idea: a block processes row after row, and cp.async loads the next ones into a ring in shared
// memory (row_ring.cuh), so that memory is not idle at barriers.
// Owner: blockDim.x threads own a row at a time, thread t its pieces t, t + blockDim.x, ...; then
// the row gridDim.x * blockDim.y further on.
// Bound by: memory.
// Requires: as step 4; blockDim.x * blockDim.y at most RING_THREADS.
#include "../row/row_ring.cuh"
#include "softmax_whole.cuh"

template <typename T, int PIECES> __device__ inline void softmax_ring(const softmax_arguments &x) {
#if __CUDA_ARCH__ >= 800
    __shared__ float parts[2][WARP];
    __shared__ uint4 slots[RING_ROWS * PIECES * RING_THREADS];
    row_ring<T, PIECES> ring = ring_of<T, PIECES>(x, softmax_fill<T>(x), slots);
    row_reducer reducer = {parts, 0};
    for (long long row = row_of_thread(); row < x.rows; row += ring.step) {
        uint4 bits[PIECES];
        float values[PIECES][PIECE<T>];
        ring.take(bits);
        softmax_of_pieces<T>(values, bits, x.scale, reducer);
        store_whole<T>(values, (T *)x.out + row * x.out_stride, ring.count);
    }
#endif
}

#define SOFTMAX_RING(name, T, pieces)                                                              \
    extern "C" __global__ void __launch_bounds__(RING_THREADS, 8)                                  \
        softmax_ring_##name##_##pieces(softmax_arguments x) {                                      \
        softmax_ring<T, pieces>(x);                                                                \
    }
SOFTMAX_RING(f16, __half, 1)
SOFTMAX_RING(f16, __half, 2)
SOFTMAX_RING(f16, __half, 4)
SOFTMAX_RING(bf16, __nv_bfloat16, 1)
SOFTMAX_RING(bf16, __nv_bfloat16, 2)
SOFTMAX_RING(bf16, __nv_bfloat16, 4)
