/*
 * Call fault: the effect of fault rules on a thread's current call.
 */
#ifndef SOFT_CALL_FAULT_H
#define SOFT_CALL_FAULT_H

#include "base/abi.h"
#include "base/calls.h"

#include <stdbool.h>
#include <stdint.h>

struct soft_context;
struct soft_fault_rule;

struct soft_call_fault {
    uint64_t thread; /* the thread's number, from 1 in the order of first calls; 0: none yet */
    bool active;     /* there is a current call, and there are rules */
    enum soft_call call;
    bool own_default;
    struct soft_context *context; /* of the first stream that the call looked up */
    uint64_t stream;              /* that stream's number; 0: none yet */
    CUresult later;               /* happens after the work that the call queues */
    const struct soft_fault_rule *later_rule, *flip, *truncate, *timeout;
    uint64_t count; /* for messages: of the calls of this function */
};

#endif
