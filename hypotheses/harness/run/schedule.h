/*
 * Schedule: what of a run comes when. First all verdicts, then severity, then detection limits.
 * Claims that can share the device are tried side by side, as far as the run's jobs allow; verdicts
 * are printed in the order of claims.
 */
#ifndef HYP_SCHEDULE_H
#define HYP_SCHEDULE_H

#include "run.h"

/* Tries every chosen claim, prints what came of it, and writes the evidence of each into
 * run->folder. verbose: with a line for each attack. false: hyp_error(). */
bool hyp_schedule_run(struct hyp_run *run, bool verbose);

#endif
