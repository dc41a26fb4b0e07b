/*
 * Conversions, bit by bit: no compiler has all three types.
 */
#include "number.h"

#include <math.h>
#include <string.h>

static uint32_t number_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float number_value_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *kn_type_name(enum kn_type type) {
    static const char *const names[KN_TYPES] = {"f32", "f16", "bf16"};
    return (unsigned)type < KN_TYPES ? names[type] : "?";
}

size_t kn_type_bytes(enum kn_type type) {
    return type == KN_F32 ? 4 : 2;
}

const char *kn_types_refuse(unsigned types, enum kn_type type) {
    if ((types & 1U << type) != 0) return NULL;
    return (types & 1U << KN_F32) != 0   ? "the type is not f32"
           : (types & 1U << KN_F16) != 0 ? "the type is not f16"
                                         : "the type is not bf16";
}

double kn_type_roundoff(enum kn_type type) {
    return type == KN_F32 ? 0x1p-24 : type == KN_F16 ? 0x1p-11 : 0x1p-8;
}

/* bits / 2^shift, rounded to nearest, ties to even. */
static uint32_t shift_even(uint32_t bits, unsigned shift) {
    uint32_t half = 1u << (shift - 1), rest = bits & ((1u << shift) - 1);
    uint32_t whole = bits >> shift;
    return whole + (rest > half || (rest == half && (whole & 1) != 0));
}

uint16_t kn_f16_of(float value) {
    const uint32_t bits = number_bits_of(value), sign = bits >> 16 & 0x8000,
                   rest = bits & 0x7fffffff;
    uint32_t result;
    if (rest > 0x7f800000) {
        result = 0x7fff; /* the NaN that cvt gives */
    } else if (rest >= 0x477ff000) {
        result = 0x7c00; /* 65520 and more, which would round to 65536 */
    } else if (rest >= 0x38800000) {
        result = shift_even(rest - 0x38000000, 13); /* the bias goes from 127 to 15 */
    } else if (rest >= 0x33000000) {
        /* Subnormal: the mantissa with its leading bit, in units of 2^-24. */
        result = shift_even((rest & 0x7fffff) | 0x800000, 126 - (rest >> 23));
    } else {
        result = 0;
    }
    return (uint16_t)(sign | result);
}

/* Without branches, so that a loop of it becomes vectors: what is subnormal is given an exponent
 * and a leading bit, which are taken away again as a float. */
static inline float f16_value(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = (uint32_t)(bits & 0x7fff) << 13;
    const uint32_t is_small = 0u - (rest < 0x00800000), is_special = 0u - (rest >= 0x0f800000);
    const uint32_t usual = rest + (UINT32_C(112) << 23) + (is_special & UINT32_C(112) << 23);
    const uint32_t small = number_bits_of(number_value_of(rest + (UINT32_C(113) << 23)) - 0x1p-14f);
    return number_value_of(sign | (small & is_small) | (usual & ~is_small));
}

float kn_f16_value(uint16_t bits) {
    return f16_value(bits);
}

uint16_t kn_bf16_of(float value) {
    const uint32_t bits = number_bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t)shift_even(bits, 16);
}

static inline float bf16_value(uint16_t bits) {
    return number_value_of((uint32_t)bits << 16);
}

float kn_bf16_value(uint16_t bits) {
    return bf16_value(bits);
}

float kn_tf32_of(float value) {
    const uint32_t bits = number_bits_of(value);
    if ((bits & 0x7f800000) == 0x7f800000) return value;
    return number_value_of((bits + 0x1000) & ~UINT32_C(0x1fff));
}

uint8_t kn_e4m3_of(float value) {
    const uint32_t bits = number_bits_of(value), sign = bits >> 24 & 0x80, rest = bits & 0x7fffffff;
    const uint32_t largest = 0x43e00000, least_normal = 0x3c800000; /* 448 and 2^-6 */
    uint32_t result;
    if (rest > 0x7f800000) return 0x7f;
    if (rest >= largest) {
        result = 0x7e;
    } else if (rest >= least_normal) {
        result = shift_even(rest - (UINT32_C(120) << 23), 20); /* the bias goes from 127 to 7 */
    } else if (rest >= 0x3a800000) {
        /* Subnormal: the mantissa with its leading bit, in units of 2^-9. */
        result = shift_even((rest & 0x7fffff) | 0x800000, 141 - (rest >> 23));
    } else {
        result = 0; /* below 2^-10, half of the least */
    }
    return (uint8_t)(sign | result);
}

float kn_e4m3_value(uint8_t bits) {
    const uint16_t sign = (uint16_t)((bits & 0x80) << 8), rest = bits & 0x7f;
    if (rest == 0x7f) return number_value_of(UINT32_C(0x7fffffff));
    return kn_f16_value((uint16_t)(sign | rest << 7)) * 0x1p8f;
}

void kn_numbers_store(enum kn_type type, const float *values, size_t count, void *elements) {
    uint16_t *halves = elements;
    if (type == KN_F32) {
        if (count > 0) memcpy(elements, values, count * sizeof *values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        halves[i] = type == KN_F16 ? kn_f16_of(values[i]) : kn_bf16_of(values[i]);
    }
}

void kn_numbers_load(enum kn_type type, const void *elements, size_t count, float *values) {
    const uint16_t *halves = elements;
    if (type == KN_F32) {
        if (count > 0) memcpy(values, elements, count * sizeof *values);
        return;
    }
    if (type == KN_F16) {
        for (size_t i = 0; i < count; i++) values[i] = f16_value(halves[i]);
    } else {
        for (size_t i = 0; i < count; i++) values[i] = bf16_value(halves[i]);
    }
}
