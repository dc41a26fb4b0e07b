/*
 * One thread and one poll loop for the processes, pipes and timers of all devices.
 */
#include "tollens/guard.h"

#include "core/monotonic.h"
#include "guard/guard_device.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PER_DEVICE = 3, BLIND_MS = 20, WAIT_MS_MAX = 60000 };

/* ---- the life of a guard ---- */

static unsigned or_usual(unsigned given, unsigned usual) {
    return given > 0 ? given : usual;
}

static struct tol_guard_options guard_completed(const struct tol_guard_options *given) {
    struct tol_guard_options o = *given;
    o.hello_ms = or_usual(o.hello_ms, 30000);
    o.beat_ms = or_usual(o.beat_ms, 10000);
    o.job_ms = or_usual(o.job_ms, 60000);
    o.probe_ms = or_usual(o.probe_ms, 30000);
    o.end_ms = or_usual(o.end_ms, 10000);
    o.rest_ms = or_usual(o.rest_ms, 10);
    o.failures = or_usual(o.failures, 3);
    o.attempts = or_usual(o.attempts, 3);
    return o;
}

static tol_status guard_check(const struct tol_guard_options *options) {
    tol_status status = TOL_OK;
    TOL_CHECK(options != NULL && options->program != NULL && options->program[0] != NULL,
              TOL_INVALID_ARGUMENT, "a guard needs a program, not NULL");
    TOL_CHECK(options->deliver != NULL, TOL_INVALID_ARGUMENT,
              "a guard needs a function to deliver to, not NULL");
    TOL_CHECK(options->probe == NULL || options->probe[0] != NULL, TOL_INVALID_ARGUMENT,
              "a probe without a program");
    TOL_CHECK(options->devices != NULL && options->device_count > 0 &&
                  options->device_count <= TOL_GUARD_DEVICES_MAX,
              TOL_INVALID_ARGUMENT, "a guard needs 1 to %d devices, not %zu", TOL_GUARD_DEVICES_MAX,
              options->devices != NULL ? options->device_count : 0);
    TOL_CHECK(options->delivered == 0 || options->journal != NULL, TOL_INVALID_ARGUMENT,
              "without a journal no answer was delivered before");
    for (size_t i = 0; i < options->device_count; i++) {
        TOL_CHECK(options->devices[i] != NULL && options->devices[i][0] != '\0' &&
                      strlen(options->devices[i]) < 200,
                  TOL_INVALID_ARGUMENT, "device %zu needs a name of at most 199 bytes", i);
    }
out:
    return status;
}

static tol_status make_devices(struct tol_guard *g) {
    tol_status status = TOL_OK;
    g->device = calloc(g->options.device_count, sizeof *g->device);
    TOL_CHECK(g->device != NULL, TOL_OUT_OF_HOST_MEMORY, "a guard");
    for (size_t i = 0; i < g->options.device_count; i++) {
        g->device[i] = (struct guard_device){.index = i};
        g->device[i].child = GUARD_NO_CHILD; /* gcc 11 warns of one literal within another */
        g->device_count++;
        g->device[i].name = strdup(g->options.devices[i]);
        TOL_CHECK(g->device[i].name != NULL, TOL_OUT_OF_HOST_MEMORY, "a guard");
    }
    TOL_CHECK(tol_hdr_new_latency(&g->recoveries) == TOL_HDR_OK &&
                  tol_hdr_new_latency(&g->handovers) == TOL_HDR_OK,
              TOL_OUT_OF_HOST_MEMORY, "a guard's histograms");
out:
    return status;
}

tol_status tol_guard_open(const struct tol_guard_options *options, struct tol_guard **guard) {
    tol_status status = TOL_OK;
    struct tol_guard *g = NULL;
    TOL_CHECK(guard != NULL, TOL_INVALID_ARGUMENT, "guard is NULL");
    TOL_TRY(guard_check(options));
    g = calloc(1, sizeof *g);
    TOL_CHECK(g != NULL, TOL_OUT_OF_HOST_MEMORY, "a guard");
    g->options = guard_completed(options);
    g->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TOL_CHECK(g->stop >= 0, TOL_OUT_OF_HOST_MEMORY, "an event to stop a guard");
    TOL_TRY(make_devices(g));
    TOL_TRY(guard_jobs_open(&g->jobs, &g->options));
    g->options.journal = NULL; /* the caller's strings are not needed any more */
    g->options.devices = NULL;
    *guard = g;
    g = NULL;
out:
    tol_guard_close(g);
    return status;
}

static void end_device(struct guard_device *d) {
    guard_child_close(&d->child);
    guard_input_clear(&d->input);
    guard_output_clear(&d->output);
}

