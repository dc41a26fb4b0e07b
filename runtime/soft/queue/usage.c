/*
 * Counts launches.
 */
#include "usage.h"

static struct soft_usage counts;

void soft_usage_launch(struct soft_function *function) {
    counts.launches++;
    counts.kernels += !function->is_launched;
    function->is_launched = true;
}

struct soft_usage soft_usage(void) {
    return counts;
}
