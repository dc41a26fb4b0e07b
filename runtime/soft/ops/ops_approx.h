/*
 * Approximations shared by several formats.
 *
 * Polynomials in double precision, rounded once to single. They are Taylor series, long enough that
 * the remainder is below 1e-10.
 */
#ifndef SOFT_OPS_APPROX_H
#define SOFT_OPS_APPROX_H

#include "float_bits.h"

static inline double soft_clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* 2^x for |x| < 1000. */
static inline double soft_exp2_double(double x) {
    const double shifter = 0x1.8p52; /* adding it rounds to an integer, whose bits it then holds */
    double shifted = x + shifter;
    double f = x - (shifted - shifter);
    double sum = 1.0178086009239696e-07;
    sum = sum * f + 1.3215486790144305e-06;
    sum = sum * f + 1.5252733804059838e-05;
    sum = sum * f + 0.00015403530393381606;
    sum = sum * f + 0.0013333558146428441;
    sum = sum * f + 0.009618129107628477;
    sum = sum * f + 0.055504108664821576;
    sum = sum * f + 0.2402265069591007;
    sum = sum * f + 0.6931471805599453;
    sum = sum * f + 1.0;
    return float_f64(bits_f64(sum) + (bits_f64(shifted) << 52));
}

static inline float soft_exp2(float x, uint32_t mode) {
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x);
    float y = (float)soft_exp2_double(soft_clamp((double)x, -200, 200));
    if (mode & SOFT_MODE_FTZ) y = flush_f32(y);
    return x == x ? y : float_f32(0x7fffffff);
}
static inline float soft_tanh(float x) {
    double wide = (double)x, size = soft_clamp(wide < 0 ? -wide : wide, 0, 40);
    double power = soft_exp2_double(size * 2.8853900817779268);
    double y = size < 1e-3 ? size - size * size * size / 3 : (power - 1) / (power + 1);
    float rounded = (float)(wide < 0 ? -y : y);
    return x == 0 ? x : x == x ? rounded : float_f32(0x7fffffff);
}
#endif
