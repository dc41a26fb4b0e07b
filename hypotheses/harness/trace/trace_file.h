/*
 * Trace file: what a program did with a pool of device memory, read from a file for a replay. The
 * first byte tells the format; a name or an extension means nothing:
 *
 *     #        the text of tol_pool_trace, which tollens/pool_watch.h describes
 *     T        the log of RMM's logging_resource_adaptor (CSV)
 *     80       the pickle of torch.cuda.memory._dump_snapshot, protocol 2 to 5
 *     { or [   the same snapshot as JSON
 *     fd       an .xz stream of one of these
 */
#ifndef HYP_TRACE_FILE_H
#define HYP_TRACE_FILE_H

#include "trace_events.h"

/* Reads a whole file. false: hyp_error() names the file, and the line, the event or the byte. Call
 * hyp_trace_free in any case. */
bool hyp_trace_read(const char *path, struct hyp_trace *trace);

#endif
