/*
 * Waits at mbarriers: a test of an incomplete phase sets its split aside for a while.
 */
#ifndef SOFT_MBARRIER_WAIT_H
#define SOFT_MBARRIER_WAIT_H

#include "machine/machine_state.h"

/* mbarrier.test_wait, .try_wait: NULL while the current split is set aside. */
const struct soft_instruction *soft_mbarrier_test(struct soft_warp *warp,
                                                  const struct soft_instruction *in);

/* Resumes the splits that are set aside, of all objects. false: there are none. */
bool soft_mbarrier_time_out(struct soft_cta *cta);

#endif
