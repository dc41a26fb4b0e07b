/*
 * Evidence: the files of one run that other programs read.
 *
 *     machine.json  run.json  results.json  junit.xml  summary.md  manifest.json
 *     H3/claim.json  H3/verdict.json  H3/NAME.hlog  H3/attacks/NAME.json  H3/attacks.log
 *     H3/sabotage/NAME/verdict.json
 *
 * results.json is schema 1 of ARCHITECTURE.md; names in it stay, and new ones may come.
 * All functions return false with hyp_error().
 */
#ifndef HYP_EVIDENCE_H
#define HYP_EVIDENCE_H

#include "run.h"

/* FOLDER/ID/claim.json and verdict.json of one claim. */
bool hyp_evidence_claim(const struct hyp_run *run, const struct hyp_claim *claim);

/* FOLDER/ID/sabotage/NAME/verdict.json: what a saboteur had to force and what came out. */
bool hyp_evidence_saboteur(const struct hyp_run *run, const struct hyp_claim *claim,
                           const struct hyp_saboteur *saboteur, const struct hyp_verdict *verdict,
                           bool right);

/* results.json. */
bool hyp_evidence_results(const struct hyp_run *run);

/* manifest.json, of all that lies there of this run, and then run.json: where it is, all is. */
bool hyp_evidence_end(const struct hyp_run *run);

/* junit.xml: a suite for each claim, a case for each attack. */
bool hyp_evidence_junit(const struct hyp_run *run);

/* summary.md: the verdicts as a table, then the counterexamples. */
bool hyp_evidence_summary(const struct hyp_run *run);

#endif
