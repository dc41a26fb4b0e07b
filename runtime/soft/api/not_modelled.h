/*
 * The functions that a driver has and the soft device does not model, so that programs which are
 * linked with them, or look them up, begin. Each answers CUDA_ERROR_NOT_SUPPORTED, and the first
 * call of each says so in a line on stderr and in the driver's log. Any thread.
 */
#ifndef SOFT_NOT_MODELLED_H
#define SOFT_NOT_MODELLED_H

#include "entries.h"

enum {
#define SOFT_NAME(thread, version, base, suffix) SOFT_OTHER_##base##suffix,
#include "base/functions_other.def"
    SOFT_OTHERS
};

extern const struct soft_entry soft_other_entries[SOFT_OTHERS];

#endif
