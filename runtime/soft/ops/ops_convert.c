/*
 * Conversions. Source: PTX ISA 9.0, section 9.7.9.21 (cvt).
 *
 * Common pairs have their own loops; all others use cvt_any, which checks both types for every
 * lane. Floating point to integer saturates; NaN gives zero, but the top bit alone where the source
 * or the result has 64 bits.
 */
#include "half.h"
#include "op_body.h"
#include "ptx/ptx.h"

#include <math.h>

/* A NaN between singles and doubles keeps its sign and the upper part of its payload, and is quiet
 * from then on. */
static inline uint64_t wide_nan(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits & 0x80000000) << 32;
    return sign | 0x7ff8000000000000 | (uint64_t)(bits & 0x7fffff) << 29;
}
static inline uint32_t narrow_nan(uint64_t bits) {
    return (uint32_t)(bits >> 32 & 0x80000000) | 0x7fc00000 | (uint32_t)(bits >> 29 & 0x7fffff);
}

OP1(cvt_u64_u32, u64, u32, x)
OP1(cvt_s64_s32, s64, s32, x)
OP1(cvt_low_32, u32, u64, x)
OP1(cvt_f32_s32, f32, s32, x)
OP1(cvt_f32_u32, f32, u32, x)
OP1(cvt_f64_f32, f64, f32, x == x ? (double)x : float_f64(wide_nan(bits_f32(x))))
OP1(cvt_f32_f64, f32, f64, x == x ? (float)x : float_f32(narrow_nan(bits_f64(x))))
OP1(cvt_f32_f16, f32, u16, float_of_f16(x))
OP1(cvt_f16_f32, u16, f32, f16_of_float(x))
OP1(cvt_bf16_f32, u16, f32, bf16_of_float(x))
OP1(cvt_f32_u16, f32, u16, (float)x)
OP1(cvt_f32_s16, f32, s16, (float)x)
OP1(cvt_s32_s16, s32, s16, x)
OP1(cvt_s32_s8, s32, u32, (int8_t)x)
OP1(cvt_u32_u8, u32, u32, (uint8_t)x)
OP1(cvt_s16_s8, s16, u32, (int8_t)x)
OP1(cvt_u16_u8, u16, u32, (uint8_t)x)
OP1(cvt_u16_u64, u16, u64, x)
OP1(cvt_u64_u16, u64, u16, x)
OP1(cvt_s64_s16, s64, s16, x)
OP1(cvt_f32_s64, f32, s64, x)
OP1(cvt_f32_bf16, u32, u16, (uint32_t)x << 16)
/* Ties away from zero are a sum and a mask on an H200, whatever the number is. */
OP1(cvt_tf32_f32, u32, u32, (x + 0x1000) & 0xffffe000)
OP1(cvt_sat_f32, f32, f32, saturate_f32(x))
OP1(cvt_rni_f32, f32, f32, x == x ? nearbyintf(x) : float_f32(0x7fffffff))

/* Truncation. Out of range the processor's own conversion is undefined in C, so the comparison
 * comes first; the bounds are exact in single precision. */
OP1(cvt_s32_f32, s32, f32,
    x >= 2147483648.0f   ? INT32_MAX
    : x > -2147483648.0f ? (int32_t)x
    : x == x             ? INT32_MIN
                         : 0)
OP1(cvt_s32_rni_f32, s32, f32,
    x >= 2147483648.0f   ? INT32_MAX
    : x > -2147483648.0f ? (int32_t)nearbyintf(x)
    : x == x             ? INT32_MIN
                         : 0)
OP1(cvt_u32_f32, u32, f32, x >= 4294967296.0f ? UINT32_MAX : x > -1 ? (uint32_t)(int64_t)x : 0)

static bool ops_convert_is_float(enum ptx_modifier type) {
    return type == PTX_f16 || type == PTX_bf16 || type == PTX_f32 || type == PTX_f64 ||
           type == PTX_tf32;
}

static bool ops_convert_is_signed(enum ptx_modifier type) {
    return type == PTX_s8 || type == PTX_s16 || type == PTX_s32 || type == PTX_s64;
}

static unsigned ops_convert_bits_of(enum ptx_modifier type) {
    static const uint8_t bits[PTX_TYPES] = {
#define PTX_TYPE(name, text, bits, kind) bits,
#include "ptx/modifier.def"
    };
    return bits[type];
}

