// What a warp makes of a chunk of each format of weights, for linear_bytes.cuh: quants become
// bytes, mma multiplies them by x, and scales and minimums multiply the sums. A format is a struct
// that says how long its chunks are, and adds one to the totals of a tile of 16 rows.
#pragma once

#include "../formats/rounded.cuh"
#include "split.cuh"

#if __CUDA_ARCH__ >= 800
// c = a b of 16 x 8 x 32 bytes, and of 16 x 8 x 16.
__device__ inline void mma_bytes(int (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}
__device__ inline void mma_bytes_16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5}, {%6}, {%7, %7, %7, %7};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a0), "r"(a1), "r"(b), "r"(0));
}

// The sums of a fragment: rows g and g + 8 of columns 2 t and 2 t + 1.
template <int NT> struct fragment_sums { int of[NT][4]; };

__device__ inline void add_scaled_bytes(int (&sums)[4], const int (&products)[4], int first,
                                        int second) {
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] += (i < 2 ? first : second) * products[i];
}

// Adds a chunk to the totals: d and dmin are those of rows g and g + 8, scales of columns 2 t and
// 2 t + 1.
template <bool HAS_LEAST>
__device__ inline void add_chunk_total(float (&totals)[4], const int (&sums)[4],
                                       const int (&least)[4], const float (&d)[2],
                                       const float (&dmin)[2], uint32_t scale) {
    const uint32_t t = threadIdx.x % 4;
    const float scales[2] = {__uint_as_float(__shfl_sync(~0u, scale, 8 * t)),
                             __uint_as_float(__shfl_sync(~0u, scale, 8 * t + 4))};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float s = (float)sums[i];
        const float v = HAS_LEAST ? fmaf(d[i / 2], s, -__fmul_rn(dmin[i / 2], (float)least[i]))
                                  : __fmul_rn(d[i / 2], s);
        totals[i] = fmaf(scales[i % 2], v, totals[i]);
    }
}

// What bytes by the sums of 16 neighbours give: those sums are two bytes each.
__device__ inline void sums_by(int (&out)[4], uint32_t a0, uint32_t a1, const uint4 &unit) {
    int high[4];
    mma_bytes_16(out, a0, a1, unit.x);
    mma_bytes_16(high, a0, a1, unit.y);
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] += 128 * high[i];
}

// Byte i of a word as a whole number, without a sign and with one.
__device__ inline int byte_of(uint32_t word, int i) {
    return (int)__byte_perm(word, 0, 0x4440 | i);
}
__device__ inline int signed_byte_of(uint32_t word, int i) {
    int value; // 8 + i: the sign of byte i, eight times
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"(i | (8 | i) * 0x1110));
    return value;
}

__device__ inline uint32_t word_at(const uint8_t *p) {
    return *(const uint32_t *)p;
}

// Q4_K and Q5_K: 16 rows of a chunk in shared memory, STRIDE bytes each. Strides are such that the
// words of eight rows lie in different banks.
template <bool FIFTH> struct bytes_k {
    enum {
        BYTES = FIFTH ? (int)Q5_K_BYTES : (int)Q4_K_BYTES,
        AT = FIFTH ? 48 : 16,
        PIECES = BYTES / 16,
        STRIDE = FIFTH ? (int)LINEAR_STRIDE_Q5_K : (int)LINEAR_STRIDE_Q4_K
    };
    static constexpr bool IS_EVEN = true; // blocks begin at multiples of 16 bytes

    template <int NT, bool LAST, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, X &x,
                                      const uint32_t (&)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        uint32_t scales[2][2], minimums[2];
        float d[2], dmin[2];
        fragment_sums<NT> sums = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint4 header = *(const uint4 *)(tile + (g + 8 * r) * STRIDE);
            scales[r][0] = header.y & 0x3f3f3f3fu;
            scales[r][1] = (header.w & 0x0f0f0f0fu) | (header.y >> 2 & 0x30303030u);
            const uint32_t four =
                t < 2 ? header.z & 0x3f3f3f3fu
                      : (header.w >> 4 & 0x0f0f0f0fu) | (header.z >> 2 & 0x30303030u);
            minimums[r] = __byte_perm(four, 0, t % 2 == 0 ? 0x1100 : 0x3322);
            const float2 both = q4_k_d(header);
            d[r] = both.x, dmin[r] = both.y;
        }
        const uint8_t *own = tile + g * STRIDE + 4 * t;
        uint32_t fifth[4];
#pragma unroll
        for (int i = 0; FIFTH && i < 4; i++) {
            fifth[i] = word_at(own + 16 + i % 2 * 8 * STRIDE + i / 2 * 16);
        }
#pragma unroll
        for (int p = 0; p < 4; p++) { // two sub-blocks have the same bytes
            uint32_t words[4], a[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                words[i] = word_at(own + AT + 32 * p + i % 2 * 8 * STRIDE + i / 2 * 16);
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    a[h][i] = words[i] >> 4 * h & 0x0f0f0f0fu;
                    if (FIFTH) a[h][i] |= (fifth[i] >> (2 * p + h) & 0x01010101u) << 4;
                }
            }
