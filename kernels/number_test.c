/*
 * Conversions: every 16-bit number, and all places where rounding changes its mind.
 */
#include "number.h"

#include <criterion/criterion.h>
#include <math.h>

/* The value of a 16-bit number, from its definition. */
static double defined(unsigned bits, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double mantissa = (double)(bits & ((1u << mantissa_bits) - 1));
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
        value = mantissa == 0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
        value = ldexp(1 + ldexp(mantissa, -mantissa_bits), exponent - bias);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

static bool same(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

Test(number, every_16_bit_number_has_its_value_and_comes_back) {
    for (unsigned bits = 0; bits <= 0xffff; bits++) {
        const float half = kn_f16_value((uint16_t)bits), brain = kn_bf16_value((uint16_t)bits);
        cr_assert(same((double)half, defined(bits, 5, 10)), "f16 %#x is %g", bits, (double)half);
        cr_assert(same((double)brain, defined(bits, 8, 7)), "bf16 %#x is %g", bits, (double)brain);
        cr_assert(isnan(half) ? isnan(kn_f16_value(kn_f16_of(half))) : kn_f16_of(half) == bits);
        cr_assert(isnan(brain) ? isnan(kn_bf16_value(kn_bf16_of(brain)))
                               : kn_bf16_of(brain) == bits);
    }
}

/* Between neighbours: below the middle down, above it up, and on it to the even one. */
static void check_between(uint16_t low, float (*value)(uint16_t), uint16_t (*of)(float)) {
    const float middle = (float)(((double)value(low) + (double)value((uint16_t)(low + 1))) / 2);
    const uint16_t even = (low & 1) == 0 ? low : (uint16_t)(low + 1);
    cr_assert(of(middle) == even, "%a becomes %#x and not %#x", (double)middle, of(middle), even);
    cr_assert(of(nextafterf(middle, 0)) == low, "below %a", (double)middle);
    cr_assert(of(nextafterf(middle, INFINITY)) == low + 1, "above %a", (double)middle);
    cr_assert(of(-middle) == (even | 0x8000), "%a", -(double)middle);
}

Test(number, rounding_is_to_nearest_and_ties_to_even) {
    for (unsigned low = 0; low < 0x7bff; low++)
        check_between((uint16_t)low, kn_f16_value, kn_f16_of);
    for (unsigned low = 0; low < 0x7f7f; low++) {
        check_between((uint16_t)low, kn_bf16_value, kn_bf16_of);
    }
    cr_assert(kn_f16_of(65519.996f) == 0x7bff && kn_f16_of(65520) == 0x7c00);
    cr_assert(kn_f16_of(-1e30f) == 0xfc00 && kn_bf16_of(3.4e38f) == 0x7f80);
    cr_assert(kn_f16_of(0x1p-25f) == 0 && kn_f16_of(0x1.000002p-25f) == 1);
    cr_assert(kn_f16_of(-0.0f) == 0x8000 && kn_bf16_of(-0.0f) == 0x8000);
}

Test(number, tf32_rounds_ties_away_from_zero) {
    cr_assert(kn_tf32_of(1) == 1 && kn_tf32_of(-1.5f) == -1.5f);
    cr_assert(kn_tf32_of(1 + 0x1p-11f) == 1 + 0x1p-10f, "a tie");
    cr_assert(kn_tf32_of(-1 - 0x1p-11f) == -1 - 0x1p-10f, "a tie below zero");
    cr_assert(kn_tf32_of(1 + 0x1p-11f - 0x1p-23f) == 1);
    cr_assert(kn_tf32_of(INFINITY) == INFINITY && isnan(kn_tf32_of(NAN)));
}

Test(number, arrays_are_stored_and_loaded) {
    const float values[] = {1, -2.5f, 65504, 0x1p-20f};
    float back[4] = {0};
    uint16_t halves[4];
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        cr_assert(kn_type_bytes(type) == (type == KN_F32 ? 4 : 2));
        if (type == KN_F32) continue;
        kn_numbers_store(type, values, 4, halves);
        kn_numbers_load(type, halves, 4, back);
        for (int i = 0; i < 4; i++) {
            const double error = fabs((double)back[i] - (double)values[i]);
            cr_assert(error <= kn_type_roundoff(type) * fabs((double)values[i]) || i == 3);
        }
    }
    kn_numbers_store(KN_F32, values, 4, back);
    for (int i = 0; i < 4; i++) cr_assert(values[i] == back[i], "element %d", i);
    cr_assert_str_eq(kn_type_name(KN_BF16), "bf16");
}

/* The value of an e4m3, from its definition. */
static double defined_e4m3(unsigned bits) {
    const int exponent = (int)(bits >> 3 & 15);
    const double mantissa = (double)(bits & 7), sign = (bits & 0x80) != 0 ? -1 : 1;
    if ((bits & 0x7f) == 0x7f) return NAN;
    return sign * (exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10));
}

Test(number, every_e4m3_has_its_value_and_comes_back) {
    for (unsigned bits = 0; bits <= 0xff; bits++) {
        const float value = kn_e4m3_value((uint8_t)bits);
        cr_assert(same((double)value, defined_e4m3(bits)), "%#x is %g", bits, (double)value);
        cr_assert(isnan(value) ? kn_e4m3_of(value) == 0x7f : kn_e4m3_of(value) == bits);
    }
}

Test(number, e4m3_rounds_to_nearest_and_stays_at_the_largest) {
    for (unsigned low = 0; low < 0x7e; low++) {
        const float middle = (float)((defined_e4m3(low) + defined_e4m3(low + 1)) / 2);
        const unsigned even = (low & 1) == 0 ? low : low + 1;
        cr_assert(kn_e4m3_of(middle) == even, "%a becomes %#x", (double)middle, kn_e4m3_of(middle));
        cr_assert(kn_e4m3_of(nextafterf(middle, 0)) == low, "below %a", (double)middle);
        cr_assert(kn_e4m3_of(nextafterf(middle, INFINITY)) == low + 1, "above %a", (double)middle);
        cr_assert(kn_e4m3_of(-middle) == (even | 0x80), "%a", -(double)middle);
    }
    cr_assert(kn_e4m3_of(464) == 0x7e && kn_e4m3_of(INFINITY) == 0x7e);
    cr_assert(kn_e4m3_of(-1e30f) == 0xfe && kn_e4m3_of(-0.0f) == 0x80);
}