/* Rounds a double to an integer in the mode's direction. */
static double to_integer(double x, uint32_t mode) {
    switch (mode & SOFT_MODE_ROUND) {
    case SOFT_MODE_RZ:
        return trunc(x);
    case SOFT_MODE_RM:
        return floor(x);
    case SOFT_MODE_RP:
        return ceil(x);
    default:
        return nearbyint(x);
    }
}

static double read_float(uint64_t bits, enum ptx_modifier type, uint32_t mode) {
    switch ((int)type) {
    case PTX_f16:
        return (double)float_of_f16((uint32_t)bits & 0xffff);
    case PTX_bf16:
        return (double)float_of_bf16((uint32_t)bits);
    case PTX_f64:
        return float_f64(bits);
    case PTX_e5m2x2: /* the upper half of a half */
        return (double)float_of_f16((uint32_t)bits << 8 & 0xff00);
    case PTX_e4m3x2: {
        uint32_t size = (uint32_t)bits & 0x7f, sign = (uint32_t)bits << 8 & 0x8000;
        if (size == 0x7f) return (double)NAN;
        return 256 * (double)float_of_f16(sign | size << 7);
    }
    default: {
        float x = float_f32((uint32_t)bits);
        return (double)(mode & SOFT_MODE_FTZ ? flush_f32(x) : x);
    }
    }
}

/* The largest number of a format, where .satfinite may ask for it. */
static double ops_convert_largest_of(enum ptx_modifier type) {
    switch ((int)type) {
    case PTX_f16:
        return 65504;
    case PTX_bf16:
        return 0x1.fep127;
    case PTX_tf32:
        return 0x1.ffcp127;
    case PTX_e4m3x2:
        return 448;
    default:
        return 57344;
    }
}

/* Eight bits, four of them exponent: scaled so that what is subnormal is so in five bits as well,
 * whose upper half it leaves unused. Nothing here is infinite. */
static uint32_t e4m3_of_double(double x, uint32_t mode) {
    uint32_t bits = round_to_format(x * 0x1p-8, 5, 3, mode);
    return x == x ? (bits & 0x7f) | (bits >> 1 & 0x80) : 0x7f;
}

static uint64_t write_float(double x, enum ptx_modifier type, uint32_t mode) {
    if (mode & SOFT_MODE_SAT) x = saturate_f64(x);
    if (mode & SOFT_MODE_SATFINITE) {
        double most = ops_convert_largest_of(type);
        x = x > most ? most : x < -most ? -most : x;
    }
    if ((mode & SOFT_MODE_RELU) && !(x > 0)) x = x != x ? x : 0;
    switch ((int)type) {
    case PTX_f16:
        return f16_of_double(x, mode);
    case PTX_bf16:
        return bf16_of_double(x, mode);
    case PTX_e4m3x2:
        return e4m3_of_double(x, mode);
    case PTX_e5m2x2:
        return round_to_format(x, 5, 2, mode);
    case PTX_tf32:
        return (uint64_t)round_to_format(x, 8, 10, mode) << 13;
    case PTX_f64:
        return x == x ? bits_f64(x) : 0x7fffffffffffffff;
    default: {
        float y = x == x ? float_f32(round_to_format(x, 8, 23, mode)) : float_f32(0x7fffffff);
        return bits_f32(mode & SOFT_MODE_FTZ ? flush_f32(y) : y);
    }
    }
}

/* The value of an integer type, sign- or zero-extended to 64 bits. */
static uint64_t read_integer(uint64_t bits, enum ptx_modifier type) {
    unsigned shift = 64 - ops_convert_bits_of(type);
    return ops_convert_is_signed(type) ? (uint64_t)((int64_t)(bits << shift) >> shift)
                                       : bits << shift >> shift;
}

static uint64_t ops_convert_float_to_integer(double x, enum ptx_modifier type,
                                             enum ptx_modifier from) {
    unsigned bits = ops_convert_bits_of(type);
    if (x != x) return bits == 64 || from == PTX_f64 ? 1ull << (bits - 1) : 0;
    if (ops_convert_is_signed(type)) {
        double limit = ldexp(1, (int)bits - 1);
        if (x >= limit) return (1ull << (bits - 1)) - 1;
        if (x < -limit) return 0 - (1ull << (bits - 1));
        return (uint64_t)(int64_t)x;
    }
    if (x >= ldexp(1, (int)bits)) return UINT64_MAX >> (64 - bits);
    return x > 0 ? (uint64_t)x : 0;
}

