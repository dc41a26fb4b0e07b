/*
 * Whole numbers: 64-bit division and powers, 8- and 16-bit arithmetic that wraps, and bits.
 */
#ifndef CORPUS_NUMBERS_H
#define CORPUS_NUMBERS_H

#include "corpus.h"

CORPUS_FN uint64_t numbers_gcd(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

CORPUS_FN uint64_t numbers_power(uint64_t base, uint64_t exponent, uint64_t modulus) {
    uint64_t power = 1;
    for (base %= modulus; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power = power * base % modulus;
        base = base * base % modulus;
    }
    return power;
}

CORPUS_FN uint64_t numbers_root(uint64_t n) {
    uint64_t root = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint64_t tried = root | 1ull << bit;
        if (tried * tried <= n) root = tried;
    }
    return root;
}

CORPUS_FN int64_t numbers_signed(int64_t a, int64_t b) {
    if (b == 0) b = 7;
    uint64_t sum = (uint64_t)(a / b) * 3 + (uint64_t)(a % b) + (uint64_t)(a >> 3);
    return (int64_t)(sum + ((uint64_t)a << 5) - (uint64_t)(a < b ? a : b));
}

/* Everything here is narrower than a register. */
CORPUS_FN uint32_t numbers_narrow(uint32_t x) {
    uint8_t a = (uint8_t)x, b = (uint8_t)(x >> 8);
    int8_t c = (int8_t)(x >> 16), d = (int8_t)(x >> 24);
    uint16_t e = (uint16_t)(a * 257 + b);
    int16_t f = (int16_t)(c * 300 - d);
    a = (uint8_t)(a + b);
    b = (uint8_t)(b << 3 | b >> 5);
    c = (int8_t)(c - d);
    d = (int8_t)(d >> 1);
    e = (uint16_t)(e / (b | 1));
    f = (int16_t)(f % (a | 1));
    uint32_t all = (uint32_t)a | (uint32_t)(uint8_t)c << 8 | (uint32_t)(e ^ (uint16_t)f) << 16;
    return all ^ (uint32_t)(uint8_t)d * 0x01010101u;
}

/* The bits of a word in ways that each have an instruction. */
CORPUS_FN uint32_t numbers_reverse(uint32_t x) {
    uint32_t y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}

CORPUS_FN uint32_t numbers_count(uint64_t x) {
    uint32_t count = 0;
    for (; x != 0; x &= x - 1) count++;
    return count;
}

CORPUS_FN uint32_t numbers_leading(uint64_t x, uint32_t bits) {
    uint32_t zeros = 0;
    while (zeros < bits && (x >> (bits - 1 - zeros) & 1) == 0) zeros++;
    return zeros;
}

CORPUS_FN uint32_t numbers_first(uint64_t x) {
    for (uint32_t i = 0; i < 64; i++) {
        if (x >> i & 1) return i + 1;
    }
    return 0;
}

CORPUS_FN uint32_t numbers_funnel(uint32_t low, uint32_t high, uint32_t by) {
    return (uint32_t)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}

CORPUS_FN uint32_t numbers_bytes(uint32_t x, uint32_t y, uint32_t selector) {
    uint64_t both = (uint64_t)y << 32 | x;
    uint32_t chosen = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t byte = selector >> (4 * i) & 7;
        chosen |= (uint32_t)(both >> (8 * byte) & 0xff) << (8 * i);
    }
    return chosen;
}

CORPUS_FN uint32_t numbers_interleave(uint32_t x, uint32_t y) {
    uint32_t code = 0;
    for (int i = 0; i < 16; i++) code |= (x >> i & 1) << (2 * i) | (y >> i & 1) << (2 * i + 1);
    return code;
}

CORPUS_FN uint64_t numbers_input(uint32_t i) {
    uint64_t wide = (uint64_t)corpus_mix(i) << 32 | corpus_mix(i + 1000000);
    return i % 4 == 0 ? wide & 0xff : i % 4 == 1 ? wide >> 20 : wide;
}

#endif
