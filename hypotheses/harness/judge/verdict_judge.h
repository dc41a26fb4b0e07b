/*
 * Judging: from the outcomes of the attacks to a verdict.
 */
#ifndef HYP_VERDICT_JUDGE_H
#define HYP_VERDICT_JUDGE_H

#include "verdict.h"

/* Judges the outcomes in verdict->outcomes. findings is the number of lines in the soft device's
 * own report: invalid accesses that no attack intended. */
void hyp_verdict_judge(const struct hyp_claim *claim, size_t findings, struct hyp_verdict *verdict);

/*
 * Combines a falsified comparison with a second run of it. One run can be wrong by chance or by a
 * disturbed machine, so a fresh process must confirm it before the claim is falsified.
 */
void hyp_verdict_confirm(struct hyp_verdict *verdict, const struct hyp_verdict *second);

#endif
