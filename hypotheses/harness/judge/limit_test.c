/*
 * The search on claims that notice a fault down to a known step.
 */
#include "files/atomic_file.h"
#include "limit.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct simulated {
    double finest; /* the largest "one in" that is noticed */
    unsigned tries, fails_at;
    char tried[16][HYP_LADDER_NAME_BYTES];
};

static bool try_step(void *user, const char *saboteur, bool *noticed) {
    struct simulated *claim = user;
    snprintf(claim->tried[claim->tries++], HYP_LADDER_NAME_BYTES, "%s", saboteur);
    if (claim->tries == claim->fails_at) return hyp_fail("the machine is gone");
    *noticed = strtod(strchr(saboteur, '=') + 1, NULL) <= claim->finest;
    return true;
}

static bool was_tried(const struct simulated *claim, const char *step) {
    for (unsigned i = 0; i < claim->tries; i++) {
        if (strcmp(claim->tried[i], step) == 0) return true;
    }
    return false;
}

/* Goal: for ladders of every length and limits at every step, the right pair, both tried, and no
 * more tries than halves need. */
Test(limit, the_smallest_noticed_fault_is_found) {
    static const char *const texts[] = {
        "1",         "1,2",         "1,2,3",         "1,2,3,4",
        "1,2,3,4,5", "1,2,3,4,5,6", "1,2,3,4,5,6,7", "1,2,3,4,5,6,7,8"};
    static const unsigned most_tries[] = {1, 2, 3, 3, 4, 4, 4, 4};
    for (unsigned count = 1; count <= 8; count++) {
        struct hyp_ladder ladder;
        struct hyp_limit limit;
        char text[80], noticed[64], missed[64];
        snprintf(text, sizeof text, "launch_drop_one_in=%s", texts[count - 1]);
        cr_assert(hyp_ladder_read(text, &ladder), "%s", hyp_error());
        for (unsigned finest = 0; finest <= count; finest++) {
            struct simulated claim = {.finest = finest};
            cr_assert(hyp_limit_search(&ladder, try_step, &claim, &limit));
            snprintf(noticed, sizeof noticed, "launch_drop_one_in=%u", finest);
            snprintf(missed, sizeof missed, "launch_drop_one_in=%u", finest + 1);
            cr_assert_str_eq(limit.fault, "launch_drop_one_in");
            cr_assert_str_eq(limit.noticed, finest > 0 ? noticed : "");
            cr_assert_str_eq(limit.missed, finest < count ? missed : "");
            cr_assert(limit.noticed[0] == '\0' || was_tried(&claim, limit.noticed));
            cr_assert(limit.missed[0] == '\0' || was_tried(&claim, limit.missed));
            cr_assert(claim.tries <= most_tries[count - 1] && claim.tries > 0, "%u of %u: %u tries",
                      finest, count, claim.tries);
            cr_assert(finest < count || claim.tries == 1, "the finest step is tried first");
        }
    }
}

Test(limit, a_step_that_cannot_be_tried_ends_the_search) {
    struct hyp_ladder ladder;
    struct hyp_limit limit;
    cr_assert(hyp_ladder_read("launch_drop_one_in=1,2,3,4", &ladder));
    for (unsigned at = 1; at <= 2; at++) {
        struct simulated claim = {.finest = 2, .fails_at = at};
        cr_assert(!hyp_limit_search(&ladder, try_step, &claim, &limit) && claim.tries == at);
        cr_assert(strstr(hyp_error(), "gone") != NULL);
    }
}