void tol_guard_close(struct tol_guard *g) {
    if (g == NULL) return;
    for (size_t i = 0; i < g->device_count; i++) guard_child_kill(&g->device[i].child);
    for (size_t i = 0; i < g->device_count; i++) {
        end_device(&g->device[i]);
        free(g->device[i].name);
    }
    free(g->device);
    guard_jobs_clear(&g->jobs);
    tol_hdr_free(g->recoveries);
    tol_hdr_free(g->handovers);
    if (g->stop >= 0) close(g->stop);
    free(g);
}

tol_status tol_guard_submit(struct tol_guard *g, const void *bytes, size_t count, uint64_t *job) {
    tol_status status = TOL_OK;
    uint64_t number = 0;
    TOL_CHECK(g != NULL && (bytes != NULL || count == 0), TOL_INVALID_ARGUMENT,
              "a guard and the bytes of a job must not be NULL");
    TOL_CHECK(g->options.talk != TOL_GUARD_LINES || count == 0 ||
                  memchr(bytes, '\n', count) == NULL,
              TOL_INVALID_ARGUMENT, "a job of one line has a line break");
    TOL_TRY(guard_jobs_submit(&g->jobs, bytes, count, &number));
    if (job != NULL) *job = number;
out:
    return status;
}

void tol_guard_stop(struct tol_guard *g) {
    const uint64_t one = 1;
    if (g == NULL) return;
    const ssize_t written = write(g->stop, &one, sizeof one);
    (void)written; /* full: the guard was woken before */
}

/* ---- running ---- */

static bool guard_is_live(const struct guard_device *d) {
    return d->state != GUARD_FENCED && d->state != GUARD_CLOSED;
}

static size_t live_count(const struct tol_guard *g) {
    size_t count = 0;
    for (size_t i = 0; i < g->device_count; i++) count += guard_is_live(&g->device[i]);
    return count;
}

/* Waits until something happens, or the next deadline. Returns whether the guard must stop. */
static bool guard_wait(const struct tol_guard *g, struct pollfd *polls) {
    nfds_t count = 0;
    uint64_t due = UINT64_MAX;
    int wait_ms = WAIT_MS_MAX;
    polls[count++] = (struct pollfd){.fd = g->stop, .events = POLLIN};
    for (size_t i = 0; i < g->device_count; i++) {
        const struct guard_device *d = &g->device[i];
        if (!guard_is_live(d)) continue;
        if (guard_device_due(d) < due) due = guard_device_due(d);
        if (d->child.id != 0 && d->child.event < 0) wait_ms = BLIND_MS;
        if (d->child.event >= 0) {
            polls[count++] = (struct pollfd){.fd = d->child.event, .events = POLLIN};
        }
        if (d->child.out >= 0) {
            polls[count++] = (struct pollfd){.fd = d->child.out, .events = POLLIN};
        }
        if (d->child.in >= 0 && d->output.begin < d->output.end) {
            polls[count++] = (struct pollfd){.fd = d->child.in, .events = POLLOUT};
        }
    }
    const uint64_t now = tol_now_ns();
    const uint64_t left_ms = due > now ? (due - now) / 1000000 + 1 : 0;
    if (due <= now) wait_ms = 0;
    if (left_ms < (uint64_t)wait_ms) wait_ms = (int)left_ms;
    poll(polls, count, wait_ms);
    return (polls[0].revents & POLLIN) != 0;
}

static void guard_feed(struct tol_guard *g) {
    const bool is_alone = live_count(g) == 1;
    for (size_t i = 0; i < g->device_count; i++) guard_device_feed(g, &g->device[i], is_alone);
}

/* Once around: looks at each device, delivers, hands out. */
static tol_status guard_turn(struct tol_guard *g) {
    tol_status status = TOL_OK;
    const uint64_t now = tol_now_ns();
    for (size_t i = 0; i < g->device_count; i++) guard_device_look(g, &g->device[i], now);
    TOL_TRY(guard_jobs_deliver(&g->jobs, &g->options));
    if (g->broken != TOL_OK) return tol_fail_again(g->broken, 0, g->message);
    if (!g->is_closing) guard_feed(g);
    if (g->broken != TOL_OK) return tol_fail_again(g->broken, 0, g->message);
out:
    return status;
}

/* The sentence of a guard that has no device left. */
static tol_status no_device(const struct tol_guard *g) {
    const size_t left = g->jobs.count - g->jobs.answered;
    tol_status status =
        tol_fail(__FILE__, __LINE__, TOL_NO_DEVICE,
                 "every device is fenced, and %zu of %zu jobs have no answer", left, g->jobs.count);
    for (size_t i = 0; i < g->device_count; i++) {
        tol_message_add("; %s: %s", g->device[i].name, g->device[i].reason);
    }
    return status;
}

