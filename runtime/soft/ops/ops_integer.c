/*
 * Integer arithmetic. Source: PTX ISA 9.0, sections 9.7.1 and 9.7.8.
 *
 * What C leaves undefined PTX defines, or leaves to the machine; here it is: additions and products
 * wrap, a shift by the width or more gives zero (or the sign), the quotient and the remainder by
 * zero are all ones, as on an H200, and the most negative number divided by -1 is itself.
 */
#include "op_body.h"

#define WIDTHS2(op, expression)                                                                    \
    OP2(op##_16, u16, u16, u16, expression)                                                        \
    OP2(op##_32, u32, u32, u32, expression)                                                        \
    OP2(op##_64, u64, u64, u64, expression)

WIDTHS2(add, x + y)
WIDTHS2(sub, x - y)
WIDTHS2(and, x &y)
WIDTHS2(or, x | y)
WIDTHS2(xor, x ^ y)
OP2(mul_lo_16, u16, u16, u16, (uint32_t)x *y)
OP2(mul_lo_32, u32, u32, u32, x *y)
OP2(mul_lo_64, u64, u64, u64, x *y)
OP3(mad_lo_16, u16, u16, u16, u16, (uint32_t)x *y + z)
OP3(mad_lo_32, u32, u32, u32, u32, x *y + z)
OP3(mad_lo_64, u64, u64, u64, u64, x *y + z)

#define WIDTHS1(op, expression)                                                                    \
    OP1(op##_16, u16, u16, expression)                                                             \
    OP1(op##_32, u32, u32, expression)                                                             \
    OP1(op##_64, u64, u64, expression)

WIDTHS1(not, ~x)
WIDTHS1(cnot, x == 0)
WIDTHS1(neg, 0 - x)
OP1(abs_16, u16, s16, x < 0 ? 0 - x : x)
OP1(abs_32, u32, s32, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
OP1(abs_64, u64, s64, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)

OP2(shl_16, u16, u16, u32, y < 16 ? (uint32_t)x << (y & 15) : 0)
OP2(shl_32, u32, u32, u32, y < 32 ? x << (y & 31) : 0)
OP2(shl_64, u64, u64, u32, y < 64 ? x << (y & 63) : 0)
OP2(shr_u16, u16, u16, u32, y < 16 ? x >> (y & 15) : 0)
OP2(shr_u32, u32, u32, u32, y < 32 ? x >> (y & 31) : 0)
OP2(shr_u64, u64, u64, u32, y < 64 ? x >> (y & 63) : 0)
OP2(shr_s16, s16, s16, u32, x >> (y < 15 ? y : 15))
OP2(shr_s32, s32, s32, u32, x >> (y < 31 ? y : 31))
OP2(shr_s64, s64, s64, u32, x >> (y < 63 ? y : 63))

/* Two in a register. */
#define HALVES(T, x, y, operation)                                                                 \
    ((uint32_t)(uint16_t)operation((T)(x), (T)(y)) |                                               \
     (uint32_t)(uint16_t)operation((T)((x) >> 16), (T)((y) >> 16)) << 16)
#define SUM(x, y) ((x) + (y))
#define LEAST(x, y) ((x) < (y) ? (x) : (y))
#define MOST(x, y) ((x) > (y) ? (x) : (y))
/* With .relu nothing is below zero. */
#define RELU(x) ((in->mode & SOFT_MODE_RELU) != 0 && (x) < 0 ? 0 : (x))
#define LEAST_RELU(x, y) RELU(LEAST(x, y))
#define MOST_RELU(x, y) RELU(MOST(x, y))
OP2(add_16x2, u32, u32, u32, HALVES(uint16_t, x, y, SUM))
OP2(min_u16x2, u32, u32, u32, HALVES(uint16_t, x, y, LEAST))
OP2(min_s16x2, u32, u32, u32, HALVES(int16_t, x, y, LEAST_RELU))
OP2(max_u16x2, u32, u32, u32, HALVES(uint16_t, x, y, MOST))
OP2(max_s16x2, u32, u32, u32, HALVES(int16_t, x, y, MOST_RELU))
OP2(min_relu_s32, s32, s32, s32, LEAST_RELU(x, y))
OP2(max_relu_s32, s32, s32, s32, MOST_RELU(x, y))

#define SIGNS2(op, expression)                                                                     \
    OP2(op##_u16, u16, u16, u16, expression)                                                       \
    OP2(op##_u32, u32, u32, u32, expression)                                                       \
    OP2(op##_u64, u64, u64, u64, expression)                                                       \
    OP2(op##_s16, s16, s16, s16, expression)                                                       \
    OP2(op##_s32, s32, s32, s32, expression)                                                       \
    OP2(op##_s64, s64, s64, s64, expression)

SIGNS2(min, x < y ? x : y)
SIGNS2(max, x > y ? x : y)

static inline uint64_t ops_integer_high_u64(uint64_t x, uint64_t y) {
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
    uint64_t other = x0 * y1 + (uint32_t)middle;
    return x1 * y1 + (middle >> 32) + (other >> 32);
}

static inline uint64_t high_s64(int64_t x, int64_t y) {
    uint64_t high = ops_integer_high_u64((uint64_t)x, (uint64_t)y);
    return high - (x < 0 ? (uint64_t)y : 0) - (y < 0 ? (uint64_t)x : 0);
}

OP2(mul_hi_u16, u16, u16, u16, (uint32_t)x *y >> 16)
OP2(mul_hi_u32, u32, u32, u32, (uint64_t)x *y >> 32)
OP2(mul_hi_u64, u64, u64, u64, ops_integer_high_u64(x, y))
OP2(mul_hi_s16, s16, s16, s16, (int32_t)x *y >> 16)
OP2(mul_hi_s32, u32, s32, s32, (uint64_t)((int64_t)x *y) >> 32)
OP2(mul_hi_s64, u64, s64, s64, high_s64(x, y))
OP3(mad_hi_u16, u16, u16, u16, u16, ((uint32_t)x * y >> 16) + z)
OP3(mad_hi_u32, u32, u32, u32, u32, ((uint64_t)x * y >> 32) + z)
OP3(mad_hi_u64, u64, u64, u64, u64, ops_integer_high_u64(x, y) + z)
OP3(mad_hi_s16, u16, s16, s16, u16, (uint32_t)((int32_t)x *y >> 16) + z)
OP3(mad_hi_s32, u32, s32, s32, u32, ((uint64_t)((int64_t)x * y) >> 32) + z)
OP3(mad_hi_s64, u64, s64, s64, u64, high_s64(x, y) + z)
OP2(mul_wide_u16, u32, u16, u16, (uint32_t)x *y)
OP2(mul_wide_u32, u64, u32, u32, (uint64_t)x *y)
OP2(mul_wide_s16, u32, s16, s16, (int32_t)x *y)
OP2(mul_wide_s32, u64, s32, s32, (int64_t)x *y)
OP3(mad_wide_u16, u32, u16, u16, u32, (uint32_t)x *y + z)
OP3(mad_wide_u32, u64, u32, u32, u64, (uint64_t)x *y + z)
OP3(mad_wide_s16, u32, s16, s16, u32, (uint32_t)((int32_t)x *y) + z)
OP3(mad_wide_s32, u64, s32, s32, u64, (uint64_t)((int64_t)x *y) + z)

static inline int32_t clamp_s32(int64_t value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

OP2(add_sat_s32, s32, s32, s32, clamp_s32((int64_t)x + y))
OP2(sub_sat_s32, s32, s32, s32, clamp_s32((int64_t)x - y))
OP3(mad_hi_sat_s32, s32, s32, s32, s32, clamp_s32(((int64_t)x * y >> 32) + z))

/* The low 24 bits of a value, as a number. */
#define LOW24_u32(x) ((uint64_t)((x)&0xffffff))
#define LOW24_s32(x) ((int64_t)((int32_t)((uint32_t)(x) << 8) >> 8))
OP2(mul24_lo_u32, u32, u32, u32, LOW24_u32(x) * LOW24_u32(y))
OP2(mul24_lo_s32, u32, s32, s32, LOW24_s32(x) * LOW24_s32(y))
OP2(mul24_hi_u32, u32, u32, u32, LOW24_u32(x) * LOW24_u32(y) >> 16)
OP2(mul24_hi_s32, u32, s32, s32, LOW24_s32(x) * LOW24_s32(y) >> 16)
OP3(mad24_lo_u32, u32, u32, u32, u32, LOW24_u32(x) * LOW24_u32(y) + z)
OP3(mad24_lo_s32, u32, s32, s32, u32, (uint64_t)(LOW24_s32(x) * LOW24_s32(y)) + z)
OP3(mad24_hi_u32, u32, u32, u32, u32, (LOW24_u32(x) * LOW24_u32(y) >> 16) + z)
OP3(mad24_hi_s32, u32, s32, s32, u32, (uint64_t)(LOW24_s32(x) * LOW24_s32(y) >> 16) + z)
OP3(mad24_hi_sat_s32, s32, s32, s32, s32, clamp_s32((LOW24_s32(x) * LOW24_s32(y) >> 16) + z))

#define QUOTIENT_u(x, y, all) ((y) == 0 ? (all) : (x) / (y))
#define REMAINDER_u(x, y, all) ((y) == 0 ? (all) : (x) % (y))
OP2(div_u16, u16, u16, u16, QUOTIENT_u(x, y, UINT16_MAX))
OP2(div_u32, u32, u32, u32, QUOTIENT_u(x, y, UINT32_MAX))
OP2(div_u64, u64, u64, u64, QUOTIENT_u(x, y, UINT64_MAX))
OP2(rem_u16, u16, u16, u16, REMAINDER_u(x, y, UINT16_MAX))
OP2(rem_u32, u32, u32, u32, REMAINDER_u(x, y, UINT32_MAX))
OP2(rem_u64, u64, u64, u64, REMAINDER_u(x, y, UINT64_MAX))
OP2(div_s16, s16, s16, s16, y == 0 ? -1 : y == -1 ? 0 - x : x / y)
OP2(div_s32, u32, s32, s32, y == 0 ? UINT32_MAX : y == -1 ? 0 - (uint32_t)x : (uint32_t)(x / y))
OP2(div_s64, u64, s64, s64, y == 0 ? UINT64_MAX : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y))
OP2(rem_s16, s16, s16, s16, y == 0 ? -1 : y == -1 ? 0 : x % y)
OP2(rem_s32, s32, s32, s32, y == 0 ? -1 : y == -1 ? 0 : x % y)
OP2(rem_s64, s64, s64, s64, y == 0 ? -1 : y == -1 ? 0 : x % y)

OP3(sad_u16, u16, u16, u16, u16, z + (x > y ? x - y : y - x))
OP3(sad_u32, u32, u32, u32, u32, z + (x > y ? x - y : y - x))
OP3(sad_u64, u64, u64, u64, u64, z + (x > y ? x - y : y - x))
OP3(sad_s16, u16, s16, s16, u16, z + (x > y ? x - y : y - x))
OP3(sad_s32, u32, s32, s32, u32,
    z + (x > y ? (uint32_t)x - (uint32_t)y : (uint32_t)y - (uint32_t)x))
OP3(sad_s64, u64, s64, s64, u64,
    z + (x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x))