static uint64_t integer_to_integer(uint64_t value, enum ptx_modifier from, enum ptx_modifier to,
                                   uint32_t mode) {
    if ((mode & SOFT_MODE_SAT) == 0) return value;
    unsigned bits = ops_convert_bits_of(to);
    if (ops_convert_is_signed(from)) {
        int64_t x = (int64_t)value;
        int64_t high = ops_convert_is_signed(to) ? (int64_t)((1ull << (bits - 1)) - 1)
                       : bits == 64              ? INT64_MAX
                                                 : (int64_t)((1ull << bits) - 1);
        int64_t low = ops_convert_is_signed(to)
                          ? (bits == 64 ? INT64_MIN : -(int64_t)(1ull << (bits - 1)))
                          : 0;
        return (uint64_t)(x > high ? high : x < low ? low : x);
    }
    uint64_t high = ops_convert_is_signed(to) ? (1ull << (bits - 1)) - 1
                    : bits == 64              ? UINT64_MAX
                                              : (1ull << bits) - 1;
    return value > high ? high : value;
}

/* An integer as floating point, rounded once: 64-bit values do not fit a double, so the bits that
 * decide are folded into its last one. */
static uint64_t integer_to_float(uint64_t value, enum ptx_modifier from, enum ptx_modifier to,
                                 uint32_t mode) {
    bool negative = ops_convert_is_signed(from) && (int64_t)value < 0;
    uint64_t size = negative ? 0 - value : value;
    if (to == PTX_f64) {
        int shift = size >> 53 != 0 ? 11 - __builtin_clzll(size) : 0;
        uint64_t kept = size >> shift, rest = size - (kept << shift);
        if (shift > 0) {
            uint64_t half = 1ull << (shift - 1);
            kept += rounds_up(mode, negative, (uint32_t)kept & 1, rest >= half,
                              rest != half && rest != 0);
        }
        double x = ldexp(negative ? -(double)kept : (double)kept, shift);
        return bits_f64(mode & SOFT_MODE_SAT ? saturate_f64(x) : x);
    }
    int shift = size >> 52 != 0 ? 12 - __builtin_clzll(size) : 0;
    uint64_t kept = size >> shift;
    kept |= kept << shift != size; /* sticky */
    double x = ldexp((double)kept, shift);
    return write_float(negative ? -x : x, to, mode);
}

/* What becomes of a NaN, where it is not the canonical one: an H200 keeps payloads to and from
 * doubles, and moves what needs no arithmetic. */
static bool convert_nan(uint64_t bits, enum ptx_modifier from, enum ptx_modifier to, uint32_t mode,
                        uint64_t *result) {
    if ((mode & SOFT_MODE_SAT) != 0) return false;
    uint32_t half_sign = (uint32_t)bits << 16 & 0x80000000;
    switch ((int)from) {
    case PTX_f64:
        *result = to == PTX_f32    ? narrow_nan(bits)
                  : to == PTX_bf16 ? narrow_nan(bits) >> 16
                  : to == PTX_f16  ? (bits >> 48 & 0x8000) | 0x7e00 | (bits >> 42 & 0x3ff)
                  : mode == 0      ? bits
                                   : bits_f64(quiet_f64(float_f64(bits)));
        return true;
    case PTX_f32:
        *result = to == PTX_f64 && (mode & SOFT_MODE_FTZ) != 0 ? 0x7fffffffe0000000
                  : to == PTX_f64                              ? wide_nan((uint32_t)bits)
                                                               : bits;
        return to == PTX_f64 || (to == PTX_f32 && mode == 0);
    case PTX_f16:
        *result = wide_nan(half_sign | (uint32_t)(bits & 0x3ff) << 13);
        return to == PTX_f64;
    default:
        *result = to == PTX_f64 ? wide_nan((uint32_t)bits << 16) : bits << 16;
        return to == PTX_f64 || (to == PTX_f32 && mode == 0);
    }
}

/* Singles to tf32, ties away from zero, are a sum and a mask on an H200, whatever they are. */
static uint64_t tf32_of_single(uint32_t bits, uint32_t mode) {
    uint32_t rounded = (bits + 0x1000) & 0xffffe000;
    bool past = (mode & SOFT_MODE_SATFINITE) != 0 && (rounded & 0x7f800000) == 0x7f800000;
    return past ? rounded - 0x2000 : rounded;
}

