/*
 * Every row of the table of states, caused by real processes.
 *
 * Device a has a worker that answers after a while. Device b has what a row needs, a few lines of
 * shell. The count of the row must be higher afterwards; at the end every row must have occurred.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO "printf 'hello 1 0\\n\\n'; "
#define TAKE "read -r head; read -r job; "
#define STAY "sleep 20"

struct row {
    const char *from, *event; /* of device b */
    const char *worker, *probe;
    unsigned hello_ms, beat_ms, job_ms, probe_ms, end_ms, rest_ms, failures; /* 0: long; 1: rest */
    unsigned steps; /* of 50 ms that device a takes, with a sign of life each; 0: 5 */
    bool is_stopped;
};

static const struct row rows[] = {
    {"off", "begin", .worker = "exit 1"},
    {"probing", "probed", .worker = "exit 1", .probe = "exit 0"},
    {"probing", "late", .worker = STAY, .probe = STAY, .probe_ms = 30, .steps = 4},
    {"probing", "gone", .worker = STAY, .probe = "exit 1"},
    {"probing", "gone for good", .worker = STAY, .probe = "exit 1", .failures = 1},
    {"probing", "close", .worker = STAY, .probe = STAY, .steps = 1},
    {"resting", "pause over", .worker = "exit 1", .failures = 9},
    {"resting", "close", .worker = "exit 1", .rest_ms = 4000, .failures = 9},
    {"starting", "hello", .worker = HELLO STAY},
    {"starting", "fault", .worker = "printf 'fault 0 0\\n\\n'; " STAY},
    {"starting", "late", .worker = STAY, .hello_ms = 100, .steps = 6},
    {"starting", "garbage", .worker = "echo ready; " STAY},
    {"starting", "gone", .worker = "exit 1"},
    {"starting", "gone for good", .worker = "exit 1", .failures = 1},
    {"starting", "close", .worker = STAY, .steps = 1},
    {"ready", "job", .worker = HELLO TAKE STAY, .job_ms = 700, .steps = 1},
    {"ready", "fault", .worker = HELLO "sleep .1; printf 'fault 0 2\\nXY\\n'; " STAY},
    {"ready", "late", .worker = HELLO STAY, .beat_ms = 150},
    {"ready", "garbage", .worker = HELLO "sleep .1; echo x y; " STAY},
    {"ready", "gone", .worker = HELLO "sleep .1"},
    {"ready", "gone for good", .worker = HELLO "sleep .1", .failures = 1},
    {"ready", "close", .worker = HELLO "while read -r a; do :; done", .steps = 4},
    {"busy", "done",
     .worker = HELLO TAKE "printf 'done %s 1\\nb\\n' \"$(echo $head | cut -d' ' "
                          "-f2)\"; " STAY,
     .end_ms = 100},
    {"busy", "fault", .worker = HELLO TAKE "printf 'fault 0 0\\n\\n'; " STAY},
    {"busy", "late", .worker = HELLO TAKE STAY, .job_ms = 500, .steps = 1},
    {"busy", "garbage", .worker = HELLO TAKE "echo x; " STAY},
    {"busy", "gone", .worker = HELLO TAKE "exit 4"},
    {"busy", "gone for good", .worker = HELLO TAKE "exit 4", .failures = 1},
    {"busy", "close", .worker = HELLO TAKE STAY, .is_stopped = true},
    {"ending", "gone", .worker = "echo ready; " STAY},
    {"ending", "gone for good", .worker = "echo ready; " STAY, .failures = 1},
    {"ending", "gone at the end", .worker = STAY, .steps = 1},
    {"closing", "late", .worker = HELLO STAY, .end_ms = 100, .steps = 4},
    {"closing", "gone at the end", .worker = HELLO "while read -r a; do :; done", .steps = 4},
};

/* ---- counting ---- */

struct question {
    const char *from, *event;
    uint64_t count, rows, missing;
};

static void ask(void *user, const char *from, const char *event, const char *to, uint64_t count) {
    struct question *q = user;
    cr_assert(strlen(to) > 0);
    q->rows++;
    if (count == 0) q->missing++;
    if (strcmp(from, q->from) == 0 && strcmp(event, q->event) == 0) q->count += count;
}

static uint64_t count_of(const char *from, const char *event) {
    struct question q = {.from = from, .event = event};
    tol_guard_moves(ask, &q);
    return q.count;
}

/* ---- a run for a row ---- */

static tol_status deliver(void *user, const struct tol_guard_answer *answer) {
    ++*(unsigned *)user;
    return answer->is_failed ? TOL_MISMATCH : TOL_OK;
}

static void *stop_soon(void *guard) {
    usleep(300000);
    tol_guard_stop(guard);
    return NULL;
}

