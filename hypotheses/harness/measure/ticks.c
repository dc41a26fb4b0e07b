/*
 * Choosing the counter or the clock, and scaling the counter by the clock.
 */
#include "ticks.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const double BACKWARDS_NS = 1e9;

static int ticks_compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double hyp_ticks_ns(const struct hyp_ticks *ticks, uint64_t begin, uint64_t end) {
    if (end < begin) return BACKWARDS_NS;
    return fmax(0, (double)(end - begin) * ticks->ns_per_tick - ticks->cost_ns);
}

/* The median, since an interrupt may hit any of them. */
static double ticks_cost_of(const struct hyp_ticks *ticks) {
    enum { TURNS = 1001 };
    double values[TURNS];
    struct hyp_ticks free_of_cost = *ticks;
    free_of_cost.cost_ns = 0;
    for (int i = 0; i < TURNS; i++) {
        uint64_t begin = hyp_ticks_begin(ticks), end = hyp_ticks_end(ticks);
        values[i] = hyp_ticks_ns(&free_of_cost, begin, end);
    }
    qsort(values, TURNS, sizeof values[0], ticks_compare);
    return values[TURNS / 2];
}

#if defined(__x86_64__)

/* "Invariant TSC": AMD64 Architecture Programmer's Manual volume 3, appendix E.4.7; Intel SDM
 * volume 3, section 18.17.1. */
static bool is_constant(void) {
    enum { POWER = 0x80000007u - 0x80000000u, INVARIANT = 1 << 8, RDTSCP = 1 << 27 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000000u + POWER, &a, &b, &c, &d) == 0 || (d & INVARIANT) == 0) return false;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) != 0 && (d & RDTSCP) != 0;
}

/* The clock and the counter at one moment: the closest of some pairs, for an interrupt may come
 * between the two. */
static void ticks_read_both(const struct hyp_ticks *ticks, uint64_t *clock_ns, uint64_t *tick) {
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t before = hyp_ticks_begin(ticks), now_ns = hyp_clock_ns();
        uint64_t after = hyp_ticks_begin(ticks);
        if (after - before >= closest) continue;
        closest = after - before;
        *clock_ns = now_ns;
        *tick = before + (after - before) / 2;
    }
}

/* The length of a tick by the clock. */
static double ticks_scale_of(const struct hyp_ticks *ticks) {
    const uint64_t enough_ns = 4000000;
    uint64_t begin_ns = 0, end_ns = 0, begin = 0, end = 0;
    ticks_read_both(ticks, &begin_ns, &begin);
    while (hyp_clock_ns() < begin_ns + enough_ns) continue;
    ticks_read_both(ticks, &end_ns, &end);
    return end > begin ? (double)(end_ns - begin_ns) / (double)(end - begin) : 0;
}

static bool take_counter(struct hyp_ticks *ticks, double clock_cost_ns) {
    /* The fences make a reading up to twice as slow as the clock's; a trap, a hundred times. */
    const double agreement = 1e-3, slower_max = 10;
    if (!is_constant()) return false;
    ticks->is_counter = true;
    double scale = ticks_scale_of(ticks), again = ticks_scale_of(ticks);
    ticks->ns_per_tick = scale;
    ticks->cost_ns = ticks_cost_of(ticks);
    return scale > 0 && fabs(again - scale) <= agreement * scale &&
           ticks->cost_ns <= slower_max * clock_cost_ns;
}

#endif

const struct hyp_ticks *hyp_ticks_ready(void) {
    static struct hyp_ticks ready;
    if (ready.ns_per_tick > 0) return &ready;
    ready = (struct hyp_ticks){.ns_per_tick = 1};
    ready.cost_ns = ticks_cost_of(&ready);
#if defined(__x86_64__)
    struct hyp_ticks counter = {0};
    if (take_counter(&counter, ready.cost_ns)) ready = counter;
#endif
    return &ready;
}
