/*
 * Clock: monotonic nanoseconds, and the time of day.
 */
#ifndef HYP_CLOCK_H
#define HYP_CLOCK_H

/* With -std=c11, time.h declares clock_gettime only if asked to. */
#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE
#endif

#include <stdint.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_RAW
#error "time.h hides clock_gettime: compile with -D_DEFAULT_SOURCE, or include this first"
#endif

/* The raw monotonic clock, which is not slewed, so that short intervals are exact. */
static inline uint64_t hyp_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Seconds since 1970, UTC. */
static inline double hyp_clock_day_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
