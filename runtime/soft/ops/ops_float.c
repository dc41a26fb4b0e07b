/*
 * Floating point arithmetic, rounded to nearest. Source: PTX ISA 9.0, section 9.7.3.
 *
 * The processor's operations are those of IEEE 754, and so are PTX's. They differ in flushing and
 * in NaN, which has only one form in single precision results and is passed on in double precision
 * ones. This is compiled without contraction, so a product and a sum are rounded twice except in
 * fma.
 */
#include "float_bits.h"
#include "op_body.h"
#include "ops_vector.h"

OP2(div_f32, f32, f32, f32, canonical_f32(x / y))

/* A sum often depends on the previous one, so nothing unnecessary is between the two: NaN, which is
 * rare, is detected separately and corrected by a second pass. */
#define FLOAT_LINE(op, expression)                                                                 \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b), *c = SLOT(float, in->c);     \
        float *d = SLOT(float, in->d);                                                             \
        unsigned nan = 0;                                                                          \
        SOFT_LANE_LOOP for (int i = 0; i < SOFT_LANES; i += VECTOR) {                              \
            vector x = READ(a + i), y = READ(b + i), z = READ(c + i);                              \
            (void)z;                                                                               \
            x = (expression);                                                                      \
            WRITE(d + i, x);                                                                       \
            nan |= NAN_BITS(x);                                                                    \
        }                                                                                          \
        if (__builtin_expect(nan != 0, 0)) make_canonical(d);                                      \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b), *c = SLOT(float, in->c);     \
        float *d = SLOT(float, in->d), result[SOFT_LANES];                                         \
        const uint32_t *lane = warp->lane;                                                         \
        for (int i = 0; i < SOFT_LANES; i += VECTOR) {                                             \
            vector x = READ(a + i), y = READ(b + i), z = READ(c + i);                              \
            (void)z;                                                                               \
            WRITE(result + i, expression);                                                         \
        }                                                                                          \
        LANES d[i] = lane[i] ? canonical_f32(result[i]) : d[i];                                    \
        return in + 1;                                                                             \
    }
FLOAT_LINE(add_f32, x + y)
FLOAT_LINE(sub_f32, x - y)
FLOAT_LINE(mul_f32, x *y)
FLOAT_LINE(fma_f32, FMA(x, y, z))

OP1(sqrt_f32, f32, f32, canonical_f32(__builtin_sqrtf(x)))
OP1(rcp_f32, f32, f32, canonical_f32(1 / x))
OP2(add_f64, f64, f64, f64, nan_of_2(x + y, y, x))
OP2(sub_f64, f64, f64, f64, nan_of_2(x - y, y, x))
OP2(mul_f64, f64, f64, f64, nan_of_2(x *y, y, x))
OP2(div_f64, f64, f64, f64, nan_of_2(x / y, x, y))
OP3(fma_f64, f64, f64, f64, f64, nan_of_3(__builtin_fma(x, y, z), y, z, x))
OP1(sqrt_f64, f64, f64, nan_of_2(__builtin_sqrt(x), x, x))
OP1(rcp_f64, f64, f64, nan_of_2(1 / x, x, x))

#define FLUSHED(x) flush_f32(x)
OP2(add_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) + FLUSHED(y))))
OP2(sub_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) - FLUSHED(y))))
OP1(sqrt_ftz_f32, f32, f32, canonical_f32(FLUSHED(__builtin_sqrtf(FLUSHED(x)))))

/* Results of the least normal size, which are rare, are looked at again. Sources may lie where the
 * results go, so those come last. */
