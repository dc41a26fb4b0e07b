/*
 * Calls: one block of a comparison call by call, and the rule that discards disturbed calls.
 *
 * Each half of a block has the same number of calls of both sides, in random order, so that what
 * slows the machine for a while, or periodically, affects both sides alike. A call longer
 * than HYP_CALLS_DISTURBED times the block's median, over both sides together, was disturbed: an
 * interrupt, a preemption, a page touched for the first time. The rule does not ask which side the
 * call belongs to. The median is the upper one: if all calls of one side are longer than all calls
 * of the other, none of them is discarded, even if they are much longer.
 */
#ifndef HYP_SINGLE_CALLS_H
#define HYP_SINGLE_CALLS_H

#include "harness/comparison.h"

#include <stdint.h>

/* A launch that a saboteur makes twice takes twice as long, and calls that nothing disturbs differ
 * by a factor of two themselves (99 % of the launches on an H200). */
#define HYP_CALLS_DISTURBED 5.0

/* The sums baseline, subject, subject, baseline of the halves, each for hyp_pair.calls calls. */
struct hyp_calls {
    double ns[4];          /* a discarded call counts as the mean of the others */
    double all_ns[4];      /* with the discarded calls */
    unsigned discarded[2]; /* by side */
};

/* Makes one block, with the baseline on both sides if it is a control. A sum that would lose more
 * than half of its calls keeps all. false: a call failed. */
bool hyp_calls_block(const struct hyp_pair *pair, bool control, uint64_t (*random)(void *user),
                     void *user, struct hyp_calls *block);

/* Makes this number of calls of each side without measuring them. false: a call failed. */
bool hyp_calls_warm(const struct hyp_pair *pair, unsigned calls);

#endif
