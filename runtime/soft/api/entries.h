/*
 * Entries: the exported functions as cuGetProcAddress sees them.
 */
#ifndef SOFT_ENTRIES_H
#define SOFT_ENTRIES_H

#include "base/calls.h"

struct soft_entry {
    const char *base, *name; /* "cuMemAlloc", "cuMemAlloc_v2" */
    int version;             /* of CUDA that brought it */
    void (*function)(void);
    void (*own)(void);  /* for which the null stream is the thread's own; NULL: no such variant */
    const char *suffix; /* of that one's name: "_ptsz" */
};

extern const struct soft_entry soft_entries[SOFT_CALLS];

#endif