#define FLUSHING_BODY(expression, tiny)                                                            \
    const float *a = SLOT(float, in->a), *b = SLOT(float, in->b), *c = SLOT(float, in->c);         \
    float *d = SLOT(float, in->d), result[SOFT_LANES];                                             \
    uint32_t some = 0;                                                                             \
    LANES {                                                                                        \
        float x = FLUSHED(a[i]), y = FLUSHED(b[i]), z = FLUSHED(c[i]);                             \
        (void)y, (void)z;                                                                          \
        result[i] = canonical_f32(FLUSHED(expression));                                            \
        some |= is_least_f32(result[i]);                                                           \
    }                                                                                              \
    for (int i = 0; some != 0 && i < SOFT_LANES; i++) {                                            \
        float x = FLUSHED(a[i]), y = FLUSHED(b[i]), z = FLUSHED(c[i]);                             \
        (void)y, (void)z;                                                                          \
        if (is_least_f32(result[i]) && (tiny)) result[i] = __builtin_copysignf(0, result[i]);      \
    }

#define FLUSHING(op, expression, tiny)                                                             \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        FLUSHING_BODY(expression, tiny)                                                            \
        memcpy(d, result, sizeof result);                                                          \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        FLUSHING_BODY(expression, tiny)                                                            \
        const uint32_t *lane = warp->lane;                                                         \
        LANES d[i] = lane[i] ? result[i] : d[i];                                                   \
        return in + 1;                                                                             \
    }
FLUSHING(mul_ftz_f32, x *y, is_tiny((double)x *(double)y))
FLUSHING(div_ftz_f32, x / y, is_tiny_quotient(x, y))
FLUSHING(fma_ftz_f32, __builtin_fmaf(x, y, z), is_tiny(odd_sum((double)x *(double)y, (double)z)))
FLUSHING(rcp_ftz_f32, 1 / x, is_tiny_quotient(1, x))

static inline double least_f64(double x, double y) {
    double less = x < y ? x : x > y ? y : float_f64(bits_f64(x) | bits_f64(y));
    return x != x ? nan_of_2(y, y, y) : y != y ? x : less;
}

static inline double most_f64(double x, double y) {
    double more = x > y ? x : x < y ? y : float_f64(bits_f64(x) & bits_f64(y));
    return x != x ? nan_of_2(y, y, y) : y != y ? x : more;
}

/* Nearly all have no qualifiers, and are then a few instructions. */
#define EXTREME(op, f)                                                                             \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b);                              \
        float *d = SLOT(float, in->d);                                                             \
        if (in->mode == 0) {                                                                       \
            LANES d[i] = f(a[i], b[i], 0);                                                         \
        } else {                                                                                   \
            LANES d[i] = f(a[i], b[i], in->mode);                                                  \
        }                                                                                          \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        const float *a = SLOT(float, in->a), *b = SLOT(float, in->b);                              \
        float *d = SLOT(float, in->d);                                                             \
        const uint32_t *lane = warp->lane;                                                         \
        LANES {                                                                                    \
            float result = f(a[i], b[i], in->mode);                                                \
            d[i] = lane[i] ? result : d[i];                                                        \
        }                                                                                          \
        return in + 1;                                                                             \
    }
EXTREME(min_f32, least_f32)
EXTREME(max_f32, most_f32)
OP2(min_f64, f64, f64, f64, least_f64(x, y))
OP2(max_f64, f64, f64, f64, most_f64(x, y))

#define MAYBE_FLUSHED(x) (in->mode & SOFT_MODE_FTZ ? flush_f32(x) : (x))
OP1(abs_f32, f32, f32, canonical_f32(__builtin_fabsf(MAYBE_FLUSHED(x))))
OP1(neg_f32, f32, f32, canonical_f32(-MAYBE_FLUSHED(x)))
OP1(abs_f64, f64, f64, x == x ? __builtin_fabs(x) : quiet_f64(x))
OP1(neg_f64, f64, f64, x == x ? -x : quiet_f64(x))
/* The magnitude of b with the sign of a. */
OP2(copysign_f32, u32, u32, u32, (y & 0x7fffffff) | (x & 0x80000000))
OP2(copysign_f64, u64, u64, u64, (y & INT64_MAX) | (x & ~(uint64_t)INT64_MAX))
