/*
 * The sums of tensor_sum.h in single precision, quickly, where the factors are ordinary numbers.
 *
 * They are equal to the bit. A product of two factors is exact in a single, and so is its multiple
 * by a power of two; converting that to an integer aligns it to the largest and truncates it. So a
 * product costs a sum and a maximum of exponents, two multiplications, a conversion and an
 * addition, for eight columns at once. If an exponent is so small or large that a single cannot
 * hold one of these, the slower path is needed.
 */
#ifndef SOFT_PLAIN_SUM_H
#define SOFT_PLAIN_SUM_H

#include "tensor_sum.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Between these a product's exponent must lie, and the accumulator's must not be below. */
enum { PLAIN_LEAST = -100, PLAIN_LARGEST = 100, PLAIN_ROWS = 16, PLAIN_K = 16 };
enum { SPECIAL_EXPONENT = 128 }; /* of infinities and NaN */

/* Numbers, their exponents, and between what those lie that are not zero. */
struct plain_range {
    int32_t least, largest;
    bool special;
};

/* Converts a factor. Callers recognise a NaN by its exponent bits, so any NaN will do. The test
 * x == x of float_of_bf16 would keep the compiler from vectorizing the loop. */
static inline float plain_of(uint32_t bits, enum soft_tensor_type type) {
    return type == SOFT_TENSOR_BF16 ? float_f32(bits << 16) : factor_of(bits, type);
}

static inline __attribute__((always_inline)) struct plain_range
read_plain_type(const uint32_t *bits, unsigned count, enum soft_tensor_type type, float *value,
                int32_t *exponent) {
    int least = least_of(type);
    int32_t highest = NO_EXPONENT;
    uint32_t lowest = UINT32_MAX; /* above NO_EXPONENT, less one, which makes that the largest */
    SOFT_LANE_LOOP for (unsigned i = 0; i < count; i++) {
        float x = plain_of(bits[i], type);
        value[i] = x;
        exponent[i] = exponent_of(x, least);
    }
    /* In a loop of its own: compilers make vector code of neither together. */
    SOFT_LANE_LOOP for (unsigned i = 0; i < count; i++) {
        int32_t e = exponent[i];
        uint32_t low = (uint32_t)(e - NO_EXPONENT) - 1;
        lowest = low < lowest ? low : lowest;
        highest = e > highest ? e : highest;
    }
    int32_t least_found = lowest == UINT32_MAX ? INT32_MAX : (int32_t)(lowest + 1) + NO_EXPONENT;
    return (struct plain_range){least_found, highest, highest >= SPECIAL_EXPONENT};
}

static struct plain_range read_plain(const uint32_t *bits, unsigned count,
                                     enum soft_tensor_type type, float *value, int32_t *exponent) {
    if (type == SOFT_TENSOR_F16) {
        return read_plain_type(bits, count, SOFT_TENSOR_F16, value, exponent);
    }
    if (type == SOFT_TENSOR_BF16) {
        return read_plain_type(bits, count, SOFT_TENSOR_BF16, value, exponent);
    }
    return read_plain_type(bits, count, SOFT_TENSOR_TF32, value, exponent);
}

/* Whether this path supports the format. */
static bool has_plain_type(enum soft_tensor_type type) {
    return type == SOFT_TENSOR_F16 || type == SOFT_TENSOR_BF16 || type == SOFT_TENSOR_TF32;
}

/* Whether no product of two factors has an exponent that is too small or too large. */
static bool are_plain_factors(const struct plain_range *a, const struct plain_range *b) {
    bool zero = a->least == INT32_MAX || b->least == INT32_MAX;
    return !a->special && !b->special && (zero || a->least + b->least >= PLAIN_LEAST) &&
           a->largest + b->largest <= PLAIN_LARGEST;
}

/* Whether all accumulators are zero or ordinary numbers: with an exponent that no sum of products
 * can take to infinity. */
static bool are_plain(const uint32_t *singles, unsigned count) {
    uint32_t least = UINT32_MAX, largest = 0; /* the least is one less, so that zero is none */
    SOFT_LANE_LOOP for (unsigned i = 0; i < count; i++) {
        uint32_t size = singles[i] & 0x7fffffff, low = size - 1;
        least = low < least ? low : least;
        largest = size > largest ? size : largest;
    }
    return least >= ((uint32_t)(PLAIN_LEAST + 127) << 23) - 1 &&
           largest < (uint32_t)(PLAIN_LARGEST + 128) << 23;
}

/* Eight at once. A loop over eight would not do: the compiler looks for vectors across the loop
 * around it. They are passed by address: how they are passed by value depends on the level. */
typedef int32_t plain_ints __attribute__((vector_size(32)));
typedef float plain_floats __attribute__((vector_size(32)));
typedef double plain_doubles __attribute__((vector_size(64)));
typedef int64_t plain_longs __attribute__((vector_size(64)));

static inline void raise_to(plain_ints *largest, const plain_ints *other) {
#if defined(__AVX2__)
    /* Compilers make four instructions of the comparison, each waiting for the one before. */
    *largest = (plain_ints)_mm256_max_epi32((__m256i)*largest, (__m256i)*other);
#else
    plain_ints which = *largest > *other;
    *largest = (*largest & which) | (*other & ~which);
#endif
}

/* k factors of A, and of B, for each of eight sums. */
struct plain_strip {
    const plain_floats *a_value, *b_value;
    const plain_ints *a_exponent, *b_exponent;
    unsigned b_step; /* from one k to the next in B */
};

/* Adds to the sums' accumulators. */
static inline __attribute__((always_inline)) void add_plain(const struct plain_strip *s, unsigned k,
                                                            plain_floats *sums) {
    enum { BITS = SOFT_TENSOR_FRACTION_BITS };
    plain_floats c = *sums;
    /* Of zeros the exponent does not matter. */
    plain_ints largest = (((plain_ints)c >> 23) & 255) - 127;
    plain_ints least = (plain_ints){0} + (int32_t)PLAIN_LEAST;
    raise_to(&largest, &least);
    for (unsigned i = 0; i < k; i++) {
        plain_ints both = s->a_exponent[i] + s->b_exponent[i * s->b_step];
        raise_to(&largest, &both);
    }
    plain_floats scale = (plain_floats)((127 + (int32_t)BITS - largest) << 23);
    plain_ints whole = __builtin_convertvector(c * scale, plain_ints);
    /* Eight products and an accumulator fit into 32 bits, sixteen do not. */
    plain_ints first = whole, second = {0};
    for (unsigned i = 0; i < 8 && i < k; i++) {
        plain_floats product = s->a_value[i] * s->b_value[i * s->b_step];
        first += __builtin_convertvector(product * scale, plain_ints);
    }
    for (unsigned i = 8; i < k; i++) {
        plain_floats product = s->a_value[i] * s->b_value[i * s->b_step];
        second += __builtin_convertvector(product * scale, plain_ints);
    }
    plain_doubles sum = __builtin_convertvector(first, plain_doubles) +
                        __builtin_convertvector(second, plain_doubles);
    plain_floats back = (plain_floats)((largest - (int32_t)BITS + 127) << 23);
    sum *= __builtin_convertvector(back, plain_doubles);
    /* No sum is too small or too large for a single: digits that do not fit are cut off. */
    plain_longs kept = (plain_longs)sum & ~(int64_t)0x1fffffff;
    *sums = __builtin_convertvector((plain_doubles)kept, plain_floats);
}

#endif
