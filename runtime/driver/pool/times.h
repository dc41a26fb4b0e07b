/*
 * Times: the durations of a thread's calls to a pool, kept with its magazine and under its lock.
 *
 * An allocation from a magazine takes less time than reading the clock. So only one call in a
 * random gap is timed, and counts for all calls of the gap. Calls that reach the driver are all
 * counted, from their first driver call on. The caller holds the magazine's lock, except for
 * tol_times_begin, which changes only data of its own thread.
 */
#ifndef TOLLENS_TIMES_H
#define TOLLENS_TIMES_H

#include "core/monotonic.h"
#include "tollens/hdr.h"
#include "tollens/pool_watch.h"

/* The timing of one kind of call. */
struct tol_times_call {
    uint32_t until; /* calls until the next timed one */
    uint32_t gap;   /* calls from the last timed one to that one */
    uint32_t slow;  /* of those, calls that reached the driver and have been counted */
    struct tol_hdr *hdr;
};

struct tol_times {
    unsigned one_in; /* 0: nothing is timed */
    uint64_t random;
    struct tol_times_call calls[TOL_POOL_CALLS];
};

/* Creates an empty histogram with the shape that all use. */
tol_status tol_times_new(struct tol_hdr **times);

void tol_times_open(struct tol_times *times, unsigned one_in);
void tol_times_close(struct tol_times *times);

/* The time at which a call begins if it is to be timed; else 0. */
static inline uint64_t tol_times_begin(struct tol_times *times, enum tol_pool_call call) {
    if (--times->calls[call].until != 0 || times->one_in == 0) return 0;
    /* Should it fail, the next one is timed instead. */
    times->calls[call].until = 1;
    times->calls[call].gap++;
    return tol_now_ns();
}

/* Counts a call. begin is its begin, or 0 if it is not timed; metered_at is the time of its first
 * driver call, or 0 if there was none. Returns its duration in ns; 0 if unknown. */
uint64_t tol_times_end(struct tol_times *times, enum tol_pool_call call, uint64_t begin,
                       uint64_t metered_at);

#endif
