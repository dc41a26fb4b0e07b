/*
 * Calls: the exported functions by number, and their names.
 */
#ifndef SOFT_CALLS_H
#define SOFT_CALLS_H

enum soft_call {
#define SOFT_FN(thread, version, base, name, parameters, names) SOFT_CALL_##name,
#include "functions.def"
    SOFT_CALLS
};

struct soft_call_name {
    const char *base, *name; /* "cuMemAlloc", "cuMemAlloc_v2" */
    const char *suffix; /* of the variant for which the null stream is the thread's own: "_ptsz"; ""
                         * where there is none */
};

extern const struct soft_call_name soft_call_names[SOFT_CALLS];

#endif
