/*
 * Fault: injected failures, in driver calls and in the work that they queue.
 *
 * Calls of each function are counted, and the rules in the file of TOLLENS_SOFT_FAULTS select which
 * of them fail, and how. Only the counts decide, so the same calls give the same faults; percent
 * draws a number from the seed and the count. If several threads call one function, it is open
 * which thread gets a count, but not which counts fail.
 *
 * Without a file the cost of a call is the test of one flag.
 */
#ifndef SOFT_FAULT_H
#define SOFT_FAULT_H

#include "call.h"
#include "state/driver_state.h"
#include "queue/task.h"

struct soft_fault_rule;
struct soft_stream;

/* What the call that a thread is in has to suffer. */
struct soft_harm {
    uint64_t thread; /* the thread's number, from 1 in the order of first calls; 0: none yet */
    bool active;     /* a call is under way, and there are rules */
    enum soft_call call;
    bool own_default;
    struct soft_context *context; /* of the stream that the call looked up first */
    uint64_t stream;              /* that stream's number; 0: none yet */
    CUresult later;               /* comes behind what the call queues */
    const struct soft_fault_rule *later_rule, *flip, *truncate, *timeout;
    uint64_t count; /* for messages: of the calls of this function */
};

/* What happens in a stream. */
struct soft_blow {
    const struct soft_fault_rule *rule;
    CUresult code;   /* of an error; CUDA_SUCCESS: a bit flips */
    uint64_t chance; /* what is not said of the bit is drawn from this */
};

/* CUDA_SUCCESS, or what cuInit fails with because the file cannot be read or understood: it has
 * been told of on stderr. */
CUresult soft_fault_state(void);

/* Around every call: what it returns instead of doing its work. */
CUresult soft_fault_begin(enum soft_call call, bool own_default);
void soft_fault_end(CUresult result);

/* A call has looked a stream up: rules about streams can be asked. */
CUresult soft_fault_stream(struct soft_stream *stream);

/* What the call under way does to a copy that it makes; and the instructions that a kernel it
 * launches may take, where others may take so many. */
void soft_fault_cut(struct soft_copy *copy);
uint64_t soft_fault_instructions(uint64_t otherwise);

/* How much a device gives out of so much memory. */
uint64_t soft_fault_budget(int device, uint64_t bytes);

/* A stream has come to a blow. The caller holds soft_lock. */
void soft_fault_strike(struct soft_context *context, const struct soft_blow *blow);

#endif
