/*
 * Half: 16-bit floating point to single precision and back, bit by bit.
 *
 * All inline: the machine converts lanes with these functions, and tests check all 65536 values.
 * Rounds to nearest, ties to even, unless a mode says otherwise. NaN becomes the canonical NaN.
 * Source: IEEE 754-2019 binary16; bfloat16 is the upper half of a single.
 */
#ifndef SOFT_HALF_H
#define SOFT_HALF_H

#include "lower/code.h"
#include "float_bits.h"

static inline float float_of_f16(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 31) return fraction ? float_f32(0x7fffffff) : float_f32(sign | 0x7f800000);
    if (exponent == 0) {
        float size = (float)fraction * 0x1p-24f; /* exact */
        return float_f32(sign | bits_f32(size));
    }
    return float_f32(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline float float_of_bf16(uint32_t half) {
    float x = float_f32((half & 0xffff) << 16);
    return x == x ? x : float_f32(0x7fffffff);
}

/* Whether a result is one unit larger than the truncated one. odd: the truncated one's last bit;
 * half, rest: the first bit cut off, and whether any later one is set. */
static inline uint32_t rounds_up(uint32_t mode, uint32_t sign, uint32_t odd, uint32_t half,
                                 uint32_t rest) {
    switch (mode & SOFT_MODE_ROUND) {
    case SOFT_MODE_RN:
        return half & (rest | odd);
    case SOFT_MODE_RNA:
        return half;
    case SOFT_MODE_RM:
        return sign & (half | rest);
    case SOFT_MODE_RP:
        return (sign ^ 1) & (half | rest);
    default:
        return 0;
    }
}

/* A double, rounded to a format with the given exponent and fraction widths; the bits, right
 * aligned. Overflow gives infinity, or the largest number where the mode rounds toward zero. */
static inline uint32_t round_to_format(double x, unsigned exponent_bits, unsigned fraction_bits,
                                       uint32_t mode) {
    uint64_t bits = bits_f64(x);
    uint32_t sign = (uint32_t)(bits >> 63);
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    uint32_t top = sign << (exponent_bits + fraction_bits);
    if (x != x) return (1u << (exponent_bits + fraction_bits)) - 1;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024) return top | infinity;
    if ((bits & INT64_MAX) == 0) return top;
    uint64_t significand = (bits & 0xfffffffffffff) | (exponent == -1023 ? 0 : 1ull << 52);
    if (exponent == -1023) exponent = -1022;
    /* How many of the 52 fraction bits go; more for what will be subnormal. */
    int cut = 52 - (int)fraction_bits + (exponent < 1 - bias ? 1 - bias - exponent : 0);
    if (cut > 60) cut = 60;
    uint64_t kept = significand >> cut;
    uint32_t half = (uint32_t)(significand >> (cut - 1) & 1);
    uint32_t rest = (significand & ((1ull << (cut - 1)) - 1)) != 0;
    kept += rounds_up(mode, sign, (uint32_t)kept & 1, half, rest);
    /* The leading one of a normal number adds to the exponent field; so does a carry. */
    uint64_t field =
        exponent < 1 - bias ? kept : kept + ((uint64_t)(exponent + bias - 1) << fraction_bits);
    if (field >= infinity) {
        uint32_t direction = mode & SOFT_MODE_ROUND;
        bool toward_zero = direction == SOFT_MODE_RZ || (direction == SOFT_MODE_RM && sign == 0) ||
                           (direction == SOFT_MODE_RP && sign == 1);
        return top | (toward_zero ? infinity - 1 : infinity);
    }
    return top | (uint32_t)field;
}

static inline uint32_t f16_of_double(double x, uint32_t mode) {
    return round_to_format(x, 5, 10, mode);
}

static inline uint32_t bf16_of_double(double x, uint32_t mode) {
    return round_to_format(x, 8, 7, mode);
}

/* The common case, in a form that a compiler turns into vector code: nearest even. */
static inline uint32_t f16_of_float(float x) {
    uint32_t bits = bits_f32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    /* Subnormal results: adding a number whose last place is theirs does the rounding. */
    uint32_t small = bits_f32(float_f32(size) + 0.5f) - bits_f32(0.5f);
    uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t result = size < (113u << 23) ? small : normal;
    result = size >= (143u << 23) ? 0x7c00 : result;
    result |= sign;
    return size > 0x7f800000 ? 0x7fff : result;
}

static inline uint32_t bf16_of_float(float x) {
    uint32_t bits = bits_f32(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
}

#endif
