/*
 * Ranks that are processes: results are those of the form with one process, to the bit; a process
 * that dies, hangs or does something else is a status; and nothing is left.
 */
#include "collective/ranks_scene.h"
#include "collective/collective_scene.h"
#include "collective/collective_state.h"
#include "core/monotonic.h"
#include "inputs.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TestSuite(collective_join, .timeout = 120);

/* ---- results ---- */

enum call { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST };

struct trial {
    enum call call;
    size_t count;
    enum kn_type type;
    bool in_place;
};

static const struct trial trials[] = {
    {ALL_REDUCE, 1, KN_F32, false},     {ALL_REDUCE, 1000, KN_F16, false},
    {ALL_REDUCE, 4099, KN_BF16, true},  {ALL_REDUCE, 20011, KN_F32, false},
    {REDUCE_SCATTER, 3, KN_F16, false}, {REDUCE_SCATTER, 1001, KN_F32, false},
    {ALL_GATHER, 7, KN_BF16, false},    {ALL_GATHER, 2003, KN_F32, false},
    {BROADCAST, 5, KN_F32, false},      {BROADCAST, 9001, KN_F16, false},
    {ALL_REDUCE, 333, KN_F32, true},    {ALL_REDUCE, 0, KN_F32, false},
};
enum { TRIALS = sizeof trials / sizeof trials[0], SLOT = RANKS_DATA / TRIALS / 16 * 16 };

static enum kn_collective_way way;
static bool is_met; /* by the way flags nothing goes by flags, but in kernels that meet */

static tol_status join(struct ranks_child *child) {
    const tol_status status = ranks_join(child, way);
    if (status == TOL_OK && is_met) child->collective->flags_bytes = 0;
    return status;
}

static size_t in_count(const struct trial *t, unsigned ranks) {
    return t->call == REDUCE_SCATTER ? t->count * ranks : t->count;
}

static size_t out_count(const struct trial *t, unsigned ranks) {
    return t->call == ALL_GATHER ? t->count * ranks : t->count;
}

static tol_status run(struct kn_collective *c, const struct trial *t,
                      const struct kn_collective_part *parts) {
    switch (t->call) {
    case REDUCE_SCATTER:
        return kn_reduce_scatter(c, parts, t->count, t->type);
    case ALL_GATHER:
        return kn_all_gather(c, parts, t->count, t->type);
    case BROADCAST:
        return kn_broadcast(c, parts, 1, t->count, t->type);
    default:
        return kn_all_reduce(c, parts, t->count, t->type);
    }
}

/* Like stage_fill: ranks draw one after the other. */
static void draw(const struct trial *t, unsigned ranks, unsigned rank, uint64_t seed,
                 void *elements) {
    const size_t count = in_count(t, ranks);
    float *values = malloc((count + 1) * sizeof *values);
    for (unsigned i = 0; values != NULL && i <= rank; i++) {
        for (size_t j = 0; j < count; j++) {
            values[j] = (float)((double)(int32_t)(uint32_t)kn_random(&seed) / (1u << 28));
        }
    }
    if (values != NULL) kn_numbers_store(t->type, values, count, elements);
    free(values);
}

static bool run_trials(struct ranks_child *child) {
    static unsigned char elements[RANKS_HALF], nothing[RANKS_HALF];
    memset(nothing, 0xff, sizeof nothing);
    NEED(child, join(child));
    for (size_t i = 0; i < TRIALS; i++) {
        const struct trial *t = &trials[i];
        const size_t element = kn_type_bytes(t->type);
        const struct kn_collective_part part = ranks_part(child, t->in_place);
        draw(t, child->ranks, child->rank, i + 1, elements);
        /* Others may write to out as soon as they begin. */
        NEED(child, ranks_write(child, part.out.address, nothing, RANKS_HALF));
        NEED(child,
             ranks_write(child, part.in.address, elements, in_count(t, child->ranks) * element));
        NEED(child, run(child->collective, t, &part));
        NEED(child, kn_collective_wait(child->collective, 60000));
        NEED(child, ranks_read(child, part.out.address, child->shared->data + i * SLOT,
                               out_count(t, child->ranks) * element));
    }
    return true;
}

