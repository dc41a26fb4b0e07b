/*
 * CTA: one block of threads while it runs: its warps, its shared memory, its barriers.
 *
 * All of a CTA's state is here, not on a host stack, so a CTA that spins or has used up its turn
 * can be put aside and another one run in its place. One host thread runs a
 * CTA at a time. */
#ifndef SOFT_CTA_H
#define SOFT_CTA_H

#include "warp.h"

struct soft_launch;

enum { SOFT_WARPS_MAX = 32, SOFT_BARRIERS = 16 };

struct soft_barrier {
    uint32_t arrived;                    /* threads, in whole warps */
    uint32_t expected;                   /* threads; 0: all of the CTA that have not exited */
    uint32_t waiting;                    /* warps that wait, a bit each */
    uint32_t red_and, red_or, red_count; /* what barrier.red has gathered */
};

struct soft_cta {
    struct soft_launch *launch; /* the one its frames are filled for */
    struct soft_cta *next;      /* in a list of idle or parked ones */
    uint32_t index[3];          /* %ctaid */
    uint64_t number;            /* the same as one number */
    uint32_t warp_count;
    uint32_t warp_room; /* how many its memory has room for */
    uint32_t warps_alive;
    struct soft_warp *warps;
    uint8_t *slots; /* the frames of all warps, one behind the other */
    uint8_t *shared;
    uint8_t *shared_shadow; /* a byte for each four; NULL where writes are not tracked */
    uint32_t shared_bytes;
    uint8_t *local; /* each thread's local memory, one behind the other */
    uint8_t *local_shadow;
    uint32_t local_bytes; /* a thread's */
    struct soft_barrier barriers[SOFT_BARRIERS];
    uint32_t blocked; /* warps that wait for a barrier, a bit each */
    size_t memory_bytes;
};

/* Runs until all threads have exited (DONE), a turn is over (YIELD), or
 * the launch failed (FAULT). */
enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views);

/* No split of the warp can run: opens what all its lanes wait for. true: one can run now. */
bool soft_cta_unblock(struct soft_warp *warp);

/* The warp arrives at a barrier with all its threads. wait: it is to be woken when the barrier
 * opens. true: it opened. */
bool soft_cta_arrive(struct soft_warp *warp, uint32_t barrier, uint32_t expected, bool wait);

#endif
