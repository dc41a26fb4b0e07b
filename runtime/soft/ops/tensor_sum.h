/*
 * Sums of products as a tensor core makes them: tensor_model.h.
 *
 * Every factor becomes a whole number of eleven digits and an exponent, so a product is a whole
 * number too, and a sum of shifted ones is exact. Eight columns of B are done at once. Who includes
 * this says how many factors a matrix has at most, FACTORS_MAX, how many sums, SUMS_MAX, and the
 * exponent of the least normal e4m3 as its core sees it, E4M3_LEAST.
 */
#ifndef SOFT_TENSOR_SUM_H
#define SOFT_TENSOR_SUM_H

#include "lower/tensor.h"
#include "ops_half.h"
#include "tensor_model.h"

enum {
    COLUMNS = 8,
    FACTOR_BITS = 10, /* fraction bits of a factor's digits */
    SINGLE_BITS = 23, /* and of an accumulator's */
    NO_EXPONENT = -4096
};
_Static_assert((int)SOFT_TENSOR_FRACTION_BITS >= (int)SINGLE_BITS &&
                   SOFT_TENSOR_FRACTION_BITS <= 26,
               "the sum of eight products fits into 32 bits");

/* Numbers as digits x 2^(exponent - fraction bits); and their values, for NaN and infinity. */
struct factors {
    float value[FACTORS_MAX];
    int32_t digits[FACTORS_MAX], exponent[FACTORS_MAX];
};

struct problem {
    struct factors a, b; /* b: row by row as well, so that columns lie side by side */
    float c[SUMS_MAX];   /* the accumulator, and the result */
    unsigned m, n, k;
    unsigned block;
    int cut; /* fraction bits of SOFT_TENSOR_FRACTION_BITS that the core does not have */
    int accumulator_least; /* exponent of the accumulator's least normal number */
    bool half;             /* C and the sum are halves */
    bool special;          /* a NaN or an infinity is somewhere */
};

/* A finite number's exponent and digits; least: the exponent of its format's least normal one. */
static inline int32_t exponent_of(float x, int least) {
    uint32_t field = bits_f32(x) >> 23 & 255;
    int32_t exponent = field == 0 ? -126 : (int32_t)field - 127;
    if (SOFT_TENSOR_SUBNORMAL_AS_STORED && exponent < least) exponent = least;
    return (bits_f32(x) & 0x7fffffff) == 0 && !SOFT_TENSOR_ZERO_HAS_EXPONENT ? NO_EXPONENT
                                                                             : exponent;
}

static inline int32_t digits_of(float x, int least, int drop) {
    uint32_t field = bits_f32(x) >> 23 & 255, fraction = bits_f32(x) & 0x7fffff;
    int32_t exponent = field == 0 ? -126 : (int32_t)field - 127;
    uint32_t digits = fraction | (field == 0 ? 0 : 1u << 23);
    if (SOFT_TENSOR_SUBNORMAL_AS_STORED && exponent < least) {
        drop += least - exponent > 24 ? 24 : least - exponent;
    }
    digits >>= drop > 31 ? 31 : drop;
    return (bits_f32(x) >> 31) != 0 ? -(int32_t)digits : (int32_t)digits;
}

static inline bool is_special(float x) {
    return (bits_f32(x) & 0x7f800000) == 0x7f800000;
}

/* tf32 is the upper 19 bits of a single; what is below is not looked at. */
static inline float factor_of(uint32_t bits, enum soft_tensor_type type) {
    switch (type) {
    case SOFT_TENSOR_F16:
        return float_of_f16(bits);
    case SOFT_TENSOR_BF16:
        return float_of_bf16(bits);
    case SOFT_TENSOR_TF32:
        return float_f32(bits & 0xffffe000);
    case SOFT_TENSOR_E5M2:
        return float_of_f16(bits << 8);
    default: { /* e4m3: no infinity; what is left of its exponents are numbers */
        uint32_t sign = bits >> 7, size = bits & 0x7f;
        if (size == 0x7f) return float_f32(0x7fffffff);
        float x = size < 8 ? (float)size * 0x1p-9f : float_f32((size << 20) + (120u << 23));
        return sign != 0 ? -x : x;
    }
    }
}

/* Exponents of the least normal numbers. */
static inline int least_of(enum soft_tensor_type type) {
    if (type == SOFT_TENSOR_E4M3) return E4M3_LEAST;
    return type == SOFT_TENSOR_BF16 || type == SOFT_TENSOR_TF32 ? -126 : -14;
}