#pragma unroll
            for (int n = 0; n < NT; n++) {
                const uint4 b = x.numbers(n, p);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int sub = 2 * p + h;
                    int products[4];
                    mma_bytes(products, a[h], h == 0 ? b.x : b.z, h == 0 ? b.y : b.w);
                    add_scaled_bytes(sums.of[n], products, byte_of(scales[0][sub / 4], sub % 4),
                                     byte_of(scales[1][sub / 4], sub % 4));
                }
            }
            if (LAST) x.advance(p);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            int least[4];
            const uint4 unit = x.unit(n);
            sums_by(least, minimums[0], minimums[1], unit);
            add_chunk_total<true>(totals[n], sums.of[n], least, d, dmin, unit.z);
        }
        if (LAST) x.advance_units();
    }
};

// Q6_K: a block begins anywhere in the 16 bytes that are copied with it: at from[0] of row g, and
// at from[1] of row g + 8, even numbers.
struct bytes_q6_k {
    enum { BYTES = Q6_K_BYTES, PIECES = 14, STRIDE = LINEAR_STRIDE_Q6_K };
    static constexpr bool IS_EVEN = false;

    static __device__ inline uint32_t word(const uint8_t *block, uint32_t at, uint32_t shift) {
        const uint8_t *p = block + at;
        return __funnelshift_r(word_at(p), word_at(p + 4), shift);
    }
    // Quants of quarter q from words of ql and qh, without the 32 less that they stand for.
    static __device__ inline uint32_t quants(uint32_t low, uint32_t high, int q) {
        const uint32_t upper = q < 2 ? high << (4 - 2 * q) : high >> (2 * q - 4);
        return ((q < 2 ? low : low >> 4) & 0x0f0f0f0fu) | (upper & 0x30303030u);
    }
    template <int NT, bool LAST, class X>
    static __device__ inline void add(float (&totals)[NT][4], const uint8_t *tile, X &x,
                                      const uint32_t (&from)[2]) {
        const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        const uint8_t *block[2]; // at a multiple of 4, and by how many bits the words are shifted
        uint32_t shift[2], own_scales[2];
        float d[2];
        const float none[2] = {};
        const int no_least[4] = {};
        fragment_sums<NT> sums = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *begin = tile + (g + 8 * r) * STRIDE + from[r];
            block[r] = begin - from[r] % 4;
            shift[r] = from[r] % 4 * 8;
            d[r] = half_value(*(const uint16_t *)(begin + 208));
            own_scales[r] = word(block[r], 192 + 4 * t, shift[r]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t high[2][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                high[i / 2][i % 2] =
                    word(block[i % 2], 128 + 32 * half + 16 * (i / 2) + 4 * t, shift[i % 2]);
            }
            uint32_t scales[2][2]; // by row, of quarters 0 and 1, and of 2 and 3
#pragma unroll
            for (int i = 0; i < 4; i++) {
                scales[i % 2][i / 2] =
                    __shfl_sync(~0u, own_scales[i % 2], (lane & ~3u) + 2 * half + i / 2);
            }
#pragma unroll
            for (int part = 0; part < 2; part++) {
                uint32_t low[2][2];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    low[i / 2][i % 2] = word(
                        block[i % 2], 64 * half + 32 * part + 16 * (i / 2) + 4 * t, shift[i % 2]);
                }
#pragma unroll
                for (int upper = 0; upper < 2; upper++) {
                    const int quarter = part + 2 * upper, sub = 4 * half + quarter;
#pragma unroll
                    for (int step = 0; step < 2; step++) {
                        const uint32_t a0 = quants(low[step][0], high[step][0], quarter);
                        const uint32_t a1 = quants(low[step][1], high[step][1], quarter);
                        const int at = quarter % 2 * 2 + step;
                        const int first = signed_byte_of(scales[0][quarter / 2], at);
                        const int second = signed_byte_of(scales[1][quarter / 2], at);
#pragma unroll
                        for (int n = 0; n < NT; n++) {
                            const uint4 b = x.numbers(n, sub / 2);
                            const uint32_t of_step =
                                sub % 2 == 0 ? (step == 0 ? b.x : b.y) : (step == 0 ? b.z : b.w);
                            int products[4];
                            mma_bytes_16(products, a0, a1, of_step);
                            add_scaled_bytes(sums.of[n], products, first, second);
                        }
                    }
                }
            }
            if (LAST) x.advance(2 * half), x.advance(2 * half + 1);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            int scaled[4];
            const uint4 unit = x.unit(n);
            sums_by(scaled, own_scales[0], own_scales[1], unit);
#pragma unroll
            for (int i = 0; i < 4; i++) sums.of[n][i] -= 32 * scaled[i];
            add_chunk_total<false>(totals[n], sums.of[n], no_least, d, none, unit.z);
        }
        if (LAST) x.advance_units();
    }
};
#endif
