/*
 * Trace of the devices' work: one event per launch, copy, fill, host function, operation on values,
 * stream-ordered allocation and free, and recorded event.
 *
 * Costs almost nothing without a trace: base/trace_line.h. The caller holds soft_lock.
 */
#ifndef SOFT_TRACE_TASK_H
#define SOFT_TRACE_TASK_H

#include "queue_state.h"

/* An operation is the head of its stream and depends on nothing else. */
void soft_trace_begin(struct soft_operation *operation);

/* An operation is done, but not freed yet. */
void soft_trace_end(struct soft_stream *stream, const struct soft_operation *operation);

#endif
