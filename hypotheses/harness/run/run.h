/*
 * Run: everything that one `tollens run` did and found, for its evidence and the console.
 */
#ifndef HYP_RUN_H
#define HYP_RUN_H

#include "measure/machine.h"
#include "judge/verdict.h"

struct hyp_run {
    struct hyp_machine machine;
    struct hyp_session session;
    const char *folder;  /* of the evidence */
    const char *command; /* as it was typed */
    bool sabotage;       /* severity was measured */
    uint64_t saboteur_s; /* for all attacks of one saboteur; 0: the default of the mode */
    bool limits;         /* detection limits were measured */
    unsigned jobs;       /* the maximum number of processes with attacks that run side by side */
    unsigned seeds;      /* that claims without times are attacked with, from session.seed on */
    const char *under;   /* the saboteur of the whole run; NULL: none, and the verdicts count */
    bool chosen[HYP_CLAIMS_MAX];
    struct hyp_verdict verdicts[HYP_CLAIMS_MAX]; /* of those chosen */
    double duration_s;
    int exit_code;
};

/* The number of claims that were not chosen: nothing is known about them. */
size_t hyp_run_left_out(const struct hyp_run *run);

/* "seed 7" or "seeds 1 to 8", written to text. */
const char *hyp_run_seeds(const struct hyp_run *run, char *text, size_t bytes);

/* The number of chosen claims that have a verdict. */
size_t hyp_run_count(const struct hyp_run *run, enum hyp_verdict_kind kind);

#endif
