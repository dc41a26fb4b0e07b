// argmax: out[r] = the column of the largest element of row r, the first of equal ones.
//
// The idea: an element and its column become one 64-bit key, so a maximum of keys decides equal
// elements by column and the result does not depend on the order of threads. A NaN is larger than
// every number, so that it is seen: its column is the result.
// Owner: block r owns row r; thread t its pieces t, t + blockDim.x, ...
// Bound by: reads. Requires: gridDim.x = rows, blockDim.x a multiple of 32; any alignment.
#include "row.cuh"

// Orders floats as integers: NaN above all, +0 and -0 the same. The column decides equals.
__device__ inline unsigned long long argmax_key(float value, long long column) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    const unsigned order = isnan(value) ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
    return (unsigned long long)order << 32 | (0xffffffffu - (unsigned)column);
}

template <typename T> __device__ inline void argmax(const argmax_arguments &x) {
    __shared__ unsigned long long parts[WARP];
    const T *in = (const T *)x.in + blockIdx.x * x.in_stride;
    unsigned long long best = 0; // below all keys
    long long first = (long long)threadIdx.x * PIECE<T> - elements_before(in);
    for (; first < x.columns; first += (long long)blockDim.x * PIECE<T>) {
        float values[PIECE<T>];
        load_piece(values, in, first, x.columns);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            const long long c = first + i;
            if (c >= 0 && c < x.columns) best = max(best, argmax_key(values[i], c));
        }
    }
    auto over_warp = [](unsigned long long key) {
        for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
            key = max(key, __shfl_xor_sync(~0u, key, lanes));
        }
        return key;
    };
    best = over_warp(best);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = best;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    best = over_warp(threadIdx.x < blockDim.x / WARP ? parts[threadIdx.x] : 0);
    if (threadIdx.x == 0) ((int *)x.out)[blockIdx.x] = (int)(0xffffffffu - (unsigned)best);
}

extern "C" __global__ void argmax_f32(argmax_arguments x) {
    argmax<float>(x);
}
extern "C" __global__ void argmax_f16(argmax_arguments x) {
    argmax<__half>(x);
}
extern "C" __global__ void argmax_bf16(argmax_arguments x) {
    argmax<__nv_bfloat16>(x);
}
