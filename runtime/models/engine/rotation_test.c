/*
 * Frequencies by hand, for each scaling.
 */
#include "rotation.h"

#include "test/test_device.h"

#include <math.h>

#define NEAR(value, expected)                                                                      \
    cr_assert(!(fabs((double)(value) - (expected)) > 1e-6 * fabs(expected)), "%g and not %g",      \
              (double)(value), (double)(expected))

Test(rotation, pairs_slow_down_by_powers_of_the_base) {
    float f[4];
    cr_assert(tol_rotation_frequencies(
                  &(struct tol_rotation){.rotated = 8, .base = 10000, .attention_factor = 1}, f) ==
              1);
    NEAR(f[0], 1.0);
    NEAR(f[1], 0.1);
    NEAR(f[2], 0.01);
    NEAR(f[3], 0.001);
}

Test(rotation, factors_and_linear_scaling_divide) {
    const float divisors[4] = {1, 2, 4, 8};
    float f[4];
    tol_rotation_frequencies(
        &(struct tol_rotation){.rotated = 8, .base = 10000, .divisors = divisors}, f);
    NEAR(f[1], 0.05);
    NEAR(f[3], 0.000125);
    tol_rotation_frequencies(
        &(struct tol_rotation){
            .rotated = 8, .base = 10000, .scaling = TOL_ROTATION_LINEAR, .factor = 4},
        f);
    NEAR(f[0], 0.25);
    NEAR(f[2], 0.0025);
}

/* With 128 elements and a base of 10000, 4096 positions hold 32 turns of pair 20.9 and one of pair
 * 45.03: pairs up to 20 stay, those from 46 on are divided, pair 33 is half of each. */
Test(rotation, yarn_leaves_fast_pairs_and_divides_slow_ones) {
    float f[64];
    const struct tol_rotation r = {.rotated = 128,
                                   .base = 10000,
                                   .scaling = TOL_ROTATION_YARN,
                                   .factor = 4,
                                   .original_context = 4096,
                                   .fast = 32,
                                   .slow = 1,
                                   .attention_factor = 1};
    NEAR(tol_rotation_frequencies(&r, f), 1.138629436);
    NEAR(f[0], 1.0);
    NEAR(f[20], pow(10000, -20 / 64.));
    NEAR(f[46], pow(10000, -46 / 64.) / 4);
    NEAR(f[63], pow(10000, -63 / 64.) / 4);
    NEAR(f[33], pow(10000, -33 / 64.) * (0.5 + 0.5 / 4));
}

/* 4 turns instead of 32 are those of pair 35.4; the magnitude's logarithm is divided in part. */
Test(rotation, a_model_tunes_yarn_by_turns_and_by_a_multiplier) {
    float f[64];
    struct tol_rotation r = {.rotated = 128,
                             .base = 10000,
                             .scaling = TOL_ROTATION_YARN,
                             .factor = 4,
                             .original_context = 4096,
                             .fast = 4,
                             .slow = 1,
                             .multiplier = 1,
                             .attention_factor = 1};
    NEAR(tol_rotation_frequencies(&r, f), 1.0);
    NEAR(f[33], pow(10000, -33 / 64.));
    NEAR(f[46], pow(10000, -46 / 64.) / 4);
    r.multiplier = 0.5;
    NEAR(tol_rotation_frequencies(&r, f), 1.138629436 / 1.069314718);
}

/* The magnitude that a file asks for holds whatever the scaling is; a factor below 1 makes pairs
 * faster, and adds nothing of its own. */
Test(rotation, a_magnitude_holds_without_yarn_and_factors_may_be_below_1) {
    float f[4];
    struct tol_rotation r = {.rotated = 8,
                             .base = 10000,
                             .scaling = TOL_ROTATION_LINEAR,
                             .factor = 0.5,
                             .original_context = 64,
                             .fast = 32,
                             .slow = 1,
                             .attention_factor = 0.75};
    NEAR(tol_rotation_frequencies(&r, f), 0.75);
    NEAR(f[0], 2.0);
    NEAR(f[2], 0.02);
    r.scaling = TOL_ROTATION_PLAIN;
    NEAR(tol_rotation_frequencies(&r, f), 0.75);
    NEAR(f[2], 0.01);
    r.scaling = TOL_ROTATION_YARN;
    NEAR(tol_rotation_frequencies(&r, f), 0.75);
}
