/*
 * Turns frames, deaths and timers into the events of the state table, and carries out the table's
 * actions. The table alone decides what follows.
 */
#include "guard_device.h"

#include "core/monotonic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, REST_MS_MAX = 5000 };

uint64_t guard_move_counts[128];

/* ---- small parts ---- */

void guard_device_set_late(struct guard_device *d, unsigned ms, const char *what) {
    d->late_ns = tol_now_ns() + (uint64_t)ms * NS_PER_MS;
    snprintf(d->late, sizeof d->late, "%s within %u ms", what, ms);
}

void guard_device_set_beat(const struct tol_guard *g, struct guard_device *d) {
    if (g->options.talk == TOL_GUARD_LINES) return;
    if (d->state != GUARD_READY && d->state != GUARD_BUSY) return;
    d->beat_ns = tol_now_ns() + (uint64_t)g->options.beat_ms * NS_PER_MS;
}

struct guard_job *guard_device_job(struct tol_guard *g, const struct guard_device *d) {
    return d->job > 0 ? &g->jobs.job[d->job - 1] : NULL;
}

/* The guard cannot go on: the first reason is kept. */
void guard_device_break(struct tol_guard *g, tol_status status) {
    if (status == TOL_OK || g->broken != TOL_OK) return;
    g->broken = status;
    snprintf(g->message, sizeof g->message, "%s", tol_message());
}

static void keep_reason(struct guard_device *d, const char *reason) {
    if (reason[0] == '\0') return;
    if (d->job > 0) {
        snprintf(d->reason, sizeof d->reason, "%.400s, during job %llu", reason,
                 (unsigned long long)d->job);
    } else {
        snprintf(d->reason, sizeof d->reason, "%s", reason);
    }
}

/* ---- actions ---- */

static void end_child(struct guard_device *d) {
    guard_child_close(&d->child);
    guard_input_clear(&d->input);
    guard_output_clear(&d->output);
    d->late_ns = d->beat_ns = 0;
    d->is_deaf = d->is_probe = false;
}

/* The process is gone, and its job goes to others. */
static void give_back_job(struct tol_guard *g, struct guard_device *d) {
    struct guard_job *job = guard_device_job(g, d);
    if (job != NULL) {
        guard_device_break(g, guard_jobs_lose(&g->jobs, job, d->index, d->noticed_ns, d->reason));
    }
    d->job = 0;
}

