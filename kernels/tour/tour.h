/*
 * Tour: every kernel of every operation, once or a few times, in one process and at the smallest
 * shapes that reach all its paths, for tools that watch a process and slow it down a hundred times.
 *
 * A group is a file of stops; each stop runs an operation by the name of a variant, with outputs
 * that begin as NaN between watched zones, and holds what comes against the oracle. What was really
 * launched is read off the driver's calls (launched.h) and held against the entries of the images.
 * One thread. Internal: not installed.
 */
#ifndef KN_TOUR_H
#define KN_TOUR_H

#include "deviation.h"
#include "kernel_set.h"

struct tour {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    const char *filter; /* stops that have this in their names; NULL: all */
    uint64_t random;    /* kn_random's */
    char name[160];     /* of the stop that is made */
    size_t launches;    /* of all kernels, before this stop */
    size_t stops, wrong;
    size_t left_out; /* of the stops: the device is too old for them */
};

/* The next stop's name. false: it is not wanted. */
bool tour_stop(struct tour *tour, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What came of the stop: one line on stdout. touched: bytes that nobody may write, and somebody
 * did. A stop that launched nothing is wrong; before compute capability 9.0 one that is refused is
 * left out. */
void tour_judge(struct tour *tour, tol_status status, const struct kn_deviation *deviation,
                size_t touched);

/* ---- the groups ------------------------------------------------------------------------------ */

void tour_gemm(struct tour *tour);
void tour_attention(struct tour *tour);
void tour_quant(struct tour *tour);
void tour_rows(struct tour *tour);
void tour_decoder(struct tour *tour);

#endif
