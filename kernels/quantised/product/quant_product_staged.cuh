// What steps 5 to 7 of the quant product share: y[m] = sum_k W[m][k] x[k] for one column and Q4_K.
//
// The idea: each block rounds x to bytes in its own shared memory, as quant_product_3_integers
// does, while its first weights are in flight. So no kernel has to run first. A warp owns a few
// rows, and a lane 64 elements of each at a time: it decodes a header once for 32 bytes of quants,
// and its next loads are always in flight.
// Owner: warp w of the grid owns rows ROWS w to ROWS w + ROWS - 1 of y.
// Bound by: reads of the weights.
// Requires: blockDim = (STAGED_THREADS, 1, 1), gridDim.x = rows / (ROWS STAGED_WARPS), rounded up;
// k + k / 4 bytes of dynamic shared memory; weights and x at multiples of 16 bytes.
#pragma once

#include "../formats/quant.cuh"
#include "quant_product_arguments.h"

enum { STAGED_THREADS = 512, STAGED_WARPS = STAGED_THREADS / WARP };

// Loads 16 bytes of global memory. It is volatile, so it is not moved before the wait for the
// previous kernel; and unlike __ldg it uses no cache that may miss that kernel's writes.
__device__ inline uint4 load_global_16(const void *p) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(p)));
    return v;
}

// x in shared memory. Each item of 64 elements is cut into four pieces of 16; the first pieces of
// all items are adjacent, then the second ones, so that lanes read side by side. Then come the
// scales of the two halves of each item, and the sums of their bytes times the scales, for the
// minimums.
struct staged_x {
    int4 *quants;
    float4 *scales;
    uint32_t items; // of 64 elements

    __device__ inline staged_x(void *shared, uint32_t k)
        : quants((int4 *)shared), scales((float4 *)((char *)shared + k)), items(k / 64) {}
};

// rint(value / d), in the lowest byte. r is 1 / d, rounded. Two corrections make the quotient
// exactly that of a division, as long as no remainder is subnormal; adding 1.5 * 2^23 rounds it.
__device__ inline uint32_t rounded_fast(float value, float d, float r) {
    float q = value * r;
    q = fmaf(fmaf(-q, d, value), r, q);
    q = fmaf(fmaf(-q, d, value), r, q);
    return __float_as_uint(q + 12582912.0f);
}

// The same for d below 2^-90, with value and d scaled by 2^64, which is exact. If d is subnormal,
// the rounded value / d may exceed 127. If d is 0, so is the result.
__device__ inline uint32_t rounded_small(float value, float d, float r) {
    float q = value * r;
    q = fmaf(fmaf(-q, d, value), r, q);
    q = fmaf(fmaf(-q, d, value), r, q);
    return __float_as_uint(fminf(fmaxf(q, -127.0f), 127.0f) + 12582912.0f);
}

__device__ inline uint32_t lowest_bytes(const uint32_t (&q)[4]) {
    return __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
}

// Rounds the i-th eight elements of x. Four lanes share a scale and its 32 elements; all four are
// active, since x has a whole number of scales.
__device__ inline void stage_eight(const staged_x &x, uint32_t i, const uint4 &a, const uint4 &b) {
    const uint32_t bits[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    const uint32_t lanes = 0xfu << (threadIdx.x % WARP / 4 * 4);
    uint32_t most = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) most = max(most, bits[j] & 0x7fffffffu);
    most = max(most, __shfl_xor_sync(lanes, most, 1));
    most = max(most, __shfl_xor_sync(lanes, most, 2));
    const float d = most >= 0x7f800000u ? __uint_as_float(0x7fffffff)
                                        : __fdiv_rn(__uint_as_float(most), 127.0f);
    uint32_t q[2][4];
    if (d >= 0x1p-90f) {
        const float r = __frcp_rn(d);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            q[j / 4][j % 4] = rounded_fast(__uint_as_float(bits[j]), d, r);
        }
    } else {
        const float large = 0x1p64f, r = d > 0 ? __frcp_rn(d * large) : 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            q[j / 4][j % 4] = rounded_small(__uint_as_float(bits[j]) * large, d * large, r);
        }
    }
    const uint2 bytes = {lowest_bytes(q[0]), lowest_bytes(q[1])};
    int sum = __dp4a((int)bytes.x, 0x01010101, __dp4a((int)bytes.y, 0x01010101, 0));
    sum += __shfl_xor_sync(lanes, sum, 1);
    sum += __shfl_xor_sync(lanes, sum, 2);
    const uint32_t item = i / 8, part = i % 8 / 2;
    ((uint2 *)(x.quants + part * x.items + item))[i % 2] = bytes;
    if (i % 4 == 0) {
        float *scales = (float *)(x.scales + item) + i % 8 / 4;
        scales[0] = d;
        scales[2] = d * (float)sum;
    }
}

__device__ inline void stage(const staged_x &x, const float *from) {
    for (uint32_t i = threadIdx.x; i < x.items * 8; i += STAGED_THREADS) {
        const uint4 a = load_global_16(from + (size_t)8 * i),
                    b = load_global_16(from + (size_t)8 * i + 4);
        stage_eight(x, i, a, b);
    }
}

