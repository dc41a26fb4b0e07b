// halves, step 3: what the attention of a prompt reads: q as halves, and the keys and values of one
// session, gathered from its pages.
//
// The idea: the fast kernels of attention read rows that lie side by side. Gathering moves each key
// once per layer and piece of a prompt, which is cheap compared with the products.
// Owner: thread (x, y) of gathering owns eight elements of one position of a head; of q, four; of
// biases, one element of a row.
// Bound by: reads and writes.
// Requires: blockDim = (256, 1, 1). Gathering: gridDim = (pieces of a head / 256, kv_heads, 2),
// keys and then values. q and biases: gridDim = (columns / 1024 or / 256, rows). Columns of q in
// fours.
#include "paged.cuh"

#include "halves_arguments.h"

struct gathered_halves {
    static __device__ inline uint4 key(const paged_cache &c, uint64_t page, int head, int head_size,
                                       int position, int piece) {
        return *(const uint4 *)key_at(c, page, head, head_size, position, piece);
    }
    static __device__ inline uint4 value(const paged_cache &c, uint64_t page, int head,
                                         int head_size, int position, int piece) {
        return ((const uint4 *)value_at(c, page, head, head_size, position))[piece];
    }
};

struct gathered_bytes {
    static __device__ inline uint4 widened(uint2 bits, __half scale) {
        uint4 out;
        uint32_t *words = &out.x;
        const float by = __half2float(scale);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t two = (i < 2 ? bits.x : bits.y) >> (i % 2 * 16);
            const __half2 pair =
                __floats2half2_rn(by * (float)(int8_t)two, by * (float)(int8_t)(two >> 8));
            words[i] = *(const uint32_t *)&pair;
        }
        return out;
    }
    static __device__ inline uint4 key(const paged_cache &c, uint64_t page, int head, int head_size,
                                       int position, int piece) {
        return widened(*(const uint2 *)key_bytes_at(c, page, head, head_size, position, piece),
                       scales_at(page, c.key_scales_at, head, head_size,
                                 position)[piece * KEY_PIECE / SCALED]);
    }
    static __device__ inline uint4 value(const paged_cache &c, uint64_t page, int head,
                                         int head_size, int position, int piece) {
        return widened(((const uint2 *)value_bytes_at(c, page, head, head_size, position))[piece],
                       scales_at(page, c.value_scales_at, head, head_size,
                                 position)[piece * KEY_PIECE / SCALED]);
    }
};

template <class GATHERED> __device__ inline void gather(const halves_cache_arguments &a) {
    const int pieces = a.head_size / KEY_PIECE, head = blockIdx.y;
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t position = i / pieces, piece = i % pieces;
    if (position >= a.positions) return;
    const uint64_t page = pages_of(a.cache, 0)[position / PAGE];
    const uint64_t to = ((uint64_t)head * a.positions + position) * pieces + piece;
    if (blockIdx.z == 0) {
        ((uint4 *)a.keys)[to] = GATHERED::key(a.cache, page, head, a.head_size, position, piece);
    } else {
        ((uint4 *)a.values)[to] =
            GATHERED::value(a.cache, page, head, a.head_size, position, piece);
    }
}

extern "C" __global__ void __launch_bounds__(256) halves_gather_f16(halves_cache_arguments a) {
    gather<gathered_halves>(a);
}
extern "C" __global__ void __launch_bounds__(256) halves_gather_q8_0(halves_cache_arguments a) {
    gather<gathered_bytes>(a);
}

extern "C" __global__ void __launch_bounds__(256) halves_of_rows(halves_some_arguments a) {
    const uint32_t at = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (at >= a.columns) return;
    const float4 x = *(const float4 *)((const float *)a.x + blockIdx.y * a.x_stride + at);
    const __half2 low = __floats2half2_rn(x.x, x.y), high = __floats2half2_rn(x.z, x.w);
    *(uint2 *)((__half *)a.out + (uint64_t)blockIdx.y * a.columns +
               at) = {*(const uint32_t *)&low, *(const uint32_t *)&high};
}

extern "C" __global__ void __launch_bounds__(256) halves_bias(halves_some_arguments a) {
    const uint32_t at = blockIdx.x * 256 + threadIdx.x;
    if (at < a.columns) {
        ((float *)a.x)[blockIdx.y * a.x_stride + at] += ((const float *)a.bias)[at];
    }
}
