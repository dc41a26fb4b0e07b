/*
 * CTA: one block of threads while it runs; its warps take turns.
 */
#ifndef SOFT_CTA_H
#define SOFT_CTA_H

#include "machine/machine_state.h"

/* The number of consecutive failing mbarrier tests, with no other progress, that count as a
 * deadlock. A kernel that counts its tests and gives up does so later. */
enum { SOFT_IDLE_MAX = 1 << 12 };

/* Runs until all threads have exited (DONE), a turn is over (YIELD), the launch failed (FAULT), or,
 * in a cluster, another CTA must do something first (BLOCKED). */
enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views);

/* No warp can ever continue: reports which warps wait where, and fails the launch. */
enum soft_stop soft_cta_deadlock(struct soft_cta *cta);

#endif
