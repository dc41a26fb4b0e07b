/*
 * Concurrent kernels: several independent kernels, launched on one stream or on one stream each.
 *
 * Together they use at most half the multiprocessors, each an equal share, and each takes about the
 * same time. The device's timer records when each began and ended. All results are checked at the
 * end.
 */
#ifndef HYP_CONCURRENT_KERNELS_H
#define HYP_CONCURRENT_KERNELS_H

#include "harness/attack.h"

enum { HYP_CONCURRENT_KERNELS_MAX = 8 };

struct hyp_concurrent_kernels {
    struct hyp_attack *attack;
    unsigned kernels, blocks, steps;
    size_t chunk_bytes; /* copied to and from the device around each kernel; 0: no copies */
    struct tol_kernel *grind;
    struct tol_stream *streams[HYP_CONCURRENT_KERNELS_MAX];
    struct tol_buffer *sums[HYP_CONCURRENT_KERNELS_MAX];
    struct tol_pinned *there[HYP_CONCURRENT_KERNELS_MAX], *back[HYP_CONCURRENT_KERNELS_MAX];
    struct tol_buffer *times;
    unsigned long long made;
};

/* Prepares kernels that take about kernel_us each when alone, or a few steps on a soft device. End
 * with hyp_concurrent_kernels_end in any case. false: a violation was noted. */
bool hyp_concurrent_kernels_begin(struct hyp_attack *attack, unsigned kernels, double kernel_us,
                                  size_t chunk_bytes, struct hyp_concurrent_kernels *concurrent);

/* For hyp_pair.batch: all kernels, calls times, and the wait for them. The baseline has one stream
 * per kernel and the subject one for all, so the ratio is the speedup by streams. */
double hyp_concurrent_kernels_batch(void *user, enum hyp_side side, unsigned calls);

/* Runs a side once and counts the kernels that ran at the same time. On one stream, more than one
 * is a violation. Writes the times of each kernel to the evidence, as a table. */
unsigned hyp_concurrent_kernels_at_once(struct hyp_concurrent_kernels *concurrent,
                                        enum hyp_side side);

/* Compares every thread's sum, and every copied chunk, with what was launched. */
void hyp_concurrent_kernels_end(struct hyp_concurrent_kernels *concurrent);

#endif