static uint64_t ops_convert_convert(uint64_t bits, enum ptx_modifier from, enum ptx_modifier to,
                                    uint32_t mode) {
    if (to == PTX_tf32 && (mode & SOFT_MODE_ROUND) == SOFT_MODE_RNA) {
        return tf32_of_single((uint32_t)bits, mode);
    }
    /* On the way to f16 an H200 flushes nothing, with .ftz or without it. */
    if (from == PTX_f32 && to == PTX_f16) mode &= ~(uint32_t)SOFT_MODE_FTZ;
    if (ops_convert_is_float(from)) {
        double x = read_float(bits, from, mode);
        uint64_t nan = 0;
        if (x != x && ops_convert_is_float(to) && convert_nan(bits, from, to, mode, &nan))
            return nan;
        if (mode & SOFT_MODE_INTEGER) x = to_integer(x, mode);
        if (ops_convert_is_float(to))
            return write_float(x, to, mode & SOFT_MODE_INTEGER ? mode & ~7u : mode);
        return ops_convert_float_to_integer(to_integer(x, mode), to, from);
    }
    uint64_t value = read_integer(bits, from);
    if (ops_convert_is_float(to)) return integer_to_float(value, from, to, mode);
    return integer_to_integer(value, from, to, mode);
}

/* more: the two types, and how wide the two slots are. */
OP_ANY(cvt_any) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    enum ptx_modifier to = (enum ptx_modifier)operands[0], from = (enum ptx_modifier)operands[1];
    bool wide_to = operands[2] != 0, wide_from = operands[3] != 0;
    unsigned bits = ops_convert_bits_of(to);
    EACH_LANE(i, warp->mask) {
        uint64_t x = wide_from ? SLOT(uint64_t, in->a)[i] : SLOT(uint32_t, in->a)[i];
        uint64_t y = ops_convert_convert(x, from, to, in->mode);
        /* A register wider than the type is filled by its sign. */
        if (ops_convert_is_signed(to)) {
            y = (uint64_t)((int64_t)(y << (64 - bits)) >> (64 - bits));
        } else {
            y = y << (64 - bits) >> (64 - bits);
        }
        if (wide_to) {
            SLOT(uint64_t, in->d)[i] = y;
        } else {
            SLOT(uint32_t, in->d)[i] = operands[4] == 16 ? (uint32_t)(y & 0xffff) : (uint32_t)y;
        }
    }
    return in + 1;
}

/* The elements of packed types, as conversions know them. */
static enum ptx_modifier ops_convert_element_of(enum ptx_modifier type) {
    return type == PTX_f16x2 ? PTX_f16 : type == PTX_bf16x2 ? PTX_bf16 : type;
}

/* Two at once. The first of two sources goes into the upper half, a packed source's halves into the
 * same ones. more: the two types. */
OP_ANY(cvt_pair) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    enum ptx_modifier to = (enum ptx_modifier)operands[0], from = (enum ptx_modifier)operands[1];
    const uint32_t *a = SLOT(uint32_t, in->a), *b = SLOT(uint32_t, in->b);
    uint32_t *d = SLOT(uint32_t, in->d);
    unsigned from_width = ops_convert_bits_of(from) / 2, to_width = ops_convert_bits_of(to) / 2;
    EACH_LANE(i, warp->mask) {
        uint32_t high = a[i] >> from_width, low = a[i] & ((1u << from_width) - 1);
        if (from == PTX_f32) high = a[i], low = b[i];
        uint64_t part[2] = {write_float(read_float(low, ops_convert_element_of(from), 0),
                                        ops_convert_element_of(to), in->mode),
                            write_float(read_float(high, ops_convert_element_of(from), 0),
                                        ops_convert_element_of(to), in->mode)};
        d[i] = (uint32_t)(part[0] | part[1] << to_width);
    }
    return in + 1;
}

/* Two integers clamped to few bits: a above b, and the low bits of c, if there is one, above both.
 * mode: how many bits; bit 8, signed; bit 9, c is there. */
OP_ANY(cvt_pack) {
    const int32_t *a = SLOT(int32_t, in->a), *b = SLOT(int32_t, in->b);
    const uint32_t *c = SLOT(uint32_t, in->c);
    uint32_t *d = SLOT(uint32_t, in->d), bits = in->mode & 0xff, mask = (1u << bits) - 1;
    int32_t high = (in->mode & 256) != 0 ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    int32_t low = (in->mode & 256) != 0 ? -high - 1 : 0;
    EACH_LANE(i, warp->mask) {
        uint32_t x = (uint32_t)(a[i] > high ? high : a[i] < low ? low : a[i]) & mask;
        uint32_t y = (uint32_t)(b[i] > high ? high : b[i] < low ? low : b[i]) & mask;
        d[i] = x << bits | y | ((in->mode & 512) != 0 ? c[i] << (2 * bits) : 0);
    }
    return in + 1;
}
