/*
 * Gate: compares the results of two runs, claim by claim: better, same, worse, or undecided
 * ("cannot tell").
 *
 * A claim is worse if its whole interval is further from the baseline's than the claim's tolerance
 * (thresholds.toml), in the direction in which the claim gets worse. A number without an interval
 * is exact. A claim that is falsified now is worse, whatever it was before. A claim that was tested
 * before and is not tested now is never the same.
 */
#ifndef HYP_GATE_H
#define HYP_GATE_H

#include "results.h"

enum hyp_change { HYP_SAME, HYP_BETTER, HYP_NEW, HYP_IDLE, HYP_CANNOT_TELL, HYP_WORSE };

/* "same", "cannot tell". HYP_IDLE, "not tested", means by neither run. */
const char *hyp_change_words(enum hyp_change change);

/* Compares the rows of a claim in two runs; one of them may be NULL. The sentence gives the
 * reason. */
enum hyp_change hyp_gate_compare(const struct hyp_result *now, const struct hyp_result *before,
                                 char *sentence, size_t bytes);

/* Whether two runs can be compared: same device, mode and thresholds, and no saboteur. false:
 * hyp_error() says why not. */
bool hyp_gate_comparable(const struct hyp_results *now, const struct hyp_results *before);

#endif
