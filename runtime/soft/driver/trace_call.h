/*
 * Trace of calls: an event in its thread's row for each call that creates, frees, submits or waits;
 * queries are left out. base/trace_line.h describes the file.
 */
#ifndef SOFT_TRACE_CALL_H
#define SOFT_TRACE_CALL_H

#include "base/abi.h"
#include "base/calls.h"

/* Around every call of the thread. */
void soft_trace_call_begin(void);
void soft_trace_call_end(enum soft_call call, CUresult result);

#endif
