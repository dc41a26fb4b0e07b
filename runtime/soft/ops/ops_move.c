/*
 * Moves, selections, packing, and logic on predicates.
 * Source: PTX ISA 9.0, sections 9.7.6.4 (selp), 9.7.6.5 (slct), 9.7.9.3 (mov), 9.7.8 (logic).
 */
#include "float_bits.h"
#include "op_body.h"

OP1(mov_32, u32, u32, x)
OP1(mov_64, u64, u64, x)
OP1(low_16, u16, u32, x)
OP2(pack_16_32, u32, u16, u16, x | (uint32_t)y << 16)
OP2(pack_32_64, u64, u32, u32, x | (uint64_t)y << 32)

/* 128 bits are two words of 64 in each lane, the low one first. */
OP_ANY(mov_128) {
    uint64_t *d = SLOT(uint64_t, in->d);
    const uint64_t *a = SLOT(uint64_t, in->a);
    EACH_LANE(i, warp->mask) {
        d[2 * i] = a[2 * i];
        d[2 * i + 1] = a[2 * i + 1];
    }
    return in + 1;
}

OP_ANY(pack_64_128) {
    uint64_t *d = SLOT(uint64_t, in->d);
    const uint64_t *a = SLOT(uint64_t, in->a), *b = SLOT(uint64_t, in->b);
    EACH_LANE(i, warp->mask) {
        d[2 * i] = a[i];
        d[2 * i + 1] = b[i];
    }
    return in + 1;
}

OP_ANY(unpack_128_64) {
    uint64_t *d = SLOT(uint64_t, in->d);
    const uint64_t *a = SLOT(uint64_t, in->a);
    EACH_LANE(i, warp->mask) d[i] = a[2 * i + in->mode];
    return in + 1;
}

OP_ANY(pack_16_64) {
    uint64_t *d = SLOT(uint64_t, in->d);
    const uint32_t *a = SLOT(uint32_t, in->a), *b = SLOT(uint32_t, in->b);
    const uint32_t *c = SLOT(uint32_t, in->c), *e = SLOT(uint32_t, in->u.immediate);
    EACH_LANE(i, warp->mask) {
        d[i] = (uint64_t)(a[i] & 0xffff) | (uint64_t)(b[i] & 0xffff) << 16 |
               (uint64_t)(c[i] & 0xffff) << 32 | (uint64_t)(e[i] & 0xffff) << 48;
    }
    return in + 1;
}

/* One part of a wider register: in->mode says which, from the low end. */
OP1(unpack_32_16, u16, u32, x >> (16 * in->mode))
OP1(unpack_64_16, u16, u64, x >> (16 * in->mode))
OP1(unpack_64_32, u32, u64, x >> (32 * in->mode))

/* d = p ? a : b, the predicate's word in c. in->mode is all ones where it is negated. */
#define SELECT(op, T)                                                                              \
    OP_ANY(op) {                                                                                   \
        T *d = SLOT(T, in->d);                                                                     \
        const T *a = SLOT(T, in->a), *b = SLOT(T, in->b);                                          \
        uint32_t chosen = PREDICATE(in->c) ^ in->mode;                                             \
        const uint32_t *lane = warp->lane;                                                         \
        if (warp->partial == 0) {                                                                  \
            LANES d[i] = chosen >> i & 1 ? a[i] : b[i];                                            \
        } else {                                                                                   \
            LANES {                                                                                \
                T result = chosen >> i & 1 ? a[i] : b[i];                                          \
                d[i] = lane[i] ? result : d[i];                                                    \
            }                                                                                      \
        }                                                                                          \
        return in + 1;                                                                             \
    }
SELECT(sel_32, uint32_t)
SELECT(sel_64, uint64_t)

/* d = c >= 0 ? a : b. A NaN in c takes b; with .ftz, so in->mode, a subnormal counts as zero. */
static inline float ops_move_third(float z, uint32_t mode) {
    return mode & SOFT_MODE_FTZ ? flush_f32(z) : z;
}
OP3(slct_s32_32, u32, u32, u32, s32, z >= 0 ? x : y)
OP3(slct_s32_64, u64, u64, u64, s32, z >= 0 ? x : y)
OP3(slct_f32_32, u32, u32, u32, f32, ops_move_third(z, in->mode) >= 0 ? x : y)
OP3(slct_f32_64, u64, u64, u64, f32, ops_move_third(z, in->mode) >= 0 ? x : y)

/* in->mode: bit 0 negates the first operand, bit 1 the second. */
#define LOGIC(op, expression)                                                                      \
    OP_ANY(op) {                                                                                   \
        uint32_t x = PREDICATE(in->a) ^ (in->mode & 1 ? UINT32_MAX : 0);                           \
        uint32_t y = PREDICATE(in->b) ^ (in->mode & 2 ? UINT32_MAX : 0);                           \
        uint32_t *d = &PREDICATE(in->d);                                                           \
        *d = (*d & ~warp->mask) | ((expression)&warp->mask);                                       \
        return in + 1;                                                                             \
    }
LOGIC(and_pred, x &y)
LOGIC(or_pred, x | y)
LOGIC(xor_pred, x ^ y)
LOGIC(mov_pred, ((void)y, x))
LOGIC(not_pred, ((void)y, ~x))
