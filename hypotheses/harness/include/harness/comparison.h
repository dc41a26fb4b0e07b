/*
 * Comparison: two ways of doing the same thing, the baseline and the subject, as a pair that the
 * sampler compares.
 */
#ifndef HYP_COMPARISON_H
#define HYP_COMPARISON_H

#include "decide.h"

enum hyp_side { HYP_BASELINE, HYP_SUBJECT };

enum { HYP_CALLS_MAX = 64 }; /* hyp_pair.calls, where hyp_pair.call is set */

struct hyp_pair {
    const char *name; /* "launch_4_arguments" */
    bool is_ratio;    /* the effect is subject / baseline; otherwise subject - baseline per call */
    double scale;     /* converts a difference in nanoseconds to the claim's unit */
    struct hyp_rule rule;
    bool recorded_only;  /* the claim is not judged by it */
    bool is_device_work; /* the device determines a batch's time, not the processor's speed */
    unsigned calls;      /* per batch; with .call, of each side in half a block */
    size_t blocks_min;   /* not judged before this many blocks; 0: from the first look */
    unsigned warm_calls; /* per side, before the first block */
    /* Makes calls through one side. Returns their duration in nanoseconds, or a negative number
     * if one failed. */
    double (*batch)(void *user, enum hyp_side side, unsigned calls);
    void *user;
    /* Instead of .batch: makes one call, and returns as .batch. NULL: .batch is used. */
    double (*call)(void *user, enum hyp_side side);
    /* With .call: called after each half of a block, to wait until the queue that the calls fill
     * is empty. false: that failed. NULL: there is nothing to wait for. */
    bool (*settle)(void *user);
};

/* The effect if both sides are alike: a ratio of 1, or a difference of 0. */
double hyp_pair_none(const struct hyp_pair *pair);

/* The distance between no effect and the threshold. The control and the quartiles of the blocks
 * must stay within shares of it. */
double hyp_pair_margin(const struct hyp_pair *pair);

#endif