static void compare(unsigned ranks) {
    static unsigned char right[SLOT];
    struct ranks_shared *shared = ranks_run(ranks, run_trials, ranks);
    struct collective_stage stage;
    stage_begin(
        &stage, ranks,
        &(struct kn_collective_options){.way = is_met ? KN_WAY_DIRECT : way, .patience_ms = 60000});
    for (size_t i = 0; i < TRIALS; i++) {
        const struct trial *t = &trials[i];
        const size_t bytes = out_count(t, ranks) * kn_type_bytes(t->type);
        stage_fill(&stage, in_count(t, ranks), 0, t->type, t->in_place, i + 1);
        MUST(run(stage.collective, t, stage.parts));
        MUST(kn_collective_wait(stage.collective, 60000));
        for (unsigned rank = 0; bytes > 0 && rank < ranks; rank++) {
            const struct tol_buffer *out = t->in_place ? stage.in[rank] : stage.out[rank];
            MUST(tol_buffer_read_at(out, 0, right, bytes));
            for (size_t at = 0; at < bytes; at++) {
                cr_assert(shared[rank].data[i * SLOT + at] == right[at],
                          "trial %zu, rank %u of %u: byte %zu of %zu is %#04x, expected %#04x", i,
                          rank, ranks, at, bytes, shared[rank].data[i * SLOT + at], right[at]);
            }
        }
    }
    stage_end(&stage);
    ranks_end(shared, ranks);
}

Test(collective_join, two_processes_agree_with_one) {
    way = KN_WAY_DIRECT;
    compare(2);
}

Test(collective_join, a_ring_of_three_processes_agrees_with_one) {
    way = KN_WAY_RING;
    compare(3);
}

/* Each process has threads of its own for its kernels, so those that wait for each other run. */
Test(collective_join, flags_of_two_processes_agree_with_one) {
    way = KN_WAY_FLAGS;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    compare(2);
}

/* Chunks are one for two, and some ranks have none. */
Test(collective_join, kernels_that_meet_of_three_processes_agree_with_one) {
    const unsigned ranks = test_on_gpu() ? 2 : 3;
    way = KN_WAY_FLAGS;
    is_met = true;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    compare(ranks);
}

/* Nobody waits between calls that use each other's results. */
static bool run_chain(struct ranks_child *child) {
    enum { CALLS = 40, COUNT = 501 };
    float values[COUNT];
    NEED(child, ranks_join(child, way));
    const struct kn_collective_part there = ranks_part(child, false),
                                    back = {there.out, there.in, there.stream};
    for (size_t i = 0; i < COUNT; i++) values[i] = (float)(child->rank + 1) / 1024;
    NEED(child, ranks_write(child, there.in.address, values, sizeof values));
    for (int i = 0; i < CALLS; i++) {
        NEED(child, kn_all_reduce(child->collective, i % 2 == 0 ? &there : &back, COUNT, KN_F32));
        NEED(child, kn_all_gather(child->collective,
                                  &(struct kn_collective_part){{there.in.address + 65536, 65536},
                                                               {there.out.address + 65536, 65536},
                                                               there.stream},
                                  16, KN_F32));
        /* So that numbers stay small. */
        if (i % 8 == 7) NEED(child, kn_collective_wait(child->collective, 60000));
    }
    NEED(child, kn_collective_wait(child->collective, 60000));
    NEED(child, ranks_read(child, there.in.address, values, sizeof values));
    float expected = 0;
    for (unsigned i = 0; i < child->ranks; i++) expected += (float)(i + 1) / 1024;
    for (int i = 1; i < CALLS; i++) expected *= (float)child->ranks;
    for (size_t i = 0; i < COUNT; i++) NEED_TRUE(child, values[i] == expected);
    return true;
}

Test(collective_join, calls_behind_each_other_use_their_results) {
    way = KN_WAY_DIRECT;
    ranks_end(ranks_run(2, run_chain, 2), 2);
}

