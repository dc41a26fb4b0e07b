/*
 * The soft device's state for each host thread.
 */
#ifndef SOFT_THREAD_STATE_H
#define SOFT_THREAD_STATE_H

#include "call_fault.h"
#include "grid/grid.h"

#include <stdbool.h>

struct soft_context;

struct soft_thread {
    struct soft_context **contexts; /* the stack; the last one is current */
    unsigned depth, room;
    bool has_chosen;              /* it has said once which context is current, if any */
    struct soft_context *implied; /* the primary one it has retained; until then that is meant */
    bool own_default; /* the call under way takes the null stream for the thread's own */
    bool in_host_function;
    uint64_t call_ns; /* when the call under way began, for the trace */
    int capture_mode;
    struct soft_call_fault fault;
    struct soft_worker worker;
    void (*end)(const struct soft_thread *thread); /* of what was made for it; NULL: nothing was */
    struct soft_thread *next, **link;              /* in the list of all */
};

/* The calling thread's; it ends with the thread. Threads for which there is no memory share one. */
struct soft_thread *soft_thread(void);

#endif