static void guard_begin(struct tol_guard *g) {
    g->is_closing = false;
    for (size_t i = 0; i < g->device_count; i++) {
        if (g->device[i].state == GUARD_CLOSED) g->device[i].state = GUARD_OFF;
        if (g->device[i].state != GUARD_OFF) continue;
        g->device[i].failures = 0;
        guard_device_event(g, &g->device[i], GUARD_ON_BEGIN, "");
    }
}

/* Ends all workers: those without a job by the end of their input. */
static tol_status end_all(struct tol_guard *g, struct pollfd *polls) {
    tol_status status = TOL_OK;
    g->is_closing = true;
    for (size_t i = 0; i < g->device_count; i++) {
        if (guard_machine_step(g->device[i].state, GUARD_ON_CLOSE) != NULL) {
            guard_device_event(g, &g->device[i], GUARD_ON_CLOSE, "");
        }
    }
    while (live_count(g) > 0 && status == TOL_OK) {
        guard_wait(g, polls);
        status = guard_turn(g);
    }
    return status;
}

/* After a failure of the guard's own, such as a full disk. */
static void kill_all(struct tol_guard *g) {
    for (size_t i = 0; i < g->device_count; i++) guard_child_kill(&g->device[i].child);
    for (size_t i = 0; i < g->device_count; i++) {
        struct guard_device *d = &g->device[i];
        end_device(d);
        guard_jobs_put_back(&g->jobs, d->job);
        d->job = 0;
        d->late_ns = d->beat_ns = 0;
        if (d->state != GUARD_FENCED) d->state = GUARD_CLOSED;
    }
}

tol_status tol_guard_run(struct tol_guard *g) {
    tol_status status = TOL_OK;
    struct pollfd *polls = NULL;
    TOL_CHECK(g != NULL, TOL_INVALID_ARGUMENT, "guard is NULL");
    polls = calloc(PER_DEVICE * g->device_count + 1, sizeof *polls);
    TOL_CHECK(polls != NULL, TOL_OUT_OF_HOST_MEMORY, "a guard");
    TOL_TRY(guard_jobs_deliver(&g->jobs, &g->options));
    if (guard_jobs_are_done(&g->jobs)) goto out;
    guard_begin(g);
    for (;;) {
        TOL_TRY(guard_turn(g)); /* before the first wait: a worker of lines is ready at once */
        if (guard_jobs_are_done(&g->jobs)) break;
        if (live_count(g) == 0) {
            status = no_device(g);
            goto out;
        }
        if (guard_wait(g, polls)) {
            uint64_t told = 0;
            const ssize_t got = read(g->stop, &told, sizeof told);
            (void)got; /* only to make it silent again */
            TOL_TRY(end_all(g, polls));
            TOL_FAIL(TOL_CANCELLED, "the guard was stopped with %zu of %zu jobs answered",
                     g->jobs.answered, g->jobs.count);
        }
    }
    status = end_all(g, polls);
out:
    if (status != TOL_OK && g != NULL && polls != NULL) kill_all(g);
    free(polls);
    return status;
}

/* ---- what happened ---- */

void tol_guard_stats(const struct tol_guard *g, struct tol_guard_stats *stats) {
    *stats = g->stats;
    stats->jobs = g->jobs.count;
    stats->answered = g->jobs.answered;
    stats->failed = g->jobs.failed;
    stats->delivered = g->jobs.delivered;
    stats->restored = g->jobs.restored;
}

const struct tol_hdr *tol_guard_recoveries(const struct tol_guard *g) {
    return g->recoveries;
}

const struct tol_hdr *tol_guard_handovers(const struct tol_guard *g) {
    return g->handovers;
}

bool tol_guard_device(const struct tol_guard *g, size_t index, const char **device,
                      const char **state, const char **reason) {
    if (index >= g->device_count) return false;
    *device = g->device[index].name;
    *state = guard_state_name(g->device[index].state);
    *reason = g->device[index].reason;
    return true;
}

void tol_guard_moves(void (*visit)(void *user, const char *from, const char *event, const char *to,
                                   uint64_t count),
                     void *user) {
    size_t count = 0;
    const struct guard_move *moves = guard_machine_moves(&count);
    for (size_t i = 0; i < count; i++) {
        visit(user, guard_state_name(moves[i].from), guard_event_name(moves[i].event),
              guard_state_name(moves[i].to), guard_move_counts[i]);
    }
}
