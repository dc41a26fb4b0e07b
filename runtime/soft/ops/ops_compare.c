/*
 * Comparisons into predicates. Source: PTX ISA 9.0, sections 9.7.6 (Comparison and selection) and
 * 9.3.1.2 (NaN in comparisons): the ordered ones are false when an operand is NaN, those that end
 * in u are true.
 */
#include "op_body.h"

/* Puts the bits of the lanes that run into a predicate. */
static inline void ops_compare_put(struct soft_warp *warp, uint32_t offset, uint32_t bits) {
    uint32_t *predicate = &PREDICATE(offset);
    *predicate = (*predicate & ~warp->mask) | (bits & warp->mask);
}

#define SETP_BITS(T, expression)                                                                   \
    const store_##T *a = SLOT(store_##T, in->a);                                                   \
    const store_##T *b = SLOT(store_##T, in->b);                                                   \
    uint32_t bits[SOFT_LANES];                                                                     \
    LANES {                                                                                        \
        value_##T x = (value_##T)a[i];                                                             \
        value_##T y = (value_##T)b[i];                                                             \
        bits[i] = (expression) ? UINT32_MAX : 0;                                                   \
    }

#define SETP(op, T, expression)                                                                    \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        SETP_BITS(T, expression)                                                                   \
        PREDICATE(in->d) = soft_pack(bits);                                                        \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        SETP_BITS(T, expression)                                                                   \
        ops_compare_put(warp, in->d, soft_pack(bits));                                             \
        return in + 1;                                                                             \
    }

#define SETP_ALL(T)                                                                                \
    SETP(setp_eq_##T, T, x == y)                                                                   \
    SETP(setp_ne_##T, T, x != y)                                                                   \
    SETP(setp_lt_##T, T, x < y)                                                                    \
    SETP(setp_le_##T, T, x <= y)                                                                   \
    SETP(setp_gt_##T, T, x > y)                                                                    \
    SETP(setp_ge_##T, T, x >= y)

SETP(setp_eq_16, u16, x == y)
SETP(setp_ne_16, u16, x != y)
SETP_ALL(u16)
SETP_ALL(s16)
SETP_ALL(u32)
SETP_ALL(s32)
SETP_ALL(u64)
SETP_ALL(s64)

/* C's != is true for NaN; PTX's ne is ordered and is not. */
#define ORDERED(x, y) ((x) == (x) && (y) == (y))
#define SETP_FLOAT(T)                                                                              \
    SETP(setp_eq_##T, T, x == y)                                                                   \
    SETP(setp_ne_##T, T, (x < y) | (x > y))                                                        \
    SETP(setp_lt_##T, T, x < y)                                                                    \
    SETP(setp_le_##T, T, x <= y)                                                                   \
    SETP(setp_gt_##T, T, x > y)                                                                    \
    SETP(setp_ge_##T, T, x >= y)                                                                   \
    SETP(setp_equ_##T, T, !((x < y) | (x > y)))                                                    \
    SETP(setp_neu_##T, T, x != y)                                                                  \
    SETP(setp_ltu_##T, T, !(x >= y))                                                               \
    SETP(setp_leu_##T, T, !(x > y))                                                                \
    SETP(setp_gtu_##T, T, !(x <= y))                                                               \
    SETP(setp_geu_##T, T, !(x < y))                                                                \
    SETP(setp_num_##T, T, ORDERED(x, y))                                                           \
    SETP(setp_nan_##T, T, !ORDERED(x, y))

SETP_FLOAT(f32)
SETP_FLOAT(f64)

/* A subnormal becomes a zero of its sign. */
static inline float ops_compare_flushed(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7f800000) == 0) bits &= 0x80000000;
    memcpy(&x, &bits, 4);
    return x;
}

/* in->mode is the comparison's place in the order of SETP_FLOAT. */
OP_ANY(setp_ftz_f32) {
    const float *a = SLOT(float, in->a), *b = SLOT(float, in->b);
    uint32_t bits[SOFT_LANES];
    for (int i = 0; i < SOFT_LANES; i++) {
        float x = ops_compare_flushed(a[i]), y = ops_compare_flushed(b[i]);
        bool nan = !ORDERED(x, y), unordered = in->mode >= 6;
        bool result = false;
        switch (in->mode) {
        case 0:
        case 6:
            result = x == y;
            break;
        case 1:
        case 7:
            result = x < y || x > y;
            break;
        case 2:
        case 8:
            result = x < y;
            break;
        case 3:
        case 9:
            result = x <= y;
            break;
        case 4:
        case 10:
            result = x > y;
            break;
        case 5:
        case 11:
            result = x >= y;
            break;
        case 12:
            result = !nan;
            break;
        default:
            result = nan;
            break;
        }
        bits[i] = result || (unordered && nan && in->mode < 12) ? UINT32_MAX : 0;
    }
    ops_compare_put(warp, in->d, soft_pack(bits));
    return in + 1;
}

/* in->mode: finite, infinite, number, notanumber, normal, subnormal. Zero counts as normal. */
static inline bool has_property(double x, double smallest, uint32_t property) {
    double size = x < 0 ? -x : x;
    bool nan = x != x, infinite = size > 1.7976931348623157e308;
    switch (property) {
    case 0:
        return !nan && !infinite;
    case 1:
        return infinite;
    case 2:
        return !nan;
    case 3:
        return nan;
    case 4:
        return !nan && !infinite && (size == 0 || size >= smallest);
    default:
        return size > 0 && size < smallest;
    }
}

OP_ANY(testp_f32) {
    const float *a = SLOT(float, in->a);
    uint32_t bits[SOFT_LANES];
    for (int i = 0; i < SOFT_LANES; i++) {
        bits[i] = has_property((double)a[i], 1.17549435082228750797e-38, in->mode) ? UINT32_MAX : 0;
    }
    ops_compare_put(warp, in->d, soft_pack(bits));
    return in + 1;
}

OP_ANY(testp_f64) {
    const double *a = SLOT(double, in->a);
    uint32_t bits[SOFT_LANES];
    for (int i = 0; i < SOFT_LANES; i++) {
        bits[i] = has_property(a[i], 2.2250738585072014e-308, in->mode) ? UINT32_MAX : 0;
    }
    ops_compare_put(warp, in->d, soft_pack(bits));
    return in + 1;
}
