/*
 * Inputs: the same for a seed, and of the kind that their name says.
 */
#include "inputs.h"

#include "parallel.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { COUNT = 20000 };

static float values[COUNT];

static void draw(enum kn_distribution distribution, uint64_t seed) {
    kn_inputs_draw(distribution, &seed, 1, values, COUNT);
}

Test(inputs, a_seed_gives_the_same_values_and_another_seed_others) {
    static float first[COUNT];
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        draw(d, 7);
        memcpy(first, values, sizeof first);
        draw(d, 7);
        cr_assert(memcmp(first, values, sizeof first) == 0, "%s", kn_distribution_name(d));
        draw(d, 8);
        cr_assert(memcmp(first, values, sizeof first) != 0, "%s", kn_distribution_name(d));
    }
}

static void moments(double *mean, double *deviation, double *least, double *most) {
    double sum = 0, squares = 0;
    *least = INFINITY, *most = 0;
    for (int i = 0; i < COUNT; i++) {
        const double value = (double)values[i];
        sum += value, squares += value * value;
        *least = fmin(*least, fabs(value));
        *most = fmax(*most, fabs(value));
    }
    *mean = sum / COUNT;
    *deviation = sqrt(squares / COUNT - *mean * *mean);
}

Test(inputs, distributions_are_what_they_are_called) {
    double mean, deviation, least, most;
    draw(KN_UNIFORM, 1);
    moments(&mean, &deviation, &least, &most);
    cr_assert(fabs(mean) < 0.02 && fabs(deviation - 0.577) < 0.01 && most <= 1, "%g", deviation);
    draw(KN_NORMAL, 1);
    moments(&mean, &deviation, &least, &most);
    cr_assert(fabs(mean) < 0.03 && fabs(deviation - 1) < 0.03 && most > 3, "%g", deviation);
    draw(KN_LARGE, 1);
    moments(&mean, &deviation, &least, &most);
    cr_assert(least >= 1 && most <= 4096 && most > 4000, "%g to %g", least, most);
    draw(KN_DENORMAL, 1);
    moments(&mean, &deviation, &least, &most);
    cr_assert(most < 0x1p-126 && most > 0x1p-127, "%g", most);
    draw(KN_TINY, 1);
    moments(&mean, &deviation, &least, &most);
    cr_assert(most <= 0x1p-120 && most > 0x1p-121, "%g", most);
    draw(KN_SPARSE, 1);
    int zeroes = 0;
    for (int i = 0; i < COUNT; i++) zeroes += values[i] == 0;
    cr_assert(abs(zeroes - 9 * COUNT / 10) < COUNT / 50, "%d", zeroes);
    draw(KN_CANCEL, 1);
    for (int i = 1; i < COUNT; i += 2) {
        const double rest = fabs((double)values[i - 1] + (double)values[i]);
        cr_assert(rest <= fabs((double)values[i - 1]) * 0x1p-9, "%d", i);
    }
}

/* Goal: what bounds of drawn data rest on: signs of neighbours are independent, but of pairs. */
Test(inputs, signs_are_independent_where_it_is_said) {
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        int alike = 0, plus = 0;
        draw(d, 5);
        for (int i = 1; i < COUNT; i += 2) {
            alike += signbit(values[i]) == signbit(values[i - 1]);
            plus += !signbit(values[i]);
        }
        const bool is_even =
            abs(alike - COUNT / 4) < COUNT / 50 && abs(plus - COUNT / 4) < COUNT / 50;
        cr_assert(is_even == kn_distribution_has_signs(d), "%s: %d alike", kn_distribution_name(d),
                  alike);
    }
}

/* Goal: values depend on the seed and on their place, and not on who draws them beside whom. */
Test(inputs, any_number_of_threads_and_of_calls_draws_the_same) {
    enum { MANY = 5 << 14, FIRST = 12346 };
    static float one[MANY], many[MANY];
    for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
        uint64_t state = 11, other = 11, skipped = 11;
        kn_parallel_force(1);
        kn_inputs_draw(d, &state, 0.75, one, MANY - 3);
        kn_parallel_force(7);
        kn_inputs_draw(d, &other, 0.75, many, MANY - 3);
        cr_assert(memcmp(one, many, sizeof one) == 0, "%s", kn_distribution_name(d));
        kn_inputs_skip(d, &skipped, MANY - 3);
        cr_assert(state == other && state == skipped, "%s", kn_distribution_name(d));
        skipped = 11;
        kn_inputs_skip(d, &skipped, FIRST);
        kn_inputs_draw(d, &skipped, 0.75, many, MANY - 3 - FIRST);
        cr_assert(memcmp(one + FIRST, many, (MANY - 3 - FIRST) * sizeof *one) == 0, "%s",
                  kn_distribution_name(d));
    }
}
