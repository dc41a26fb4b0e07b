/*
 * Usage: how many kernels a process has launched. The caller holds soft_lock.
 */
#ifndef SOFT_USAGE_H
#define SOFT_USAGE_H

#include "lower/loaded_module.h"

struct soft_usage {
    uint64_t kernels, launches; /* kernels: different ones */
};

/* Counts a launch that begins. */
void soft_usage_launch(struct soft_function *function);
struct soft_usage soft_usage(void);

#endif
