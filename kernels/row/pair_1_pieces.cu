// pair: swiglu, out[r][c] = in[r][c] / (1 + exp(-in[r][c])) * with[r][c]; and add, out[r][c] =
// in[r][c] + with[r][c].
//
// The idea: rows move by pieces of 16 bytes (row.cuh); both loads of a thread are in flight at
// once.
// Owner: block (b, r) owns rows r, r + gridDim.y, ...; thread t of it owns the pieces b blockDim.x
// + t, and those gridDim.x * blockDim.x further on. out may be in or with.
// Bound by: memory. Requires: any grid and block; any alignment.
#include "pair.cuh"

template <typename T, typename COMBINE>
__device__ inline void pair(const pair_arguments &x, COMBINE combine) {
    const long long step = (long long)gridDim.x * blockDim.x * PIECE<T>;
    for (long long row = blockIdx.y; row < x.rows; row += gridDim.y) {
        const T *in = (const T *)x.in + row * x.in_stride;
        const T *with = (const T *)x.with + row * x.with_stride;
        T *out = (T *)x.out + row * x.out_stride;
        long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * PIECE<T>;
        for (first -= elements_before(in); first < x.columns; first += step) {
            piece_bytes<T> bytes[2];
            load_inside(bytes[0], in, first, x.columns);
            load_inside(bytes[1], with, first, x.columns);
            load_end(bytes[0], in, first, x.columns);
            load_end(bytes[1], with, first, x.columns);
            float a[PIECE<T>], b[PIECE<T>];
            unpack<T>(a, bytes[0]);
            unpack<T>(b, bytes[1]);
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) a[i] = combine(a[i], b[i]);
            store_piece(a, out, first, x.columns);
        }
    }
}

#define PAIR(operation)                                                                            \
    extern "C" __global__ void operation##_f32(pair_arguments x) {                                 \
        pair<float>(x, operation());                                                               \
    }                                                                                              \
    extern "C" __global__ void operation##_f16(pair_arguments x) {                                 \
        pair<__half>(x, operation());                                                              \
    }                                                                                              \
    extern "C" __global__ void operation##_bf16(pair_arguments x) {                                \
        pair<__nv_bfloat16>(x, operation());                                                       \
    }
PAIR(swiglu)
PAIR(add)
