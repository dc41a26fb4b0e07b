/*
 * Fuzz target: any bytes are a trace of a pool, or are refused with a sentence. What is read makes
 * sense, is the same when it is written and read again, and a short one can be replayed.
 */
#include "fuzz/fuzz_input.h"

#include "files/atomic_file.h"
#include "harness/session.h"
#include "trace/trace_replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYED_EVENTS_MAX = 64, REPLAYED_THREADS_MAX = 4, REPLAYED_STREAMS_MAX = 4 };

static void trace_check_sense(const struct hyp_trace *trace) {
    size_t counts[TOL_POOL_EVENT_KINDS] = {0};
    uint64_t live = 0, peak = 0;
    FUZZ_HOLDS(trace->count > 0 && trace->threads >= 1);
    FUZZ_HOLDS(trace->threads <= HYP_TRACE_THREADS_MAX && trace->streams <= HYP_TRACE_STREAMS_MAX);
    bool *is_live = calloc(trace->blocks + 1, sizeof *is_live);
    if (is_live == NULL) exit(2);
    for (size_t i = 0; i < trace->count; i++) {
        const struct hyp_trace_event *event = &trace->events[i];
        FUZZ_HOLDS(event->kind < TOL_POOL_EVENT_KINDS && event->tag < HYP_TRACE_TAGS_MAX);
        FUZZ_HOLDS(event->thread < trace->threads && event->stream <= trace->streams);
        FUZZ_HOLDS(i == 0 || event->number >= event[-1].number);
        counts[event->kind]++;
        bool frees = event->kind == TOL_POOL_EVENT_FREE;
        if (!frees && event->kind != TOL_POOL_EVENT_ALLOCATE) continue;
        FUZZ_HOLDS(event->block < trace->blocks && is_live[event->block] == frees);
        is_live[event->block] = !frees;
        live += frees ? -event->bytes : event->bytes;
        if (live > peak) peak = live;
    }
    free(is_live);
    FUZZ_HOLDS(peak == trace->peak);
    FUZZ_HOLDS(counts[TOL_POOL_EVENT_ALLOCATE] == trace->allocations);
    FUZZ_HOLDS(counts[TOL_POOL_EVENT_FREE] == trace->frees);
    FUZZ_HOLDS(counts[TOL_POOL_EVENT_REFUSE] == trace->refusals);
    FUZZ_HOLDS(counts[TOL_POOL_EVENT_TRIM] == trace->trims);
}

/* The small numbers of the reader, as a trace of our own, which numbers the events anew. */
static char *trace_write_text(const struct hyp_trace *trace, size_t *bytes) {
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    if (out == NULL) exit(2);
    fprintf(out, "#tollens pool trace 1\n");
    for (int i = 1; i < HYP_TRACE_TAGS_MAX; i++) {
        if (trace->tags[i][0] != '\0') fprintf(out, "#tag %d %s\n", i, trace->tags[i]);
    }
    fprintf(out, "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns\n");
    for (size_t i = 0; i < trace->count; i++) {
        const struct hyp_trace_event *e = &trace->events[i];
        fprintf(out, "%zu,0,%u,%u,%s,%u,%llu,%u,0\n", i, e->thread + 1u, (unsigned)e->stream,
                tol_pool_event_name(e->kind), e->block, (unsigned long long)e->bytes,
                (unsigned)e->tag);
    }
    fclose(out);
    return text;
}

static void trace_read_again(const struct hyp_trace *trace) {
    struct hyp_trace again;
    size_t bytes = 0;
    char *text = trace_write_text(trace, &bytes);
    FUZZ_HOLDS(hyp_trace_read(fuzz_file("again.csv", text, bytes), &again));
    free(text);
    FUZZ_HOLDS(again.count == trace->count && again.blocks == trace->blocks);
    FUZZ_HOLDS(again.threads == trace->threads && again.peak == trace->peak);
    for (int i = 0; i < HYP_TRACE_TAGS_MAX; i++) {
        FUZZ_HOLDS(strcmp(again.tags[i], trace->tags[i]) == 0);
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct hyp_trace_event *a = &again.events[i], *b = &trace->events[i];
        FUZZ_HOLDS(a->number == i && a->kind == b->kind && a->bytes == b->bytes);
        FUZZ_HOLDS(a->thread == b->thread && a->tag == b->tag);
        /* Blocks that were live before a trace are numbered when an event mentions them. */
        FUZZ_HOLDS(a->block == b->block || trace->notes[HYP_TRACE_LIVE_BEFORE].count > 0);
    }
    hyp_trace_free(&again);
}

static void replay_trace(const struct hyp_trace *trace) {
    static struct tol_driver *driver;
    static struct tol_context *context;
    struct tol_pool_options options;
    struct hyp_replay replay = {.trace = trace};
    if (context == NULL) {
        setenv("TOLLENS_SOFT_MEMORY", "1G", 1);
        setenv("TOLLENS_SOFT_WORKERS", "1", 1);
        FUZZ_HOLDS(tol_driver_open(hyp_session_soft_library(), &driver) == TOL_OK);
        FUZZ_HOLDS(tol_context_create(driver, 0, &context) == TOL_OK);
    }
    replay.context = context;
    tol_pool_default(tol_context_device(context), &options);
    FUZZ_HOLDS(tol_pool_create(context, &options, &replay.pool) == TOL_OK);
    FUZZ_HOLDS(hyp_replay_run(&replay));
    FUZZ_HOLDS(replay.requested_peak >= replay.requested && replay.held_peak >= replay.held);
    tol_pool_destroy(replay.pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hyp_trace trace;
    if (!hyp_trace_read(fuzz_file("input.csv", data, size), &trace)) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
    } else {
        trace_check_sense(&trace);
        trace_read_again(&trace);
        if (trace.count <= REPLAYED_EVENTS_MAX && trace.threads <= REPLAYED_THREADS_MAX &&
            trace.streams <= REPLAYED_STREAMS_MAX) {
            replay_trace(&trace);
        }
    }
    hyp_trace_free(&trace);
    return 0;
}
