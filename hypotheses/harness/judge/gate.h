/*
 * Gate: one run's results against another's, claim by claim: better, same, worse, or untold.
 *
 * A change counts when it is certain: the whole interval lies further from the baseline's than the
 * claim's tolerance (thresholds.toml), in the direction that the claim gets worse. A number without
 * an interval is exact, and compared as it is. What is falsified now is worse whatever was before;
 * what was tested and is not any more is never the same.
 */
#ifndef HYP_GATE_H
#define HYP_GATE_H

#include "results.h"

enum hyp_change { HYP_SAME, HYP_BETTER, HYP_NEW, HYP_IDLE, HYP_CANNOT_TELL, HYP_WORSE };

/* "same", "cannot tell". HYP_IDLE is "not tested", by either. */
const char *hyp_change_words(enum hyp_change change);

/* Compares what two runs say of a claim; NULL: a run has no row of it. One of them is there. The
 * sentence says what decided. */
enum hyp_change hyp_gate_compare(const struct hyp_result *now, const struct hyp_result *before,
                                 char *sentence, size_t bytes);

/* Whether two runs can be compared at all: the same device, mode and thresholds, and no fault made
 * on purpose. false: hyp_error() says why not. */
bool hyp_gate_comparable(const struct hyp_results *now, const struct hyp_results *before);

#endif
