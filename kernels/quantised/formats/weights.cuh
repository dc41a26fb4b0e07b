// Weights of a decoder, read eight at a time: the formats that files keep matrices in.
//
// A row of k elements is cut into chunks of 256; lane l of a warp takes eight elements of a chunk,
// in two runs of four. The runs are chosen so that a lane loads whole words of each format. Q4_K
// and Q5_K blocks begin at multiples of 16 bytes, floats and halves at multiples of their runs;
// blocks of Q6_K (210 bytes) and Q8_0 (34 bytes) begin at even addresses. The values are, bit for
// bit, those of weight_format.h.
#pragma once

#include "quant.cuh"

enum { CHUNK = 256, RUN = 4, Q5_K_BYTES = 176 };

// The first elements of the two runs of a lane, in its chunk; the eight weights.
struct eight {
    float w[2 * RUN];
};

__device__ inline float4 load_floats(const float *p) {
    return *(const float4 *)p;
}

// Formats of single elements: a lane's two runs are neighbours.
struct neighbours {
    static constexpr int GRAIN = 8; // elements that a row consists of whole ones of
    static __device__ inline int run(int lane, int i) {
        return lane * 8 + i * RUN;
    }
};

struct of_f32 : neighbours {
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)k * 4;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const float4 *p = (const float4 *)(row + ((uint64_t)chunk * CHUNK + lane * 8) * 4);
        const float4 a = p[0], b = p[1];
        return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        return ((const float *)row)[i];
    }
};

// The two halves of a word as floats.
template <bool BF16> __device__ inline float2 two_halves(uint32_t word) {
    if (BF16) return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
    return {half_value(word & 0xffff), half_value(word >> 16)};
}

template <bool BF16> struct of_16 : neighbours {
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)k * 2;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const uint4 bits = *(const uint4 *)(row + ((uint64_t)chunk * CHUNK + lane * 8) * 2);
        const float2 a = two_halves<BF16>(bits.x), b = two_halves<BF16>(bits.y);
        const float2 c = two_halves<BF16>(bits.z), d = two_halves<BF16>(bits.w);
        return {{a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y}};
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        return two_halves<BF16>(((const uint16_t *)row)[i]).x;
    }
};
using of_f16 = of_16<false>;
using of_bf16 = of_16<true>;

struct of_q8_0 : neighbours {
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)(k / 32) * Q8_0_BYTES;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const uint8_t *block = row + ((uint64_t)chunk * 8 + lane / 4) * Q8_0_BYTES;
        const float d = half_value(load_2(block));
        const uint32_t low = load_4(block + 2 + lane % 4 * 8);
        const uint32_t high = load_4(block + 6 + lane % 4 * 8);
        eight out;
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            out.w[i] = d * byte_value(low, i);
            out.w[RUN + i] = d * byte_value(high, i);
        }
        return out;
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        return q8_0::element(row + (uint64_t)(i / 32) * Q8_0_BYTES, i % 32);
    }
};

// Formats of blocks of 256: a chunk is a block. Lane l of Q4_K and Q5_K takes bytes 4 (l % 8) on of
// group l / 8, the low nibbles as its first run and the high ones, 32 elements on, as its second.
struct groups {
    static constexpr int GRAIN = CHUNK;
    static __device__ inline int run(int lane, int i) {
        return lane / 8 * 64 + i * 32 + lane % 8 * RUN;
    }
};

// d * sc * q - dmin * m for the two runs, with the roundings of the definition.
__device__ inline eight scaled_nibbles(const uint4 &header, int g, uint32_t low, uint32_t high) {
    const q4_k_scales s = q4_k_scales_of(header, g);
    const float2 d = q4_k_d(header);
    const float first = d.x * (float)(s.scales & 63), second = d.x * (float)(s.scales >> 8);
    const float least = d.y * (float)(s.minimums & 63), next = d.y * (float)(s.minimums >> 8);
    eight out;
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        out.w[i] = fmaf(first, (float)(low >> 8 * i & 0xff), -least);
        out.w[RUN + i] = fmaf(second, (float)(high >> 8 * i & 0xff), -next);
    }
    return out;
}

struct of_q4_k : groups {
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)(k / CHUNK) * Q4_K_BYTES;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const uint8_t *block = row + (uint64_t)chunk * Q4_K_BYTES;
        const uint32_t q = *(const uint32_t *)(block + 16 + lane * 4);
        return scaled_nibbles(*(const uint4 *)block, lane / 8, q & 0x0f0f0f0fu,
                              q >> 4 & 0x0f0f0f0fu);
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        return q4_k::element(row + (uint64_t)(i / CHUNK) * Q4_K_BYTES, i % CHUNK);
    }
};

// As Q4_K, with 32 bytes between the scales and the nibbles: bit 2 g of byte l is the fifth bit of
// element 64 g + l, and bit 2 g + 1 that of element 64 g + 32 + l.
struct of_q5_k : groups {
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)(k / CHUNK) * Q5_K_BYTES;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const uint8_t *block = row + (uint64_t)chunk * Q5_K_BYTES;
        const int g = lane / 8;
        const uint32_t q = *(const uint32_t *)(block + 48 + lane * 4);
        const uint32_t fifth = *(const uint32_t *)(block + 16 + lane % 8 * 4) >> 2 * g;
        return scaled_nibbles(*(const uint4 *)block, g,
                              (q & 0x0f0f0f0fu) | (fifth & 0x01010101u) << 4,
                              (q >> 4 & 0x0f0f0f0fu) | (fifth >> 1 & 0x01010101u) << 4);
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        const int in_chunk = (int)(i % CHUNK), g = in_chunk / 64, half = in_chunk % 64 / 32;
        const int lane = g * 8 + in_chunk % 32 / RUN;
        const eight all = load(row, i / CHUNK, lane);
        float value = 0;
#pragma unroll
        for (int at = 0; at < 2 * RUN; at++) {
            if (at == half * RUN + in_chunk % RUN) value = all.w[at];
        }
        return value;
    }
};

// Lane l takes bytes 4 (l % 8) on of ql's part (l / 8) % 2 of half l / 16; its second run is 64
// elements on, the high nibbles.
struct of_q6_k {
    static constexpr int GRAIN = CHUNK;
    static __device__ inline int run(int lane, int i) {
        return lane / 16 * 128 + lane / 8 % 2 * 32 + i * 64 + lane % 8 * RUN;
    }
    static __device__ inline uint64_t row_bytes(uint32_t k) {
        return (uint64_t)(k / CHUNK) * Q6_K_BYTES;
    }
    static __device__ inline eight load(const uint8_t *row, uint32_t chunk, int lane) {
        const uint8_t *block = row + (uint64_t)chunk * Q6_K_BYTES;
        const int half = lane / 16, part = lane / 8 % 2, at = lane % 8 * RUN;
        const uint32_t ql = load_4(block + 64 * half + 32 * part + at);
        const uint32_t qh = load_4(block + 128 + 32 * half + at);
        const float d = half_value(load_2(block + 208));
        const int8_t *scales = (const int8_t *)(block + 192 + 8 * half + 2 * part + at / 16);
        const float first = d * (float)scales[0], second = d * (float)scales[4];
        const uint32_t low = q6_k_four(ql, qh, part), high = q6_k_four(ql, qh, part + 2);
        eight out;
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            out.w[i] = first * byte_value(low, i);
            out.w[RUN + i] = second * byte_value(high, i);
        }
        return out;
    }
    static __device__ inline float element(const uint8_t *row, uint32_t i) {
        return q6_k::element(row + (uint64_t)(i / CHUNK) * Q6_K_BYTES, i % CHUNK);
    }
};
