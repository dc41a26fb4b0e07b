/*
 * Limits: the smallest faults that the attacks of a claim notice, measured with --limits.
 */
#ifndef HYP_LIMITS_H
#define HYP_LIMITS_H

#include "run.h"
#include "progress.h"

/* About the number of steps of a claim's ladders that this run tries, for the progress. */
size_t hyp_limits_steps(const struct hyp_run *run, const struct hyp_claim *claim);

/* Is called for each claim after its ladders have been searched. */
typedef void hyp_limits_shown(const struct hyp_run *run, const struct hyp_claim *claim);

/* Attacks each chosen claim under steps of each of its ladders, and keeps the detection limits in
 * its verdict and its evidence. Up to run->jobs ladders are searched side by side, those of claims
 * that run alone one after the other. Nothing of a claim that was not tested, or falsified: its
 * attacks would seem to notice every fault. false: hyp_error(). */
bool hyp_limits_measure(struct hyp_run *run, struct hyp_progress *watch, hyp_limits_shown *show);

#endif
