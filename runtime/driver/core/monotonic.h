/*
 * The host's monotonic clock. Any thread.
 */
#ifndef TOLLENS_MONOTONIC_H
#define TOLLENS_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t tol_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