/* The same of all calls, between three ranks, where one that is neither root nor next has to be
 * waited for too. Sums are whole numbers, exact in fp32. */
static bool run_mixed(struct ranks_child *child) {
    enum { EACH = 600, ROUNDS = 5, MANY = EACH * KN_COLLECTIVE_RANKS_MAX };
    static float values[MANY], expected[MANY];
    const unsigned ranks = child->ranks;
    const size_t count = (size_t)EACH * ranks;
    NEED(child, join(child));
    struct kn_collective *c = child->collective;
    const struct kn_collective_part there = ranks_part(child, false),
                                    back = {there.out, there.in, there.stream};
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)((child->rank + 1) * (i % 13 + 1));
        expected[i] = (float)(ranks * (ranks + 1) / 2 * (i % 13 + 1));
    }
    NEED(child, ranks_write(child, there.in.address, values, count * sizeof *values));
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (is_met) c->flags_bytes = round % 2 == 0 ? 0 : EACH * sizeof *values;
        NEED(child, kn_all_reduce(c, &there, count, KN_F32));
        NEED(child, kn_reduce_scatter(c, &back, EACH, KN_F32));
        NEED(child, kn_all_gather(c, &there, EACH, KN_F32));
        NEED(child, kn_broadcast(c, &back, round % ranks, count, KN_F32));
        for (size_t i = 0; i < count; i++) {
            expected[i] *= (float)(round == 0 ? ranks : ranks * ranks);
        }
    }
    NEED(child, kn_collective_wait(c, 60000));
    NEED(child, ranks_read(child, there.out.address, values, count * sizeof *values));
    NEED_TRUE(child, memcmp(values, expected, count * sizeof *values) == 0);
    NEED(child, ranks_read(child, there.in.address, values, count * sizeof *values));
    NEED_TRUE(child, memcmp(values, expected, count * sizeof *values) == 0);
    return true;
}

Test(collective_join, calls_by_flags_use_each_others_results) {
    const unsigned ranks = test_on_gpu() ? 2 : 3;
    way = KN_WAY_FLAGS;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    for (int i = 0; i < 2; i++) {
        is_met = i == 1;
        ranks_end(ranks_run(ranks, run_mixed, ranks), ranks);
    }
}

/* Each process empties its own inbox after the last number, while no other sends to it; lines of
 * the first call are in it, and the second process is late. */
static bool run_numbers(struct ranks_child *child) {
    enum { MANY = 3000 };
    const struct timespec pause = {.tv_nsec = 50000000};
    static float values[MANY];
    NEED(child, join(child));
    const struct kn_collective_part part = ranks_part(child, false);
    for (unsigned time = 0; time < 2; time++) {
        for (size_t i = 0; i < MANY; i++) values[i] = (float)(i + time * 7 + child->rank);
        NEED(child, ranks_write(child, part.in.address, values, sizeof values));
        if (time == 1) {
            child->collective->epoch = UINT32_MAX - 2;
            child->collective->flags_bytes = 4;
            NEED(child, kn_all_reduce(child->collective, &part, 1, KN_F32));
            NEED(child, kn_broadcast(child->collective, &part, 1, 1, KN_F32));
            child->collective->flags_bytes = is_met ? 0 : sizeof values;
            NEED_TRUE(child, child->collective->epoch == UINT32_MAX);
            if (child->rank == 1) nanosleep(&pause, NULL);
        }
        NEED(child, kn_all_reduce(child->collective, &part, MANY, KN_F32));
        NEED_TRUE(child, child->collective->epoch == 1);
        NEED(child, kn_collective_wait(child->collective, 60000));
        NEED(child, ranks_read(child, part.out.address, values, sizeof values));
        for (size_t i = 0; i < MANY; i++) {
            NEED_TRUE(child, values[i] == (float)(2 * (i + time * 7) + 1));
        }
    }
    return true;
}

