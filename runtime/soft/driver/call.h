/*
 * Call: the code before and after every exported function.
 */
#ifndef SOFT_CALL_H
#define SOFT_CALL_H

#include "base/abi.h"

#include <stdbool.h>
#include <stddef.h>

/* The exported functions, by number. */
enum soft_call {
#define SOFT_FN(thread, version, base, name, parameters, names) SOFT_CALL_##name,
#include "base/functions.def"
    SOFT_CALLS
};

/* An exported function as cuGetProcAddress sees it. */
struct soft_entry {
    const char *base, *name; /* "cuMemAlloc", "cuMemAlloc_v2" */
    int version;             /* of CUDA that brought it */
    void (*function)(void);
    void (*own)(void);  /* for which the null stream is the thread's own; NULL: no such variant */
    const char *suffix; /* of that one's name: "_ptsz" */
};

extern const struct soft_entry soft_entries[SOFT_CALLS];

/* Before the body: a code other than CUDA_SUCCESS is returned instead of calling it. own_default:
 * the call takes the null stream for the thread's own. */
CUresult soft_call_begin(enum soft_call call, bool own_default);

/* After it: what the call returns. */
CUresult soft_call_end(enum soft_call call, CUresult result);

#endif
