/*
 * The asserts about warps fire: a hand-made warp is broken on purpose.
 */
#include "base/deep_assert.h"
#include "warp.h"
#include "test/test_abort.h"
#include "test/test_soft.h"

#ifndef NDEBUG

enum { PLACES = 4 };
static struct soft_instruction code_instructions[PLACES];
static struct soft_origin origins[PLACES];
static const struct soft_code code = {.instructions = code_instructions, .origins = origins};
static struct soft_warp warp;

/* All lanes at the first place; a branch there meets at the last. */
static void begin(void) {
    warp.threads = UINT32_MAX;
    warp.bottom.code = &code;
    code_instructions[0].u.join = &code_instructions[PLACES - 1];
    soft_warp_begin(&warp, code_instructions);
    soft_warp_set_mask(&warp, UINT32_MAX);
}

/* The lanes of taken go to the third place. */
static void part(uint32_t taken) {
    soft_warp_part(&warp, &code_instructions[0], &code_instructions[2], taken);
}

static void part_lanes_that_have_exited(void) {
    begin();
    warp.alive = 0xffff;
    part(0xff);
}

static void part_with_another_frame(void) {
    static uint8_t slots[16];
    begin();
    warp.slots = slots;
    part(0xff);
}

static void meet_where_lanes_are_not_expected(void) {
    begin();
    soft_warp_open_join(&warp, &code_instructions[PLACES - 1]);
    warp.split->join->expected = 1;
    soft_warp_meet(&warp, &code_instructions[1]);
}

Test(warp_valid, a_broken_split_aborts) {
    test_must_abort(part_lanes_that_have_exited, "warp.c", "soft_split_is_valid(warp,");
    test_must_abort(part_with_another_frame, "warp.c", "soft_split_is_valid(warp,");
    test_must_abort(meet_where_lanes_are_not_expected, "warp.c", "soft_split_is_valid(warp,");
}

Test(warp_valid, a_walk_over_splits_sees_what_does_not_add_up) {
    begin();
    cr_assert(soft_warp_is_valid(&warp));
    part(0xff);
    cr_assert(soft_warp_is_valid(&warp));
    warp.splits[1].mask |= 1u << 31;
    cr_assert_not(soft_warp_is_valid(&warp), "a lane in two splits");
    warp.splits[1].mask = 0xfe;
    cr_assert_not(soft_warp_is_valid(&warp), "a lane in no split");
    warp.splits[1].join->arrived = 1;
    cr_assert(soft_warp_is_valid(&warp), "it waits in the join");
    warp.splits[1].join->expected &= ~1u;
    cr_assert_not(soft_warp_is_valid(&warp), "a lane that the join does not expect");
    begin();
    warp.syncing = 1;
    cr_assert_not(soft_warp_is_valid(&warp), "a count of splits that wait");
    begin();
    warp.splits[5] = warp.splits[0];
    cr_assert_not(soft_warp_is_valid(&warp), "a split after the last");
}

#ifdef TOL_DEEP_CHECKS

static void count_one_too_many(void) {
    begin();
    warp.polling = 1;
    for (int i = 0; i < SOFT_DEEP_ONE_IN; i++) {
        soft_warp_meet(&warp, &code_instructions[1]);
    }
}

Test(warp_valid, deep_checks_abort) {
    test_must_abort(count_one_too_many, "warp.c", "soft_warp_is_valid(warp)");
}

#endif
#endif