/* Inlined for each type, so that the loop has no choice left and becomes vector code. */
static inline __attribute__((always_inline)) bool read_type(struct factors *factors,
                                                            const uint32_t *bits, unsigned count,
                                                            enum soft_tensor_type type) {
    int least = least_of(type);
    uint32_t special = 0;
    SOFT_LANE_LOOP for (unsigned i = 0; i < count; i++) {
        float x = factor_of(bits[i], type);
        factors->value[i] = x;
        factors->digits[i] = digits_of(x, least, (int)SINGLE_BITS - (int)FACTOR_BITS);
        factors->exponent[i] = exponent_of(x, least);
        special |= is_special(x);
    }
    return special != 0;
}

static bool read_factors(struct factors *factors, const uint32_t *bits, unsigned count,
                         enum soft_tensor_type type) {
    switch (type) {
    case SOFT_TENSOR_F16:
        return read_type(factors, bits, count, SOFT_TENSOR_F16);
    case SOFT_TENSOR_BF16:
        return read_type(factors, bits, count, SOFT_TENSOR_BF16);
    case SOFT_TENSOR_TF32:
        return read_type(factors, bits, count, SOFT_TENSOR_TF32);
    case SOFT_TENSOR_E5M2:
        return read_type(factors, bits, count, SOFT_TENSOR_E5M2);
    default:
        return read_type(factors, bits, count, SOFT_TENSOR_E4M3);
    }
}

/* A sum, exact in a double, as a single. */
static float rounded_single(double sum) {
    uint64_t bits = bits_f64(sum);
    uint32_t sign = (uint32_t)(bits >> 63) << 31;
    int leading = (int)(bits >> 52 & 0x7ff) - 1023;
    if (leading < -400) return 0; /* it is zero */
    uint64_t digits = (bits & 0xfffffffffffff) | 1ull << 52;
    /* How many of 52 fraction bits go; of a subnormal result more. */
    int drop = 52 - (int)SINGLE_BITS + (leading < -126 ? -126 - leading : 0);
    uint64_t kept = drop > 63 ? 0 : digits >> drop;
    if (SOFT_TENSOR_SINGLE_TO_NEAREST && drop <= 63) {
        uint64_t rest = digits - (kept << drop), half = 1ull << (drop - 1);
        kept += rest > half || (rest == half && (kept & 1) != 0);
    }
    /* The leading one adds to the exponent's field, and so does a carry. */
    uint64_t field = leading < -126 ? kept : kept + ((uint64_t)(leading + 126) << 23);
    if (field >= 0x7f800000) field = SOFT_TENSOR_OVERFLOWS ? 0x7f800000 : 0x7f7fffff;
    if (field == 0 && !SOFT_TENSOR_ZERO_SINGLE_HAS_SIGN) sign = 0;
    return float_f32(sign | (uint32_t)field);
}

/* Eight sums: nearly always they are numbers whose last digits are simply cut off. */
static inline void round_singles(const double sum[COLUMNS], float result[COLUMNS]) {
    bool plain = !SOFT_TENSOR_SINGLE_TO_NEAREST;
    for (int j = 0; j < COLUMNS; j++) {
        double size = __builtin_fabs(sum[j]);
        plain &= (size >= 0x1p-126 || size == 0) && size < 0x1p128;
        result[j] = (float)float_f64(bits_f64(sum[j]) & ~0x1fffffffull);
    }
    for (int j = 0; j < COLUMNS && !plain; j++) result[j] = rounded_single(sum[j]);
}

/* Rounded once, to nearest: digits that do not fit into the single leave a sticky bit. */
static inline void round_halves(const double sum[COLUMNS], float result[COLUMNS]) {
    for (int j = 0; j < COLUMNS; j++) {
        float half = float_of_f16(f16_of_float(odd_float(sum[j])));
        result[j] = SOFT_TENSOR_ZERO_HALF_HAS_SIGN ? half : half + 0.0f; /* -0 + 0 is 0 */
    }
}

/* Digits shifted right by a number of places; digits shifted out are lost. */
static inline int32_t shifted(int32_t digits, int32_t by) {
    by = by > 31 ? 31 : by;
    if (SOFT_TENSOR_CUTS_DOWNWARD) return digits >> by;
    int32_t sign = digits < 0 ? -1 : 0;
    return (int32_t)((uint32_t)((digits ^ sign) - sign) >> by ^ (uint32_t)sign) - sign;
}

/* The factors of a row and eight columns, from a product on. */
struct strip {
    const int32_t *a_digits, *a_exponent, *b_digits, *b_exponent;
    unsigned step; /* from one row of B to the next */
};

static inline void find_largest(const struct strip *s, unsigned count, int32_t largest[COLUMNS]) {
    for (unsigned k = 0; k < count; k++) {
        const int32_t *exponent = s->b_exponent + k * s->step;
        for (int j = 0; j < COLUMNS; j++) {
            int32_t both = s->a_exponent[k] + exponent[j];
            largest[j] = both > largest[j] ? both : largest[j];
        }
    }
}

