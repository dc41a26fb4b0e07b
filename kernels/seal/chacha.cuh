// ChaCha's key stream, a block of 64 bytes in the registers of a thread. RFC 8439, section 2.3;
// with fewer rounds as by D. J. Bernstein, "ChaCha, a variant of Salsa20".
//
// Arrays are indexed by constants alone: an index that is not known would put key stream and plain
// bytes into local memory, which is device memory.
#pragma once

#include "seal_arguments.h"

struct chacha_block {
    uint32_t word[16];
};

__device__ inline void chacha_mix(uint32_t &x, uint32_t &y, uint32_t &z, int bits) {
    x += y;
    z ^= x;
    z = __funnelshift_l(z, z, bits);
}

__device__ inline void chacha_quarter(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d) {
    chacha_mix(a, b, d, 16);
    chacha_mix(c, d, b, 12);
    chacha_mix(a, b, d, 8);
    chacha_mix(c, d, b, 7);
}

__device__ inline void chacha_columns(uint32_t (&x)[16]) {
#pragma unroll
    for (int i = 0; i < 4; i++) chacha_quarter(x[i], x[4 + i], x[8 + i], x[12 + i]);
}

__device__ inline void chacha_diagonals(uint32_t (&x)[16]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        chacha_quarter(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
}

// The block of key stream at a counter. UNROLL double rounds have code of their own: all of 20 take
// 15 KB, and are a tenth faster on an H100.
template <int ROUNDS, int UNROLL = 1>
__device__ inline chacha_block chacha_at(const seal_stream &stream, uint32_t counter) {
    chacha_block block;
    uint32_t(&x)[16] = block.word;
#pragma unroll
    for (int row = 0; row < 3; row++) x[4 * row] = stream.words[4 * row];
    x[12] = counter;
    chacha_quarter(x[0], x[4], x[8], x[12]);
#pragma unroll
    for (int column = 1; column < 4; column++) {
#pragma unroll
        for (int row = 0; row < 4; row++) x[4 * row + column] = stream.begun[4 * column - 4 + row];
    }
    chacha_diagonals(x);
#pragma unroll (UNROLL)
    for (int round = 2; round < ROUNDS; round += 2) {
        chacha_columns(x);
        chacha_diagonals(x);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] += i == 12 ? counter : stream.words[i];
    return block;
}

// The four pieces of 16 bytes of a unit of data, with the key stream added to them.
struct seal_unit {
    uint4 piece[4];

    __device__ inline void add(const chacha_block &block) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            piece[i].x ^= block.word[4 * i];
            piece[i].y ^= block.word[4 * i + 1];
            piece[i].z ^= block.word[4 * i + 2];
            piece[i].w ^= block.word[4 * i + 3];
        }
    }
};
