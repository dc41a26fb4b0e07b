/*
 * Collectives of 2 to 8 devices, to the bit, against sums on the host: every call, way and type,
 * sizes about the edges of pieces and chunks, odd places, and calls one after the other.
 */
#include "collective/collective_scene.h"
#include "collective/collective_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TestSuite(collective, .timeout = 300);

static const size_t counts[] = {1, 2, 3, 7, 8, 9, 31, 64, 257, 1000, 4099, 16384, 65537};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static float *expected;

static void all_reduce(struct collective_stage *stage, size_t count, size_t offset,
                       enum kn_type type, bool in_place, enum kn_collective_way way) {
    stage_fill(stage, count, offset, type, in_place, count * 7 + offset);
    MUST(kn_all_reduce(stage->collective, stage->parts, count, type));
    MUST(kn_collective_wait(stage->collective, 60000));
    for (size_t i = 0; i < count; i++) {
        expected[i] =
            way == KN_WAY_RING ? stage_ring_sum(stage, i, count, type) : stage_sum(stage, i, type);
    }
    for (unsigned rank = 0; rank < stage->ranks; rank++) {
        stage_check(stage, rank, expected, count, type, in_place, "all-reduce");
    }
}

static void reduce_scatter(struct collective_stage *stage, size_t count, size_t offset,
                           enum kn_type type) {
    stage_fill(stage, count * stage->ranks, offset, type, false, count * 5 + offset);
    MUST(kn_reduce_scatter(stage->collective, stage->parts, count, type));
    MUST(kn_collective_wait(stage->collective, 60000));
    for (unsigned rank = 0; rank < stage->ranks; rank++) {
        for (size_t i = 0; i < count; i++) expected[i] = stage_sum(stage, rank * count + i, type);
        stage_check(stage, rank, expected, count, type, false, "reduce-scatter");
    }
}

static void all_gather(struct collective_stage *stage, size_t count, size_t offset,
                       enum kn_type type, bool in_place) {
    stage_fill(stage, count, offset, type, false, count * 3 + offset);
    for (unsigned rank = 0; rank < stage->ranks; rank++) {
        memcpy(expected + rank * count, stage->values[rank], count * sizeof *expected);
        if (!in_place) continue;
        /* in is its own place in out. */
        const size_t bytes = count * kn_type_bytes(type);
        struct kn_collective_part *part = &stage->parts[rank];
        const size_t at = (size_t)(part->out.address - tol_buffer_address(stage->out[rank]));
        char *elements = malloc(bytes);
        cr_assert(elements != NULL);
        kn_numbers_store(type, stage->values[rank], count, elements);
        MUST(tol_buffer_write_at(stage->out[rank], at + rank * bytes, elements, bytes));
        part->in = kn_place_of(stage->out[rank], at + rank * bytes);
        free(elements);
    }
    MUST(kn_all_gather(stage->collective, stage->parts, count, type));
    MUST(kn_collective_wait(stage->collective, 60000));
    for (unsigned rank = 0; rank < stage->ranks; rank++) {
        stage_check(stage, rank, expected, count * stage->ranks, type, false, "all-gather");
    }
}

static void broadcast(struct collective_stage *stage, unsigned root, size_t count, size_t offset,
                      enum kn_type type, bool in_place) {
    stage_fill(stage, count, offset, type, in_place, count * 11 + offset);
    MUST(kn_broadcast(stage->collective, stage->parts, root, count, type));
    MUST(kn_collective_wait(stage->collective, 60000));
    for (unsigned rank = 0; rank < stage->ranks; rank++) {
        stage_check(stage, rank, stage->values[root], count, type, in_place, "broadcast");
    }
}