/* The sum of at most eight products fits into 32 bits: each is less than four units. */
static inline void add_products(const struct strip *s, unsigned count,
                                const int32_t largest[COLUMNS], double sum[COLUMNS]) {
    int32_t part[COLUMNS] = {0};
    for (unsigned k = 0; k < count; k++) {
        const int32_t *exponent = s->b_exponent + k * s->step;
        const int32_t *digits = s->b_digits + k * s->step;
        for (int j = 0; j < COLUMNS; j++) {
            int32_t product = s->a_digits[k] * digits[j] *
                              (1 << ((int)SOFT_TENSOR_FRACTION_BITS - 2 * (int)FACTOR_BITS));
            part[j] += shifted(product, largest[j] - s->a_exponent[k] - exponent[j]);
        }
    }
    for (int j = 0; j < COLUMNS; j++) sum[j] += (double)part[j];
}

/* One row's sums over a block, in eight columns of B and C. */
static void add_block(struct problem *p, unsigned row, unsigned column, unsigned k_begin) {
    enum { AT_ONCE = 8 };
    float *c = p->c + row * p->n + column;
    int32_t c_digits[COLUMNS], c_exponent[COLUMNS], largest[COLUMNS];
    double sum[COLUMNS];
    struct strip strip = {.a_digits = p->a.digits + row * p->k + k_begin,
                          .a_exponent = p->a.exponent + row * p->k + k_begin,
                          .b_digits = p->b.digits + k_begin * p->n + column,
                          .b_exponent = p->b.exponent + k_begin * p->n + column,
                          .step = p->n};
    for (int j = 0; j < COLUMNS; j++) {
        c_exponent[j] = exponent_of(c[j], p->accumulator_least);
        c_digits[j] = digits_of(c[j], p->accumulator_least, 0) *
                      (1 << ((int)SOFT_TENSOR_FRACTION_BITS - (int)SINGLE_BITS));
        largest[j] = c_exponent[j];
    }
    find_largest(&strip, p->block, largest);
    for (int j = 0; j < COLUMNS; j++) {
        largest[j] += p->cut;
        sum[j] = (double)shifted(c_digits[j], largest[j] - c_exponent[j]);
    }
    for (unsigned k = 0; k < p->block; k += AT_ONCE) {
        unsigned count = p->block - k < AT_ONCE ? p->block - k : AT_ONCE;
        add_products(&strip, count, largest, sum);
        strip.a_digits += count;
        strip.a_exponent += count;
        strip.b_digits += (size_t)count * strip.step;
        strip.b_exponent += (size_t)count * strip.step;
    }
    for (int j = 0; j < COLUMNS; j++) {
        /* Exact. Where there is nothing but zeros the exponent is none, and does not matter. */
        int32_t exponent = largest[j] < -900 ? -900 : largest[j];
        sum[j] *= float_f64((uint64_t)(exponent - SOFT_TENSOR_FRACTION_BITS + 1023) << 52);
    }
    for (int j = 0; j < COLUMNS && p->cut > 0 && !p->half; j++) {
        /* A core that keeps fewer bits gives no more; the sum that becomes a half has them all. */
        int drop = 52 - SOFT_TENSOR_FRACTION_BITS + p->cut;
        sum[j] = float_f64(bits_f64(sum[j]) >> drop << drop);
    }
    if (p->half) {
        round_halves(sum, c);
    } else {
        round_singles(sum, c);
    }
}

/* The sums of a block that are NaN or infinite in any order: computed before add_block, which
 * handles only numbers, and stored after it. */
static void note_special(const struct problem *p, unsigned row, unsigned column, unsigned k_begin,
                         double special[COLUMNS]) {
    for (unsigned j = 0; j < COLUMNS; j++) {
        special[j] = (double)p->c[row * p->n + column + j];
        for (unsigned k = k_begin; k < k_begin + p->block; k++) {
            special[j] +=
                (double)p->a.value[row * p->k + k] * (double)p->b.value[k * p->n + column + j];
        }
    }
}

static void put_special(struct problem *p, unsigned row, unsigned column,
                        const double special[COLUMNS]) {
    for (unsigned j = 0; j < COLUMNS; j++) {
        if (special[j] - special[j] == 0) continue;
        p->c[row * p->n + column + j] = canonical_f32((float)special[j]);
    }
}

/* C becomes A B + C. */
static void multiply(struct problem *p) {
    for (unsigned i = 0; i < p->m * p->n; i++) p->special |= is_special(p->c[i]);
    for (unsigned column = 0; column < p->n; column += COLUMNS) {
        for (unsigned row = 0; row < p->m; row++) {
            for (unsigned k = 0; k < p->k; k += p->block) {
                double special[COLUMNS];
                /* A block's result may be infinite, and the next one's accumulator. */
                bool watch = p->special || k > 0;
                if (watch) note_special(p, row, column, k, special);
                add_block(p, row, column, k);
                if (watch) put_special(p, row, column, special);
            }
        }
    }
}

#endif