/* Two jobs, so that b has one, where the row is of a worker with a job. */
static bool run(const struct tol_guard_options *options, const struct row *row) {
    struct tol_guard *guard = NULL;
    pthread_t thread;
    const bool has_job = strcmp(row->from, "busy") == 0 || strcmp(row->event, "job") == 0;
    MUST(tol_guard_open(options, &guard));
    MUST(tol_guard_submit(guard, "x", 1, NULL));
    if (has_job) MUST(tol_guard_submit(guard, "y", 1, NULL));
    if (row->is_stopped) pthread_create(&thread, NULL, stop_soon, guard);
    const tol_status status = tol_guard_run(guard);
    if (row->is_stopped) pthread_join(thread, NULL);
    tol_guard_close(guard);
    return status == (row->is_stopped ? TOL_CANCELLED : TOL_OK);
}

static void go_through(const struct row *row) {
    char worker[1024], probe[512];
    unsigned delivered = 0;
    static const char *const devices[] = {"b", "a"};
    snprintf(worker, sizeof worker,
             "if test $TOLLENS_GUARD_DEVICE = b; then %s; else " HELLO
             "while read -r word number count; do read -r job; for i in $(seq %u); do sleep .05; "
             "printf 'beat 0 0\\n\\n'; done; printf 'done %%s 1\\na\\n' $number; done; fi",
             row->worker, row->steps > 0 ? row->steps : 5);
    snprintf(probe, sizeof probe, "test $TOLLENS_GUARD_DEVICE = a || { %s; }",
             row->probe != NULL ? row->probe : "exit 0");
    /* Device a is to have the first job where b is not to have it. */
    const char *const program[] = {"sh", "-c", worker, NULL}, *const test[] = {"sh", "-c", probe,
                                                                               NULL};
    const bool b_waits = strcmp(row->from, "ready") == 0 && strcmp(row->event, "job") != 0;
    const bool b_ends = strcmp(row->from, "closing") == 0 || strcmp(row->event, "hello") == 0;
    if (b_waits || b_ends)
        snprintf(probe, sizeof probe,
                 "test $TOLLENS_GUARD_DEVICE = a || "
                 "sleep .1");
    const struct tol_guard_options options = {.program = program,
                                              .probe = test,
                                              .devices = devices,
                                              .device_count = 2,
                                              .hello_ms = row->hello_ms,
                                              .beat_ms = row->beat_ms,
                                              .job_ms = row->job_ms,
                                              .probe_ms = row->probe_ms,
                                              .end_ms = row->end_ms > 0 ? row->end_ms : 300,
                                              .rest_ms = row->rest_ms > 0 ? row->rest_ms : 1,
                                              .failures = row->failures,
                                              .user = &delivered,
                                              .deliver = deliver};
    /* On a busy machine a worker may be late for another row: then once more. */
    const uint64_t before = count_of(row->from, row->event);
    bool is_done = false;
    for (int tries = 0; tries < 6 && !is_done; tries++) {
        delivered = 0;
        is_done = run(&options, row) && (row->is_stopped || delivered > 0) &&
                  count_of(row->from, row->event) > before;
    }
    cr_assert(is_done, "%s, %s was not gone through: %s", row->from, row->event, tol_message());
}

/* A process that takes a while to die, and a guard that does not wait for it. */
static void go_through_a_slow_death(void) {
    char path[4096];
    unsigned delivered = 0;
    static const char *const devices[] = {"b", "a"};
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    path[length > 0 ? length : 0] = '\0';
    strcpy(strrchr(path, '/') + 1, "guard-client");
    const char *const program[] = {path, "--how", "heavy", "--every", "1", "--on", "b", NULL};
    struct tol_guard_options options = {.program = program,
                                        .devices = devices,
                                        .device_count = 2,
                                        .job_ms = 1000,
                                        .end_ms = 1,
                                        .user = &delivered,
                                        .deliver = deliver};
    for (int tries = 0; tries < 5 && count_of("ending", "late") == 0; tries++) {
        cr_assert(run(&options, &(struct row){.from = "busy", .event = "late"}));
        options.job_ms *= 2; /* to touch its memory */
    }
}

Test(guard_walk, every_row_of_the_table_is_gone_through_by_processes) {
    struct question all = {.from = "", .event = ""};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) go_through(&rows[i]);
    go_through_a_slow_death();
    cr_assert(count_of("ending", "late") >= 1);
    tol_guard_moves(ask, &all);
    cr_assert(all.missing == 0, "%llu of %llu rows were not gone through",
              (unsigned long long)all.missing, (unsigned long long)all.rows);
    cr_assert(all.rows == sizeof rows / sizeof rows[0] + 1, "a row here for each of the table");
}
