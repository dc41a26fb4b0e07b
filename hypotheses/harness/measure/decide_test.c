/*
 * Deciding: each direction, each side of a threshold, and what processes say together.
 */
#include "harness/decide.h"

#include <criterion/criterion.h>
#include <math.h>

static enum hyp_decision decide(enum hyp_direction direction, double low, double high) {
    const struct hyp_rule rule = {.threshold = 2, .direction = direction, .family = 1};
    return hyp_decide(&rule, &(struct hyp_interval){.low = low, .high = high});
}

Test(decide, an_interval_on_one_side_decides) {
    cr_assert(decide(HYP_AT_MOST, 1, 1.9) == HYP_HOLDS);
    cr_assert(decide(HYP_AT_MOST, 2.1, 3) == HYP_FALLS);
    cr_assert(decide(HYP_AT_MOST, 1.9, 2.1) == HYP_UNDECIDED);
    cr_assert(decide(HYP_BELOW, 1, 1.9) == HYP_HOLDS);
    cr_assert(decide(HYP_BELOW, 2.1, 3) == HYP_FALLS);
    cr_assert(decide(HYP_ABOVE, 2.1, 3) == HYP_HOLDS);
    cr_assert(decide(HYP_ABOVE, 1, 1.9) == HYP_FALLS);
    cr_assert(decide(HYP_ABOVE, 1.9, 2.1) == HYP_UNDECIDED);
}

Test(decide, the_edge_belongs_where_the_direction_says) {
    cr_assert(decide(HYP_AT_MOST, 1, 2) == HYP_HOLDS);
    cr_assert(decide(HYP_AT_MOST, 2, 3) == HYP_UNDECIDED);
    cr_assert(decide(HYP_BELOW, 1, 2) == HYP_UNDECIDED);
    cr_assert(decide(HYP_BELOW, 2, 3) == HYP_FALLS);
    cr_assert(decide(HYP_ABOVE, 2, 3) == HYP_UNDECIDED);
    cr_assert(decide(HYP_ABOVE, 1, 2) == HYP_FALLS);
}

Test(decide, what_is_no_number_decides_nothing) {
    for (int d = HYP_AT_MOST; d <= HYP_ABOVE; d++) {
        cr_assert(decide((enum hyp_direction)d, NAN, NAN) == HYP_UNDECIDED);
        cr_assert(decide((enum hyp_direction)d, -INFINITY, INFINITY) == HYP_UNDECIDED);
    }
}

/* A claim that falls by any of six effects must be surer of each to fall, and no surer to hold. */
Test(decide, a_family_widens_the_end_that_falls) {
    double values[100];
    struct hyp_interval alone, family;
    for (int i = 0; i < 100; i++) values[i] = i;
    for (int d = HYP_AT_MOST; d <= HYP_ABOVE; d++) {
        struct hyp_rule rule = {.threshold = 50, .direction = (enum hyp_direction)d, .family = 1};
        cr_assert(hyp_decide_interval(&rule, values, 100, &alone));
        rule.family = 6;
        cr_assert(hyp_decide_interval(&rule, values, 100, &family));
        if (d == HYP_ABOVE) {
            cr_assert(family.low == alone.low && family.high > alone.high);
        } else {
            cr_assert(family.low < alone.low && family.high == alone.high);
        }
    }
}

Test(decide, processes_must_agree_and_be_enough) {
    const struct hyp_rule rule = {.threshold = 2, .direction = HYP_AT_MOST, .family = 1};
    double medians[] = {1, 1.5, 1.9, 1.2, 2.0, 0.3};
    cr_assert(hyp_decide_processes(&rule, medians, 6) == HYP_HOLDS);
    cr_assert(hyp_decide_processes(&rule, medians, 5) == HYP_UNDECIDED, "five may agree by chance");
    cr_assert(hyp_decide_processes(&rule, medians, 0) == HYP_UNDECIDED);
    medians[3] = 2.1;
    cr_assert(hyp_decide_processes(&rule, medians, 6) == HYP_UNDECIDED);
    for (int i = 0; i < 6; i++) medians[i] = 2.5;
    cr_assert(hyp_decide_processes(&rule, medians, 6) == HYP_FALLS);
    medians[0] = NAN;
    cr_assert(hyp_decide_processes(&rule, medians, 6) == HYP_UNDECIDED);
}
