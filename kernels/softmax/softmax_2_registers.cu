// softmax, step 2: the row in registers.
//
// The idea: device memory is read once and written once, by pieces of 16 bytes.
// Owner: blockDim.x threads own a row, thread t its pieces t, t + blockDim.x, ...; blockDim.x is 32
// with several rows per block where rows are short.
// Bound by: memory.
// Requires: blockDim.x a multiple of 32, and 32 where blockDim.y is above 1; gridDim.x = rows /
// blockDim.y, rounded up; PIECES * blockDim.x pieces hold a row; any alignment.
#include "../row/row.cuh"

template <typename T, int PIECES>
__device__ inline void softmax_registers(const softmax_arguments &x) {
    const long long row = row_of_thread();
    if (row >= x.rows) return; // only whole warps leave: no thread waits for them
    const T *in = (const T *)x.in + row * x.in_stride;
    T *out = (T *)x.out + row * x.out_stride;
    const uint8_t *mask =
        x.mask == nullptr ? nullptr : (const uint8_t *)x.mask + row * x.mask_stride;
    const int columns = (int)x.columns, step = (int)blockDim.x * PIECE<T>;
    const int begin = (int)threadIdx.x * PIECE<T> - elements_before(in);
    float values[PIECES][PIECE<T>], largest = -INFINITE, sum = 0;
    load_row<T, PIECES>(values, in, begin, columns);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const int first = begin + p * step;
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            const bool counts = (unsigned)(first + i) < (unsigned)columns &&
                                (mask == nullptr || mask[first + i] != 0);
            values[p][i] = counts ? x.scale * values[p][i] : -INFINITE;
            largest = fmaxf(largest, values[p][i]);
        }
    }
    largest = row_max(largest);
    const float base = largest == -INFINITE ? 0 : largest;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            values[p][i] = expf(values[p][i] - base);
            sum += values[p][i];
        }
    }
    sum = row_sum(sum);
    const float share = sum == 0 ? 0 : 1 / sum;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) values[p][i] *= share;
        store_piece(values[p], out, begin + p * step, columns);
    }
}

#define SOFTMAX_REGISTERS(name, T, pieces)                                                         \
    extern "C" __global__ void __launch_bounds__(pieces == 8 ? 256 : 1024)                         \
        softmax_##name##_##pieces(softmax_arguments x) {                                           \
        softmax_registers<T, pieces>(x);                                                           \
    }
#define SOFTMAX_REGISTERS_OF(name, T)                                                              \
    SOFTMAX_REGISTERS(name, T, 1)                                                                  \
    SOFTMAX_REGISTERS(name, T, 2)                                                                  \
    SOFTMAX_REGISTERS(name, T, 4)
SOFTMAX_REGISTERS_OF(f32, float)
SOFTMAX_REGISTERS(f32, float, 8)
SOFTMAX_REGISTERS_OF(f16, __half)
SOFTMAX_REGISTERS_OF(bf16, __nv_bfloat16)
