/*
 * Evidence: the files of one run that other programs read.
 *
 *     machine.json  run.json  results.json  junit.xml  summary.md
 *     H3/claim.json  H3/verdict.json  H3/NAME.hlog  H3/attacks/NAME.json  H3/attacks.log
 *
 * results.json is schema 1 of ARCHITECTURE.md; names in it stay, and new ones may come.
 * All functions return false with hyp_error().
 */
#ifndef HYP_EVIDENCE_H
#define HYP_EVIDENCE_H

#include "run.h"

/* FOLDER/ID/claim.json and verdict.json of one claim. */
bool hyp_evidence_claim(const struct hyp_run *run, const struct hyp_claim *claim);

/* run.json and results.json. */
bool hyp_evidence_results(const struct hyp_run *run);

/* junit.xml: a suite for each claim, a case for each attack. */
bool hyp_evidence_junit(const struct hyp_run *run);

/* summary.md: the verdicts as a table, then the counterexamples. */
bool hyp_evidence_summary(const struct hyp_run *run);

#endif
