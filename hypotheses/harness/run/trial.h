/*
 * Trial: a claim gets its verdict. It is attacked, and a comparison that falsified it is run once
 * more.
 */
#ifndef HYP_TRIAL_H
#define HYP_TRIAL_H

#include "run.h"
#include "progress.h"

/* The number of attacks on the claim in this run, for the progress. */
size_t hyp_trial_steps(const struct hyp_run *run, const struct hyp_claim *claim);

/* Begins a trial: plans its passes in the claim's verdict, or sets the verdict where the claim
 * cannot be attacked; it then has no passes. false: hyp_error(). */
bool hyp_trial_begin(struct hyp_run *run, const struct hyp_claim *claim);

/* Runs one pass, from 0. Passes may run at once, each on a thread. false: hyp_error(). */
bool hyp_trial_pass(struct hyp_run *run, const struct hyp_claim *claim, unsigned pass,
                    struct hyp_progress *watch);

/* After the first passes, those of one seed or all: sets the claim's verdict in the run and writes
 * its evidence. false: hyp_error(). */
bool hyp_trial_end(struct hyp_run *run, const struct hyp_claim *claim, unsigned passes,
                   struct hyp_progress *watch);

#endif