static void try_all(unsigned ranks, enum kn_collective_way way) {
    struct collective_stage stage;
    stage_begin(&stage, ranks, &(struct kn_collective_options){.way = way});
    expected = malloc(STAGE_BYTES);
    cr_assert(expected != NULL);
    for (size_t i = 0; i < COUNTS; i++) {
        for (enum kn_type type = KN_F32; type < KN_TYPES; type++) {
            const size_t offset = i % 3 == 0 ? 0 : i % 3 == 1 ? 16 : 3;
            const bool in_place = (i + type) % 2 == 0;
            if (!test_takes_trial()) continue;
            all_reduce(&stage, counts[i], offset, type, in_place, way);
            reduce_scatter(&stage, counts[i], offset, type);
            all_gather(&stage, counts[i], offset, type, in_place);
            broadcast(&stage, (unsigned)i % ranks, counts[i], offset, type, in_place);
        }
    }
    free(expected);
    stage_end(&stage);
}

Test(collective, two_devices_agree_with_the_host) {
    try_all(2, KN_WAY_AUTO);
}
Test(collective, three_devices_agree_with_the_host) {
    try_all(3, KN_WAY_DIRECT);
}
Test(collective, four_devices_agree_with_the_host) {
    try_all(4, KN_WAY_AUTO);
}
Test(collective, eight_devices_agree_with_the_host) {
    try_all(8, KN_WAY_DIRECT);
}
Test(collective, a_ring_of_two_agrees_with_the_host) {
    try_all(2, KN_WAY_RING);
}
Test(collective, a_ring_of_three_agrees_with_the_host) {
    try_all(3, KN_WAY_RING);
}
Test(collective, a_ring_of_eight_agrees_with_the_host) {
    try_all(8, KN_WAY_RING);
}

/* As many ranks, or two of a machine with GPUs, which may have no more. */
static unsigned some(unsigned ranks) {
    return test_on_gpu() ? 2 : ranks;
}

/* Nothing is waited for between the calls: each uses the result of the one before. */
static void chain(unsigned ranks, enum kn_collective_way way) {
    enum { COUNT = 3000, CALLS = 20 };
    struct collective_stage stage;
    stage_begin(&stage, ranks, &(struct kn_collective_options){.way = way, .patience_ms = 60000});
    expected = malloc(STAGE_BYTES);
    cr_assert(expected != NULL);
    stage_fill(&stage, COUNT, 0, KN_F32, true, 1);
    for (int call = 0; call < CALLS; call++) {
        MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
        for (size_t i = 0; i < COUNT; i++) {
            expected[i] = way == KN_WAY_RING ? stage_ring_sum(&stage, i, COUNT, KN_F32)
                                             : stage_sum(&stage, i, KN_F32);
        }
        for (unsigned rank = 0; rank < ranks; rank++) {
            memcpy(stage.values[rank], expected, COUNT * sizeof *expected);
        }
    }
    MUST(kn_collective_wait(stage.collective, 60000));
    for (unsigned rank = 0; rank < ranks; rank++) {
        stage_check(&stage, rank, expected, COUNT, KN_F32, true, "the last of a chain");
    }
    free(expected);
    stage_end(&stage);
}

Test(collective, calls_behind_each_other_use_their_results) {
    chain(some(3), KN_WAY_DIRECT);
}
Test(collective, calls_of_a_ring_behind_each_other_use_their_results) {
    chain(some(4), KN_WAY_RING);
}

Test(collective, calls_by_flags_behind_each_other_use_their_results) {
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    chain(2, KN_WAY_FLAGS);
}

