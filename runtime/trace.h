/*
 * Trace: every driver call, kernel, copy and event, with the host's and the device's times, for
 * Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 * It is an interposer: off, nothing of it is in the path, since contexts call through another
 * table. On, each call is noted when it returns, and a kernel, a copy, a fill or a launched graph
 * gets an event of the driver's in front and behind it. Memory and events are made when a context
 * is opened and are all there will be: what comes after is counted and not kept. What is captured
 * gets no events, and one event of a graph is one piece of work. Device times are the driver's, in
 * steps of about half a microsecond, put on the host's clock at the moment that the context was
 * opened.
 *
 * One trace a process, as there is one interposer. Install and remove it not beside calls; noting
 * is thread-safe. Source: Trace Event Format, Google, 2016; CUDA Driver API, event management.
 */
#ifndef TOLLENS_TRACE_H
#define TOLLENS_TRACE_H

#include "interpose.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tol_trace_options {
    size_t calls_max;      /* driver calls that are kept; 0: 65536 */
    size_t operations_max; /* pieces of device work, of each context; 0: 8192 */
    bool host_only;        /* no events: the calls alone */
};

/*
 * Begins a trace for contexts opened from now on. options may be NULL. under (may be NULL) are
 * hooks and rules that go on working beneath the trace, which notes what becomes of them.
 * TOL_INVALID_ARGUMENT: an interposer is installed already. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_trace_install(struct tol_driver *driver,
                                     const struct tol_trace_options *options,
                                     const struct tol_interpose_options *under);

/* Reads the device's times of all work that is done, of contexts that are open; when one is closed,
 * that happens by itself. */
TOL_API void tol_trace_collect(void);

/* What was noted, and what came when there was no room any more. */
struct tol_trace_stats {
    size_t calls, operations, lost_calls, lost_operations;
    bool overflowed;
};
TOL_API void tol_trace_stats(struct tol_trace_stats *stats);

/* Writes the trace as JSON: a whole file, or, where is_part is set, the events alone with a comma
 * behind each, so that several processes' can stand in one list. process names this one. Collects
 * first. TOL_INVALID_ARGUMENT: there is no trace. */
TOL_API tol_status tol_trace_write(FILE *file, const char *process, bool is_part);

/* Ends the trace and forgets it. A no-op without one. */
TOL_API void tol_trace_remove(struct tol_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
