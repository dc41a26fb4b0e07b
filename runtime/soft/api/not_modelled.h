/*
 * Functions of a driver that the soft device does not model. They are exported so that programs
 * that are linked with them, or look them up, start. Each returns CUDA_ERROR_NOT_SUPPORTED, and its
 * first call writes a line to stderr and to the driver's log. Any thread.
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
