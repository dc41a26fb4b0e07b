/*
 * CTA: one block of threads while it runs: its warps, its shared memory, its barriers.
 *
 * All state of a CTA is here, not on a host stack. So a CTA that spins or has used up its turn can
 * be set aside while another one runs. One host thread runs a CTA at a time.
 */
#ifndef SOFT_CTA_H
#define SOFT_CTA_H

#include "warp.h"

struct soft_launch;

enum { SOFT_WARPS_MAX = 32, SOFT_BARRIERS = 16 };

struct soft_barrier {
    uint32_t arrived;                /* threads, in whole warps */
    uint32_t expected;               /* threads; 0: all of the CTA that have not exited */
    uint32_t waiting;                /* warps that wait, a bit each */
    uint32_t red_threads, red_count; /* of barrier.red: threads so far, and those that say yes */
};

struct soft_cta {
    struct soft_launch *launch; /* the one its frames are filled for */
    struct soft_cta *next;      /* in a list of idle or parked ones */
    uint32_t index[3];          /* %ctaid */
    uint64_t number;            /* the same as one number */
    uint64_t dice;              /* 0: warps take turns in the usual order */
    uint32_t warp_count;
    uint32_t warp_room; /* how many its memory has room for */
    uint32_t warps_alive;
    struct soft_warp *warps;
    uint8_t *slots; /* the first frames of all warps, one behind the other */
    uint8_t *shared;
    uint8_t *shared_shadow; /* a byte for each four; NULL where writes are not tracked */
    uint32_t shared_bytes;
    struct soft_barrier barriers[SOFT_BARRIERS];
    uint32_t blocked;   /* warps that wait for a barrier, a bit each */
    bool cluster_begun; /* some threads have come to the barrier of the cluster */
    uint32_t idle;      /* how often nothing but tests of mbarriers could go on */
    size_t memory_bytes;
    struct soft_race_cta *race; /* NULL where races are not looked for */
};

/* Runs until all threads have exited (DONE), a turn is over (YIELD), or
 * the launch failed (FAULT). */
enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views);

/* barrier.c: the current split is at a barrier for so many threads (0: all), and of its lanes those
 * of votes bring a true predicate. Returns where to go on, NULL to wait. */
const struct soft_instruction *soft_warp_barrier(struct soft_warp *warp,
                                                 const struct soft_instruction *in, uint32_t number,
                                                 uint32_t threads, uint32_t votes);

/* Where all of the warp's threads wait at one barrier, lets the warp arrive there. true: some of
 * them can go on. */
bool soft_warp_arrive(struct soft_warp *warp);

/* A warp's last thread has exited: barriers need wait for it no longer. */
void soft_cta_warp_ended(struct soft_cta *cta);

/* cluster.c: the lanes that run arrive at the barrier of the cluster, which is this CTA alone; or
 * wait there, and NULL is returned. */
const struct soft_instruction *soft_cluster_arrive(struct soft_warp *warp,
                                                   const struct soft_instruction *in);
const struct soft_instruction *soft_cluster_wait(struct soft_warp *warp,
                                                 const struct soft_instruction *in);

/* Opens that barrier if all threads that have not exited are there. */
void soft_cluster_check(struct soft_cta *cta);

#endif
