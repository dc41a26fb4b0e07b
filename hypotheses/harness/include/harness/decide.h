/*
 * Decide: what an interval says about a threshold, and what several processes say together.
 *
 * A claim is about the true effect, and wrong either way at most 2.5 times in a hundred: values are
 * looked at HYP_LOOKS times, so each look may be wrong a share of that. A claim of several effects
 * falls with any one of them, so for falling the share is cut once more; to survive, all of them
 * must, which needs no cut. Source: MEASURING.md section 5.
 */
#ifndef HYP_DECIDE_H
#define HYP_DECIDE_H

#include "claim.h"
#include "interval.h"

enum { HYP_LOOKS = 5, HYP_BLOCKS_MAX = 800, HYP_PROCESSES = 6 };

/* After how many blocks is looked: hyp_looks[HYP_LOOKS - 1] is HYP_BLOCKS_MAX. */
extern const size_t hyp_looks[HYP_LOOKS];

enum hyp_decision { HYP_UNDECIDED, HYP_HOLDS, HYP_FALLS };

struct hyp_rule {
    double threshold;
    enum hyp_direction direction;
    unsigned family; /* how many effects the claim falls by; at least 1 */
};

/* The interval of values for one look at a rule. false as hyp_interval_of. */
bool hyp_decide_interval(const struct hyp_rule *rule, const double *values, size_t count,
                         struct hyp_interval *interval);

/* What an interval says. */
enum hyp_decision hyp_decide(const struct hyp_rule *rule, const struct hyp_interval *interval);

/* What the medians of fresh processes say: they must all lie on one side, and be at least
 * HYP_PROCESSES, since fewer could do so by chance more often than 2.5 times in a hundred. */
enum hyp_decision hyp_decide_processes(const struct hyp_rule *rule, const double *medians,
                                       size_t count);

#endif