static void guard_device_start(struct tol_guard *g, struct guard_device *d,
                               const char *const *program) {
    d->is_probe = program != g->options.program;
    if (d->is_probe) {
        g->stats.probes++;
        guard_device_set_late(d, g->options.probe_ms, "the probe did not end");
    } else {
        g->stats.workers++;
        guard_device_set_late(d, g->options.hello_ms, "it did not say hello");
    }
    if (guard_child_start(program, d->name, g->options.beat_ms / 4, &d->child) != TOL_OK) {
        const char *sentence = strstr(tol_message(), ": "); /* after the source location */
        char reason[GUARD_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s", sentence != NULL ? sentence + 2 : tol_message());
        d->noticed_ns = d->noticed_ns > 0 ? d->noticed_ns : tol_now_ns();
        d->failures++;
        g->stats.gone++;
        guard_device_event(
            g, d, d->failures >= g->options.failures ? GUARD_ON_GONE_LAST : GUARD_ON_GONE, reason);
    } else if (!d->is_probe && g->options.talk == TOL_GUARD_LINES) {
        guard_device_event(g, d, GUARD_ON_HELLO, "");
    }
}

static void guard_device_rest(const struct tol_guard *g, struct guard_device *d) {
    const unsigned doublings = d->failures > 1 ? d->failures - 1 : 0;
    uint64_t ms = g->options.rest_ms;
    for (unsigned i = 0; i < doublings && ms < REST_MS_MAX; i++) ms *= 2;
    guard_device_set_late(d, ms < REST_MS_MAX ? (unsigned)ms : REST_MS_MAX, "");
}

static void guard_device_act(struct tol_guard *g, struct guard_device *d,
                             enum guard_action action) {
    switch (action) {
    case GUARD_DO_PROBE:
        if (g->options.probe == NULL) {
            guard_device_event(g, d, GUARD_ON_PROBED, "");
        } else {
            guard_device_start(g, d, g->options.probe);
        }
        break;
    case GUARD_DO_START:
        end_child(d);
        guard_device_start(g, d, g->options.program);
        break;
    case GUARD_DO_KILL:
        g->stats.kills++;
        guard_child_kill(&d->child);
        d->beat_ns = 0;
        guard_device_set_late(d, g->options.end_ms, "SIGKILL did not end its process");
        break;
    case GUARD_DO_REST:
    case GUARD_DO_FENCE:
        give_back_job(g, d);
        if (action == GUARD_DO_REST) {
            end_child(d);
            guard_device_rest(g, d);
        } else {
            g->stats.fenced++;
            if (d->child.id == 0) end_child(d);
            d->late_ns = d->beat_ns = 0;
            d->is_deaf = true;
        }
        break;
    case GUARD_DO_FINISH:
        if (d->child.in >= 0) close(d->child.in);
        d->child.in = -1;
        d->beat_ns = 0;
        guard_device_set_late(d, g->options.end_ms, "it did not end after its input had");
        break;
    case GUARD_DO_NOTHING:
    case GUARD_ACTIONS:
        break;
    }
}

/* What enters with a state whatever led to it. */
static void guard_device_enter(struct tol_guard *g, struct guard_device *d,
                               enum guard_event event) {
    if (d->state == GUARD_READY) {
        d->late_ns = 0;
        guard_device_set_beat(g, d);
    }
    if (event == GUARD_ON_HELLO && d->noticed_ns > 0) {
        tol_hdr_record(g->recoveries, (int64_t)(tol_now_ns() - d->noticed_ns));
        d->noticed_ns = 0;
    }
    if (event == GUARD_ON_DONE) d->failures = 0;
    if (d->state == GUARD_BUSY) guard_device_set_late(d, g->options.job_ms, "it did not answer");
    if (d->state == GUARD_CLOSED) {
        guard_jobs_put_back(&g->jobs, d->job);
        d->job = 0;
        end_child(d);
    }
}

static void count_failure(struct tol_guard *g, enum guard_event event) {
    g->stats.faults += event == GUARD_ON_FAULT;
    g->stats.late += event == GUARD_ON_LATE;
    g->stats.garbage += event == GUARD_ON_GARBAGE;
}

void guard_device_event(struct tol_guard *g, struct guard_device *d, enum guard_event event,
                        const char *reason) {
    size_t moves = 0;
    const struct guard_move *first = guard_machine_moves(&moves);
    const struct guard_move *move = guard_machine_step(d->state, event);
    assert(move != NULL && moves <= sizeof guard_move_counts / sizeof guard_move_counts[0]);
    if (move == NULL) return; /* never; and doing nothing ends in a deadline at worst */
    guard_move_counts[move - first]++;
    keep_reason(d, reason);
    count_failure(g, event);
    if (move->action == GUARD_DO_KILL && event != GUARD_ON_CLOSE && d->noticed_ns == 0) {
        d->noticed_ns = tol_now_ns();
    }
    if (g->options.note != NULL) {
        const struct tol_guard_note note = {d->name,
                                            guard_state_name(move->from),
                                            guard_event_name(event),
                                            guard_state_name(move->to),
                                            d->job,
                                            reason[0] != '\0' ? d->reason : ""};
        g->options.note(g->options.user, &note);
    }
    d->state = move->to;
    guard_device_enter(g, d, event);
    guard_device_act(g, d, move->action);
}

/* ---- deaths and deadlines ---- */

/* What a probe printed, its first line. */
static void add_probe_words(const struct guard_device *d, char *how, size_t bytes) {
    const char *text = d->input.bytes + d->input.begin;
    const size_t count = d->input.end - d->input.begin, length = strlen(how);
    const char *line = count > 0 ? memchr(text, '\n', count) : NULL;
    const int shown = (int)(line != NULL ? (size_t)(line - text) : count);
    if (shown > 0) {
        snprintf(how + length, bytes - length, ": %.*s", shown < 300 ? shown : 300, text);
    }
}

static void be_gone(struct tol_guard *g, struct guard_device *d, const char *how) {
    const bool was_killed = d->state == GUARD_ENDING;
    if (!was_killed && d->noticed_ns == 0) d->noticed_ns = tol_now_ns();
    if (!was_killed && d->state != GUARD_CLOSING) g->stats.gone++;
    if (g->is_closing && (was_killed || d->state == GUARD_CLOSING)) {
        guard_device_event(g, d, GUARD_ON_GONE_CLOSED, "");
        return;
    }
    d->failures++;
    guard_device_event(g, d,
                       d->failures >= g->options.failures ? GUARD_ON_GONE_LAST : GUARD_ON_GONE,
                       was_killed ? "" : how);
}

/* What follows from a death. */
static void take_death(struct tol_guard *g, struct guard_device *d, bool is_good, const char *how) {
    char words[GUARD_REASON_BYTES];
    if (d->state == GUARD_FENCED) {
        end_child(d);
    } else if (d->is_probe && is_good && d->state == GUARD_PROBING) {
        guard_device_event(g, d, GUARD_ON_PROBED, "");
    } else if (d->is_probe) {
        snprintf(words, sizeof words, "the probe failed, %.180s", how);
        add_probe_words(d, words, sizeof words);
        be_gone(g, d, words);
    } else {
        be_gone(g, d, how);
    }
}

static void look_at_clock(struct tol_guard *g, struct guard_device *d, uint64_t now_ns) {
    char reason[120];
    if (d->late_ns != 0 && now_ns >= d->late_ns) {
        d->late_ns = 0;
        if (d->state == GUARD_RESTING) {
            guard_device_event(g, d, GUARD_ON_PAUSE_OVER, "");
            return;
        }
        snprintf(reason, sizeof reason, "%s", d->late);
        guard_device_event(g, d, GUARD_ON_LATE, reason);
    } else if (d->beat_ns != 0 && now_ns >= d->beat_ns) {
        snprintf(reason, sizeof reason, "it gave no sign of life within %u ms", g->options.beat_ms);
        guard_device_event(g, d, GUARD_ON_LATE, reason);
    }
}

void guard_device_look(struct tol_guard *g, struct guard_device *d, uint64_t now_ns) {
    char how[GUARD_REASON_BYTES];
    bool is_good = false;
    /* First, so that everything it wrote before is read afterwards. */
    const bool is_dead = d->child.id != 0 && guard_child_end(&d->child, &is_good, how, sizeof how);
    guard_device_read(g, d);
    if (g->broken != TOL_OK) return;
    if (is_dead) {
        take_death(g, d, is_good, how);
        return;
    }
    look_at_clock(g, d, now_ns);
    if (d->output.begin < d->output.end && d->child.in >= 0 &&
        !guard_output_write(&d->output, d->child.in)) {
        guard_output_clear(&d->output); /* its death is seen, or its deadline passes */
    }
}

uint64_t guard_device_due(const struct guard_device *d) {
    uint64_t due = UINT64_MAX;
    if (d->late_ns != 0) due = d->late_ns;
    if (d->beat_ns != 0 && d->beat_ns < due) due = d->beat_ns;
    return due;
}

/* ---- jobs ---- */

static tol_status send_job(struct tol_guard *g, struct guard_device *d,
                           const struct guard_job *job) {
    tol_status status = TOL_OK;
    if (g->options.talk == TOL_GUARD_LINES) {
        return guard_output_line(&d->output, job->work.bytes, job->work.count);
    }
    if (job->parts.count > 0) {
        TOL_TRY(guard_output_frame(
            &d->output,
            &(struct guard_frame){GUARD_KEEP, d->job, job->parts.bytes, job->parts.count}));
    }
    status = guard_output_frame(
        &d->output, &(struct guard_frame){GUARD_WORK, d->job, job->work.bytes, job->work.count});
out:
    return status;
}

void guard_device_feed(struct tol_guard *g, struct guard_device *d, bool is_alone) {
    if (d->state != GUARD_READY || g->broken != TOL_OK) return;
    struct guard_job *job = guard_jobs_next(&g->jobs, d->index, is_alone);
    if (job == NULL) return;
    d->job = guard_jobs_number(&g->jobs, job);
    g->stats.begun++;
    if (job->lost_ns != 0) {
        tol_hdr_record(g->handovers, (int64_t)(tol_now_ns() - job->lost_ns));
        job->lost_ns = 0;
    }
    guard_device_break(g, send_job(g, d, job));
    guard_device_event(g, d, GUARD_ON_JOB, "");
    if (!guard_output_write(&d->output, d->child.in)) guard_output_clear(&d->output);
}
