/*
 * Run options: the options of `tollens run`.
 */
#ifndef HYP_RUN_OPTIONS_H
#define HYP_RUN_OPTIONS_H

#include "run.h"

enum { HYP_REPEATS_MAX = 1000, HYP_SEEDS_MAX = 1000 };

/* The default number of seeds that a claim without times is attacked with. */
enum { HYP_SEEDS_QUICK = 2, HYP_SEEDS_FULL = 8 };

struct hyp_run_options {
    bool require_gpu, allow_untested;
    bool inconclusive_warns;
    bool verbose;    /* a line on stderr for each attack */
    const char *out; /* NULL: the program chooses the folder */
    uint64_t
        repeats; /* how often all of it runs; 0: once, with the evidence in the folder itself */
    const char *trace;                 /* the file of the timeline; NULL: none */
    uint64_t trace_every, trace_share; /* as in tol_trace_options; 0: not said */
    bool any_claim, list, has_seed;
    uint64_t seeds, jobs; /* 0: not said */
};

/* Reads the environment and the words. Their choice of claims and sizes is stored in the run, the
 * rest in the options. false: hyp_error() says which word makes no sense. */
bool hyp_run_options_read(int count, char **words, struct hyp_run *run,
                          struct hyp_run_options *options);

/* "tollens run H1 --full", for the evidence; free it. NULL: no memory. Where the evidence and
 * the trace went is left out: these are paths of this machine, evidence is published, and another
 * run's will differ. */
char *hyp_run_options_command(int count, char **words);

#endif
