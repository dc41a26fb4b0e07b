/*
 * Threads that take turns: a thread does its events until the next event is another thread's.
 */
#include "trace_replay.h"

#include "harness/session.h"
#include "files/walk_csv.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

struct replay_worker {
    struct turns *turns;
    pthread_t thread;
    sem_t turn;
};

struct turns {
    struct hyp_replay *replay;
    struct tol_stream **streams; /* the first is the host's, NULL */
    struct tol_block *blocks;    /* all zero: refused, or not live */
    unsigned tags[HYP_TRACE_TAGS_MAX];
    struct replay_worker *workers;
    size_t next; /* the event whose turn it is */
    size_t end;  /* of the events to replay */
    bool failed;
    char trouble[600];
};

static bool trace_replay_note_trouble(struct turns *turns, const struct hyp_trace_event *event,
                                      const char *call) {
    snprintf(turns->trouble, sizeof turns->trouble, "event %llu: %s: %.500s",
             (unsigned long long)event->number, call, hyp_session_message());
    turns->failed = true;
    return false;
}

static void trace_replay_note_unserved(struct turns *turns) {
    struct hyp_replay *replay = turns->replay;
    if (replay->unserved++ > 0) return;
    replay->first_unserved.index = turns->next;
    replay->first_unserved.requested = replay->requested;
    replay->first_unserved.held = replay->held;
}

static void trace_replay_note_place(struct turns *turns, const struct hyp_trace_event *event) {
    struct hyp_replay *replay = turns->replay;
    if (replay->places == NULL) return;
    struct hyp_replay_place *place = &replay->places[event->block];
    if (event->kind == TOL_POOL_EVENT_FREE) {
        place->end = turns->next;
        return;
    }
    *place = (struct hyp_replay_place){tol_pool_address(replay->pool, turns->blocks[event->block]),
                                       event->bytes, turns->next, turns->end};
}

static bool trace_replay_allocate(struct turns *turns, const struct hyp_trace_event *event) {
    struct hyp_replay *replay = turns->replay;
    struct tol_stream *stream = turns->streams[event->stream];
    struct tol_block block = {0};
    const bool was_refused = event->kind == TOL_POOL_EVENT_REFUSE;
    tol_status status = tol_pool_allocate_tagged(replay->pool, (size_t)event->bytes, stream,
                                                 turns->tags[event->tag], &block);
    if (status == TOL_OUT_OF_DEVICE_MEMORY) {
        replay->refused += !was_refused;
        trace_replay_note_unserved(turns);
        return true;
    }
    if (status != TOL_OK) return trace_replay_note_trouble(turns, event, "tol_pool_allocate");
    if (!was_refused) {
        turns->blocks[event->block] = block;
        replay->requested += event->bytes;
        trace_replay_note_place(turns, event);
        return true;
    }
    replay->granted++;
    return tol_pool_free(replay->pool, block, stream) == TOL_OK ||
           trace_replay_note_trouble(turns, event, "tol_pool_free");
}

static bool do_event(struct turns *turns, const struct hyp_trace_event *event) {
    struct hyp_replay *replay = turns->replay;
    struct tol_stream *stream = turns->streams[event->stream];
    if (event->kind == TOL_POOL_EVENT_TRIM) {
        return tol_pool_trim(replay->pool, (size_t)event->bytes) == TOL_OK ||
               trace_replay_note_trouble(turns, event, "tol_pool_trim");
    }
    if (event->kind != TOL_POOL_EVENT_FREE) {
        if (!trace_replay_allocate(turns, event)) return false;
    } else if (turns->blocks[event->block].name != 0) {
        if (tol_pool_free(replay->pool, turns->blocks[event->block], stream) != TOL_OK) {
            return trace_replay_note_trouble(turns, event, "tol_pool_free");
        }
        replay->requested -= event->bytes;
        trace_replay_note_place(turns, event);
    }
    return stream == NULL || tol_stream_synchronize(stream) == TOL_OK ||
           trace_replay_note_trouble(turns, event, "tol_stream_synchronize");
}

static bool trace_replay_measure(struct turns *turns, const struct hyp_trace_event *event) {
    struct hyp_replay *replay = turns->replay;
    struct tol_pool_stats stats;
    if (tol_pool_stats(replay->pool, &stats) != TOL_OK) {
        return trace_replay_note_trouble(turns, event, "tol_pool_stats");
    }
    const uint64_t held =
        replay->count_held != NULL ? replay->count_held(replay->count_user) : stats.held;
    if (stats.requested != replay->requested || stats.held != held) {
        snprintf(turns->trouble, sizeof turns->trouble,
                 "event %llu: the pool reports %llu live bytes and %llu held, expected %llu and "
                 "%llu",
                 (unsigned long long)event->number, (unsigned long long)stats.requested,
                 (unsigned long long)stats.held, (unsigned long long)replay->requested,
                 (unsigned long long)held);
        turns->failed = true;
        return false;
    }
    replay->held = held;
    if (replay->held_after != NULL) replay->held_after[turns->next] = held;
    replay->final = stats.requested > 0 ? (double)held / (double)stats.requested : 0;
    if (stats.requested > replay->requested_peak) replay->requested_peak = stats.requested;
    if (held > replay->held_peak) replay->held_peak = held;
    if (stats.requested > 0 && stats.requested >= replay->floor && replay->final > replay->worst) {
        replay->worst = replay->final;
        replay->worst_event = event->number;
        replay->worst_index = turns->next;
    }
    const size_t done = turns->next + 1, count = turns->end;
    const uint64_t samples = replay->samples > 0 ? replay->samples : 1000;
    if (replay->has_csv &&
        (done == count || done * samples / count != (done - 1) * samples / count)) {
        hyp_walk_csv_add(&replay->csv,
                         &(struct hyp_walk_row){event->number, stats.requested, stats.used,
                                                stats.held, stats.largest_hole});
    }
    return true;
}