Test(collective_join, numbers_begin_again) {
    way = KN_WAY_FLAGS;
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    for (int i = 0; i < 2; i++) {
        is_met = i == 1;
        ranks_end(ranks_run(2, run_numbers, 2), 2);
    }
}

/* ---- loss ---- */

enum { COUNT = 1000 };

/* Within this many ms, since a busy machine may let a process wait. */
static bool is_soon(uint64_t begin_ns) {
    return tol_now_ns() - begin_ns < UINT64_C(10000000000);
}

static bool is_over(struct ranks_child *child, const struct kn_collective_part *part) {
    NEED_FAIL(child, kn_all_reduce(child->collective, part, COUNT, KN_F32), TOL_POISONED,
              "failed before");
    NEED_FAIL(child, kn_collective_wait(child->collective, 10), TOL_POISONED, "failed before");
    return true;
}

static bool is_broadcast;

/* Rank 1 dies between two calls, with work of the first in flight. */
static bool run_killed(struct ranks_child *child) {
    NEED(child, join(child));
    const struct kn_collective_part part = ranks_part(child, false);
    NEED(child, kn_all_reduce(child->collective, &part, COUNT, KN_F32));
    if (child->rank == 1) kill(getpid(), SIGKILL);
    NEED(child, is_broadcast ? kn_broadcast(child->collective, &part, 0, COUNT, KN_F32)
                             : kn_all_reduce(child->collective, &part, COUNT, KN_F32));
    const uint64_t begin_ns = tol_now_ns();
    NEED_FAIL(child, kn_collective_wait(child->collective, 60000), TOL_POISONED,
              child->rank == 0 || child->ranks == 2 ? "rank 1" : "rank ");
    NEED_TRUE(child, is_soon(begin_ns));
    return is_over(child, &part);
}

Test(collective_join, a_process_that_is_killed_is_a_status) {
    static const enum kn_collective_way ways[] = {KN_WAY_DIRECT, KN_WAY_RING, KN_WAY_FLAGS};
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    is_broadcast = false;
    for (size_t i = 0; i < 3; i++) {
        const unsigned ranks = i == 1 && !test_on_gpu() ? 3 : 2;
        way = ways[i];
        ranks_end(ranks_run(ranks, run_killed, 1), ranks);
    }
    /* The way of the last, from a root that needs nothing of the process that dies. */
    is_broadcast = true;
    for (int i = 0; i < 2; i++) {
        is_met = i == 1;
        ranks_end(ranks_run(2, run_killed, 1), 2);
    }
}

/* Rank 1 does not call, but lives on until the others have noticed. */
static bool run_hanging(struct ranks_child *child) {
    const struct timespec pause = {.tv_nsec = 10000000};
    volatile unsigned char *noticed = child->all[0].data;
    NEED(child, ranks_join(child, way));
    const struct kn_collective_part part = ranks_part(child, false);
    if (child->rank == 1) {
        for (int i = 0; i < 6000 && *noticed == 0; i++) nanosleep(&pause, NULL);
        /* It comes after all, and hears that it is too late. */
        NEED(child, kn_all_reduce(child->collective, &part, COUNT, KN_F32));
        NEED_FAIL(child, kn_collective_wait(child->collective, 60000), TOL_POISONED,
                  "rank 0 of a collective gave up on rank 1");
        return is_over(child, &part);
    }
    NEED(child, kn_all_reduce(child->collective, &part, COUNT, KN_F32));
    const uint64_t begin_ns = tol_now_ns();
    NEED_FAIL(child, kn_collective_wait(child->collective, 200), TOL_TIMEOUT,
              "rank 1 of a collective did not come within 200 ms");
    NEED_TRUE(child, is_soon(begin_ns));
    *noticed = 1;
    return is_over(child, &part);
}

Test(collective_join, a_process_that_hangs_is_a_timeout) {
    way = KN_WAY_DIRECT;
    ranks_end(ranks_run(2, run_hanging, 2), 2);
}

