/*
 * Bits: counting, finding, extracting, permuting. Source: PTX ISA 9.0, sections 9.7.1.10 to
 * 9.7.1.24 and 9.7.8.
 */
#include "op_body.h"

static inline uint32_t reverse_32(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint64_t reverse_64(uint64_t x) {
    return (uint64_t)reverse_32((uint32_t)x) << 32 | reverse_32((uint32_t)(x >> 32));
}

OP1(popc_32, u32, u32, __builtin_popcount(x))
OP1(popc_64, u32, u64, __builtin_popcountll(x))
OP1(clz_32, u32, u32, x == 0 ? 32 : __builtin_clz(x))
OP1(clz_64, u32, u64, x == 0 ? 64 : __builtin_clzll(x))
OP1(brev_32, u32, u32, reverse_32(x))
OP1(brev_64, u64, u64, reverse_64(x))

/* The position of the most significant bit that is not a sign bit; with mode 1, how far a left
 * shift would bring it to the top. All ones where there is none. */
static inline uint32_t find_64(uint64_t x, uint32_t top, uint32_t mode) {
    if (x == 0) return UINT32_MAX;
    uint32_t at = 63 - (uint32_t)__builtin_clzll(x);
    return mode != 0 ? top - at : at;
}
OP1(bfind_u32, u32, u32, find_64(x, 31, in->mode))
OP1(bfind_u64, u32, u64, find_64(x, 63, in->mode))
OP1(bfind_s32, u32, s32, find_64((uint32_t)(x < 0 ? ~x : x), 31, in->mode))
OP1(bfind_s64, u32, s64, find_64((uint64_t)(x < 0 ? ~x : x), 63, in->mode))

/* Positions and lengths: of 32 bits they are taken modulo 256, as the manual says; of 64 an H200
 * takes them as they are. */
static inline uint32_t ops_bits_place_of(uint32_t operand, uint32_t width) {
    return width == 32 || operand < 0xff ? operand & 0xff : 0xff;
}

/* Bits pos .. pos + length - 1; past the top the sign, or zero, fills in. */
static inline uint64_t ops_bits_extract(uint64_t x, uint32_t position, uint32_t length,
                                        uint32_t width, uint64_t is_signed) {
    uint32_t pos = ops_bits_place_of(position, width), len = ops_bits_place_of(length, width),
             top = width - 1;
    if (len == 0) return 0;
    uint32_t sign_at = pos + len - 1 < top ? pos + len - 1 : top;
    uint64_t sign = is_signed & (x >> sign_at & 1);
    uint64_t field = pos <= top ? x >> pos : 0;
    uint32_t valid = pos > top ? 0 : sign_at - pos + 1;
    uint64_t mask = valid >= 64 ? UINT64_MAX : (1ull << valid) - 1;
    return (field & mask) | (sign ? ~mask : 0);
}
OP3(bfe_u32, u32, u32, u32, u32, ops_bits_extract(x, y, z, 32, 0))
OP3(bfe_u64, u64, u64, u32, u32, ops_bits_extract(x, y, z, 64, 0))
OP3(bfe_s32, u32, u32, u32, u32, ops_bits_extract(x, y, z, 32, 1))
OP3(bfe_s64, u64, u64, u32, u32, ops_bits_extract(x, y, z, 64, 1))

/* The low bits of x, put into y at a position. */
static inline uint64_t ops_bits_insert(uint64_t x, uint64_t y, uint32_t position, uint32_t length,
                                       uint32_t width) {
    uint32_t pos = ops_bits_place_of(position, width), len = ops_bits_place_of(length, width);
    if (pos >= width || len == 0) return y;
    uint64_t mask = len >= 64 ? UINT64_MAX : (1ull << len) - 1;
    return (y & ~(mask << pos)) | (x & mask) << pos;
}

/* bfi has four sources: the immediate is the fourth slot. */
#define INSERT(op, T, width)                                                                       \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        store_##T *d = SLOT(store_##T, in->d);                                                     \
        const store_##T *a = SLOT(store_##T, in->a), *b = SLOT(store_##T, in->b);                  \
        const uint32_t *c = SLOT(uint32_t, in->c), *e = SLOT(uint32_t, in->u.immediate);           \
        LANES d[i] = (store_##T)ops_bits_insert(a[i], b[i], c[i], e[i], width);                    \
        return in + 1;                                                                             \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        store_##T *d = SLOT(store_##T, in->d);                                                     \
        const store_##T *a = SLOT(store_##T, in->a), *b = SLOT(store_##T, in->b);                  \
        const uint32_t *c = SLOT(uint32_t, in->c), *e = SLOT(uint32_t, in->u.immediate);           \
        const uint32_t *lane = warp->lane;                                                         \
        LANES {                                                                                    \
            store_##T result = (store_##T)ops_bits_insert(a[i], b[i], c[i], e[i], width);          \
            d[i] = lane[i] ? result : d[i];                                                        \
        }                                                                                          \
        return in + 1;                                                                             \
    }
INSERT(bfi_32, u32, 32)
INSERT(bfi_64, u64, 64)

/* length ones from a position up. clamp: a position or length over 32 counts as 32. */
static inline uint32_t ops_bits_ones(uint32_t position, uint32_t length) {
    uint32_t mask = length >= 32 ? UINT32_MAX : (1u << length) - 1;
    return position >= 32 ? 0 : mask << position;
}
OP2(bmsk_clamp, u32, u32, u32, ops_bits_ones(x, y))
OP2(bmsk_wrap, u32, u32, u32, ops_bits_ones(x & 31, y & 31))

/* The low y bits of x, extended to 32. */
static inline uint32_t ops_bits_extend(uint32_t x, uint32_t bits, uint32_t is_signed) {
    if (bits >= 32) return x;
    if (bits == 0) return 0;
    uint32_t low = x & ((1u << bits) - 1);
    return is_signed & (low >> (bits - 1)) ? low | UINT32_MAX << bits : low;
}
OP2(szext_clamp_u32, u32, u32, u32, ops_bits_extend(x, y, 0))
OP2(szext_wrap_u32, u32, u32, u32, ops_bits_extend(x, y & 31, 0))
OP2(szext_clamp_s32, u32, u32, u32, ops_bits_extend(x, y, 1))
OP2(szext_wrap_s32, u32, u32, u32, ops_bits_extend(x, y & 31, 1))

/* The position of the nth set bit of mask, counted from base: up for n > 0, down for n < 0, and
 * base itself, if it is set, for n = 0. All ones where there is none; for the least n there is an
 * H200 says zero. */
static inline uint32_t ops_bits_find_nth(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : UINT32_MAX;
    if (offset == INT32_MIN) return 0;
    int64_t step = offset > 0 ? 1 : -1, wanted = offset * step, count = 0;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
        count += mask >> at & 1;
        if (count == wanted) return (uint32_t)at;
    }
    return UINT32_MAX;
}
OP3(fns, u32, u32, u32, s32, ops_bits_find_nth(x, y, z))

