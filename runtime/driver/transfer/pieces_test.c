/*
 * What copies in pieces use: the team of threads, and the staging blocks.
 */
#include "test/test_device.h"
#include "staging.h"
#include "team.h"
#include "transfer_state.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static void count_up(void *user) {
    atomic_fetch_add((atomic_int *)user, 1);
}

static void count_and_wait(void *user) {
    atomic_int *count = user;
    atomic_fetch_add(count, 1);
    /* Ends only where all three are at work at once; a test's timeout tells otherwise. */
    while (atomic_load(count) < 3) usleep(100);
}

Test(pieces, a_team_works_at_once_and_again, .timeout = 60) {
    struct tol_team team;
    tol_team_open(&team, 0, 0);
    for (int i = 0; i < 100; i++) {
        atomic_int count = 0;
        tol_team_run(&team, 2, false, count_and_wait, &count);
        cr_assert_eq(atomic_load(&count), 3);
    }
    tol_team_close(&team);
}

/* Work comes while some helpers spin and others sleep. */
Test(pieces, a_team_that_spins_works_at_once_and_again, .timeout = 60) {
    struct tol_team team;
    tol_team_open(&team, 1, 300000);
    for (int i = 0; i < 100; i++) {
        atomic_int count = 0;
        tol_team_run(&team, 2, false, count_and_wait, &count);
        cr_assert_eq(atomic_load(&count), 3);
        if (i % 3 == 0) usleep(500);
    }
    tol_team_close(&team);
}

static bool is_looking(struct tol_team *team) {
    pthread_mutex_lock(&team->lock);
    const bool result = team->spinning == 1;
    pthread_mutex_unlock(&team->lock);
    return result;
}

static void count_to_two(void *user) {
    atomic_int *count = user;
    atomic_fetch_add(count, 1);
    while (atomic_load(count) < 2) usleep(100);
}

/* Small work starts or wakes no thread; a thread that polls for work gets it. */
Test(pieces, small_work_is_shared_with_those_alone_that_are_awake, .timeout = 60) {
    struct tol_team team;
    tol_team_open(&team, 1, (uint64_t)3600 * 1000000000);
    atomic_int count = 0;
    tol_team_run(&team, 2, true, count_up, &count);
    cr_assert(atomic_load(&count) == 1 && team.count == 0, "%d ran, %u were started",
              atomic_load(&count), team.count);
    tol_team_stir(&team, 3);
    cr_assert_eq(team.count, 1, "as many are started as may look for work, not %u", team.count);
    while (!is_looking(&team)) usleep(100);
    atomic_store(&count, 0);
    tol_team_run(&team, 2, true, count_to_two, &count);
    cr_assert_eq(atomic_load(&count), 2);
    tol_team_close(&team);
}

/* Who has looked in vain sleeps, and is woken by a stir. */
Test(pieces, a_stir_wakes_who_sleeps, .timeout = 60) {
    struct tol_team team;
    tol_team_open(&team, 1, 1000);
    tol_team_stir(&team, 1);
    for (unsigned asleep = 0; asleep == 0; usleep(100)) {
        pthread_mutex_lock(&team.lock);
        asleep = team.sleeping;
        team.spin_ns = asleep > 0 ? (uint64_t)3600 * 1000000000 : team.spin_ns;
        pthread_mutex_unlock(&team.lock);
    }
    tol_team_stir(&team, 1);
    while (!is_looking(&team)) usleep(100);
    tol_team_close(&team);
}

Test(pieces, a_team_of_none_is_the_caller) {
    struct tol_team team;
    atomic_int count = 0;
    tol_team_open(&team, 0, 0);
    tol_team_run(&team, 0, false, count_up, &count);
    cr_assert_eq(atomic_load(&count), 1);
    cr_assert_eq(team.count, 0);
    tol_team_close(&team);
}

struct nest {
    struct tol_team *team;
    atomic_int inner;
};

static void run_inside(void *user) {
    struct nest *nest = user;
    tol_team_run(nest->team, 4, false, count_up, &nest->inner);
}

Test(pieces, a_team_at_work_leaves_others_to_themselves, .timeout = 60) {
    struct tol_team team;
    tol_team_open(&team, 0, 0);
    struct nest nest = {&team, 0};
    tol_team_run(&team, 1, false, run_inside, &nest);
    /* One or two were at it, the helper if it came in time; each was alone in its inner run. */
    cr_assert(atomic_load(&nest.inner) >= 1 && atomic_load(&nest.inner) <= 2);
    tol_team_close(&team);
}

static const struct tol_retry_policy policy = {&tol_retry_real_clock, 3, 1000, 1000000, NULL};

/* So many milliseconds go beyond the second that has begun, and are below one. */
static unsigned ms_into_the_next_second(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const unsigned left = 1000 - (unsigned)(now.tv_nsec / 1000000);
    return left + 1 < 1000 ? left + 1 : 999;
}

