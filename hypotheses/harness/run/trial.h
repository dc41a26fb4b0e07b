/*
 * Trial: a claim gets its verdict. It is attacked, and a comparison that falsified it is run once
 * more.
 */
#ifndef HYP_TRIAL_H
#define HYP_TRIAL_H

#include "run.h"
#include "watch.h"

/* How many attacks the claim has in this run, for the progress. */
size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim);

/* Sets the claim's verdict in the run and writes its evidence. Several claims may be tried at once,
 * each on a thread. false: hyp_error(). */
bool hyp_trial_run(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch);

#endif
