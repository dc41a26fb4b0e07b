/*
 * What floating point bodies share: NaN as the device makes it, flushing, saturating.
 */
#ifndef SOFT_OPS_FLOAT_H
#define SOFT_OPS_FLOAT_H

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

#endif