Test(pieces, staging_blocks_are_used_again_and_bounded, .fini = test_end, .timeout = 60) {
    struct tol_stages stages;
    struct tol_stage *one = NULL, *two = NULL, *three = NULL;
    tol_stages_open(&stages, test_context(), 4096, 2, &policy);
    MUST(tol_stages_take(&stages, 1000, &one));
    MUST(tol_stages_take(&stages, 0, &two));
    cr_assert(one != two && one->data != two->data);
    cr_assert_eq(tol_stages_take(&stages, 0, &three), TOL_NOT_READY);
    MUST_FAIL(tol_stages_take(&stages, ms_into_the_next_second(), &three), TOL_TIMEOUT,
              "2 staging blocks");
    tol_stages_give(&stages, two, false);
    MUST(tol_stages_take(&stages, 0, &three));
    cr_assert(three == two && stages.count == 2);
    tol_stages_give(&stages, one, false);
    tol_stages_give(&stages, three, false);
    tol_stages_close(&stages);
}

static struct tol_stages shared;

static void *give_later(void *stage) {
    usleep(20000);
    tol_stages_give(&shared, stage, false);
    return NULL;
}

Test(pieces, who_waits_for_a_block_gets_the_next_given, .fini = test_end, .timeout = 60) {
    struct tol_stage *one = NULL, *again = NULL;
    pthread_t thread;
    tol_stages_open(&shared, test_context(), 4096, 1, &policy);
    MUST(tol_stages_take(&shared, 1000, &one));
    cr_assert_eq(pthread_create(&thread, NULL, give_later, one), 0);
    MUST(tol_stages_take(&shared, 30000, &again));
    cr_assert(again == one);
    pthread_join(thread, NULL);
    tol_stages_give(&shared, again, false);
    tol_stages_close(&shared);
}

Test(pieces, a_lost_block_comes_back_when_its_copy_has_ended, .fini = test_end) {
    struct tol_stages stages;
    struct tol_stage *one = NULL, *two = NULL;
    const struct tol_interpose_rule busy = {
        .function = "cuEventQuery", .action = TOL_INTERPOSE_FAIL, .result = CUDA_ERROR_NOT_READY};
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.rules = &busy, .rule_count = 1}));
    struct tol_context *context = test_context();
    tol_stages_open(&stages, context, 4096, 2, &policy);
    MUST(tol_stages_take(&stages, 1000, &one));
    tol_stages_give(&stages, one, true);
    MUST(tol_stages_take(&stages, 0, &two));
    cr_assert(two != one, "a block that a copy uses was handed out");
    tol_interpose_remove(test_driver());
    struct tol_stage *three = NULL;
    MUST(tol_stages_take(&stages, 0, &three));
    cr_assert(three == one);
    tol_stages_give(&stages, two, false);
    tol_stages_give(&stages, three, false);
    tol_stages_close(&stages);
}

/* ---- progress ---- */

enum { SLOW_PARTS = 4300, SLOW_PART_NS = 250000, SHORT_DEADLINE_MS = 1000 };

/* A part that takes its time. */
static void pack_slowly(const void *copy, size_t piece, size_t part, char *stage) {
    nanosleep(&(struct timespec){.tv_nsec = SLOW_PART_NS}, NULL);
    if (part < 4) memcpy(stage + 4 * part, (const char *)copy + 4 * (piece + part), 4);
}

static CUdeviceptr slow_target;

static CUresult queue_slow(const void *copy, size_t piece, char *stage,
                           const struct tol_driver_table *driver, CUstream stream) {
    if (copy == NULL || piece != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver->cuMemcpyHtoDAsync_v2(slow_target, stage, 16, stream);
}

/* The deadline is for a copy without progress. What the caller itself packs is headway, however
 * long all of it takes: here more than the deadline, alone and before the device has anything. */
Test(pieces, the_host_at_work_is_no_copy_that_hangs, .fini = test_end, .timeout = 120) {
    const unsigned words[4] = {3, 1, 4, 1};
    unsigned back[4] = {0};
    struct tol_transfer *transfer = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_transfer_options options;
    struct timespec begin, end;
    tol_transfer_default(&options);
    options.deadline_ms = SHORT_DEADLINE_MS;
    options.threads = 1;
    MUST(tol_transfer_create(test_context(), &options, &transfer));
    MUST(tol_buffer_create(test_context(), 4, 4, &buffer));
    slow_target = tol_buffer_address(buffer);
    struct tol_pieces pieces = {.transfer = transfer,
                                .count = 1,
                                .parts = SLOW_PARTS,
                                .copy = words,
                                .call = "cuMemcpyHtoDAsync_v2",
                                .pack = pack_slowly,
                                .queue = queue_slow};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    MUST(tol_pieces_run(&pieces));
    clock_gettime(CLOCK_MONOTONIC, &end);
    cr_assert((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >
                  SHORT_DEADLINE_MS,
              "too quick to show anything");
    MUST(tol_buffer_read(buffer, back, sizeof back));
    cr_assert(memcmp(words, back, sizeof back) == 0);
    tol_buffer_destroy(buffer);
    tol_transfer_destroy(transfer);
}
