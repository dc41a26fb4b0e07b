/*
 * Calls by flags: slots that are used again, calls that use each other's results, numbers that
 * begin again, and how much goes by flags.
 */
#include "collective/collective_scene.h"
#include "collective/collective_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(collective_flags, .timeout = 120);

/* Two ranks; is_met: nothing goes by flags, but directly in kernels that meet. The soft device runs
 * a block of each. */
static void begin(struct collective_stage *stage, bool is_met) {
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    stage_begin(
        stage, 2,
        &(struct kn_collective_options){.way = KN_WAY_FLAGS, .patience_ms = 60000, .blocks = 1});
    stage->collective->met_bytes = is_met ? KN_COLLECTIVE_MET_BYTES : 0;
    if (is_met) stage->collective->flags_bytes = 0;
}

static tol_status sleep_a_while(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = *(const long *)user};
    (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* The root needs nothing of the others, which are late: it must wait all the same before it sends
 * to a slot again. */
static void broadcast(bool is_met, long late_ns) {
    enum { COUNT = 300, CALLS = 6 };
    struct collective_stage stage;
    struct kn_collective_part parts[2];
    begin(&stage, is_met);
    stage_fill(&stage, COUNT * CALLS, 0, KN_F32, false, 3);
    MUST(tol_stream_call(stage.streams[1], sleep_a_while, &late_ns));
    for (size_t call = 0; call < CALLS; call++) {
        for (unsigned rank = 0; rank < 2; rank++) {
            parts[rank] = stage.parts[rank];
            parts[rank].in = kn_place_of(stage.in[rank], call * COUNT * 4);
            parts[rank].out = kn_place_of(stage.out[rank], call * COUNT * 4);
        }
        MUST(kn_broadcast(stage.collective, parts, 0, COUNT, KN_F32));
    }
    /* Of the soft device this thread has the root's kernels then, and none of the others. */
    MUST(tol_context_bind(stage.contexts[0]));
    cr_assert_eq(tol_context_functions(stage.contexts[0])
                     ->cuStreamSynchronize(tol_stream_handle(stage.streams[0])),
                 CUDA_SUCCESS);
    MUST(kn_collective_wait(stage.collective, 60000));
    for (unsigned rank = 0; rank < 2; rank++) {
        stage_check(&stage, rank, stage.values[0], COUNT * CALLS, KN_F32, false, "broadcasts");
    }
    stage_end(&stage);
}

Test(collective_flags, a_root_waits_for_those_it_sends_to) {
    broadcast(false, 30000000);
}
Test(collective_flags, a_root_meets_the_others) {
    broadcast(true, 30000000);
}
/* Longer than a helper of the soft device looks for work. */
Test(collective_flags, ranks_may_be_late_for_long) {
    broadcast(false, 300000000);
}

/* The elements of all ranks and their sums are whole numbers, exact in fp32. Three ranks are in
 * collective_join_test: the soft device runs two kernels of a process at once. */
static void mix(bool is_met) {
    enum { RANKS = 2, EACH = 128, ROUNDS = 4, COUNT = EACH * RANKS };
    struct collective_stage stage;
    struct kn_collective_part there[RANKS], back[RANKS];
    float values[COUNT], expected[COUNT];
    begin(&stage, is_met);
    stage_fill(&stage, COUNT, 0, KN_F32, false, 1);
    for (size_t i = 0; i < COUNT; i++) expected[i] = 0;
    for (unsigned rank = 0; rank < RANKS; rank++) {
        for (size_t i = 0; i < COUNT; i++) values[i] = (float)((rank + 1) * (i % 13 + 1));
        for (size_t i = 0; i < COUNT; i++) expected[i] += values[i];
        MUST(tol_buffer_write_at(stage.in[rank], 0, values, sizeof values));
        there[rank] = stage.parts[rank];
        back[rank] = there[rank];
        back[rank].in = there[rank].out;
        back[rank].out = there[rank].in;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* Both, in turns. */
        if (is_met) stage.collective->flags_bytes = round % 2 == 0 ? 0 : EACH * sizeof *values;
        MUST(kn_all_reduce(stage.collective, there, COUNT, KN_F32));
        MUST(kn_reduce_scatter(stage.collective, back, EACH, KN_F32));
        MUST(kn_all_gather(stage.collective, there, EACH, KN_F32));
        MUST(kn_broadcast(stage.collective, back, round % RANKS, COUNT, KN_F32));
        for (size_t i = 0; i < COUNT; i++) expected[i] *= round == 0 ? RANKS : RANKS * RANKS;
    }
    MUST(kn_collective_wait(stage.collective, 60000));
    for (unsigned rank = 0; rank < RANKS; rank++) {
        stage_check(&stage, rank, expected, COUNT, KN_F32, false, "the last all-gather");
        MUST(tol_buffer_read_at(stage.in[rank], 0, values, sizeof values));
        cr_assert(memcmp(values, expected, sizeof values) == 0, "the last broadcast, %u", rank);
    }
    stage_end(&stage);
}

Test(collective_flags, calls_use_each_others_results) {
    mix(false);
}
Test(collective_flags, calls_that_meet_use_each_others_results) {
    mix(true);
}

/* The first call leaves lines with the number 1 in the inboxes. When that number comes again, a
 * rank that is early must not take them for those of a rank that is late. */
static void begin_again(bool is_met) {
    enum { COUNT = 1000 };
    struct collective_stage stage;
    float expected[COUNT];
    begin(&stage, is_met);
    stage_fill(&stage, COUNT, 0, KN_F32, false, 7);
    MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
    MUST(kn_collective_wait(stage.collective, 60000));
    cr_assert_eq(stage.collective->epoch, 1);
    stage.collective->epoch = UINT32_MAX - 2;
    stage.collective->flags_bytes = 4; /* so that words of kernels that meet keep the number 1 */
    stage_fill(&stage, COUNT, 0, KN_F32, false, 8);
    for (int i = 0; i < 2; i++) MUST(kn_all_reduce(stage.collective, stage.parts, 1, KN_F32));
    stage.collective->flags_bytes = is_met ? 0 : COUNT * 4;
    cr_assert_eq(stage.collective->epoch, UINT32_MAX);
    long late_ns = 30000000;
    MUST(tol_stream_call(stage.streams[1], sleep_a_while, &late_ns));
    MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
    MUST(kn_collective_wait(stage.collective, 60000));
    cr_assert_eq(stage.collective->epoch, 1);
    for (size_t i = 0; i < COUNT; i++) expected[i] = stage_sum(&stage, i, KN_F32);
    for (unsigned rank = 0; rank < 2; rank++) {
        stage_check(&stage, rank, expected, COUNT, KN_F32, false, "after the last number");
    }
    stage_end(&stage);
}

Test(collective_flags, numbers_begin_again) {
    begin_again(false);
}
Test(collective_flags, numbers_of_calls_that_meet_begin_again) {
    begin_again(true);
}

/* All that a rank sends is the same for any number of ranks, and columns fit in a slot of each. */
Test(collective_flags, few_bytes_go_by_flags) {
    static const size_t right[] = {2 << 20, 1 << 20, 698880, 512 << 10, 419328, 349440, 299520};
    for (unsigned ranks = 2; ranks <= KN_COLLECTIVE_RANKS_MAX; ranks++) {
        cr_assert_eq(kn_collective_flags_bytes(ranks), right[ranks - 2], "%u ranks", ranks);
        cr_assert_geq(right[ranks - 2], KN_COLLECTIVE_FLAGS_BYTES);
    }
}
