// softmax, step 3: rows that the registers do not hold.
//
// The idea: one pass finds maximum and sum, and scales the sum when the maximum grows; a second
// pass writes. Two reads and one write of the row.
// Owner: a block owns a row, thread t its pieces t, t + blockDim.x, ...
// Bound by: memory. Requires: blockDim = (a multiple of 32, 1, 1), gridDim.x = rows; any length,
// any alignment.
#include "../row/row.cuh"

// exp(a - b), and 1 where both are the same infinity.
__device__ inline float grown(float a, float b) {
    return a == b ? 1.0f : expf(a - b);
}

template <typename T> __device__ inline void softmax_online(const softmax_arguments &x) {
    const long long row = row_of_thread();
    const T *in = (const T *)x.in + row * x.in_stride;
    T *out = (T *)x.out + row * x.out_stride;
    const uint8_t *mask =
        x.mask == nullptr ? nullptr : (const uint8_t *)x.mask + row * x.mask_stride;
    const long long columns = x.columns, step = (long long)blockDim.x * PIECE<T>;
    const long long begin = (long long)threadIdx.x * PIECE<T> - elements_before(in);
    auto load = [&](float(&values)[PIECE<T>], long long first) {
        load_piece(values, in, first, columns);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            const long long c = first + i;
            const bool counts = c >= 0 && c < columns && (mask == nullptr || mask[c] != 0);
            values[i] = counts ? x.scale * values[i] : -INFINITE;
        }
    };
    float values[PIECE<T>], mine = -INFINITE, sum = 0;
    for (long long first = begin; first < columns; first += step) {
        load(values, first);
        float largest = mine;
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) largest = fmaxf(largest, values[i]);
        const float base = largest == -INFINITE ? 0 : largest;
        sum *= grown(mine, largest);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) sum += expf(values[i] - base);
        mine = largest;
    }
    const float largest = row_max(mine), base = largest == -INFINITE ? 0 : largest;
    sum = row_sum(sum * grown(mine, largest));
    const float share = sum == 0 ? 0 : 1 / sum;
    for (long long first = begin; first < columns; first += step) {
        load(values, first);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) values[i] = expf(values[i] - base) * share;
        store_piece(values, out, first, columns);
    }
}

extern "C" __global__ void softmax_online_f32(softmax_arguments x) {
    softmax_online<float>(x);
}
extern "C" __global__ void softmax_online_f16(softmax_arguments x) {
    softmax_online<__half>(x);
}
extern "C" __global__ void softmax_online_bf16(softmax_arguments x) {
    softmax_online<__nv_bfloat16>(x);
}
