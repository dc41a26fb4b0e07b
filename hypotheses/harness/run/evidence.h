/*
 * Evidence: the files of one run that other programs read.
 *
 *     machine.json  run.json  results.json  junit.xml  summary.md  manifest.json
 *     H3/claim.json  H3/verdict.json  H3/NAME.hlog  H3/attacks/NAME.json  H3/attacks.log
 *     H3/sabotage/NAME/verdict.json  H3/limits/NAME/seedN.json
 *
 * results.json follows schema 1 of ARCHITECTURE.md. Its names are stable; new ones may be added.
 * All functions return false with hyp_error().
 */
#ifndef HYP_EVIDENCE_H
#define HYP_EVIDENCE_H

#include "run.h"

/* FOLDER/ID/claim.json and verdict.json of one claim. */
bool hyp_evidence_claim(const struct hyp_run *run, const struct hyp_claim *claim);

/* FOLDER/ID/sabotage/NAME/verdict.json: the expected and the observed verdict of a saboteur. */
bool hyp_evidence_saboteur(const struct hyp_run *run, const struct hyp_claim *claim,
                           const struct hyp_saboteur *saboteur, const struct hyp_verdict *verdict,
                           bool right);

/* FOLDER/ID/limits/NAME/seedN.json: the verdict under a step of a ladder with one seed. */
bool hyp_evidence_limit(const struct hyp_run *run, const struct hyp_claim *claim,
                        const char *saboteur, uint64_t seed, const struct hyp_verdict *verdict);

/* results.json. */
bool hyp_evidence_results(const struct hyp_run *run);

/* manifest.json, of all files of this run, and last run.json: if it exists, the run is complete. */
bool hyp_evidence_end(const struct hyp_run *run);

/* junit.xml: a suite per claim, a case per attack. */
bool hyp_evidence_junit(const struct hyp_run *run);

/* summary.md: the verdicts as a table, then the counterexamples. */
bool hyp_evidence_summary(const struct hyp_run *run);

#endif
