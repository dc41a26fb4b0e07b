/*
 * Lanes: jobs that run side by side, each on a thread, begun in the order of their numbers. What
 * came of them is taken in the same order, so that a run prints and writes the same whatever ended
 * first.
 */
#ifndef HYP_LANES_H
#define HYP_LANES_H

#include <stdbool.h>
#include <stddef.h>

enum { HYP_LANES_MAX = 64 };

struct hyp_lanes {
    unsigned lanes;                       /* jobs that run at a time; 1: on this thread */
    size_t jobs;                          /* their numbers are 0 to jobs - 1 */
    bool (*run)(void *user, size_t job);  /* false: hyp_error() */
    bool (*take)(void *user, size_t job); /* one at a time; false: hyp_error() */
    void *user;
};

/* Runs all jobs. The first that fails, or cannot be taken, ends it: those that run are waited for,
 * and no other begins or is taken. false: hyp_error() of that job. */
bool hyp_lanes_run(const struct hyp_lanes *lanes);

#endif
