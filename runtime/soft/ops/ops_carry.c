/*
 * Sums and products with a carry. Source: PTX ISA 9.0, section 9.7.2.
 *
 * The flag is a predicate. As in ptxas, a difference is a sum with the other number's complement:
 * the flag is set if nothing is borrowed, and a following sum may read it.
 */
#include "op_body.h"

/* Writes the flags of the lanes that run. */
static inline void put_carry(struct soft_warp *warp, uint32_t offset, uint32_t bits) {
    uint32_t *carry = &PREDICATE(offset);
    *carry = (*carry & ~warp->mask) | (bits & warp->mask);
}

static inline uint64_t high_u32(uint64_t x, uint64_t y, bool is_signed) {
    if (!is_signed) return x * y >> 32;
    return (uint64_t)((int64_t)(int32_t)(uint32_t)x * (int32_t)(uint32_t)y >> 32) & UINT32_MAX;
}

static inline uint64_t ops_carry_high_u64(uint64_t x, uint64_t y, bool is_signed) {
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
    uint64_t other = x0 * y1 + (uint32_t)middle;
    uint64_t high = x1 * y1 + (middle >> 32) + (other >> 32);
    if (!is_signed) return high;
    return high - (x >> 63 != 0 ? y : 0) - (y >> 63 != 0 ? x : 0);
}

/* A body gives the result and the carry out, from x, y, z and the carry in. */
#define CARRY(op, T, body)                                                                         \
    OP_ANY(op) {                                                                                   \
        T *d = SLOT(T, in->d);                                                                     \
        const T *a = SLOT(T, in->a), *b = SLOT(T, in->b), *c = SLOT(T, in->c);                     \
        uint32_t place = SOFT_OPERANDS(warp, in)[0], flags = 0;                                    \
        uint32_t before = in->mode & SOFT_CARRY_READ ? PREDICATE(place) : 0;                       \
        bool high = (in->mode & SOFT_CARRY_HIGH) != 0;                                             \
        bool is_signed = (in->mode & SOFT_CARRY_SIGNED) != 0;                                      \
        EACH_LANE(i, warp->mask) {                                                                 \
            T x = a[i], y = b[i], z = c[i], carry = before >> i & 1, result = 0;                   \
            T borrow = (in->mode & SOFT_CARRY_READ) != 0 && carry == 0 ? 1 : 0;                    \
            bool out = false;                                                                      \
            (void)z, (void)high, (void)is_signed, (void)borrow;                                    \
            body;                                                                                  \
            d[i] = result;                                                                         \
            flags |= (uint32_t)out << i;                                                           \
        }                                                                                          \
        if (in->mode & SOFT_CARRY_WRITE) put_carry(warp, place, flags);                            \
        return in + 1;                                                                             \
    }

#define SUM(p, q)                                                                                  \
    result = (p) + (q) + carry;                                                                    \
    out = result < (p) || (carry != 0 && result == (p))
#define DIFFERENCE(p, q)                                                                           \
    result = (p) - (q)-borrow;                                                                     \
    out = (p) > (q) || (borrow == 0 && (p) == (q))

CARRY(add_carry_32, uint32_t, SUM(x, y))
CARRY(add_carry_64, uint64_t, SUM(x, y))
CARRY(sub_carry_32, uint32_t, DIFFERENCE(x, y))
CARRY(sub_carry_64, uint64_t, DIFFERENCE(x, y))
CARRY(mad_carry_32, uint32_t, uint32_t product = high ? (uint32_t)high_u32(x, y, is_signed) : x * y;
      SUM(product, z))
CARRY(mad_carry_64, uint64_t, uint64_t product = high ? ops_carry_high_u64(x, y, is_signed) : x * y;
      SUM(product, z))
