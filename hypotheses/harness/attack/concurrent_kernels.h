/*
 * Grinder: several kernels that do not depend on each other, small enough to have room beside each
 * other, launched on one stream or on a stream each.
 *
 * Each takes no more than its share of half the multiprocessors and about as long as the others.
 * All their work is checked in the end, and when each began and ended is known from the device's
 * timer.
 */
#ifndef HYP_GRINDER_H
#define HYP_GRINDER_H

#include "harness/attack.h"

enum { HYP_GRINDERS_MAX = 8 };

struct hyp_grinder {
    struct hyp_attack *attack;
    unsigned kernels, blocks, steps;
    size_t chunk_bytes; /* copied to and from the device around each kernel; 0: no copies */
    struct tol_kernel *grind;
    struct tol_stream *streams[HYP_GRINDERS_MAX];
    struct tol_buffer *sums[HYP_GRINDERS_MAX];
    struct tol_pinned *there[HYP_GRINDERS_MAX], *back[HYP_GRINDERS_MAX];
    struct tol_buffer *times;
    unsigned long long made;
};

/* Makes ready kernels that take about kernel_us each, alone; on a soft device a few steps. Ends
 * with hyp_grinder_end in any case. false: a violation was noted. */
bool hyp_grinder_begin(struct hyp_attack *attack, unsigned kernels, double kernel_us,
                       size_t chunk_bytes, struct hyp_grinder *grinder);

/* For hyp_pair.batch: all kernels, calls times, and the wait for them. The baseline has a stream
 * for each kernel and the subject one for all: so the ratio is what the streams gain. */
double hyp_grinder_batch(void *user, enum hyp_side side, unsigned calls);

/* Runs a side once and looks at who ran beside whom: how many at most at one moment. On one stream
 * it is a violation if it was more than one. Keeps who ran when in the evidence, as a table. */
unsigned hyp_grinder_at_once(struct hyp_grinder *grinder, enum hyp_side side);

/* Holds every thread's sum, and every copied chunk, against what was launched. */
void hyp_grinder_end(struct hyp_grinder *grinder);

#endif
