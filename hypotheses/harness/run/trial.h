/*
 * Trial: the steps for one claim. The claim is attacked; a comparison that falsified it is run once
 * more; with --sabotage it is attacked again under each of its saboteurs.
 */
#ifndef HYP_TRIAL_H
#define HYP_TRIAL_H

#include "run.h"
#include "watch.h"

/* How many attacks and saboteurs the claim has in this run, for the progress. */
size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim);

/* Sets the claim's verdict in the run and writes its evidence. false: hyp_error(). */
bool hyp_trial_run(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch);

#endif
