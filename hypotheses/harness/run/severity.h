/*
 * Severity: the claims are attacked again under their saboteurs, which the attacks must notice.
 * This follows all verdicts, because people wait for those. Saboteurs of claims that can share the
 * device run side by side, then those of the other claims.
 */
#ifndef HYP_SEVERITY_H
#define HYP_SEVERITY_H

#include "run.h"
#include "progress.h"

/* The number of saboteurs of a claim that this run tries, for the progress. */
size_t hyp_severity_steps(const struct hyp_run *run, const struct hyp_claim *claim);

/* Prints a claim's severity; left: of the run, as hyp_progress_left has it. */
typedef void hyp_severity_shown(const struct hyp_run *run, const struct hyp_claim *claim,
                               const char *left);

/* Adds the severity to the verdict of each chosen claim that was tested, writes its evidence again
 * and calls show, one claim at a time. Does nothing if the run is interrupted. false:
 * hyp_error(). */
bool hyp_severity_measure(struct hyp_run *run, struct hyp_progress *watch,
                          hyp_severity_shown *show);

#endif
