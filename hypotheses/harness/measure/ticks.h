/*
 * Ticks: the time of one call, by the processor's time-stamp counter, or by the clock.
 *
 * The counter is used on x86-64 where the processor says that its rate is constant, where it agrees
 * with the clock, and where reading it is not far slower than reading the clock (a virtual machine
 * may trap it). The time between two readings with nothing between them is subtracted from each
 * call. It is the same for both sides of a comparison.
 * Source: Paoloni, "How to Benchmark Code Execution Times on Intel IA-32 and IA-64", 2010.
 */
#ifndef HYP_TICKS_H
#define HYP_TICKS_H

#include "harness/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct hyp_ticks {
    bool is_counter; /* the time-stamp counter; otherwise hyp_clock_ns */
    double ns_per_tick;
    double cost_ns; /* the median time between two readings with nothing between them */
};

/* Chooses the counter or the clock and measures it, in some milliseconds at the first call in a
 * process. Not for several threads at once. */
const struct hyp_ticks *hyp_ticks_ready(void);

/* Reads the time before and after a call. No instruction of the call is outside the two. */
static inline uint64_t hyp_ticks_begin(const struct hyp_ticks *ticks) {
#if defined(__x86_64__)
    if (ticks->is_counter) {
        uint32_t low, high;
        __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
        return (uint64_t)high << 32 | low;
    }
#else
    (void)ticks;
#endif
    return hyp_clock_ns();
}

static inline uint64_t hyp_ticks_end(const struct hyp_ticks *ticks) {
#if defined(__x86_64__)
    if (ticks->is_counter) {
        uint32_t low, high;
        __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
        return (uint64_t)high << 32 | low;
    }
#else
    (void)ticks;
#endif
    return hyp_clock_ns();
}

/* The nanoseconds between two readings without their own cost, at least 0. A second for readings
 * that run backwards, on two processors whose counters differ: a call that long is discarded. */
double hyp_ticks_ns(const struct hyp_ticks *ticks, uint64_t begin, uint64_t end);

#endif
