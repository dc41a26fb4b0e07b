/*
 * The rule, for each direction of a claim.
 */
#include "harness/decide.h"

const size_t hyp_looks[HYP_LOOKS] = {50, 100, 200, 400, HYP_BLOCKS_MAX};

static const double WRONG_MAX = 0.025;

bool hyp_decide_interval(const struct hyp_rule *rule, const double *values, size_t count,
                         struct hyp_interval *interval) {
    double holds = WRONG_MAX / HYP_LOOKS;
    double falls = holds / (rule->family > 0 ? rule->family : 1);
    /* A claim about something large falls by the high end, all others by the low one. */
    bool above = rule->direction == HYP_ABOVE;
    return hyp_interval_of(values, count, above ? holds : falls, above ? falls : holds, interval);
}

bool hyp_decide_control(const struct hyp_rule *rule, const double *values, size_t count,
                        struct hyp_interval *interval, struct hyp_interval *surely) {
    double one = WRONG_MAX / HYP_LOOKS;
    double any = one / ((rule->family > 0 ? rule->family : 1) * (double)HYP_PROCESSES);
    return hyp_interval_of(values, count, one, one, interval) &&
           hyp_interval_of(values, count, any, any, surely);
}

enum hyp_decision hyp_decide(const struct hyp_rule *rule, const struct hyp_interval *interval) {
    const double threshold = rule->threshold, low = interval->low, high = interval->high;
    switch (rule->direction) {
    case HYP_AT_MOST:
        return high <= threshold ? HYP_HOLDS : low > threshold ? HYP_FALLS : HYP_UNDECIDED;
    case HYP_BELOW:
        return high < threshold ? HYP_HOLDS : low >= threshold ? HYP_FALLS : HYP_UNDECIDED;
    case HYP_ABOVE:
        return low > threshold ? HYP_HOLDS : high <= threshold ? HYP_FALLS : HYP_UNDECIDED;
    }
    return HYP_UNDECIDED;
}

enum hyp_decision hyp_decide_processes(const struct hyp_rule *rule, const double *medians,
                                       size_t count) {
    size_t hold = 0, fall = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hyp_interval point = {
            .median = medians[i], .low = medians[i], .high = medians[i]};
        enum hyp_decision decision = hyp_decide(rule, &point);
        hold += decision == HYP_HOLDS;
        fall += decision == HYP_FALLS;
    }
    if (count < HYP_PROCESSES) return HYP_UNDECIDED;
    return hold == count ? HYP_HOLDS : fall == count ? HYP_FALLS : HYP_UNDECIDED;
}
