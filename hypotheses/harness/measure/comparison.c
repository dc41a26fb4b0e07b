/*
 * What a comparison expects if there is no effect.
 */
#include "harness/comparison.h"

#include <math.h>

double hyp_pair_none(const struct hyp_pair *pair) {
    return pair->is_ratio ? 1 : 0;
}

double hyp_pair_margin(const struct hyp_pair *pair) {
    return fabs(pair->rule.threshold - hyp_pair_none(pair));
}
