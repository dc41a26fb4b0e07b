/*
 * CTA: one block of threads while it runs; its warps take turns.
 */
#ifndef SOFT_CTA_H
#define SOFT_CTA_H

#include "machine/machine_state.h"

/* Tests of mbarriers that all fail, with nothing else going on between them, before that is taken
 * for a deadlock. A kernel may count its tests and give up; hardly so early. */
enum { SOFT_IDLE_MAX = 1 << 12 };

/* Runs until all threads have exited (DONE), a turn is over (YIELD), the launch failed (FAULT), or,
 * in a cluster, another CTA must do something first (BLOCKED). */
enum soft_stop soft_cta_run(struct soft_cta *cta, struct soft_view *views);

/* No warp can go on and none will: says who waits where, and fails the launch. */
enum soft_stop soft_cta_deadlock(struct soft_cta *cta);

#endif
