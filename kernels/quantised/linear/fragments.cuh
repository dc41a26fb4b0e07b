// Quantised weights as fragments of mma.m16n8k16: 16 rows of a matrix, 256 elements at a time.
//
// A lane has g = lane / 4 and t = lane % 4. It loads its part of rows g and g + 8 of a chunk of 256
// elements. Of each sub-block of 32 elements it has eight, in two runs of four: element i of run r
// is in step r of the two steps of 16 that a sub-block takes. Which elements that are differs by
// format (run), and the other operand has the same order. Quants are whole numbers of at most eight
// bits, which bfloat16 holds exactly; scales multiply the sums of a sub-block, or of a step for
// Q6_K. Minimums are whole numbers as well: those of the eight sub-blocks of a chunk are one
// fragment, which multiplies the sums of x.
#pragma once

#include "../formats/weights.cuh"

enum { SUBS = CHUNK / 32, ONE_2 = 0x3f803f80 }; // sub-blocks of a chunk; two ones in bfloat16

// Four bytes below 128 as bfloat16, less `less` (of which `minus` has two, negated): all exact.
__device__ inline void quants_of_bytes(uint32_t bytes, uint32_t minus, uint32_t (&pairs)[2]) {
    const uint32_t raised[2] = {__byte_perm(bytes, 0x43, 0x4140), __byte_perm(bytes, 0x43, 0x4342)};
#pragma unroll
    for (int i = 0; i < 2; i++) { // 0x43nn is 128 + nn
        asm("fma.rn.bf16x2 %0, %1, %2, %3;"
            : "=r"(pairs[i])
            : "r"(raised[i]), "r"((uint32_t)ONE_2), "r"(minus));
    }
}

// The words of A for both steps of a sub-block: from run r of row `row` of the two.
__device__ inline void put_run(uint32_t (&a)[2][4], int row, int r, const uint32_t (&pairs)[2]) {
    a[r][row] = pairs[0];
    a[r][row + 2] = pairs[1];
}

// Q4_K and Q5_K: lane t has bytes 8 t to 8 t + 7 of each group of 64 elements. It prepares the
// scales of group t.
template <bool FIFTH> struct fragments_k {
    static constexpr int BYTES = FIFTH ? (int)Q5_K_BYTES : (int)Q4_K_BYTES, AT = FIFTH ? 48 : 16;
    static constexpr uint32_t LESS = 0xc300c300;
    static constexpr bool HAS_LEAST = true, BY_STEP = false;
    uint4 header[2];
    uint2 qs[2][4], fifth[2];

    static __device__ inline int run(int t, int r) { return 8 * t + RUN * r; }
    __device__ inline void load(const uint8_t *const (&rows)[2], uint32_t chunk, uint32_t, int t) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *block = rows[r] + (uint64_t)chunk * BYTES;
            header[r] = __ldg((const uint4 *)block);
            if (FIFTH) fifth[r] = __ldg((const uint2 *)(block + 16 + 8 * t));
#pragma unroll
            for (int g = 0; g < 4; g++)
                qs[r][g] = __ldg((const uint2 *)(block + AT + 32 * g + 8 * t));
        }
    }
    // The scales of the two sub-blocks of group t, of both rows.
    __device__ inline void scales(float (&f)[2][4], int t) const {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const q4_k_scales s = q4_k_scales_of(header[r], t);
            const float2 d = q4_k_d(header[r]);
            f[r][0] = d.x * (float)(s.scales & 63);
            f[r][1] = d.x * (float)(s.scales >> 8);
            f[r][2] = f[r][3] = 0;
        }
    }
    // The minimums of both rows, of sub-blocks 2 t and 2 t + 1, twice: k 0 to 7 and 8 to 15. Of row
    // g they are multiplied by factors[0], of row g + 8 by factors[1].
    __device__ inline void least(uint32_t (&a)[4], float (&factors)[2], int t) const {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint32_t pairs[2];
            quants_of_bytes(q4_k_scales_of(header[r], t).minimums, LESS, pairs);
            a[r] = a[r + 2] = pairs[0];
            factors[r] = -q4_k_d(header[r]).y;
        }
    }
    // Which lane prepared the scale of a sub-block, and where it has it.
    static __device__ inline int scale_lane(int sub) {
        return sub / 2;
    }
    static __device__ inline int scale_at(int sub, int) {
        return sub % 2;
    }
    __device__ inline void quants(int sub, uint32_t (&a)[2][4]) const {
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const uint32_t words[2] = {qs[row][sub / 2].x, qs[row][sub / 2].y};
            const uint32_t fifths[2] = {fifth[row].x, fifth[row].y};
#pragma unroll
            for (int r = 0; r < 2; r++) {
                uint32_t pairs[2], bytes = words[r] >> 4 * (sub % 2) & 0x0f0f0f0fu;
                if (FIFTH) bytes |= (fifths[r] >> sub & 0x01010101u) << 4;
                quants_of_bytes(bytes, LESS, pairs);
                put_run(a, row, r, pairs);
            }
        }
    }
};

