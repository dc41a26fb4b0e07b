/*
 * Trace formats: the readers of what other allocators write. Each takes a file from its beginning.
 */
#ifndef HYP_TRACE_FORMATS_H
#define HYP_TRACE_FORMATS_H

#include "trace_events.h"

/* An RMM log. */
bool hyp_trace_read_rmm(struct hyp_trace_maker *maker, struct hyp_trace *trace, FILE *file);

#endif
