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

#include "call_fault.h"

/* A fault in a stream, executed in order with the stream's work. */
struct soft_stream_fault {
    const struct soft_fault_rule *rule;
    CUresult code;   /* of an error; CUDA_SUCCESS: a bit flips */
    uint64_t chance; /* selects the bit, if the rule does not name it */
};

/* CUDA_SUCCESS, or the code that cuInit returns because the rules cannot be read or parsed. The
 * reason was printed on stderr. */
CUresult soft_fault_state(void);

/* Around every call: the code that it returns instead of doing its work. */
CUresult soft_fault_begin(enum soft_call call, bool own_default);

/* The faults of the current call; NULL: there is no call, or there are no rules. */
struct soft_call_fault *soft_fault_now(void);

/* The call has looked up a stream, whose number is in the fault: applies the rules about streams,
 * and waits if they demand a delay. */
CUresult soft_fault_ask_stream(struct soft_call_fault *fault);

/* The random numbers for the bit that the call flips. */
uint64_t soft_fault_chance(const struct soft_call_fault *fault);

/* The context of the call: its stream's, or the thread's current one; or NULL. */
struct soft_context *soft_fault_context(const struct soft_call_fault *fault);

/* The number of bytes at the end of a copy that are not copied. */
uint64_t soft_fault_lost(uint64_t bytes);

/* The instruction budget of a kernel that the call launches; otherwise is that of other kernels. */
uint64_t soft_fault_instructions(uint64_t otherwise);

/* The memory that a device of this size allocates. */
uint64_t soft_fault_budget(int device, uint64_t bytes);

/* A stream executes a fault. The caller holds soft_lock. */
void soft_fault_strike(struct soft_context *context, const struct soft_stream_fault *fault);

#endif
