/*
 * Decide: whether an interval, or the medians of several processes, decide about a threshold.
 *
 * A decision about the true effect may be wrong at most 2.5 times in a hundred in either direction.
 * The values are examined HYP_LOOKS times, so each look gets a share of that probability. A claim
 * with several effects is falsified by any one of them, so the share for falsifying is divided
 * again by their number. To survive, all effects must, which needs no division.
 * Source: MEASURING.md section 5.
 */
#ifndef HYP_DECIDE_H
#define HYP_DECIDE_H

#include "claim.h"
#include "interval.h"

enum { HYP_LOOKS = 5, HYP_BLOCKS_MAX = 800, HYP_PROCESSES = 6 };

/* The numbers of blocks after which the interval is examined; the last is HYP_BLOCKS_MAX. */
extern const size_t hyp_looks[HYP_LOOKS];

enum hyp_decision { HYP_UNDECIDED, HYP_HOLDS, HYP_FALLS };

struct hyp_rule {
    double threshold;
    enum hyp_direction direction;
    unsigned family; /* the number of effects that can falsify the claim; at least 1 */
};

/* The interval of the values for one look. false as hyp_interval_of. */
bool hyp_decide_interval(const struct hyp_rule *rule, const double *values, size_t count,
                         struct hyp_interval *interval);

/*
 * The intervals of a control, which has no true effect. The first is judged like an effect that
 * holds: that all controls of a claim are within their bounds needs no division. The second is
 * for the finding that a control measured something. Any control of a run can do that by chance, so
 * its share is divided by their number: family effects in HYP_PROCESSES processes. If
 * no control has an effect, a run finds one at most 5 times in a hundred, over all looks.
 * false as hyp_interval_of.
 */
bool hyp_decide_control(const struct hyp_rule *rule, const double *values, size_t count,
                        struct hyp_interval *interval, struct hyp_interval *surely);

/* The decision of an interval. */
enum hyp_decision hyp_decide(const struct hyp_rule *rule, const struct hyp_interval *interval);

/* The decision of the medians of fresh processes. All must be on the same side, and there must
 * be at least HYP_PROCESSES: fewer could agree by chance more often than 2.5 times in a hundred. */
enum hyp_decision hyp_decide_processes(const struct hyp_rule *rule, const double *medians,
                                       size_t count);

#endif
