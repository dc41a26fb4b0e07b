// pair, step 2: matrices without gaps, in whole pieces of 16 bytes.
// Target: compute_80
//
// The idea: rows without gaps are one long row, so every thread of every block has a piece, and
// nothing is computed for the ends of rows. From compute capability 8.0 on, one instruction rounds
// two floats to bf16; step 1 takes several for each, and is then bound by instructions.
// Owner: thread t of block b owns pieces b blockDim.x + t, and those gridDim.x * blockDim.x further
// on. out may be in or with.
// Bound by: memory. Requires: one row of whole pieces that begins at a multiple of 16 bytes, of all
// three matrices; any grid and block.
#include "pair.cuh"

template <typename T, typename COMBINE>
__device__ inline void pair(const pair_arguments &x, COMBINE combine) {
    const long long pieces = x.columns / PIECE<T>, step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < pieces; i += step) {
        piece_bytes<T> in, with;
        float a[PIECE<T>], b[PIECE<T>];
        in.whole = ((const uint4 *)x.in)[i];
        with.whole = ((const uint4 *)x.with)[i];
        unpack<T>(a, in);
        unpack<T>(b, with);
#pragma unroll
        for (int e = 0; e < PIECE<T>; e++) {
            in.elements[e] = bits_of_element(from_float<T>(combine(a[e], b[e])));
        }
        ((uint4 *)x.out)[i] = in.whole;
    }
}

#define PAIR(operation)                                                                            \
    extern "C" __global__ void operation##_whole_f32(pair_arguments x) {                           \
        pair<float>(x, operation());                                                               \
    }                                                                                              \
    extern "C" __global__ void operation##_whole_f16(pair_arguments x) {                           \
        pair<__half>(x, operation());                                                              \
    }                                                                                              \
    extern "C" __global__ void operation##_whole_bf16(pair_arguments x) {                          \
        pair<__nv_bfloat16>(x, operation());                                                       \
    }
PAIR(swiglu)
PAIR(add)
