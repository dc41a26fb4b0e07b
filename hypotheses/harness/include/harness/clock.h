/*
 * Clock: monotonic nanoseconds, and the time of day.
 */
#ifndef HYP_CLOCK_H
#define HYP_CLOCK_H

#include <stdint.h>
#include <time.h>

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
