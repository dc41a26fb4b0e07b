/*
 * The interface between the queues and the execution of operations.
 *
 * The caller holds soft_lock for all of these.
 */
#ifndef SOFT_PERFORM_H
#define SOFT_PERFORM_H

#include "queue_state.h"

/* Executes a step of a stream, if its head can run; releases soft_lock meanwhile. A grid runs for
 * about slice_ns. false: nothing could run. */
bool soft_perform(struct soft_stream *stream, uint64_t slice_ns);

/* Removes the finished head of a stream. This may free the stream. */
void soft_queue_pop(struct soft_stream *stream);

/* Wakes helpers, and the thread that calls host functions. */
void soft_queue_want_help(void);
void soft_queue_want_caller(void);

/* Whether an operation waits for a value in memory, whose change is not announced; whether it calls
 * a function of the program. */
bool soft_operation_is_polled(const struct soft_operation *operation);
bool soft_operation_calls(const struct soft_operation *operation);

#endif
