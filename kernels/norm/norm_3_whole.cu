// norm, step 3: whole rows.
//
// The idea: step 2 without a test of each element's column, and with the weight in flight while the
// threads of a row wait for each other.
// Owner: as step 2. Bound by: memory.
// Requires: as step 2; rows, weight and bias begin at multiples of 16 bytes, a row is a multiple of
// 16 bytes long, and weight and bias are of the rows' type.
#include "norm_whole.cuh"

template <typename T, int PIECES> __device__ inline void norm_whole(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    const long long row = row_of_thread();
    if (row >= x.rows) return; // only whole warps leave: no thread waits for them
    const int count = whole_pieces<T>(x.columns);
    row_reducer reducer = {parts, 0};
    uint4 bits[PIECES];
    float values[PIECES][PIECE<T>];
    load_whole<T>(bits, (const T *)x.in + row * x.in_stride, count, 0);
    norm_of_pieces<T>(values, bits, count, x, reducer, norm_parameters_in_place{x});
    store_whole<T>(values, (T *)x.out + row * x.out_stride, count);
}

#define NORM_WHOLE(name, T, pieces, threads, blocks)                                               \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        norm_whole_##name##_##pieces(norm_arguments x) {                                           \
        norm_whole<T, pieces>(x);                                                                  \
    }
NORM_WHOLE(f16, __half, 1, 128, 12)
NORM_WHOLE(f16, __half, 2, 512, 3)
NORM_WHOLE(f16, __half, 4, 256, 4)
NORM_WHOLE(bf16, __nv_bfloat16, 1, 128, 12)
NORM_WHOLE(bf16, __nv_bfloat16, 2, 512, 3)
NORM_WHOLE(bf16, __nv_bfloat16, 4, 256, 5)
NORM_WHOLE(f32, float, 8, 1024, 1)
