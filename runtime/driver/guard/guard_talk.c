/*
 * What a worker writes: reads it, parses it, and accepts what the worker's state allows.
 */
#include "guard/guard_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SILENT_MS = 1000 };

static void be_garbage(struct tol_guard *g, struct guard_device *d, const char *why) {
    d->is_deaf = true;
    if (d->state != GUARD_ENDING && d->state != GUARD_CLOSING) {
        guard_device_event(g, d, GUARD_ON_GARBAGE, why);
    }
}

static void take_answer(struct tol_guard *g, struct guard_device *d,
                        const struct guard_frame *frame) {
    const bool is_failed = frame->word == GUARD_NO;
    guard_device_break(g, guard_jobs_answer(&g->jobs, guard_device_job(g, d), is_failed,
                                            frame->bytes, frame->count));
    if (g->broken != TOL_OK) return;
    d->job = 0;
    if (d->state == GUARD_BUSY) guard_device_event(g, d, GUARD_ON_DONE, "");
}

static void take_part(struct tol_guard *g, struct guard_device *d,
                      const struct guard_frame *frame) {
    g->stats.parts++;
    const tol_status status =
        guard_jobs_keep(&g->jobs, guard_device_job(g, d), frame->bytes, frame->count);
    if (status == TOL_OVER_LIMIT) {
        be_garbage(g, d, "its parts of a job are too large");
        return;
    }
    guard_device_break(g, status);
    if (d->state == GUARD_BUSY) guard_device_set_late(d, g->options.job_ms, "it did not answer");
}

static void take_fault(struct tol_guard *g, struct guard_device *d,
                       const struct guard_frame *frame) {
    d->is_deaf = true;
    if (d->state != GUARD_ENDING && d->state != GUARD_CLOSING) {
        guard_device_event(g, d, GUARD_ON_FAULT, frame->count > 0 ? frame->bytes : "it said so");
    }
}

/* A worker that was killed may have answered before: its answer counts, and causes no
 * transition. */
static void take_frame(struct tol_guard *g, struct guard_device *d,
                       const struct guard_frame *frame) {
    char why[120];
    const bool is_own = d->job > 0 && frame->number == d->job;
    guard_device_set_beat(g, d);
    if (d->state == GUARD_STARTING && frame->word == GUARD_HELLO && frame->number == 1) {
        guard_device_event(g, d, GUARD_ON_HELLO, "");
    } else if (frame->word == GUARD_BAD) {
        take_fault(g, d, frame);
    } else if (frame->word == GUARD_BEAT && d->state != GUARD_STARTING) {
        return;
    } else if ((frame->word == GUARD_OK || frame->word == GUARD_NO) && is_own) {
        take_answer(g, d, frame);
    } else if (frame->word == GUARD_KEEP && is_own) {
        take_part(g, d, frame);
    } else {
        static const char *const words[] = {"hello", "beat", "part", "job", "done", "fail"};
        snprintf(why, sizeof why, "it wrote \"%s %llu\", which is not allowed here",
                 words[frame->word], (unsigned long long)frame->number);
        be_garbage(g, d, why);
    }
}

static void guard_talk_take_line(struct tol_guard *g, struct guard_device *d,
                                 struct guard_frame *frame) {
    if (d->job == 0) {
        be_garbage(g, d, "it wrote a line without a job");
        return;
    }
    frame->number = d->job;
    take_answer(g, d, frame);
}

/* Takes all frames that are there. */
static void take_input(struct tol_guard *g, struct guard_device *d) {
    char why[120] = "a line that never ends";
    struct guard_frame frame;
    while (!d->is_deaf && g->broken == TOL_OK) {
        const bool lines = g->options.talk == TOL_GUARD_LINES;
        const enum guard_found found = lines ? guard_line_next(&d->input, &frame)
                                             : guard_frame_next(&d->input, &frame, why, sizeof why);
        if (found == GUARD_NOTHING_YET) return;
        if (found == GUARD_BROKEN) {
            be_garbage(g, d, why);
        } else if (lines) {
            guard_talk_take_line(g, d, &frame);
        } else {
            take_frame(g, d, &frame);
        }
    }
}

/* Reads until the pipe is empty, at most TURNS times; the rest is read in the next turn. */
void guard_device_read(struct tol_guard *g, struct guard_device *d) {
    enum { TURNS = 64 };
    for (int turn = 0; turn < TURNS && d->child.out >= 0 && !d->input.is_over; turn++) {
        const size_t before = d->input.end - d->input.begin;
        const tol_status status = guard_input_read(&d->input, d->child.out);
        guard_device_break(g, status);
        if (status != TOL_OK || d->input.end - d->input.begin == before) break;
        if (!d->is_probe) take_input(g, d);
        if (d->is_deaf) d->input.begin = d->input.end = 0;
    }
    if (d->input.is_over && d->child.out >= 0) {
        close(d->child.out);
        d->child.out = -1;
        /* A process that ends closes it too, shortly before it is dead. */
        if (d->state == GUARD_STARTING || d->state == GUARD_READY || d->state == GUARD_BUSY) {
            guard_device_set_late(d, SILENT_MS, "it closed its output and did not end");
        }
    }
}