/* The bytes of y:x (x is the low half), picked by the selector; in->mode is the form. */
static inline uint32_t byte_of(uint64_t both, uint32_t selector) {
    uint32_t byte = (uint32_t)(both >> (8 * (selector & 7))) & 0xff;
    return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}

static inline uint32_t ops_bits_permute(uint32_t x, uint32_t y, uint32_t selector, uint32_t form) {
    /* The forms f4e, b4e, rc8, ecl, ecr and rc16, for each value of the selector's two low bits.
     * Source: PTX ISA 9.0, section 9.7.9.7 (prmt). */
    static const uint16_t forms[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    if (form > 0) selector = forms[form - 1][selector & 3];
    uint64_t both = (uint64_t)y << 32 | x;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) result |= byte_of(both, selector >> (4 * i)) << (8 * i);
    return result;
}
OP3(prmt, u32, u32, u32, u32, ops_bits_permute(x, y, z, in->mode))

/* Any function of three bits: the table is in->mode. */
static inline uint32_t ops_bits_logic3(uint32_t x, uint32_t y, uint32_t z, uint32_t table) {
    uint32_t result = 0;
    if (table & 0x01) result |= ~x & ~y & ~z;
    if (table & 0x02) result |= ~x & ~y & z;
    if (table & 0x04) result |= ~x & y & ~z;
    if (table & 0x08) result |= ~x & y & z;
    if (table & 0x10) result |= x & ~y & ~z;
    if (table & 0x20) result |= x & ~y & z;
    if (table & 0x40) result |= x & y & ~z;
    if (table & 0x80) result |= x & y & z;
    return result;
}
OP3(lop3, u32, u32, u32, u32, ops_bits_logic3(x, y, z, in->mode))

/* A 64-bit value y:x (x is the low half), shifted; the high or the low word of the result. */
static inline uint32_t funnel_left(uint32_t x, uint32_t y, uint32_t n) {
    return n == 0 ? y : n >= 32 ? x : y << n | x >> (32 - n);
}
static inline uint32_t funnel_right(uint32_t x, uint32_t y, uint32_t n) {
    return n == 0 ? x : n >= 32 ? y : y << (32 - n) | x >> n;
}
OP3(shf_l_clamp, u32, u32, u32, u32, funnel_left(x, y, z))
OP3(shf_l_wrap, u32, u32, u32, u32, funnel_left(x, y, z & 31))
OP3(shf_r_clamp, u32, u32, u32, u32, funnel_right(x, y, z))
OP3(shf_r_wrap, u32, u32, u32, u32, funnel_right(x, y, z & 31))

/* Dot products of packed bytes. mode: bit 0, a is signed; bit 1, b is; bit 2, the
 * high half of b. */
static inline uint32_t byte_at(uint32_t x, int at, uint32_t is_signed) {
    uint32_t byte = x >> (8 * at) & 0xff;
    return is_signed ? (uint32_t)(int32_t)(int8_t)byte : byte;
}
static inline uint32_t half_at(uint32_t x, int at, uint32_t is_signed) {
    uint32_t half = x >> (16 * at) & 0xffff;
    return is_signed ? (uint32_t)(int32_t)(int16_t)half : half;
}
static inline uint32_t ops_bits_dot4(uint32_t x, uint32_t y, uint32_t sum, uint32_t mode) {
    for (int i = 0; i < 4; i++) sum += byte_at(x, i, mode & 1) * byte_at(y, i, mode & 2);
    return sum;
}
static inline uint32_t ops_bits_dot2(uint32_t x, uint32_t y, uint32_t sum, uint32_t mode) {
    int high = mode & 4 ? 2 : 0;
    for (int i = 0; i < 2; i++) sum += half_at(x, i, mode & 1) * byte_at(y, i + high, mode & 2);
    return sum;
}
OP3(dp4a, u32, u32, u32, u32, ops_bits_dot4(x, y, z, in->mode))
OP3(dp2a, u32, u32, u32, u32, ops_bits_dot2(x, y, z, in->mode))