// Q6_K: lane t has word 4 i + t of a block, which begins at an even address: where that is no
// multiple of 4, a word is made of two, of which a neighbour has the second. The lane prepares
// scales 4 t to 4 t + 3. Matrices begin at multiples of 4.
struct fragments_q6_k {
    static constexpr int WORDS = 13;
    static constexpr uint32_t LESS = 0xc320c320;
    static constexpr bool HAS_LEAST = false, BY_STEP = true;
    uint32_t words[2][WORDS + 1];
    float d[2];
    bool is_odd[2]; // begins two bytes after a multiple of 4

    static __device__ inline int run(int t, int r) { return 16 * r + RUN * t; }
    __device__ inline void load(const uint8_t *const (&rows)[2], uint32_t chunk, uint32_t, int t) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *block = rows[r] + (uint64_t)chunk * Q6_K_BYTES;
            is_odd[r] = (uint64_t)block % 4 != 0;
            const uint32_t *from = (const uint32_t *)(block - (is_odd[r] ? 2 : 0)) + t;
#pragma unroll
            for (int i = 0; i < WORDS; i++) words[r][i] = __ldg(from + 4 * i);
            words[r][WORDS] = is_odd[r] && t == 0 ? __ldg(from + 4 * WORDS) : 0;
            d[r] = half_value(load_2(block + 208));
        }
    }
    // Makes the words whole. The lanes of a row agree about is_odd, and all lanes take part.
    __device__ inline void align(int t) {
        const int lane = threadIdx.x % WARP, next = (lane & ~3) | (t + 1) % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int i = 0; i < WORDS; i++) {
                const uint32_t mine = t == 0 ? words[r][i + 1] : words[r][i];
                const uint32_t after = __shfl_sync(~0u, mine, next);
                words[r][i] = __funnelshift_r(words[r][i], after, is_odd[r] ? 16 : 0);
            }
        }
    }
    __device__ inline void scales(float (&f)[2][4], int t) {
        align(t);
#pragma unroll
        for (int r = 0; r < 2; r++) {
#pragma unroll
            for (int i = 0; i < 4; i++) f[r][i] = d[r] * byte_value(words[r][12], i);
        }
    }
    static __device__ inline int scale_lane(int sub) {
        return sub / 2;
    }
    static __device__ inline int scale_at(int sub, int step) {
        return sub % 2 * 2 + step;
    }
    __device__ inline void quants(int sub, uint32_t (&a)[2][4]) const {
        const int half = sub / 4, quarter = sub % 4;
#pragma unroll
        for (int row = 0; row < 2; row++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t ql = words[row][half * 4 + quarter % 2 * 2 + r] >> quarter / 2 * 4;
                const uint32_t qh = words[row][8 + half * 2 + r] >> 2 * quarter;
                uint32_t pairs[2];
                quants_of_bytes((ql & 0x0f0f0f0fu) | (qh & 0x03030303u) << 4, LESS, pairs);
                put_run(a, row, r, pairs);
            }
        }
    }
};

// Q8_0: a sub-block is a block, of which lane t has bytes 8 t to 8 t + 7. It prepares the scales of
// blocks 2 t and 2 t + 1. A row may end inside a chunk.
struct fragments_q8_0 {
    static constexpr bool HAS_LEAST = false, BY_STEP = false;
    uint32_t words[2][SUBS][2];
    float d[2][2];

    static __device__ inline int run(int t, int r) { return 8 * t + RUN * r; }
    __device__ inline void load(const uint8_t *const (&rows)[2], uint32_t chunk, uint32_t k,
                                int t) {
        const uint32_t left = k / 32 - chunk * SUBS;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint8_t *from = rows[r] + (uint64_t)chunk * SUBS * Q8_0_BYTES;
#pragma unroll
            for (uint32_t s = 0; s < SUBS; s++) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    words[r][s][i] =
                        s < left ? load_4(from + s * Q8_0_BYTES + 2 + 8 * t + 4 * i) : 0;
                }
            }
#pragma unroll
            for (uint32_t i = 0; i < 2; i++) {
                d[r][i] =
                    2 * t + i < left ? half_value(load_2(from + (2 * t + i) * Q8_0_BYTES)) : 0;
            }
        }
    }
    __device__ inline void scales(float (&f)[2][4], int) const {
#pragma unroll
        for (int r = 0; r < 2; r++) f[r][0] = d[r][0], f[r][1] = d[r][1], f[r][2] = f[r][3] = 0;
    }
    static __device__ inline int scale_lane(int sub) {
        return sub / 2;
    }
    static __device__ inline int scale_at(int sub, int) {
        return sub % 2;
    }
    __device__ inline void quants(int sub, uint32_t (&a)[2][4]) const {
#pragma unroll
        for (int row = 0; row < 2; row++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint32_t w = words[row][sub][r];
                uint32_t pairs[2];
#pragma unroll
                for (int i = 0; i < 2; i++) { // whole numbers of eight bits: their upper halves
                    pairs[i] = __byte_perm(__float_as_uint(byte_value(w, 2 * i)),
                                           __float_as_uint(byte_value(w, 2 * i + 1)), 0x7632);
                }
                put_run(a, row, r, pairs);
            }
        }
    }
};
