/*
 * Repeats: counts the verdicts of repeated runs, to find verdicts that are not reproducible.
 *
 * The seed is the same each time, so differences come from the machine or the code, not from random
 * choices. Each run has its complete evidence in OUT/repeat1, OUT/repeat2 and so on.
 * OUT/repeats.json has the counts and is rewritten after each run.
 */
#ifndef HYP_REPEATS_H
#define HYP_REPEATS_H

#include "run.h"

#include <stdio.h>

struct hyp_repeats {
    unsigned wanted, done;
    unsigned counts[HYP_CLAIMS_MAX][HYP_NOT_TESTED + 1]; /* by verdict */
    int worst; /* exit code: falsified, error, inconclusive */
};

/* Counts the verdicts of a run. */
void hyp_repeats_count(struct hyp_repeats *repeats, const struct hyp_run *run);

/* Whether a claim had the same verdict each time. */
bool hyp_repeats_agree(const struct hyp_repeats *repeats, const struct hyp_claim *claim);

/* Writes FOLDER/repeats.json; run has the options. false: hyp_error(). */
bool hyp_repeats_write(const struct hyp_repeats *repeats, const struct hyp_run *run,
                       const char *folder);

/* Prints the counts as a table. */
void hyp_repeats_print(const struct hyp_repeats *repeats, const struct hyp_run *run, FILE *out);

#endif
