/*
 * Limits: the smallest faults that the attacks of a claim notice, measured with --limits.
 */
#ifndef HYP_LIMITS_H
#define HYP_LIMITS_H

#include "run.h"
#include "watch.h"

/* Attacks the claim under steps of each of its ladders, and keeps the detection limits in its
 * verdict. false: hyp_error(). */
bool hyp_limits_measure(struct hyp_run *run, const struct hyp_claim *claim,
                        struct hyp_watch *watch);

#endif
