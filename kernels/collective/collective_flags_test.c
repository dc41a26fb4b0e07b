/*
 * Calls by flags: slots that are used again, calls that use each other's results, numbers that
 * begin again, and how much goes by flags.
 */
#include "collective/collective_stage.h"
#include "collective/collective_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(collective_flags, .timeout = 120);

static void begin(struct collective_stage *stage, unsigned ranks) {
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    stage_begin(stage, ranks,
                &(struct kn_collective_options){.way = KN_WAY_FLAGS, .patience_ms = 60000});
}

static tol_status sleep_a_while(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 30000000};
    (void)user, (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* The root needs nothing of the others, which are late: it must wait all the same before it sends
 * to a slot again. */
Test(collective_flags, a_root_waits_for_those_it_sends_to) {
    enum { COUNT = 300, CALLS = 6 };
    struct collective_stage stage;
    struct kn_collective_part parts[2];
    begin(&stage, 2);
    stage_fill(&stage, COUNT * CALLS, 0, KN_F32, false, 3);
    MUST(tol_stream_call(stage.streams[1], sleep_a_while, NULL));
    for (size_t call = 0; call < CALLS; call++) {
        for (unsigned rank = 0; rank < 2; rank++) {
            parts[rank] = stage.parts[rank];
            parts[rank].in = kn_place_of(stage.in[rank], call * COUNT * 4);
            parts[rank].out = kn_place_of(stage.out[rank], call * COUNT * 4);
        }
        MUST(kn_broadcast(stage.collective, parts, 0, COUNT, KN_F32));
    }
    MUST(kn_collective_wait(stage.collective, 60000));
    for (unsigned rank = 0; rank < 2; rank++) {
        stage_check(&stage, rank, stage.values[0], COUNT * CALLS, KN_F32, false, "broadcasts");
    }
    stage_end(&stage);
}

/* The elements of all ranks and their sums are whole numbers, exact in fp32. Three ranks are in
 * collective_join_test: the soft device runs two kernels of a process at once. */
Test(collective_flags, calls_use_each_others_results) {
    enum { RANKS = 2, EACH = 128, ROUNDS = 4, COUNT = EACH * RANKS };
    struct collective_stage stage;
    struct kn_collective_part there[RANKS], back[RANKS];
    float values[COUNT], expected[COUNT];
    begin(&stage, RANKS);
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

/* The first call leaves lines with the number 1 in the inboxes. When that number comes again, a
 * rank that is early must not take them for those of a rank that is late. */
Test(collective_flags, numbers_begin_again) {
    enum { COUNT = 1000 };
    struct collective_stage stage;
    float expected[COUNT];
    begin(&stage, 2);
    stage_fill(&stage, COUNT, 0, KN_F32, false, 7);
    MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
    MUST(kn_collective_wait(stage.collective, 60000));
    cr_assert_eq(stage.collective->epoch, 1);
    stage.collective->epoch = UINT32_MAX - 2;
    stage_fill(&stage, COUNT, 0, KN_F32, false, 8);
    for (int i = 0; i < 2; i++) MUST(kn_all_reduce(stage.collective, stage.parts, 1, KN_F32));
    cr_assert_eq(stage.collective->epoch, UINT32_MAX);
    MUST(tol_stream_call(stage.streams[1], sleep_a_while, NULL));
    MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
    MUST(kn_collective_wait(stage.collective, 60000));
    cr_assert_eq(stage.collective->epoch, 1);
    for (size_t i = 0; i < COUNT; i++) expected[i] = stage_sum(&stage, i, KN_F32);
    for (unsigned rank = 0; rank < 2; rank++) {
        stage_check(&stage, rank, expected, COUNT, KN_F32, false, "behind the last number");
    }
    stage_end(&stage);
}

/* Of two ranks one may send all that a rank sends; of many none sends less than it may to one. */
Test(collective_flags, few_bytes_go_by_flags) {
    static const size_t right[] = {1 << 20, 512 << 10, 349440, 256 << 10, 256 << 10};
    for (unsigned ranks = 2; ranks <= 6; ranks++) {
        const struct kn_collective c = {.ranks = ranks};
        cr_assert_eq(kn_collective_flags_bytes(&c), right[ranks - 2], "%u ranks", ranks);
    }
}