static tol_status sleep_a_while(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 30000000};
    (void)user, (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* The input of the last rank is written late, and that of the first is overwritten as soon as its
 * own stream comes to it: the others must be waited for before and after. */
static void try_order(enum kn_collective_way way) {
    enum { COUNT = 5000 };
    const unsigned ranks = some(3), last = ranks - 1;
    struct collective_stage stage;
    struct tol_buffer *late = NULL;
    stage_begin(&stage, ranks, &(struct kn_collective_options){.way = way});
    expected = malloc(STAGE_BYTES);
    cr_assert(expected != NULL);
    stage_fill(&stage, COUNT, 0, KN_F32, false, 5);
    MUST(tol_buffer_create(stage.contexts[last], COUNT, 4, &late));
    MUST(tol_buffer_copy(late, 0, stage.in[last], 0, COUNT * 4));
    MUST(tol_buffer_fill_at(stage.in[last], 0, 0, 4, COUNT));
    MUST(tol_stream_call(stage.streams[last], sleep_a_while, NULL));
    MUST(tol_copy_on_device(stage.streams[last], stage.in[last], 0, late, 0, COUNT * 4));
    MUST(kn_all_reduce(stage.collective, stage.parts, COUNT, KN_F32));
    MUST(tol_copy_fill(stage.streams[0], stage.in[0], 0, 0, 4, COUNT));
    MUST(kn_collective_wait(stage.collective, 60000));
    for (size_t i = 0; i < COUNT; i++) {
        expected[i] = way == KN_WAY_RING ? stage_ring_sum(&stage, i, COUNT, KN_F32)
                                         : stage_sum(&stage, i, KN_F32);
    }
    for (unsigned rank = 0; rank < ranks; rank++) {
        stage_check(&stage, rank, expected, COUNT, KN_F32, false, "between other work");
    }
    free(expected);
    tol_buffer_destroy(late);
    stage_end(&stage);
}

Test(collective, streams_wait_for_each_other_before_and_after) {
    try_order(KN_WAY_DIRECT);
}
Test(collective, streams_of_a_ring_wait_for_each_other_before_and_after) {
    try_order(KN_WAY_RING);
}

/* The soft device's checks of races within kernels, and of streams that touch the same bytes
 * without an order, find nothing in either way. */
static void must_be_ordered(enum kn_collective_way way) {
    char path[] = "/tmp/tollens-collective-XXXXXX", report[400] = "";
    if (test_on_gpu()) cr_skip_test("the soft device's checks are its own");
    const int file = mkstemp(path);
    cr_assert(file >= 0);
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race,stream", 1);
    setenv("TOLLENS_SOFT_REPORT", path, 1);
    try_order(way);
    const ssize_t bytes = read(file, report, sizeof report - 1);
    close(file);
    unlink(path);
    cr_assert(bytes == 0, "%s", report);
}

Test(collective, the_checks_of_races_and_streams_find_nothing) {
    must_be_ordered(KN_WAY_DIRECT);
}
Test(collective, the_checks_of_races_and_streams_find_nothing_in_a_ring) {
    must_be_ordered(KN_WAY_RING);
}

/* Kernels of two soft devices run at once only where a helper thread takes the second, after half a
 * millisecond; so few calls. */
static void try_flags(unsigned ranks, bool is_met) {
    struct collective_stage stage;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    stage_begin(
        &stage, ranks,
        &(struct kn_collective_options){.way = KN_WAY_FLAGS, .patience_ms = 60000, .blocks = 1});
    stage.collective->met_bytes = is_met ? KN_COLLECTIVE_MET_BYTES : 0;
    if (is_met) stage.collective->flags_bytes = 0;
    expected = malloc(STAGE_BYTES);
    cr_assert(expected != NULL);
    for (size_t i = 0; i < COUNTS && counts[i] <= 1000; i++) {
        for (enum kn_type type = KN_F32; type < KN_TYPES; type++) {
            const size_t offset = i % 3 == 0 ? 0 : i % 3 == 1 ? 16 : 3;
            const bool in_place = (i + type) % 2 == 0;
            all_reduce(&stage, counts[i], offset, type, in_place, KN_WAY_FLAGS);
            reduce_scatter(&stage, counts[i], offset, type);
            all_gather(&stage, counts[i], offset, type, in_place);
            broadcast(&stage, (unsigned)i % ranks, counts[i], offset, type, in_place);
        }
    }
    free(expected);
    stage_end(&stage);
}

Test(collective, flags_agree_with_the_host) {
    try_flags(2, false);
}
Test(collective, kernels_that_meet_agree_with_the_host) {
    try_flags(2, true);
}
/* The soft device does not run kernels of four devices at once. */
Test(collective, kernels_of_four_devices_that_meet_agree_with_the_host) {
    if (!test_on_gpu()) cr_skip_test("four GPUs are needed");
    try_flags(4, true);
}

/* ---- refusals ---- */

Test(collective, bad_calls_are_refused) {
    struct collective_stage stage;
    struct kn_collective *other = NULL;
    stage_begin(&stage, 2, NULL);
    stage_fill(&stage, 100, 0, KN_F32, false, 1);
    struct kn_collective *c = stage.collective;
    struct tol_context *twice[] = {stage.contexts[0], stage.contexts[0]};
    MUST_FAIL(kn_collective_create(stage.contexts, 1, NULL, &other), TOL_INVALID_ARGUMENT,
              "1 rank");
    MUST_FAIL(kn_collective_create(stage.contexts, 9, NULL, &other), TOL_INVALID_ARGUMENT,
              "2 to 8");
    MUST_FAIL(kn_collective_create(twice, 2, NULL, &other), TOL_INVALID_ARGUMENT,
              "ranks 0 and 1 are one device");
    MUST_FAIL(kn_collective_create(NULL, 2, NULL, &other), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_collective_create(stage.contexts, 2,
                                   &(struct kn_collective_options){.way = KN_WAYS}, &other),
              TOL_INVALID_ARGUMENT, "no way");
    MUST_FAIL(kn_all_reduce(NULL, stage.parts, 1, KN_F32), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_all_reduce(c, NULL, 1, KN_F32), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(kn_all_reduce(c, stage.parts, 1, KN_TYPES), TOL_INVALID_ARGUMENT, "no type");
    MUST_FAIL(kn_all_reduce(c, stage.parts, STAGE_BYTES / 4 + 1, KN_F32), TOL_OUT_OF_RANGE,
              "out of rank 0 has");
    MUST_FAIL(kn_reduce_scatter(c, stage.parts, STAGE_BYTES / 4 / 2 + 1, KN_F32), TOL_OUT_OF_RANGE,
              "in of rank 0 has");
    MUST_FAIL(kn_all_gather(c, stage.parts, SIZE_MAX / 4, KN_F32), TOL_OUT_OF_RANGE,
              "overflows a size");
    MUST_FAIL(kn_broadcast(c, stage.parts, 2, 1, KN_F32), TOL_INVALID_ARGUMENT, "no rank is 2");
    struct kn_collective_part parts[2] = {stage.parts[0], stage.parts[1]};
    parts[1].stream = stage.streams[0];
    MUST_FAIL(kn_all_reduce(c, parts, 1, KN_F32), TOL_WRONG_CONTEXT, "rank 1");
    parts[1].stream = NULL;
    MUST_FAIL(kn_all_reduce(c, parts, 1, KN_F32), TOL_INVALID_ARGUMENT, "no stream");
    parts[1] = stage.parts[1];
    parts[1].in.address += 2;
    MUST_FAIL(kn_all_reduce(c, parts, 1, KN_F32), TOL_INVALID_ARGUMENT, "no address of a f32");
    parts[1].in = stage.parts[1].out;
    parts[1].in.address += 16;
    MUST_FAIL(kn_all_reduce(c, parts, 100, KN_F32), TOL_INVALID_ARGUMENT, "rank 1 overlap");
    MUST_FAIL(kn_reduce_scatter(c, parts, 100, KN_F32), TOL_INVALID_ARGUMENT, "rank 1 overlap");
    MUST_FAIL(kn_collective_wait(NULL, 1), TOL_INVALID_ARGUMENT, "NULL");
    cr_assert(kn_collective_way_name(KN_WAYS) == NULL);
    cr_assert_str_eq(kn_collective_way_name(KN_WAY_RING), "ring");
    MUST(kn_all_reduce(c, stage.parts, 0, KN_F32));
    MUST(kn_collective_wait(c, 1000));
    kn_collective_destroy(NULL);
    stage_end(&stage);
}
