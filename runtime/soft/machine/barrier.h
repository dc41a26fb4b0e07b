/*
 * Barriers: the sixteen that each CTA has.
 */
#ifndef SOFT_BARRIER_H
#define SOFT_BARRIER_H

#include "machine_state.h"

/* The current split is at a barrier for this number of threads (0: all); the lanes of votes have a
 * true predicate. Returns the next instruction, NULL to wait. */
const struct soft_instruction *soft_warp_barrier(struct soft_warp *warp,
                                                 const struct soft_instruction *in, uint32_t number,
                                                 uint32_t threads, uint32_t votes);

/* If all of the warp's threads wait at one barrier, lets the warp arrive there. true: some of them
 * can continue. */
bool soft_warp_arrive(struct soft_warp *warp);

/* A warp's last thread has exited: barriers no longer wait for it. */
void soft_cta_warp_ended(struct soft_cta *cta);

#endif
