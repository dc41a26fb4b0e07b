/*
 * Shared by floating-point bodies: the device's NaN, flushing of subnormals, saturation.
 */
#ifndef SOFT_FLOAT_BITS_H
#define SOFT_FLOAT_BITS_H

#include "lower/code.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float float_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline uint64_t bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static inline double float_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* Single precision results that are NaN are the one canonical NaN (PTX ISA 9.0, section 9.7.3). */
static inline float canonical_f32(float x) {
    return x == x ? x : float_f32(0x7fffffff);
}

/* A subnormal becomes a zero of its sign. */
static inline float flush_f32(float x) {
    uint32_t bits = bits_f32(x);
    return float_f32((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}

/* Into [0, 1]; NaN and -0 become +0. */
static inline float saturate_f32(float x) {
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

static inline double saturate_f64(double x) {
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

/* The smaller or the larger. Of two equal numbers the bits are equal, or they are zeros, whose
 * signs an "or" makes minus and an "and" makes plus. A NaN loses against a number. */
static inline float least_f32(float x, float y, uint32_t mode) {
    uint32_t sign = (bits_f32(x) ^ bits_f32(y)) & 0x80000000;
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x), y = flush_f32(y);
    if (mode & (SOFT_MODE_ABS | SOFT_MODE_XORSIGN)) x = __builtin_fabsf(x), y = __builtin_fabsf(y);
    float less = x < y ? x : x > y ? y : float_f32(bits_f32(x) | bits_f32(y));
    float number = x != x ? canonical_f32(y) : y != y ? x : less;
    if ((mode & SOFT_MODE_NAN) && (x != x || y != y)) number = float_f32(0x7fffffff);
    if ((mode & SOFT_MODE_XORSIGN) && number == number) {
        number = float_f32(bits_f32(number) | sign);
    }
    return number;
}

static inline float most_f32(float x, float y, uint32_t mode) {
    uint32_t sign = (bits_f32(x) ^ bits_f32(y)) & 0x80000000;
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x), y = flush_f32(y);
    if (mode & (SOFT_MODE_ABS | SOFT_MODE_XORSIGN)) x = __builtin_fabsf(x), y = __builtin_fabsf(y);
    float more = x > y ? x : x < y ? y : float_f32(bits_f32(x) & bits_f32(y));
    float number = x != x ? canonical_f32(y) : y != y ? x : more;
    if ((mode & SOFT_MODE_NAN) && (x != x || y != y)) number = float_f32(0x7fffffff);
    if ((mode & SOFT_MODE_XORSIGN) && number == number) {
        number = float_f32(bits_f32(number) | sign);
    }
    return number;
}

/* x + y, rounded to odd. */
static inline double odd_sum(double x, double y) {
    double sum = x + y, part = sum - x;
    double error = (x - (sum - part)) + (y - part);
    uint64_t bits = bits_f64(sum);
    uint64_t toward = (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    bool moves = (error < 0 || error > 0) && (bits & 1) == 0 && sum - sum == 0;
    return float_f64(moves ? bits + toward : bits);
}

/* A NaN as an operation passes it on. */
static inline double quiet_f64(double x) {
    return float_f64(bits_f64(x) | 1ull << 51);
}

/* Doubles keep the payload of a NaN: the result, but where it is NaN the first operand that is one,
 * in the order given. Which operand comes first differs by operation, and is what an H200 does. */
static inline double nan_of_2(double result, double first, double second) {
    double nan = second != second ? quiet_f64(second) : float_f64(0xfff8000000000000);
    nan = first != first ? quiet_f64(first) : nan;
    return result == result ? result : nan;
}

static inline double nan_of_3(double result, double first, double second, double third) {
    double nan = third != third ? quiet_f64(third) : float_f64(0xfff8000000000000);
    nan = second != second ? quiet_f64(second) : nan;
    nan = first != first ? quiet_f64(first) : nan;
    return result == result ? result : nan;
}

/* With .ftz a result is flushed that would be less than the least normal number if exponents had
 * no end: what rounds up to that number only among subnormals, which lie farther apart, is flushed
 * as well. So a result of that size needs a second look, at 2^64 times its size, in the rounding
 * mode that is set. */
static inline bool is_least_f32(float x) {
    return (bits_f32(x) & 0x7fffffff) == 0x00800000;
}
static inline bool is_tiny(double exact) {
    return __builtin_fabsf((float)(exact * 0x1p64)) < 0x1p-62f;
}
static inline bool is_tiny_quotient(float x, float y) {
    return __builtin_fabsf(x * 0x1p64f / y) < 0x1p-62f;
}

#endif
