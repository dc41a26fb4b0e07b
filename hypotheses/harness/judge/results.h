/*
 * Results: the results.json of some run, read back: for the gate and the exports.
 *
 * What is read was written by another program, perhaps an older one, perhaps on another machine: a
 * file that lacks something or contradicts this program's table of claims is refused in one
 * sentence, and never taken for a result.
 */
#ifndef HYP_RESULTS_H
#define HYP_RESULTS_H

#include "verdict.h"

struct hyp_result {
    const struct hyp_claim *claim;
    enum hyp_verdict_kind kind;
    char reason[256];
    bool has_effect, has_interval;
    double effect, low, high;
    double threshold;
    long long samples;
    int processes;
    bool has_severity;
    int caught, saboteurs, untold;
};

struct hyp_results {
    char device_kind[16], device_name[256], mode[16], commit[64];
    char under[64]; /* the fault it was measured under on purpose; "" for none */
    size_t count;
    struct hyp_result rows[HYP_CLAIMS_MAX]; /* in the order of the file */
};

/* Reads FOLDER/results.json. false: hyp_error() says what is wrong with it. */
bool hyp_results_read(const char *folder, struct hyp_results *results);

/* The row of a claim; NULL: it was not among those chosen. */
const struct hyp_result *hyp_results_find(const struct hyp_results *results,
                                          const struct hyp_claim *claim);

#endif
