/*
 * Repeats: how often each verdict came when the same run was made again and again, for those who
 * look for one that does not always come.
 *
 * Each time the seed is the same, so what differs is the machine or the code, and not what was
 * drawn. The evidence of each is whole, in OUT/repeat1, OUT/repeat2 and so on; OUT/repeats.json
 * counts them, and is written anew after each.
 */
#ifndef HYP_REPEATS_H
#define HYP_REPEATS_H

#include "run.h"

struct hyp_repeats {
    unsigned wanted, done;
    unsigned counts[HYP_CLAIMS_MAX][HYP_NOT_TESTED + 1]; /* by verdict */
    int worst;                                       /* exit code: falsified, error, inconclusive */
};

/* Counts a run that has ended. */
void hyp_repeats_count(struct hyp_repeats *repeats, const struct hyp_run *run);

/* Whether a claim came out the same each time. */
bool hyp_repeats_agree(const struct hyp_repeats *repeats, const struct hyp_claim *claim);

/* FOLDER/repeats.json; the run says what was asked for. false: hyp_error(). */
bool hyp_repeats_write(const struct hyp_repeats *repeats, const struct hyp_run *run,
                       const char *folder);

/* The counts as a table on stdout. */
void hyp_repeats_tell(const struct hyp_repeats *repeats, const struct hyp_run *run);

#endif
