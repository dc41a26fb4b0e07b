/*
 * Ticks: they measure the same time as the clock, and readings that run backwards are discarded.
 */
#include "ticks.h"

#include <criterion/criterion.h>

/* Without a claim about how exact: another process may have the processor between two readings. */
Test(ticks, a_wait_is_at_least_as_long_as_the_clock_says) {
    const struct hyp_ticks *ticks = hyp_ticks_ready();
    const uint64_t wait_ns = 2000000;
    cr_assert(ticks->ns_per_tick > 0 && ticks->cost_ns >= 0);
    uint64_t begin = hyp_ticks_begin(ticks), begin_ns = hyp_clock_ns();
    while (hyp_clock_ns() < begin_ns + wait_ns) continue;
    uint64_t inner_ns = hyp_clock_ns() - begin_ns, end = hyp_ticks_end(ticks);
    double ns = hyp_ticks_ns(ticks, begin, end) + ticks->cost_ns;
    cr_assert(ns >= 0.99 * (double)inner_ns, "%g ns, the clock says %llu", ns,
              (unsigned long long)inner_ns);
    cr_assert(hyp_ticks_ready() == ticks, "it is measured once");
}

Test(ticks, the_cost_of_reading_is_subtracted_and_never_below_nothing) {
    const struct hyp_ticks ticks = {.ns_per_tick = 0.5, .cost_ns = 20};
    cr_assert_eq(hyp_ticks_ns(&ticks, 1000, 1100), 30);
    cr_assert_eq(hyp_ticks_ns(&ticks, 1000, 1010), 0);
    cr_assert_eq(hyp_ticks_ns(&ticks, 1000, 999), 1e9, "it ran backwards");
}
