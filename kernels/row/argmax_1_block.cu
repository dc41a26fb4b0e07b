// argmax: out[r] = the column of the largest element of row r, the first of equal ones.
//
// The idea: an element and its column become one 64-bit key, so a maximum of keys decides equal
// elements by column and the result does not depend on the order of threads. A NaN is larger than
// every number, so that it is seen: its column is the result.
// Owner: block r owns row r; thread t its pieces t, t + blockDim.x, ...
// Bound by: reads. Requires: gridDim.x = rows, blockDim.x a multiple of 32; any alignment.
#include "argmax_key.cuh"
#include "row.cuh"

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
    best = largest_key(best);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = best;
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    best = largest_key(threadIdx.x < blockDim.x / WARP ? parts[threadIdx.x] : 0);
    if (threadIdx.x == 0) ((int *)x.out)[blockIdx.x] = column_of_key(best);
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
