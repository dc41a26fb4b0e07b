/*
 * What is usual: the rate of false alarms that the header states, measured, and windows.
 */
#include "watch_state.h"

#include <criterion/criterion.h>
#include <string.h>

static uint64_t random_state = 1;

static uint64_t draw(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* The number of calls in a window: a few as a rule, and many in one of 16. */
static uint64_t calls(void) {
    return draw() % 16 == 0 ? draw() % 1000 : draw() % 20;
}

Test(watch_baseline, false_alarms_are_as_rare_as_is_stated) {
    enum { TRIALS = 4000 };
    const double stated = 0.1;
    const uint64_t windows = watch_windows_for(stated);
    cr_assert(windows == 39);
    unsigned alarms = 0;
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        struct watch_baseline baseline = {.window_ns = 10, .wanted = windows};
        uint64_t seen = 0, limit = 0, now_ns = 1;
        for (uint64_t window = 0; window <= windows; window++, now_ns += 10) {
            const uint64_t add[WATCH_VALUES] = {calls(), calls(), calls(), calls()};
            const bool is_alarm =
                watch_baseline_add(&baseline, now_ns, add, &seen, &limit) != WATCH_VALUES;
            cr_assert(!is_alarm || window == windows, "while it learned");
            alarms += is_alarm;
        }
    }
    /* At most 400 are expected. The least of four equal shares' union is 0.0964 of the trials
     * without ties; 4 standard deviations are 76. */
    cr_assert(alarms <= 476 && alarms >= 280, "%u of %d", alarms, TRIALS);
}

Test(watch_baseline, windows_without_a_call_count_and_late_calls_do_not_go_back) {
    struct watch_baseline baseline = {.window_ns = 10, .wanted = 4};
    const uint64_t one[WATCH_VALUES] = {1, 1, 1, 1}, two[WATCH_VALUES] = {0, 0, 2, 0};
    uint64_t seen = 0, limit = 0;
    cr_assert(watch_baseline_add(&baseline, 100, one, &seen, &limit) == WATCH_VALUES);
    cr_assert(watch_baseline_add(&baseline, 135, one, &seen, &limit) == WATCH_VALUES);
    cr_assert(baseline.learned == 3 && baseline.begin_ns == 130);
    cr_assert(watch_baseline_add(&baseline, 125, one, &seen, &limit) == WATCH_VALUES);
    cr_assert(baseline.learned == 3 && baseline.begin_ns == 130 && baseline.now[0] == 2);
    cr_assert(watch_baseline_add(&baseline, 145, two, &seen, &limit) == WATCH_VALUES);
    cr_assert(baseline.learned == 4);
    cr_assert(watch_baseline_add(&baseline, 146, one, &seen, &limit) == WATCH_BYTES_IN);
    cr_assert(seen == 3 && limit == 2);
    cr_assert(watch_baseline_add(&baseline, 147, one, &seen, &limit) == WATCH_VALUES);
}
