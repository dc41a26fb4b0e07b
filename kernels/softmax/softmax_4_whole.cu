// softmax, step 4: whole rows without a mask.
//
// The idea: step 2 without a test of each element's column. For 16-bit elements the exponential is
// one instruction, which is exact enough for them.
// Owner: as step 2. Bound by: memory.
// Requires: as step 2; rows begin at multiples of 16 bytes and are a multiple of 16 bytes long; no
// mask.
#include "softmax_whole.cuh"

template <typename T, int PIECES> __device__ inline void softmax_whole(const softmax_arguments &x) {
    __shared__ float parts[2][WARP];
    const long long row = row_of_thread();
    if (row >= x.rows) return; // only whole warps leave: no thread waits for them
    const int count = whole_pieces<T>(x.columns);
    row_reducer reducer = {parts, 0};
    uint4 bits[PIECES];
    float values[PIECES][PIECE<T>];
    load_whole<T>(bits, (const T *)x.in + row * x.in_stride, count, softmax_fill<T>(x));
    softmax_of_pieces<T>(values, bits, x.scale, reducer);
    store_whole<T>(values, (T *)x.out + row * x.out_stride, count);
}

#define SOFTMAX_WHOLE(name, T, pieces, threads, blocks)                                            \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        softmax_whole_##name##_##pieces(softmax_arguments x) {                                     \
        softmax_whole<T, pieces>(x);                                                               \
    }
SOFTMAX_WHOLE(f16, __half, 1, 128, 12)
SOFTMAX_WHOLE(f16, __half, 2, 512, 3)
SOFTMAX_WHOLE(f16, __half, 4, 256, 5)
SOFTMAX_WHOLE(bf16, __nv_bfloat16, 1, 128, 12)
SOFTMAX_WHOLE(bf16, __nv_bfloat16, 2, 512, 3)
SOFTMAX_WHOLE(bf16, __nv_bfloat16, 4, 256, 5)
SOFTMAX_WHOLE(f32, float, 8, 1024, 1)
