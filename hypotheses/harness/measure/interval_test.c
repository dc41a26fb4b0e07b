/*
 * Intervals: the ranks of the binomial distribution, and that they cover the median as often as
 * they say.
 */
#include "harness/interval.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

/* The sum of binomial coefficients, exact in 64 bits up to 60 coins. */
static double chance_of_at_most(size_t heads, size_t coins) {
    double sum = 0, term = 1;
    for (size_t k = 0; k <= heads; k++) {
        sum += term;
        term = term * (double)(coins - k) / (double)(k + 1);
    }
    return ldexp(sum, -(int)coins);
}

Test(interval, ranks_are_the_largest_that_are_safe) {
    for (size_t count = 1; count <= 60; count++) {
        for (int step = 0; step < 12; step++) {
            double alpha = 0.4 * pow(3, -step);
            size_t rank = hyp_interval_rank(count, alpha);
            cr_assert(rank == 0 || chance_of_at_most(rank - 1, count) <= alpha * (1 + 1e-9));
            cr_assert(chance_of_at_most(rank, count) > alpha * (1 - 1e-9), "%zu of %zu at %g", rank,
                      count, alpha);
        }
    }
}

/* The table of MEASURING.md section 5, for 0.5 % a side. */
Test(interval, ranks_are_the_published_ones) {
    cr_assert(hyp_interval_rank(50, 0.005) == 16);
    cr_assert(hyp_interval_rank(100, 0.005) == 37);
    cr_assert(hyp_interval_rank(200, 0.005) == 82);
    cr_assert(hyp_interval_rank(400, 0.005) == 174);
    cr_assert(hyp_interval_rank(7, 0.005) == 0 && hyp_interval_rank(8, 0.005) == 1);
    cr_assert(hyp_interval_rank(100000, 0.005) > 49000);
}

Test(interval, values_at_ranks_bound_the_median) {
    struct hyp_interval interval;
    double values[50];
    for (int i = 0; i < 50; i++) values[i] = (i * 7) % 50 + 1; /* 1 to 50, in disorder */
    cr_assert(hyp_interval_of(values, 50, 0.005, 0.005, &interval));
    cr_assert(interval.median == 25.5 && interval.low == 16 && interval.high == 35);
    cr_assert(interval.spread == 24.5, "%g", interval.spread);
    cr_assert(hyp_interval_of(values, 50, 0.005, 0.4, &interval));
    cr_assert(interval.low == 16 && interval.high < 35);
    cr_assert(values[0] == 1 && values[1] == 8, "the values were changed");
}

Test(interval, too_few_values_bound_nothing) {
    struct hyp_interval interval;
    double values[] = {3, 1, 2, NAN, INFINITY};
    cr_assert(hyp_interval_of(values, 3, 0.005, 0.005, &interval));
    cr_assert(interval.median == 2 && interval.low == -INFINITY && interval.high == INFINITY);
    cr_assert(!hyp_interval_of(values, 0, 0.005, 0.005, &interval));
    cr_assert(!hyp_interval_of(values, 4, 0.005, 0.005, &interval), "NaN is no value");
    cr_assert(!hyp_interval_of(values + 4, 1, 0.005, 0.005, &interval), "infinity is no value");
}

/* Goal: an interval misses the true median no oftener than it says, for a distribution that is as
 * skewed as times are. Method: many samples of an exponential, whose median is the logarithm of 2.
 */
Test(interval, covers_the_median_as_often_as_it_says) {
    enum { TURNS = 4000, VALUES = 60 };
    uint64_t state = 1;
    unsigned low_misses = 0, high_misses = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        double values[VALUES];
        struct hyp_interval interval;
        for (int i = 0; i < VALUES; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            values[i] = -log(((double)(state >> 11) + 0.5) * 0x1p-53);
        }
        cr_assert(hyp_interval_of(values, VALUES, 0.025, 0.1, &interval));
        low_misses += interval.low > log(2);
        high_misses += interval.high < log(2);
    }
    cr_assert(low_misses <= 0.025 * TURNS && low_misses > 0.01 * TURNS, "%u", low_misses);
    cr_assert(high_misses <= 0.1 * TURNS && high_misses > 0.05 * TURNS, "%u", high_misses);
}
