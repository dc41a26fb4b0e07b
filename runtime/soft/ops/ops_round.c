/*
 * Floating point with a rounding mode, saturation, or both. Source: PTX ISA 9.0, section 9.7.3.
 *
 * The processor's rounding mode is set once for the 32 lanes. This file is compiled with
 * -frounding-math, or the compiler would move arithmetic across the change.
 */
#include "float_bits.h"
#include "op_body.h"

#include <fenv.h>
#include <math.h>

static const int directions[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

static inline float finish_f32(float x, uint32_t mode) {
    if (mode & SOFT_MODE_FTZ) x = flush_f32(x);
    return mode & SOFT_MODE_SAT ? saturate_f32(x) : canonical_f32(x);
}

static inline float enter_f32(float x, uint32_t mode) {
    return mode & SOFT_MODE_FTZ ? flush_f32(x) : x;
}

/* div.approx multiplies by a reciprocal that is flushed: for divisors of 2^126 and
 * more it is zero. */
static inline float divide_f32(float x, float y, uint32_t mode) {
    float size = __builtin_fabsf(y);
    if ((mode & SOFT_MODE_APPROX) && size > 0x1p126f && size < (float)INFINITY) {
        return x * float_f32(bits_f32(y) & 0x80000000);
    }
    return x / y;
}

/* A sum for is_tiny: rounded to odd, which works to nearest alone. */
static double odd_sum_in(double x, double y, uint32_t mode) {
    fesetround(FE_TONEAREST);
    double sum = odd_sum(x, y);
    fesetround(directions[mode & 3]);
    return sum;
}

#define ANY_F32(op, expression, tiny)                                                              \
    OP_ANY(op##_any_f32) {                                                                         \
        float *d = SLOT(float, in->d);                                                             \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b), *c = SLOT(float, in->c);     \
        uint32_t mode = in->mode;                                                                  \
        fesetround(directions[mode & 3]);                                                          \
        EACH_LANE(i, warp->mask) {                                                                 \
            float x = enter_f32(a[i], mode), y = enter_f32(b[i], mode), z = enter_f32(c[i], mode); \
            (void)y, (void)z;                                                                      \
            float result = finish_f32(expression, mode);                                           \
            bool least = (mode & SOFT_MODE_FTZ) != 0 && is_least_f32(result);                      \
            d[i] = least && (tiny) ? __builtin_copysignf(0, result) : result;                      \
        }                                                                                          \
        fesetround(FE_TONEAREST);                                                                  \
        return in + 1;                                                                             \
    }

#define ANY_F64(op, expression)                                                                    \
    OP_ANY(op##_any_f64) {                                                                         \
        double *d = SLOT(double, in->d);                                                           \
        const double *a = SLOT(double, in->a), *b = SLOT(double, in->b), *c = SLOT(double, in->c); \
        fesetround(directions[in->mode & 3]);                                                      \
        EACH_LANE(i, warp->mask) {                                                                 \
            double x = a[i], y = b[i], z = c[i];                                                   \
            (void)y, (void)z;                                                                      \
            d[i] = expression;                                                                     \
        }                                                                                          \
        fesetround(FE_TONEAREST);                                                                  \
        return in + 1;                                                                             \
    }

ANY_F32(add, x + y, false)
ANY_F32(sub, x - y, false)
ANY_F32(mul, x *y, is_tiny((double)x *(double)y))
ANY_F32(fma, __builtin_fmaf(x, y, z), is_tiny(odd_sum_in((double)x *(double)y, (double)z, mode)))
ANY_F32(div, divide_f32(x, y, mode), is_tiny_quotient(x, y))
ANY_F32(sqrt, __builtin_sqrtf(x), false)
ANY_F32(rcp, 1 / x, is_tiny_quotient(1, x))
ANY_F64(add, nan_of_2(x + y, y, x))
ANY_F64(sub, nan_of_2(x - y, y, x))
ANY_F64(mul, nan_of_2(x *y, y, x))
ANY_F64(fma, nan_of_3(__builtin_fma(x, y, z), y, z, x))
ANY_F64(div, nan_of_2(x / y, x, y))
ANY_F64(sqrt, nan_of_2(__builtin_sqrt(x), x, x))
ANY_F64(rcp, nan_of_2(1 / x, x, x))
