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
    bool has_chosen;              /* it has set its current context at least once */
    struct soft_context *implied; /* the primary context that it has retained, used until then */
    bool own_default;             /* the current call treats the null stream as the thread's own */
    bool in_host_function;
    uint64_t call_ns; /* the begin of the current call, for the trace */
    int capture_mode;
    struct soft_call_fault fault;
    struct soft_worker worker;
    void (*end)(const struct soft_thread *thread); /* frees its worker state; NULL: none */
    struct soft_thread *next, **link;              /* in the list of all */
};

/* The calling thread's; freed with the thread. Threads without memory for one share one. */
struct soft_thread *soft_thread(void);

#endif
