/*
 * Results: the results.json of a run, read back for the gate and the exports.
 *
 * Another program may have written the file, perhaps an older one on another machine. A file that
 * is incomplete or contradicts this program's table of claims is rejected with one sentence.
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
    char under[64]; /* the saboteur of the whole run; "": none */
    size_t count;
    struct hyp_result rows[HYP_CLAIMS_MAX]; /* in the order of the file */
};

/* Reads FOLDER/results.json. false: hyp_error(). */
bool hyp_results_read(const char *folder, struct hyp_results *results);

/* The row of a claim; NULL: it was not chosen. */
const struct hyp_result *hyp_results_find(const struct hyp_results *results,
                                          const struct hyp_claim *claim);

#endif