// What a lane holds of a row at a time: a block's header, and 32 bytes of its quants.
struct staged_item {
    uint4 header, q[2];

    __device__ inline void load(const uint8_t *block, uint32_t group) {
        const uint8_t *quants = block + 16 + 32 * group;
        header = load_global_16(block);
        q[0] = load_global_16(quants);
        q[1] = load_global_16(quants + 16);
    }

    __device__ inline void load_shared(const uint8_t *block, uint32_t group) {
        const uint4 *quants = (const uint4 *)(block + 16 + 32 * group);
        header = *(const uint4 *)block;
        q[0] = quants[0];
        q[1] = quants[1];
    }
};

// Adds the products of four unsigned and four signed bytes.
__device__ inline int dot_4(uint32_t a, int b, int sum) {
    int result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

__device__ inline int dot_16(const uint4 &q, uint32_t mask, const int4 &x, int sum) {
    sum = dot_4(q.x & mask, x.x, sum);
    sum = dot_4(q.y & mask, x.y, sum);
    sum = dot_4(q.z & mask, x.z, sum);
    return dot_4(q.w & mask, x.w, sum);
}

// The shifts and masks that extract the scales of a lane's group, as q4_k_scales_of, but without a
// branch, since the lanes of a warp have different groups.
struct staged_group {
    uint32_t index, at, upper, keep, rest;

    __device__ inline staged_group(uint32_t g)
        : index(g), at(g % 2 * 16), upper(at + (g < 2 ? 0 : 2)), keep(g < 2 ? 0x3f3f : 0x3030),
          rest(g < 2 ? 0 : 0x0f0f) {}

    __device__ inline q4_k_scales scales_of(const uint4 &header) const {
        return {(header.y >> upper & keep) | (header.w >> at & rest),
                (header.z >> upper & keep) | (header.w >> (at + 4) & rest)};
    }
};

// The high halves of the bytes are not shifted down, so their sum is 16 times too large and is
// shifted instead.
template <int ROWS>
__device__ inline void add(float (&sums)[ROWS], const staged_item (&items)[ROWS], const staged_x &x,
                           uint32_t item, const staged_group &group) {
    const int4 low[2] = {x.quants[item], x.quants[x.items + item]};
    const int4 high[2] = {x.quants[2 * x.items + item], x.quants[3 * x.items + item]};
    const float4 d_x = x.scales[item];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const staged_item &w = items[r];
        const q4_k_scales s = group.scales_of(w.header);
        const float2 d = q4_k_d(w.header);
        const int sum_low =
            dot_16(w.q[1], 0x0f0f0f0fu, low[1], dot_16(w.q[0], 0x0f0f0f0fu, low[0], 0));
        const int sum_high =
            dot_16(w.q[1], 0xf0f0f0f0u, high[1], dot_16(w.q[0], 0xf0f0f0f0u, high[0], 0)) >> 4;
        const float plus = d_x.x * (float)(sum_low * (int)(s.scales & 0xff)) +
                           d_x.y * (float)(sum_high * (int)(s.scales >> 8));
        const float minus = (float)(s.minimums & 0xff) * d_x.z + (float)(s.minimums >> 8) * d_x.w;
        sums[r] += d.x * plus - d.y * minus;
    }
}

// The rows of a warp. Rows past the last are computed from the last one, and not written.
template <int ROWS> struct staged_rows {
    uint32_t first;
    const uint8_t *row[ROWS];

    __device__ inline staged_rows(const kn_quant_product_arguments &a)
        : first((blockIdx.x * STAGED_WARPS + threadIdx.x / WARP) * ROWS) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            row[r] = (const uint8_t *)a.weights +
                     (uint64_t)min(first + r, a.rows - 1) * a.blocks * Q4_K_BYTES;
        }
    }
};

// Of each row DEPTH items are in flight or being multiplied.
template <int ROWS, int DEPTH>
__device__ inline void staged_product(const kn_quant_product_arguments &a,
                                      const staged_rows<ROWS> &rows) {
    extern __shared__ int4 shared[];
    enum { STEP = WARP / 4 * Q4_K_BYTES }; // to the lanes' next items: a lane keeps its group
    const staged_x x(shared, a.k);
    const uint32_t lane = threadIdx.x % WARP;
    const staged_group group(lane % 4);
    const uint8_t *block[ROWS];
    staged_item items[DEPTH][ROWS];
    float sums[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        block[r] = rows.row[r] + lane / 4 * Q4_K_BYTES;
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (lane + i * WARP < x.items) items[i][r].load(block[r] + i * STEP, group.index);
        }
    }
    stage(x, (const float *)a.x);
    __syncthreads();
    for (uint32_t at = lane; at < x.items; at += DEPTH * WARP) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) block[r] += DEPTH * STEP;
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            const uint32_t item = at + i * WARP;
            if (item < x.items) add(sums, items[i], x, item, group);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (item + DEPTH * WARP < x.items)
                    items[i][r].load(block[r] + i * STEP, group.index);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float sum = warp_sum(sums[r]);
        if (lane == 0 && rows.first + r < a.rows) ((float *)a.y)[rows.first + r] = sum;
    }
}
