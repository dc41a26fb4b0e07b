/*
 * Sixteen-bit floating point: all 65536 values one way, and rounding against exact arithmetic the
 * other.
 */
#include "half.h"

#include <criterion/criterion.h>
#include <math.h>

Test(half, every_f16_survives_the_way_there_and_back) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float x = float_of_f16(bits);
        bool nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
        uint32_t expected = nan ? 0x7fff : bits;
        cr_assert(isnan(x) == nan, "0x%04x", bits);
        cr_assert(f16_of_float(x) == expected, "0x%04x became 0x%04x", bits, f16_of_float(x));
        cr_assert(f16_of_double((double)x, SOFT_MODE_RN) == expected, "0x%04x", bits);
        cr_assert(f16_of_double((double)x, SOFT_MODE_RZ) == expected, "0x%04x", bits);
    }
}

Test(half, every_bf16_survives_the_way_there_and_back) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float x = float_of_bf16(bits);
        bool nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
        uint32_t expected = nan ? 0x7fff : bits;
        cr_assert(bf16_of_float(x) == expected, "0x%04x became 0x%04x", bits, bf16_of_float(x));
        cr_assert(bf16_of_double((double)x, SOFT_MODE_RN) == expected, "0x%04x", bits);
    }
}

/* Between two neighbours a < b of the format, exactly: below the middle rounds to a, above it to b,
 * and the middle to the even one; directed modes to the one on their side. */
Test(half, rounds_between_all_neighbours) {
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        double a = (double)float_of_f16(bits), b = (double)float_of_f16(bits + 1);
        double middle = (a + b) / 2, below = nextafter(middle, a), above = nextafter(middle, b);
        uint32_t even = bits & 1 ? bits + 1 : bits;
        cr_assert(f16_of_double(below, SOFT_MODE_RN) == bits, "0x%04x", bits);
        cr_assert(f16_of_double(middle, SOFT_MODE_RN) == even, "0x%04x", bits);
        cr_assert(f16_of_double(above, SOFT_MODE_RN) == bits + 1, "0x%04x", bits);
        cr_assert(f16_of_double(-middle, SOFT_MODE_RN) == (even | 0x8000), "0x%04x", bits);
        cr_assert(f16_of_double(above, SOFT_MODE_RZ) == bits, "0x%04x", bits);
        cr_assert(f16_of_double(above, SOFT_MODE_RM) == bits, "0x%04x", bits);
        cr_assert(f16_of_double(below, SOFT_MODE_RP) == bits + 1, "0x%04x", bits);
        cr_assert(f16_of_double(-below, SOFT_MODE_RM) == (0x8000 | (bits + 1)), "0x%04x", bits);
        cr_assert(f16_of_double(middle, SOFT_MODE_RNA) == bits + 1, "0x%04x", bits);
        /* The single precision way sees the same middle, which is exact in single precision. */
        cr_assert(f16_of_float((float)middle) == even, "0x%04x", bits);
        float up = nextafterf((float)middle, INFINITY), down = nextafterf((float)middle, 0);
        cr_assert(f16_of_float(up) == bits + 1 && f16_of_float(down) == bits, "0x%04x", bits);
    }
}

Test(half, overflow_goes_to_infinity_or_stays) {
    cr_assert(f16_of_double(65519.99, SOFT_MODE_RN) == 0x7bff);
    cr_assert(f16_of_double(65520, SOFT_MODE_RN) == 0x7c00);
    cr_assert(f16_of_float(65519.99f) == 0x7bff && f16_of_float(65520.0f) == 0x7c00);
    cr_assert(f16_of_double(1e300, SOFT_MODE_RZ) == 0x7bff);
    cr_assert(f16_of_double(-1e300, SOFT_MODE_RP) == 0xfbff);
    cr_assert(f16_of_double(-1e300, SOFT_MODE_RM) == 0xfc00);
    cr_assert(f16_of_double((double)INFINITY, SOFT_MODE_RZ) == 0x7c00);
    cr_assert(f16_of_float(-INFINITY) == 0xfc00);
    cr_assert(bf16_of_double(3.4e38, SOFT_MODE_RN) == 0x7f80);
    cr_assert(bf16_of_double(3.39e38, SOFT_MODE_RZ) == 0x7f7f);
}

Test(half, underflow_goes_to_zero_or_the_least) {
    cr_assert(f16_of_double(0x1p-25, SOFT_MODE_RN) == 0, "a tie goes to even");
    cr_assert(f16_of_double(0x1.0001p-25, SOFT_MODE_RN) == 1);
    cr_assert(f16_of_double(1e-300, SOFT_MODE_RP) == 1);
    cr_assert(f16_of_double(-1e-300, SOFT_MODE_RN) == 0x8000);
    cr_assert(f16_of_double(5e-324, SOFT_MODE_RP) == 1, "a subnormal double");
    cr_assert(f16_of_float(-0.0f) == 0x8000);
    cr_assert(bf16_of_double(0x1p-133, SOFT_MODE_RN) == 1);
}
