/*
 * Floating point with a rounding mode, saturation, or both. Source: PTX ISA 9.0, section 9.7.3.
 *
 * The processor's rounding mode is set once for the 32 lanes. This file is compiled with
 * -frounding-math, or the compiler would move arithmetic across the change.
 */
#include "ops.h"
#include "ops_float.h"

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

#define ANY_F32(op, expression)                                                                    \
    OP_ANY(op##_any_f32) {                                                                         \
        float *d = SLOT(float, in->d);                                                             \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b), *c = SLOT(float, in->c);     \
        uint32_t mode = in->mode;                                                                  \
        fesetround(directions[mode & 3]);                                                          \
        EACH_LANE(i, warp->mask) {                                                                 \
            float x = enter_f32(a[i], mode), y = enter_f32(b[i], mode), z = enter_f32(c[i], mode); \
            (void)y, (void)z;                                                                      \
            d[i] = finish_f32(expression, mode);                                                   \
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
            d[i] = in->mode & SOFT_MODE_SAT ? saturate_f64(expression) : (expression);             \
        }                                                                                          \
        fesetround(FE_TONEAREST);                                                                  \
        return in + 1;                                                                             \
    }

ANY_F32(add, x + y)
ANY_F32(sub, x - y)
ANY_F32(mul, x *y)
ANY_F32(fma, __builtin_fmaf(x, y, z))
ANY_F32(div, divide_f32(x, y, mode))
ANY_F32(sqrt, __builtin_sqrtf(x))
ANY_F32(rcp, 1 / x)
ANY_F64(add, x + y)
ANY_F64(sub, x - y)
ANY_F64(mul, x *y)
ANY_F64(fma, __builtin_fma(x, y, z))
ANY_F64(div, x / y)
ANY_F64(sqrt, __builtin_sqrt(x))
ANY_F64(rcp, 1 / x)
