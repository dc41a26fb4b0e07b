/*
 * Trial: the steps for one claim. The claim is attacked, and a comparison that falsified it is run
 * once more. With --sabotage or --limits it is attacked again under its saboteurs, once all claims
 * have their verdicts: people wait for those.
 */
#ifndef HYP_TRIAL_H
#define HYP_TRIAL_H

#include "run.h"
#include "watch.h"

/* How many attacks the claim has in this run, and how many saboteurs, for the progress. */
size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim);
size_t hyp_trial_sabotages(const struct hyp_run *run, const struct hyp_claim *claim);

/* Sets the claim's verdict in the run and writes its evidence. false: hyp_error(). */
bool hyp_trial_run(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch);

/* Adds to the verdict which faults the claim's attacks notice, as far as the run asks for that, and
 * writes the evidence again. Nothing where the claim was not tested or the run was interrupted.
 * false: hyp_error(). */
bool hyp_trial_sabotage(struct hyp_run *run, const struct hyp_claim *claim,
                        struct hyp_watch *watch);

#endif
