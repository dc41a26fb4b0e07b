/*
 * Trace formats: the readers of what other allocators write. Each takes a file from its beginning.
 */
#ifndef HYP_TRACE_FORMATS_H
#define HYP_TRACE_FORMATS_H

#include "trace_events.h"

/* An RMM log. */
bool hyp_trace_read_rmm(struct hyp_trace_maker *maker, struct hyp_trace *trace, FILE *file);

/* A snapshot of PyTorch, as a pickle or as JSON: its first byte says which. */
bool hyp_trace_read_snapshot(struct hyp_trace_maker *maker, struct hyp_trace *trace,
                             const char *path, FILE *file);

#endif