/* Does the thread's events until it is another's turn. */
static void *trace_replay_take_turns(void *user) {
    struct replay_worker *worker = user;
    struct turns *turns = worker->turns;
    const struct hyp_trace *trace = turns->replay->trace;
    const size_t own = (size_t)(worker - turns->workers);
    for (bool is_bound = false;;) {
        while (sem_wait(&worker->turn) != 0) sched_yield();
        if (!is_bound && !turns->failed && turns->next < turns->end) {
            is_bound =
                tol_context_bind(turns->replay->context) == TOL_OK ||
                trace_replay_note_trouble(turns, &trace->events[turns->next], "tol_context_bind");
        }
        while (!turns->failed && turns->next < turns->end &&
               trace->events[turns->next].thread == own) {
            const struct hyp_trace_event *event = &trace->events[turns->next];
            if (do_event(turns, event) && trace_replay_measure(turns, event)) turns->next++;
        }
        if (turns->failed || turns->next == turns->end) break;
        sem_post(&turns->workers[trace->events[turns->next].thread].turn);
    }
    /* The end is everyone's turn. */
    if (own + 1 < trace->threads) sem_post(&turns->workers[own + 1].turn);
    if (own > 0) sem_post(&turns->workers[own - 1].turn);
    return NULL;
}

static bool trace_replay_prepare(struct turns *turns) {
    struct hyp_replay *replay = turns->replay;
    const struct hyp_trace *trace = replay->trace;
    turns->streams = calloc(trace->streams + 1, sizeof(struct tol_stream *));
    turns->blocks = calloc((size_t)trace->blocks + 1, sizeof *turns->blocks);
    turns->workers = calloc(trace->threads, sizeof *turns->workers);
    if (turns->streams == NULL || turns->blocks == NULL || turns->workers == NULL) {
        return hyp_fail("out of host memory for a replay");
    }
    for (unsigned i = 1; i <= trace->streams; i++) {
        if (tol_stream_create(replay->context, NULL, &turns->streams[i]) != TOL_OK) {
            return hyp_fail("stream %u of the trace: %s", i, hyp_session_message());
        }
    }
    for (unsigned i = 1; i < HYP_TRACE_TAGS_MAX; i++) {
        if (trace->tags[i][0] == '\0') continue;
        if (tol_pool_tag(replay->pool, trace->tags[i], 0, &turns->tags[i]) != TOL_OK) {
            return hyp_fail("tag %s: %s", trace->tags[i], hyp_session_message());
        }
    }
    return true;
}

static bool trace_replay_run_threads(struct turns *turns) {
    const struct hyp_trace *trace = turns->replay->trace;
    unsigned started = 0;
    for (unsigned i = 0; i < trace->threads; i++) {
        turns->workers[i].turns = turns;
        sem_init(&turns->workers[i].turn, 0, 0);
    }
    while (started < trace->threads &&
           pthread_create(&turns->workers[started].thread, NULL, trace_replay_take_turns,
                          &turns->workers[started]) == 0) {
        started++;
    }
    if (started < trace->threads) {
        snprintf(turns->trouble, sizeof turns->trouble, "only %u of %u threads could be started",
                 started, trace->threads);
        turns->failed = true;
    }
    if (started > 0) sem_post(&turns->workers[turns->failed ? 0 : trace->events[0].thread].turn);
    for (unsigned i = 0; i < started; i++) pthread_join(turns->workers[i].thread, NULL);
    for (unsigned i = 0; i < trace->threads; i++) sem_destroy(&turns->workers[i].turn);
    return !turns->failed || hyp_fail("%s", turns->trouble);
}

bool hyp_replay_run(struct hyp_replay *replay) {
    struct turns turns = {.replay = replay,
                          .end = replay->stop > 0 ? replay->stop : replay->trace->count};
    bool ok = trace_replay_prepare(&turns) && trace_replay_run_threads(&turns);
    for (unsigned i = 1; turns.streams != NULL && i <= replay->trace->streams; i++) {
        tol_stream_destroy(turns.streams[i]);
    }
    free(turns.streams);
    free(turns.blocks);
    free(turns.workers);
    return ok;
}