static bool run_different(struct ranks_child *child) {
    NEED(child, ranks_join(child, way));
    const struct kn_collective_part part = ranks_part(child, false);
    NEED(child, kn_all_reduce(child->collective, &part, COUNT + child->rank, KN_F32));
    const tol_status status = kn_collective_wait(child->collective, 60000);
    /* Whoever notices second may hear of it from the first. */
    NEED_TRUE(child, status == TOL_MISMATCH || status == TOL_POISONED);
    if (status == TOL_MISMATCH) {
        NEED_TRUE(child, strstr(tol_message(), "kn_all_reduce 1000 f32") != NULL &&
                             strstr(tol_message(), "kn_all_reduce 1001 f32") != NULL);
        child->all[0].data[0] = 1;
    }
    return true;
}

Test(collective_join, different_calls_are_noticed) {
    static const enum kn_collective_way ways[] = {KN_WAY_DIRECT, KN_WAY_FLAGS};
    setenv("TOLLENS_SOFT_WORKERS", "4", 1);
    for (size_t i = 0; i < 2; i++) {
        way = ways[i];
        struct ranks_shared *shared = ranks_run(2, run_different, 2);
        cr_assert_eq(shared[0].data[0], 1);
        ranks_end(shared, 2);
    }
}

static bool run_bad_places(struct ranks_child *child) {
    NEED(child, ranks_join(child, KN_WAY_DIRECT));
    struct kn_collective_part part = ranks_part(child, false);
    struct tol_buffer *other = NULL;
    NEED(child, tol_buffer_create(child->context, 4096, 1, &other));
    part.out = kn_place_of(other, 0);
    NEED_FAIL(child, kn_all_reduce(child->collective, &part, 16, KN_F32), TOL_INVALID_ARGUMENT,
              "must be in the memory that the ranks share");
    /* A reduce-scatter's out is nobody else's. */
    NEED(child, kn_reduce_scatter(child->collective, &part, 16, KN_F32));
    NEED(child, kn_collective_wait(child->collective, 60000));
    tol_buffer_destroy(other);
    return true;
}

Test(collective_join, places_of_others_must_be_shared) {
    ranks_end(ranks_run(2, run_bad_places, 2), 2);
}

/* ---- nothing is left ---- */

static size_t count_files(void) {
    size_t files = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (; folder != NULL && readdir(folder) != NULL; files++) continue;
    if (folder != NULL) closedir(folder);
    return files;
}

static size_t free_bytes(struct ranks_child *child) {
    size_t available = 0, all = 0;
    if (tol_context_bind(child->context) != TOL_OK) return 0;
    (void)tol_context_functions(child->context)->cuMemGetInfo_v2(&available, &all);
    return available;
}

/* Twice, since the first time loads modules; then rank 1 dies while it is a rank. */
static bool run_leaks(struct ranks_child *child) {
    size_t files = 0, bytes = 0;
    for (int round = 0; round < 3; round++) {
        if (round == 1) {
            files = count_files();
            bytes = free_bytes(child);
        }
        NEED(child, ranks_join(child, KN_WAY_DIRECT));
        const struct kn_collective_part part = ranks_part(child, false);
        NEED(child, kn_all_reduce(child->collective, &part, COUNT, KN_F32));
        NEED(child, kn_collective_wait(child->collective, 60000));
        if (round == 2 && child->rank == 1) kill(getpid(), SIGKILL);
        if (round == 2) {
            NEED(child, kn_all_reduce(child->collective, &part, COUNT, KN_F32));
            NEED_FAIL(child, kn_collective_wait(child->collective, 60000), TOL_POISONED, "rank 1");
        }
        kn_collective_destroy(child->collective);
        child->collective = NULL;
        if (round > 0) NEED_TRUE(child, count_files() == files);
        /* The other process frees its own. */
        const struct timespec pause = {.tv_nsec = 5000000};
        for (int i = 0; i < 2000 && free_bytes(child) < bytes; i++) nanosleep(&pause, NULL);
        if (round > 0) NEED_TRUE(child, free_bytes(child) >= bytes);
    }
    return true;
}

Test(collective_join, nothing_is_left) {
    ranks_end(ranks_run(2, run_leaks, 1), 2);
}
