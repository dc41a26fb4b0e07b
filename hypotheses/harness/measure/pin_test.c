/*
 * Pinning: one processor meanwhile, and all of them afterwards.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_COUNT */
#endif
#include "pin.h"

#include <criterion/criterion.h>
#include <sched.h>

Test(pin, a_thread_has_one_processor_and_then_all_that_it_had) {
    cpu_set_t before, meanwhile, after;
    cr_assert(sched_getaffinity(0, sizeof before, &before) == 0);
    struct hyp_pin *pin = hyp_pin_begin();
    if (pin == NULL) {
        const bool may = sched_setaffinity(0, sizeof before, &before) == 0;
        cr_assert(!may, "this system lets a thread choose its processors, and it is not pinned");
        cr_skip_test("this system does not let a thread choose its processor");
    }
    cr_assert(sched_getaffinity(0, sizeof meanwhile, &meanwhile) == 0);
    hyp_pin_end(pin);
    cr_assert(sched_getaffinity(0, sizeof after, &after) == 0);
    cr_assert(CPU_COUNT(&meanwhile) == 1, "%d processors", CPU_COUNT(&meanwhile));
    cr_assert(CPU_EQUAL(&before, &after), "%d and %d", CPU_COUNT(&before), CPU_COUNT(&after));
    hyp_pin_end(NULL);
}
