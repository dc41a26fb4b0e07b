/*
 * Deviations: what passes, what fails, and that no NaN ever passes unseen.
 */
#include "deviation.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct kn_deviation compare(const float *values, const double *oracle, size_t count,
                                   double absolute, double relative) {
    const struct kn_tolerance tolerance = {absolute, relative};
    return kn_deviation_of(KN_F32, values, oracle, count, tolerance, NULL);
}

Test(deviation, equal_values_do_not_deviate) {
    const float values[] = {0, -1, 3.25f, 1e30f};
    const double oracle[] = {0, -1, 3.25, (double)1e30f};
    struct kn_deviation d = compare(values, oracle, 4, 0, 0);
    cr_assert(d.count == 4 && d.failed == 0 && d.exact == 4 && d.first == KN_NOWHERE);
    cr_assert(d.absolute == 0 && d.relative == 0 && d.ulp == 0 && d.normalised == 0);
    d = compare(values, oracle, 0, 0, 0);
    cr_assert(d.count == 0 && d.worst == KN_NOWHERE);
}

Test(deviation, first_and_worst_are_named) {
    const float values[] = {1, 2.5f, 3, 5, 6};
    const double oracle[] = {1, 2, 3, 4, 6};
    struct kn_deviation d = compare(values, oracle, 5, 0.25, 0);
    cr_assert(d.failed == 2 && d.first == 1 && d.worst == 3);
    cr_assert(d.absolute == 1 && d.relative == 0.25 && d.normalised == 4 && d.exact == 3);
    cr_assert(d.worst_value == 5 && d.worst_oracle == 4);
    cr_assert(fabs(d.root_mean_square - 0.5) < 1e-12);
    cr_assert(compare(values, oracle, 5, 1, 0).failed == 0, "at the tolerance it passes");
    cr_assert(compare(values, oracle, 5, 0, 0.25).failed == 0);
    const double allowed[] = {0, 0.5, 0, 0.5, 0};
    d = kn_deviation_of(KN_F32, values, oracle, 5, (struct kn_tolerance){0, 0}, allowed);
    cr_assert(d.failed == 1 && d.first == 3 && d.normalised == 2);
}

Test(deviation, a_nan_never_passes_and_is_counted_apart) {
    const float values[] = {NAN, INFINITY, -INFINITY, 1, NAN, INFINITY, 1};
    const double oracle[] = {1, 1, INFINITY, INFINITY, NAN, INFINITY, NAN};
    struct kn_deviation d = compare(values, oracle, 7, 1e300, 1e300);
    cr_assert(d.failed == 5 && d.nan == 2 && d.infinite == 3 && d.exact == 2);
    cr_assert(d.first == 0 && isinf(d.absolute) && isinf(d.normalised));
    cr_assert(compare(values + 4, oracle + 4, 2, 0, 0).failed == 0, "the same class is the same");
    d = compare((const float[]){1}, (const double[]){1}, 1, (double)NAN, 0);
    cr_assert(d.failed == 1, "nothing is within a NaN");
}

Test(deviation, units_in_the_last_place_are_the_types) {
    const float values[] = {1 + 0x1p-22f, 0x1p-149f, -0x1p-126f};
    const double oracle[] = {1, 0, 0x1p-126};
    cr_assert(compare(values, oracle, 1, 1, 0).ulp == 2);
    cr_assert(compare(values + 1, oracle + 1, 1, 1, 0).ulp == 1);
    cr_assert(compare(values + 2, oracle + 2, 1, 1, 0).ulp == 0x1p24);
    const uint16_t half[] = {0x3c01}, brain[] = {0x3f83};
    const double one[] = {1};
    const struct kn_tolerance all = {1, 0};
    cr_assert(kn_deviation_of(KN_F16, half, one, 1, all, NULL).ulp == 1);
    cr_assert(kn_deviation_of(KN_BF16, brain, one, 1, all, NULL).ulp == 3);
    cr_assert(
        kn_deviation_of(KN_F16, (const uint16_t[]){0x7c00}, (const double[]){1e6}, 1, all, NULL)
                .failed == 0,
        "what overflows the type is infinite");
}

Test(deviation, the_distribution_counts_octaves_of_what_is_allowed) {
    const double oracle[] = {0, 0, 0, 0, 0, 0, INFINITY};
    const float values[] = {1, 0.75f, 0.5f, 0.25f, 0, 2, INFINITY};
    struct kn_deviation d = compare(values, oracle, 7, 1, 0);
    cr_assert(d.octaves[0] == 2 && d.octaves[1] == 1 && d.octaves[2] == 1 && d.failed == 1);
    cr_assert(d.octaves[KN_OCTAVES - 1] == 2, "what is equal is in the last");
    d = kn_deviation_join(d, compare((const float[]){0x1p-40f, 0.3f}, oracle, 2, 1, 0));
    cr_assert(d.octaves[KN_OCTAVES - 1] == 3 && d.octaves[1] == 2);
}

Test(deviation, two_are_joined) {
    const float values[] = {1, 2, 4, 4};
    const double oracle[] = {1, 2, 3, 4};
    struct kn_deviation d = kn_deviation_join(compare(values, oracle, 2, 0.5, 0),
                                              compare(values + 2, oracle + 2, 2, 0.5, 0));
    struct kn_deviation whole = compare(values, oracle, 4, 0.5, 0);
    cr_assert(d.count == 4 && d.failed == 1 && d.exact == 3 && d.first == 2 && d.worst == 2);
    cr_assert(d.absolute == whole.absolute && d.normalised == whole.normalised);
    cr_assert(fabs(d.root_mean_square - whole.root_mean_square) < 1e-15);
    char text[400];
    cr_assert(strstr(kn_deviation_text(&d, text, sizeof text), "1 of 4 fail") != NULL, "%s", text);
    cr_assert(strstr(text, "worst at 2: 4 and not 3") != NULL, "%s", text);
    cr_assert(strlen(kn_deviation_text(&d, text, 10)) == 9);
}
