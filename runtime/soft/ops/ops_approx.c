/*
 * The approximate functions: ex2, lg2, sin, cos, tanh, rsqrt. Source: PTX ISA 9.0, section 9.7.3,
 * which bounds their errors; a GPU's own results are not specified to the bit.
 *
 * Ours are polynomials in double precision, rounded once to single: within half a unit of the last
 * place except for a few inputs in a billion, equal on every processor, and independent of libm.
 * The series are Taylor's, with a remainder below 1e-10.
 */
#include "ops_approx.h"
#include "op_body.h"

#include <math.h>

OP1(ex2_f32, f32, f32, soft_exp2(x, in->mode))

/* log2 of a positive normal double. */
static inline double log2_double(double x) {
    uint64_t bits = bits_f64(x);
    /* Take the exponent so that the rest lies between sqrt(1/2) and sqrt(2). */
    uint64_t shifted = bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    double exponent = (double)((int32_t)(shifted >> 52) - 0x3ff);
    double m = float_f64((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    double t = (m - 1) / (m + 1), s = t * t;
    double sum = 1.0 / 17;
    sum = sum * s + 1.0 / 15;
    sum = sum * s + 1.0 / 13;
    sum = sum * s + 1.0 / 11;
    sum = sum * s + 1.0 / 9;
    sum = sum * s + 1.0 / 7;
    sum = sum * s + 1.0 / 5;
    sum = sum * s + 1.0 / 3;
    sum = sum * s + 1.0;
    return exponent + 2.8853900817779268 * t * sum;
}

static inline float log2_float(float x, uint32_t mode) {
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x);
    float y = (float)log2_double(x > 0 ? (double)x : 1.0);
    y = x == (float)INFINITY ? x : y;
    y = x == 0 ? -(float)INFINITY : y;
    return x >= 0 ? y : float_f32(0x7fffffff);
}
OP1(lg2_f32, f32, f32, log2_float(x, in->mode))

/* The sine of r and where quarters of a turn. */
static inline double sine_after_quarters(double r, uint64_t where) {
    double s = r * r;
    double sine = -1.0 / 39916800;
    sine = sine * s + 1.0 / 362880;
    sine = sine * s - 1.0 / 5040;
    sine = sine * s + 1.0 / 120;
    sine = sine * s - 1.0 / 6;
    sine = sine * s * r + r;
    double cosine = 1.0 / 479001600;
    cosine = cosine * s - 1.0 / 3628800;
    cosine = cosine * s + 1.0 / 40320;
    cosine = cosine * s - 1.0 / 720;
    cosine = cosine * s + 1.0 / 24;
    cosine = cosine * s - 0.5;
    cosine = cosine * s + 1.0;
    double value = where & 1 ? cosine : sine;
    return where & 2 ? -value : value;
}

/* Adding it to a double rounds to an integer, which is then in the low bits. */
static const double sine_shifter = 0x1.8p52;

/* The sine, for quadrant 0, or the cosine, for quadrant 1, of x from -pi to pi. */
static inline double sine_double(double x, double quadrant) {
    double shifted = x * 0.6366197723675814 + sine_shifter;
    double turns = shifted - sine_shifter;
    /* pi/2 in three parts: the product with the first two is exact. */
    double r = x - turns * 0x1.921fb544p+0;
    r -= turns * 0x1.0b4611a6p-34;
    r -= turns * 0x1.3198a2e037073p-69;
    return sine_after_quarters(r, bits_f64(shifted) + (uint64_t)quadrant);
}

/* The same outside -pi to pi, where the manual bounds the error by 2^-14.7 up to 100 pi and not at
 * all beyond. Results of an H200 fit a product of x and 1/(2 pi), both of 24 bits, that is rounded
 * to 24 bits toward zero, and the sine of that fraction of a turn. In double the product is exact.
 */
static inline double sine_reduced(double x, double quadrant) {
    uint64_t product = bits_f64(x * (double)float_f32(0x3e22f983));
    double turns = float_f64(product & ~(uint64_t)0x1fffffff);
    double quarters = 4 * (turns - trunc(turns));
    double shifted = quarters + sine_shifter;
    double r = (quarters - (shifted - sine_shifter)) * 1.5707963267948966;
    double y = sine_after_quarters(r, bits_f64(shifted) + (uint64_t)quadrant);
    return y == 0 ? copysign(0, x) : y;
}

static inline float sine_float(float x, double quadrant, uint32_t mode) {
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x);
    const float pi = 0x1.921fb6p+1f;
    bool reduces = x > pi || x < -pi;
    float y =
        (float)(reduces ? sine_reduced((double)x, quadrant) : sine_double((double)x, quadrant));
    if (mode & SOFT_MODE_FTZ) y = flush_f32(y);
    y = x == 0 && quadrant == 0 ? x : y; /* sin(-0) is -0 */
    return x - x == 0 ? y : float_f32(0x7fffffff);
}
OP1(sin_f32, f32, f32, sine_float(x, 0, in->mode))
OP1(cos_f32, f32, f32, sine_float(x, 1, in->mode))

OP1(tanh_f32, f32, f32, soft_tanh(x))

static inline float rsqrt_float(float x, uint32_t mode) {
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x);
    float y = (float)(1 / __builtin_sqrt((double)x));
    if (mode & SOFT_MODE_FTZ) y = flush_f32(y);
    return canonical_f32(y);
}
OP1(rsqrt_f32, f32, f32, rsqrt_float(x, in->mode))

/* The double forms with .ftz work on the upper half of the bits; the lower half of the result is
 * zero. */
static inline double upper_half(double x) {
    return float_f64(bits_f64(x) & 0xffffffff00000000);
}
static inline double flush_f64(double x) {
    uint64_t bits = bits_f64(x);
    return float_f64((bits & 0x7ff0000000000000) == 0 ? bits & 0x8000000000000000 : bits);
}
/* The NaN of a negative number has its sign set, as on an H200; processors differ in theirs. */
static inline double rsqrt_double(double x) {
    return x < 0 ? float_f64(0xfff8000000000000) : 1 / __builtin_sqrt(x);
}
OP1(rsqrt_f64, f64, f64, rsqrt_double(x))
OP1(rsqrt_ftz_f64, f64, f64, flush_f64(upper_half(rsqrt_double(flush_f64(upper_half(x))))))
OP1(rcp_approx_f64, f64, f64, flush_f64(upper_half(1 / flush_f64(upper_half(x)))))
