/*
 * Replay: repeats a trace with a pool, event by event in the order of their numbers, on the threads
 * and streams of the trace.
 *
 * One event runs at a time, and its stream is synchronized after it, so the result does not depend
 * on the speed of the device or the threads: the same options give the same result. No kernels run,
 * so memory that a program's own work kept in use is free immediately.
 */
#ifndef HYP_TRACE_REPLAY_H
#define HYP_TRACE_REPLAY_H

#include "files/atomic_file.h"
#include "trace_file.h"

/* Where a block was, and when: from event to event of the trace, as indices. */
struct hyp_replay_place {
    uint64_t address, bytes; /* 0: it was not served */
    size_t begin, end;       /* end: the number of events if it was not freed */
};

struct hyp_replay {
    const struct hyp_trace *trace;
    struct tol_context *context;
    struct tol_pool *pool; /* without allocations */
    uint64_t floor;        /* the worst ratio needs at least this many live bytes */
    struct hyp_file csv;   /* walk_csv.h, if has_csv */
    bool has_csv;
    uint64_t samples; /* approximate number of its lines */
    /* The bytes that are held, counted by another than the pool; NULL: the pool's word is taken. */
    uint64_t (*count_held)(void *user);
    void *count_user;
    size_t stop;                     /* replay this many events; 0: all */
    struct hyp_replay_place *places; /* one per block of the trace, or NULL */
    uint64_t *held_after;            /* bytes after each event, or NULL */

    /* The result. */
    uint64_t refused;   /* allocations that failed here and not in the trace */
    uint64_t granted;   /* allocations that failed in the trace and not here */
    uint64_t requested; /* at the end, bytes */
    uint64_t held;      /* at the end, and at most */
    uint64_t requested_peak, held_peak;
    double final, worst;  /* held to requested; 0 if too little was live */
    uint64_t worst_event; /* its number */
    size_t worst_index;
    uint64_t unserved; /* allocations that failed here, also those that had failed in the trace */
    struct {
        size_t index;             /* of the first one */
        uint64_t requested, held; /* bytes at that moment */
    } first_unserved;
};

/* Replays the trace. Blocks that are live at the end remain so. false: a call failed that must
 * succeed; hyp_error() says which. */
bool hyp_replay_run(struct hyp_replay *replay);

#endif
