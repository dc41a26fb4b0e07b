/*
 * Floating point arithmetic, rounded to nearest. Source: PTX ISA 9.0, section 9.7.3.
 *
 * The processor's own operations are IEEE 754's and so are PTX's; what differs is NaN, which single
 * precision results give in one form only, and flushing. Contraction is off when this is compiled,
 * so a product and a sum stay two roundings unless fma asks for one.
 */
#include "ops.h"
#include "ops_float.h"

#define ARITHMETIC2(op, expression)                                                                \
    OP2(op##_f32, f32, f32, f32, canonical_f32(expression))                                        \
    OP2(op##_f64, f64, f64, f64, expression)

ARITHMETIC2(add, x + y)
ARITHMETIC2(sub, x - y)
ARITHMETIC2(mul, x *y)
ARITHMETIC2(div, x / y)
OP3(fma_f32, f32, f32, f32, f32, canonical_f32(__builtin_fmaf(x, y, z)))
OP3(fma_f64, f64, f64, f64, f64, __builtin_fma(x, y, z))
OP1(sqrt_f32, f32, f32, canonical_f32(__builtin_sqrtf(x)))
OP1(sqrt_f64, f64, f64, __builtin_sqrt(x))
OP1(rcp_f32, f32, f32, canonical_f32(1 / x))
OP1(rcp_f64, f64, f64, 1 / x)

#define FLUSHED(x) flush_f32(x)
OP2(add_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) + FLUSHED(y))))
OP2(sub_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) - FLUSHED(y))))
OP2(mul_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) * FLUSHED(y))))
OP2(div_ftz_f32, f32, f32, f32, canonical_f32(FLUSHED(FLUSHED(x) / FLUSHED(y))))
OP3(fma_ftz_f32, f32, f32, f32, f32,
    canonical_f32(FLUSHED(__builtin_fmaf(FLUSHED(x), FLUSHED(y), FLUSHED(z)))))
OP1(sqrt_ftz_f32, f32, f32, canonical_f32(FLUSHED(__builtin_sqrtf(FLUSHED(x)))))
OP1(rcp_ftz_f32, f32, f32, canonical_f32(FLUSHED(1 / FLUSHED(x))))

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

static inline double least_f64(double x, double y) {
    double less = x < y ? x : x > y ? y : float_f64(bits_f64(x) | bits_f64(y));
    return x != x ? y : y != y ? x : less;
}

static inline double most_f64(double x, double y) {
    double more = x > y ? x : x < y ? y : float_f64(bits_f64(x) & bits_f64(y));
    return x != x ? y : y != y ? x : more;
}

OP2(min_f32, f32, f32, f32, least_f32(x, y, in->mode))
OP2(max_f32, f32, f32, f32, most_f32(x, y, in->mode))
OP2(min_f64, f64, f64, f64, least_f64(x, y))
OP2(max_f64, f64, f64, f64, most_f64(x, y))

#define MAYBE_FLUSHED(x) (in->mode & SOFT_MODE_FTZ ? flush_f32(x) : (x))
OP1(abs_f32, f32, f32, canonical_f32(__builtin_fabsf(MAYBE_FLUSHED(x))))
OP1(neg_f32, f32, f32, canonical_f32(-MAYBE_FLUSHED(x)))
OP1(abs_f64, f64, f64, __builtin_fabs(x))
OP1(neg_f64, f64, f64, -x)
/* The magnitude of b with the sign of a. */
OP2(copysign_f32, u32, u32, u32, (y & 0x7fffffff) | (x & 0x80000000))
OP2(copysign_f64, u64, u64, u64, (y & INT64_MAX) | (x & ~(uint64_t)INT64_MAX))
