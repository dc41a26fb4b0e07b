// norm, step 2: the row in registers.
//
// The idea: device memory is read once and written once, by pieces of 16 bytes. The mean is still
// taken before the squares, since E[x^2] - E[x]^2 cancels where the mean is large.
// Owner: blockDim.x threads own a row, thread t its pieces t, t + blockDim.x, ...; blockDim.x is 32
// with several rows per block where rows are short.
// Bound by: memory.
// Requires: blockDim.x a multiple of 32, and 32 where blockDim.y is above 1; gridDim.x = rows /
// blockDim.y, rounded up; PIECES * blockDim.x pieces hold a row; any alignment.
#include "norm.cuh"

template <typename T, int PIECES> __device__ inline void norm_registers(const norm_arguments &x) {
    const long long row = row_of_thread();
    if (row >= x.rows) return; // only whole warps leave: no thread waits for them
    const T *in = (const T *)x.in + row * x.in_stride;
    T *out = (T *)x.out + row * x.out_stride;
    const int columns = (int)x.columns, step = (int)blockDim.x * PIECE<T>;
    const int begin = (int)threadIdx.x * PIECE<T> - elements_before(in);
    float values[PIECES][PIECE<T>], mean = 0, square = 0;
    load_row<T, PIECES>(values, in, begin, columns);
    if (x.centred) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) mean += values[p][i];
        }
        mean = row_sum(mean) / (float)columns;
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const int first = begin + p * step;
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            const bool inside = (unsigned)(first + i) < (unsigned)columns;
            values[p][i] = inside ? values[p][i] - mean : 0;
            square = fmaf(values[p][i], values[p][i], square);
        }
    }
    const float share = norm_share(row_sum(square), x);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const int first = begin + p * step;
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) values[p][i] *= share;
        norm_affine_piece<T>(values[p], first, x);
        store_piece(values[p], out, first, columns);
    }
}

#define NORM_REGISTERS(name, T, pieces)                                                            \
    extern "C" __global__ void __launch_bounds__(pieces == 8 ? 256 : 1024)                         \
        norm_##name##_##pieces(norm_arguments x) {                                                 \
        norm_registers<T, pieces>(x);                                                              \
    }
#define NORM_REGISTERS_OF(name, T)                                                                 \
    NORM_REGISTERS(name, T, 1)                                                                     \
    NORM_REGISTERS(name, T, 2)                                                                     \
    NORM_REGISTERS(name, T, 4)
NORM_REGISTERS_OF(f32, float)
NORM_REGISTERS(f32, float, 8)
NORM_REGISTERS_OF(f16, __half)
NORM_REGISTERS_OF(bf16, __nv_bfloat16)
