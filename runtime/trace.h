/*
 * Trace: every driver call, kernel, copy and event, with the host's and the device's times, for
 * Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 * It is an interposer: off, nothing of it is in the path, since contexts call through another
 * table. On, each call is noted when it returns, and a kernel, a copy, a fill, a graph or a
 * recorded event gets an event of the driver's behind it. Memory and events are made when a context
 * is opened and are all there will be: what comes after is counted and not kept. What is captured
 * gets no events, and one event of a graph is one piece of work.
 *
 * What device times mean. An end is the moment when the device had done the operation and came by
 * the event. A beginning has an event of its own where the thread's latest operation was on another
 * stream or its call came back more than 5 us before, where something that is no operation was
 * queued in between (a wait, a host function), and on the default streams. Else it is the end of
 * what came before on the stream, or the moment of the call if that was later: the device may have
 * begun later than that, so the time is an upper bound, by what a submission takes. args.begin says
 * which it is. With both_events each has its own. An event takes a device about a microsecond, so
 * small kernels back to back are further apart under a trace than without; every spares most that.
 * Times are the driver's: single-precision milliseconds since the context was opened, so in steps
 * of half a microsecond at first and 4 us after a minute, put on the host's clock at that moment.
 *
 * What it costs a call: two readings of the clock, a few atomic additions, no lock and no memory;
 * an operation, one event recorded, or two, and a third reading. Times are read by collect, when a
 * trace is written or a context closed. A capture that was begun past the trace is not seen.
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
    bool both_events;      /* an event in front of each operation too */
    unsigned every;        /* of each thread's operations, every so many get device times; of the
                            * others the calls alone are kept. 0: each */
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
