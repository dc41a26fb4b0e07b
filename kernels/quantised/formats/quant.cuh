// What the kernels on quantised blocks share: the layouts of quant_block.h, read on the device.
//
// Q4_K is read by words, since a block of 144 bytes is nine times 16. Blocks of Q6_K (210 bytes)
// and Q8_0 (34 bytes) begin at even addresses, so they are read by two bytes.
#pragma once

#include "../../tile.cuh"

enum { Q4_K_BYTES = 144, Q6_K_BYTES = 210, Q8_0_BYTES = 34 };

// Loads two bytes at an even address; four bytes, as two such loads.
__device__ inline uint32_t load_2(const uint8_t *p) {
    return __ldg((const unsigned short *)p);
}
__device__ inline uint32_t load_4(const uint8_t *p) {
    return load_2(p) | load_2(p + 2) << 16;
}

__device__ inline float half_value(uint32_t bits) {
    return __half2float(__ushort_as_half((unsigned short)bits));
}

// The header of a Q4_K block is 16 bytes: d, dmin and the twelve bytes of scales. For group g of 64
// elements, the scales of its two sub-blocks are in the two lower bytes of a word, and so are the
// minimums.
struct q4_k_scales {
    uint32_t scales, minimums;
};

__device__ inline q4_k_scales q4_k_scales_of(const uint4 &header, int g) {
    const int at = g % 2 * 16;
    const uint32_t s = header.y >> at, m = header.z >> at, rest = header.w >> at;
    if (g < 2) return {s & 0x3f3f, m & 0x3f3f};
    return {(rest & 0x0f0f) | (s >> 2 & 0x3030), (rest >> 4 & 0x0f0f) | (m >> 2 & 0x3030)};
}

__device__ inline float2 q4_k_d(const uint4 &header) {
    return {half_value(header.x & 0xffff), half_value(header.x >> 16)};
}

// Subtracts 32 from four 6-bit numbers, as signed bytes: inverts the sixth bit and extends it.
__device__ inline uint32_t less_32(uint32_t q) {
    const uint32_t turned = q ^ 0x20202020u, sign = turned & 0x20202020u;
    return turned | sign << 1 | sign << 2;
}

// Four numbers of quarter s of half h of a Q6_K block, from element l on (a multiple of 2), as
// signed bytes, from words of ql and qh.
__device__ inline uint32_t q6_k_four(uint32_t ql, uint32_t qh, int s) {
    const uint32_t low = (s < 2 ? ql : ql >> 4) & 0x0f0f0f0fu;
    return less_32(low | (qh >> 2 * s & 0x03030303u) << 4);
}

__device__ inline float byte_value(uint32_t word, int i) {
    return (float)(int8_t)(word >> 8 * i & 0xff);
}

// One element by its index, as in the definition of the format.
struct q4_k {
    enum { BYTES = Q4_K_BYTES, ELEMENTS = 256 };
    static __device__ inline float element(const uint8_t *block, int i) {
        const uint8_t *scales = block + 4;
        const int j = i / 32, byte = block[16 + i / 64 * 32 + i % 32];
        const int q = i % 64 < 32 ? byte & 15 : byte >> 4;
        const int sc = j < 4 ? scales[j] & 63 : (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
        const int m = j < 4 ? scales[j + 4] & 63 : scales[j + 4] >> 4 | scales[j] >> 6 << 4;
        return half_value(load_2(block)) * (float)sc * (float)q -
               half_value(load_2(block + 2)) * (float)m;
    }
};

struct q6_k {
    enum { BYTES = Q6_K_BYTES, ELEMENTS = 256 };
    static __device__ inline float element(const uint8_t *block, int i) {
        const int half = i / 128, s = i % 128 / 32, l = i % 32;
        const int low = block[64 * half + s % 2 * 32 + l], high = block[128 + 32 * half + l];
        const int q = ((s < 2 ? low & 15 : low >> 4) | (high >> 2 * s & 3) << 4) - 32;
        return half_value(load_2(block + 208)) * (float)(int8_t)block[192 + i / 16] * (float)q;
    }
};

struct q8_0 {
    enum { BYTES = Q8_0_BYTES, ELEMENTS = 32 };
    static __device__ inline float element(const uint8_t *block, int i) {
        return half_value(load_2(block)) * (float)(int8_t)block[2 + i];
    }
};
