/*
 * Conversions. Source: PTX ISA 9.0, section 9.7.9.21 (cvt).
 *
 * A handful of pairs is common and has a loop of its own; all others go through cvt_any, which
 * looks at both types for every lane. Floating point to integer saturates, and NaN gives zero (or,
 * for 64-bit results, the lowest value's bits as the hardware has it).
 */
#include "half.h"
#include "ops.h"
#include "ptx.h"

#include <math.h>

OP1(cvt_u64_u32, u64, u32, x)
OP1(cvt_s64_s32, s64, s32, x)
OP1(cvt_low_32, u32, u64, x)
OP1(cvt_f32_s32, f32, s32, x)
OP1(cvt_f32_u32, f32, u32, x)
OP1(cvt_f64_f32, f64, f32, x == x ? (double)x : float_f64(0x7fffffffe0000000))
OP1(cvt_f32_f64, f32, f64, canonical_f32((float)x))
OP1(cvt_f32_f16, f32, u16, float_of_f16(x))
OP1(cvt_f16_f32, u16, f32, f16_of_float(x))

/* Truncation. Out of range the processor's own conversion is undefined in C, so the comparison
 * comes first; the bounds are exact in single precision. */
OP1(cvt_s32_f32, s32, f32,
    x >= 2147483648.0f   ? INT32_MAX
    : x > -2147483648.0f ? (int32_t)x
    : x == x             ? INT32_MIN
                         : 0)
OP1(cvt_u32_f32, u32, f32, x >= 4294967296.0f ? UINT32_MAX : x > -1 ? (uint32_t)(int64_t)x : 0)

static bool is_float(enum ptx_modifier type) {
    return type == PTX_f16 || type == PTX_bf16 || type == PTX_f32 || type == PTX_f64 ||
           type == PTX_tf32;
}

static bool is_signed(enum ptx_modifier type) {
    return type == PTX_s8 || type == PTX_s16 || type == PTX_s32 || type == PTX_s64;
}

static unsigned bits_of(enum ptx_modifier type) {
    static const uint8_t bits[PTX_TYPES] = {
#define PTX_TYPE(name, text, bits, kind) bits,
#include "modifier.def"
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
    default: {
        float x = float_f32((uint32_t)bits);
        return (double)(mode & SOFT_MODE_FTZ ? flush_f32(x) : x);
    }
    }
}

static uint64_t write_float(double x, enum ptx_modifier type, uint32_t mode) {
    if (mode & SOFT_MODE_SAT) x = saturate_f64(x);
    if ((mode & SOFT_MODE_RELU) && !(x > 0)) x = x != x ? x : 0;
    switch ((int)type) {
    case PTX_f16:
        return f16_of_double(x, mode);
    case PTX_bf16:
        return bf16_of_double(x, mode);
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
    unsigned shift = 64 - bits_of(type);
    return is_signed(type) ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits << shift >> shift;
}

static uint64_t float_to_integer(double x, enum ptx_modifier type) {
    unsigned bits = bits_of(type);
    if (x != x) {
        /* The hardware's own answer differs by width. */
        return bits == 64 ? 1ull << 63 : 0;
    }
    if (is_signed(type)) {
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
    unsigned bits = bits_of(to);
    if (is_signed(from)) {
        int64_t x = (int64_t)value;
        int64_t high = is_signed(to) ? (int64_t)((1ull << (bits - 1)) - 1)
                       : bits == 64  ? INT64_MAX
                                     : (int64_t)((1ull << bits) - 1);
        int64_t low = is_signed(to) ? (bits == 64 ? INT64_MIN : -(int64_t)(1ull << (bits - 1))) : 0;
        return (uint64_t)(x > high ? high : x < low ? low : x);
    }
    uint64_t high = is_signed(to) ? (1ull << (bits - 1)) - 1
                    : bits == 64  ? UINT64_MAX
                                  : (1ull << bits) - 1;
    return value > high ? high : value;
}

/* An integer as floating point, rounded once: 64-bit values do not fit a double, so the bits that
 * decide are folded into its last one. */
static uint64_t integer_to_float(uint64_t value, enum ptx_modifier from, enum ptx_modifier to,
                                 uint32_t mode) {
    bool negative = is_signed(from) && (int64_t)value < 0;
    uint64_t size = negative ? 0 - value : value;
    if (to == PTX_f64) {
        int shift = size >> 53 != 0 ? 11 - __builtin_clzll(size) : 0;
        uint64_t kept = size >> shift, rest = size - (kept << shift);
        if (shift > 0) {
            uint64_t half = 1ull << (shift - 1);
            kept += rounds_up(mode, negative, (uint32_t)kept & 1, rest >= half,
                              rest != half && rest != 0);
        }
        double x = ldexp((double)kept, shift);
        return bits_f64(negative ? -x : x);
    }
    int shift = size >> 52 != 0 ? 12 - __builtin_clzll(size) : 0;
    uint64_t kept = size >> shift;
    kept |= kept << shift != size; /* sticky */
    double x = ldexp((double)kept, shift);
    return write_float(negative ? -x : x, to, mode);
}

static uint64_t convert(uint64_t bits, enum ptx_modifier from, enum ptx_modifier to,
                        uint32_t mode) {
    if (is_float(from)) {
        double x = read_float(bits, from, mode);
        if (mode & SOFT_MODE_INTEGER) x = to_integer(x, mode);
        if (is_float(to)) return write_float(x, to, mode & SOFT_MODE_INTEGER ? mode & ~7u : mode);
        return float_to_integer(to_integer(x, mode), to);
    }
    uint64_t value = read_integer(bits, from);
    if (is_float(to)) return integer_to_float(value, from, to, mode);
    return integer_to_integer(value, from, to, mode);
}

/* more: the two types, and how wide the two slots are. */
OP_ANY(cvt_any) {
    const uint32_t *operands = SOFT_OPERANDS(warp, in);
    enum ptx_modifier to = (enum ptx_modifier)operands[0], from = (enum ptx_modifier)operands[1];
    bool wide_to = operands[2] != 0, wide_from = operands[3] != 0;
    unsigned bits = bits_of(to);
    EACH_LANE(i, warp->mask) {
        uint64_t x = wide_from ? SLOT(uint64_t, in->a)[i] : SLOT(uint32_t, in->a)[i];
        uint64_t y = convert(x, from, to, in->mode);
        /* A register wider than the type is filled by its sign. */
        if (is_signed(to)) {
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
