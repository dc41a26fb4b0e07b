// x of a product on tensor cores: each element as two bfloat16 numbers, the second of which is what
// the first leaves over, in the order in which fragments.cuh has the weights; and the product of a
// sub-block of both. What multiplies by these gives the same bits in any tile.
#pragma once

#include "../formats/linear_arguments.h"

#include "fragments.cuh"

enum { SUB_BYTES = 128 }; // of a sub-block of 32 elements of a column: first and second numbers

// Two floats as bfloat16, the first in the lower half, and what that leaves over as well.
__device__ inline void split_two(float a, float b, uint32_t &first, uint32_t &second) {
    const __nv_bfloat162 high = __floats2bfloat162_rn(a, b);
    first = *(const uint32_t *)&high;
    const __nv_bfloat162 low = __floats2bfloat162_rn(a - __uint_as_float(first << 16),
                                                     b - __uint_as_float(first & 0xffff0000u));
    second = *(const uint32_t *)&low;
}

__device__ inline float two_sum(uint32_t first, uint32_t second) {
    return (__uint_as_float(first << 16) + __uint_as_float(second << 16)) +
           (__uint_as_float(first & 0xffff0000u) + __uint_as_float(second & 0xffff0000u));
}

// The eight elements of lane t of a sub-block that begins at `from`; NULL: zeros. Lanes t = 0 to 3
// call it together, and each gets the sum of the sub-block as well: two bfloat16 numbers in a word.
struct split_eight {
    uint4 first, second;
    uint32_t sum;
};
template <typename Q> __device__ inline split_eight split(const float *from, int t) {
    uint32_t first[4], second[4], high = 0, low = 0;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float4 v = {};
        if (from != NULL) v = load_floats(from + Q::run(t, r));
        split_two(v.x, v.y, first[2 * r], second[2 * r]);
        split_two(v.z, v.w, first[2 * r + 1], second[2 * r + 1]);
    }
    if (Q::HAS_LEAST) {
#pragma unroll
        for (int p = 0; p < 4; p++) sum += two_sum(first[p], second[p]);
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        split_two(sum, 0, high, low);
    }
    return {{first[0], first[1], first[2], first[3]},
            {second[0], second[1], second[2], second[3]},
            high | low << 16};
}

// The sums of a chunk of a column: eight bfloat16 numbers and what they leave over, of which lane t
// multiplies words t and 4 + t.
enum { CHUNK_SUMS = 2 * SUBS, CHUNK_WORDS = CHUNK_SUMS / 2 };
__device__ inline void put_sum(uint16_t *sums, int sub, uint32_t both) {
    sums[sub] = (uint16_t)both;
    sums[SUBS + sub] = (uint16_t)(both >> 16);
}

#if __CUDA_ARCH__ >= 800
// Of sub-block s, the scales of rows g and g + 8 for both steps. `own` is what the lane prepared.
template <typename Q>
__device__ inline void scales_of(float (&scales)[2][2], const float (&own)[2][4], int s) {
    const int from = (threadIdx.x % WARP & ~3u) | Q::scale_lane(s);
#pragma unroll
    for (int step = 0; step < 2; step++) {
        if (!Q::BY_STEP && step == 0) continue;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            scales[step][row] = __shfl_sync(~0u, own[row][Q::scale_at(s, step)], from);
        }
    }
}

__device__ inline void add_scaled(float (&sums)[4], const float (&scales)[2],
                                  const float (&products)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = fmaf(scales[i / 2], products[i], sums[i]);
}

// Adds a sub-block's products to the sums of N x M fragments: rows g and g + 8 of each of M tiles
// of weights, columns 2 t and 2 t + 1 of each of N tiles of x. Four instructions of a fragment
// depend on each other, so fragments take turns.
template <typename Q, int N, int M>
__device__ inline void add_subs(float (*sums)[M][4], const uint32_t (&a)[M][2][4],
                                const float (&scales)[M][2][2], const uint4 (&first)[N],
                                const uint4 (&second)[N]) {
    float products[N][M][4] = {};
#pragma unroll
    for (int step = 0; step < 2; step++) {
#pragma unroll
        for (int part = 0; part < 2; part++) {
#pragma unroll
            for (int i = 0; i < N * M; i++) {
                const uint4 &b = part == 0 ? first[i / M] : second[i / M];
                mma_16<__nv_bfloat16>(products[i / M][i % M], a[i % M][step], step == 0 ? b.x : b.z,
                                      step == 0 ? b.y : b.w);
            }
        }
        if (!Q::BY_STEP && step == 0) continue;
#pragma unroll
        for (int i = 0; i < N * M; i++) {
            float(&of_step)[4] = products[i / M][i % M];
            add_scaled(sums[i / M][i % M], scales[i % M][step], of_step);
            of_step[0] = of_step[1] = of_step[2] = of_step[3] = 0;
        }
    }
}

// Adds what the minimums of a chunk give: words t and 4 + t of the column's sums.
__device__ inline void add_least(float (&sums)[4], const uint32_t (&a)[4],
                                 const float (&factors)[2], uint32_t first, uint32_t second) {
    float products[4] = {};
    mma_16<__nv_bfloat16>(products, a, first, second);
    add_scaled(sums, factors, products);
}
#endif

// Ends an element of y: W x, and G x where there is a gate.
template <bool GATED>
__device__ inline void put_element(const linear_arguments &a, uint32_t row, uint32_t column,
                                   float sum, float gate) {
    float *y = (float *)a.y + column * a.y_stride + row;
    if (GATED) sum *= gate / (1 + expf(-gate));
    if (a.bias != 0) sum += ((const float *)a.bias)[row];
    if (a.adds) sum += *y;
    *y = sum;
}
