/*
 * Replay: a trace done again with a pool, event by event in the order of their numbers, each by a
 * thread and on a stream of its own as in the trace.
 *
 * One event runs at a time, and its stream is waited for behind it, so nothing depends on the pace
 * of the device or of threads: with the same options the same comes out. No kernels run, so what a
 * program's own work kept busy is free at once here.
 */
#ifndef HYP_TRACE_REPLAY_H
#define HYP_TRACE_REPLAY_H

#include "files/atomic_file.h"
#include "trace_file.h"

struct hyp_replay {
    const struct hyp_trace *trace;
    struct tol_context *context;
    struct tol_pool *pool; /* nothing allocated of it yet */
    uint64_t floor;        /* the worst ratio is looked for where so many bytes are live */
    struct hyp_file csv;   /* walk_csv.h, where there is one */
    bool has_csv;
    uint64_t samples; /* in it, about */

    /* What came of it. */
    uint64_t refused;   /* allocations that the trace had and the pool did not */
    uint64_t granted;   /* and the other way round */
    uint64_t requested; /* at the end, bytes */
    uint64_t held;      /* at the end, and at most */
    uint64_t requested_peak, held_peak;
    double final, worst;  /* held to requested; 0 where nothing, or too little, was live */
    uint64_t worst_event; /* its number */
};

/* Replays it. What is live at the end stays live. false: a call failed that must not;
 * hyp_error() says which. */
bool hyp_replay_run(struct hyp_replay *replay);

#endif
