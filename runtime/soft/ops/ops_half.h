/*
 * Arithmetic on one 16-bit number: op_of_f16 and op_of_bf16, bit by bit.
 *
 * Sums are computed in single precision and rounded again. Single precision has 24 digits, at least
 * two more than twice the 11 of f16 or the 8 of bf16, so the second rounding is correct. Products
 * and fused sums are computed in double precision and rounded to odd before the last rounding, so a
 * tie occurs only if the exact value is a tie.
 */
#ifndef SOFT_OPS_HALF_H
#define SOFT_OPS_HALF_H

#include "half.h"
#include "ops_approx.h"

/* What the two formats are called by the bodies below. */
enum {
    INFINITY_f16 = 0x7c00,
    INFINITY_bf16 = 0x7f80,
    ONE_f16 = 0x3c00,
    ONE_bf16 = 0x3f80,
    LEAST_TIMES_256_f16 = 0x2400,
    LEAST_TIMES_256_bf16 = 0x0480,
};

/* A double as a single: where that is inexact, the neighbour whose last digit is odd. */
static inline float odd_float(double x) {
    float y = (float)x;
    double error = x - (double)y;
    uint32_t bits = bits_f32(y);
    uint32_t toward = (error > 0) == (y > 0) ? 1 : UINT32_MAX;
    bool moves = (error < 0 || error > 0) && (bits & 1) == 0;
    /* Past zero lies the other sign. */
    uint32_t from_zero = error < 0 ? 0x80000001 : 1;
    uint32_t moved = y == 0 ? from_zero : bits + toward;
    return float_f32(moves ? moved : bits);
}

#define FORMAT(F)                                                                                  \
    static inline uint32_t flush_##F(uint32_t x, uint32_t mode) {                                  \
        bool tiny = (mode & SOFT_MODE_FTZ) != 0 && (x & INFINITY_##F) == 0;                        \
        return tiny ? x & 0x8000 : x;                                                              \
    }                                                                                              \
    static inline float enter_##F(uint32_t x, uint32_t mode) {                                     \
        return float_of_##F(flush_##F(x, mode));                                                   \
    }                                                                                              \
    /* What comes after rounding: flushing, then one of the two clamps. */                         \
    static inline uint32_t finish_##F(uint32_t x, uint32_t mode) {                                 \
        bool nan = (x & 0x7fff) > INFINITY_##F;                                                    \
        x = flush_##F(x, mode);                                                                    \
        if (mode & SOFT_MODE_SAT) {                                                                \
            x = nan || (x & 0x8000) != 0 ? 0 : x > ONE_##F ? ONE_##F : x;                          \
        }                                                                                          \
        if (mode & SOFT_MODE_RELU) x = !nan && (x & 0x8000) != 0 ? 0 : x;                          \
        return x;                                                                                  \
    }                                                                                              \
    static inline uint32_t leave_##F(float x, uint32_t mode) {                                     \
        return finish_##F(F##_of_float(x), mode);                                                  \
    }                                                                                              \
    /* What .ftz flushes: see float_bits.h. At 2^8 times its size nothing is subnormal. */         \
    static inline float unless_tiny_##F(float x, uint32_t mode) {                                  \
        uint32_t rounded = F##_of_float(__builtin_fabsf(x) * 256);                                 \
        bool tiny = (mode & SOFT_MODE_FTZ) != 0 && rounded < LEAST_TIMES_256_##F;                  \
        return tiny ? __builtin_copysignf(0, x) : x;                                               \
    }                                                                                              \
    static inline uint32_t add_of_##F(uint32_t x, uint32_t y, uint32_t mode) {                     \
        return leave_##F(enter_##F(x, mode) + enter_##F(y, mode), mode);                           \
    }                                                                                              \
    static inline uint32_t sub_of_##F(uint32_t x, uint32_t y, uint32_t mode) {                     \
        return leave_##F(enter_##F(x, mode) - enter_##F(y, mode), mode);                           \
    }                                                                                              \
    static inline uint32_t mul_of_##F(uint32_t x, uint32_t y, uint32_t mode) {                     \
        double product = (double)enter_##F(x, mode) * (double)enter_##F(y, mode); /* exact */      \
        return leave_##F(unless_tiny_##F(odd_float(product), mode), mode);                         \
    }                                                                                              \
    static inline uint32_t fma_of_##F(uint32_t x, uint32_t y, uint32_t z, uint32_t mode) {         \
        double product = (double)enter_##F(x, mode) * (double)enter_##F(y, mode);                  \
        float sum = odd_float(odd_sum(product, (double)enter_##F(z, mode)));                       \
        return leave_##F(unless_tiny_##F(sum, mode), mode);                                        \
    }                                                                                              \
    /* The sign of .xorsign is that of the halves: a NaN loses its own on the way. */              \
    static inline uint32_t with_sign_##F(float x, uint32_t a, uint32_t b, uint32_t mode) {         \
        uint32_t sign = mode & SOFT_MODE_XORSIGN && x == x ? (a ^ b) & 0x8000 : 0;                 \
        return F##_of_float(x) | sign;                                                             \
    }                                                                                              \
    static inline uint32_t min_of_##F(uint32_t x, uint32_t y, uint32_t mode) {                     \
        float a = enter_##F(x, mode), b = enter_##F(y, mode);                                      \
        return with_sign_##F(least_f32(a, b, mode & (SOFT_MODE_NAN | SOFT_MODE_ABS)), x, y, mode); \
    }                                                                                              \
    static inline uint32_t max_of_##F(uint32_t x, uint32_t y, uint32_t mode) {                     \
        float a = enter_##F(x, mode), b = enter_##F(y, mode);                                      \
        return with_sign_##F(most_f32(a, b, mode & (SOFT_MODE_NAN | SOFT_MODE_ABS)), x, y, mode);  \
    }                                                                                              \
    static inline uint32_t abs_of_##F(uint32_t x, uint32_t mode) {                                 \
        x = flush_##F(x, mode) & 0x7fff;                                                           \
        return x > INFINITY_##F ? 0x7fff : x;                                                      \
    }                                                                                              \
    static inline uint32_t neg_of_##F(uint32_t x, uint32_t mode) {                                 \
        x = flush_##F(x, mode);                                                                    \
        return (x & 0x7fff) > INFINITY_##F ? 0x7fff : x ^ 0x8000;                                  \
    }                                                                                              \
    static inline uint32_t ex2_of_##F(uint32_t x, uint32_t mode) {                                 \
        return leave_##F(soft_exp2(enter_##F(x, mode), 0), mode);                                  \
    }                                                                                              \
    static inline uint32_t tanh_of_##F(uint32_t x, uint32_t mode) {                                \
        return leave_##F(soft_tanh(enter_##F(x, mode)), mode);                                     \
    }
FORMAT(f16)
FORMAT(bf16)

#endif
