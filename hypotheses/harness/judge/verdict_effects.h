/*
 * Effects: what a timed claim is judged by.
 */
#ifndef HYP_VERDICT_EFFECTS_H
#define HYP_VERDICT_EFFECTS_H

#include "verdict.h"

/* Judges the effects of a timed claim, if nothing else decided the verdict. */
void hyp_verdict_judge_effects(const struct hyp_claim *claim, struct hyp_verdict *verdict);

#endif
