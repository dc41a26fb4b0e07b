/*
 * Times: how long a thread's calls to a pool took, beside its magazine and under its lock.
 *
 * The quick way through a magazine takes less time than reading the clock, so only one call in so
 * many is timed, with a gap drawn at random, and counts for all of its gap. Calls that went to the
 * driver are all counted, from their first driver call on. Internal: not installed. The caller
 * holds the magazine's lock, but for tol_times_begin: what that changes is its own thread's alone.
 */
#ifndef TOLLENS_TIMES_H
#define TOLLENS_TIMES_H

#include "tollens/hdr.h"
#include "tollens/pool_watch.h"

#include <time.h>

/* The timing of one kind of call. */
struct tol_times_call {
    uint32_t until; /* calls until the next that is timed */
    uint32_t gap;   /* calls from the last timed one to that one ... */
    uint32_t slow;  /* ... of which so many called the driver, and have been counted */
    struct tol_hdr *hdr;
};

struct tol_times {
    unsigned one_in; /* 0: nothing is timed */
    uint64_t random;
    struct tol_times_call calls[TOL_POOL_CALLS];
};

static inline uint64_t tol_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* An empty histogram of the shape of all of them. */
tol_status tol_times_new(struct tol_hdr **times);

void tol_times_open(struct tol_times *times, unsigned one_in);
void tol_times_close(struct tol_times *times);

/* When a call began, if it is one that is timed; else 0. */
static inline uint64_t tol_times_begin(struct tol_times *times, enum tol_pool_call call) {
    if (--times->calls[call].until != 0 || times->one_in == 0) return 0;
    /* Should it fail, the next one is timed instead. */
    times->calls[call].until = 1;
    times->calls[call].gap++;
    return tol_now_ns();
}

/* Counts a call that began then, or is not to be timed (0), and that called the driver from that
 * moment on, or did not (0). Its ns; 0 where it is not known. */
uint64_t tol_times_end(struct tol_times *times, enum tol_pool_call call, uint64_t begin,
                       uint64_t metered_at);

#endif
