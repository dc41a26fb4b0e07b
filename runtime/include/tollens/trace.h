/*
 * Trace: records driver calls, kernels, copies and events with host and device times, for Perfetto
 * (ui.perfetto.dev) or chrome://tracing.
 *
 * A trace is an interposer: when it is off, none of it is in the path, since contexts call through
 * another table. When it is on, each call is recorded when it returns, and each kernel, copy, fill,
 * graph or recorded event is followed by a driver event of the trace. Memory and events are
 * allocated when a context is opened; what exceeds them is counted and not kept. Captured work gets
 * no events, and a graph launch with one event is one operation.
 *
 * Device times. args.begin and args.end of an operation say how each time was obtained:
 *
 *     begin  event         from an event before the operation
 *            previous end  the end of the previous operation on the stream
 *            call          the time of the call, because it was later than that end; the device
 *                          began later still, by the latency of a submission
 *            shared        a share of the time of the operations that share the event after them
 *     end    event         from the event after the operation
 *            shared        a share, as above; for the last of them, their event
 *
 * Only times from an event are measured. late means that the event was recorded more than gap_ns
 * after the call, on a stream that may have been idle by then: the operation ended at that time or
 * before.
 *
 * Shared events. A thread that queues operations on a stream less than gap_ns apart is in a burst.
 * From the second operation of a burst on, up to share operations have one event, after the last
 * of them. The time since the previous end is divided evenly among those that are not recorded
 * events, and none begins before its call; shared_by is the number of all of them. Any other call
 * of the thread ends the group. share = 1 measures each end.
 *
 * Begin events. The option begins selects the operations that have an event before them. These
 * always have one, because the previous end is unknown: the first operation of a thread on
 * a stream, an operation after a wait, a host function or a stream-ordered allocation, and
 * operations on the default streams.
 *
 * Precision. Device times are single-precision milliseconds since the context was opened: steps of
 * half a microsecond at first and 4 us after a minute. They are mapped to the host's clock by two
 * points, the opening and the time of collecting, each known to some microseconds, so drift between
 * the clocks does not shift them. An event takes a device about a microsecond: small kernels back
 * to back are further apart with a trace than without.
 *
 * Cost. A call: two clock readings and a few atomic additions, no lock and no allocation, together
 * 0.1 to 0.25 us. An operation: its events as well. On an H200, one event per operation cost the
 * host 1.0 to 1.3 us per operation, one per two operations 0.6 us, and every = 16 cost 0.5 us;
 * `ninja bench-streams` compares them. Times are read when a trace is collected or written, or
 * a context is closed. A capture that was begun by calls past the trace is not recognised.
 *
 * Threads: a process has one trace, as it has one interposer. Installing and removing must not run
 * at the same time as driver calls; recording is thread-safe.
 * Source: Trace Event Format, Google, 2016; CUDA Driver API, event management.
 */
#ifndef TOLLENS_TRACE_H
#define TOLLENS_TRACE_H

#include "interpose.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which operations have an event before them, in addition to those that always have one. */
enum tol_trace_begins {
    TOL_TRACE_BEGINS_DERIVED, /* none: they begin at the previous end or at the call */
    TOL_TRACE_BEGINS_IDLE,    /* those queued on a stream after a pause of gap_ns */
    TOL_TRACE_BEGINS_EACH     /* all: begin and end of each are measured, none shared */
};

enum { TOL_TRACE_SHARE_DEFAULT = 2, TOL_TRACE_SHARE_MAX = 64 };

struct tol_trace_options {
    size_t calls_max;      /* driver calls to keep; 0: 65536 */
    size_t operations_max; /* operations to keep per context; 0: 8192 */
    bool host_only;        /* record calls only, without events */
    bool kernels_only;     /* of operations, kernels alone: all others are calls without events */
    enum tol_trace_begins begins;
    unsigned share;  /* operations of a burst per event, 1 to TOL_TRACE_SHARE_MAX; 0:
                      * TOL_TRACE_SHARE_DEFAULT, or 1 if every or begins allow no bursts */
    unsigned gap_ns; /* operations closer together form a burst; 0: 5000 */
    unsigned every;  /* measure begin and end of one in this many operations of a thread, and
                      * record only the calls of the others; 0: all */
};

/*
 * Begins a trace for contexts opened after this call. options may be NULL, which means defaults.
 * under (may be NULL) has hooks and rules that act below the trace; the trace records their effect.
 * TOL_INVALID_ARGUMENT: an interposer is installed already; an option is out of its range; share is
 * above 1 and every is above 1 or begins is TOL_TRACE_BEGINS_EACH. TOL_OUT_OF_HOST_MEMORY.
 */
TOL_API tol_status tol_trace_install(struct tol_driver *driver,
                                     const struct tol_trace_options *options,
                                     const struct tol_interpose_options *under);

/* Reads the device times of all completed work of open contexts. Closing a context does this for
 * the context. */
TOL_API void tol_trace_collect(void);

/* Counts of what was recorded, and of what came after there was no room left. */
struct tol_trace_stats {
    size_t calls, operations, lost_calls, lost_operations;
    bool overflowed;
};
TOL_API void tol_trace_stats(struct tol_trace_stats *stats);

/* Adds a moment to the trace: an event of the phase "i" in the calling thread's row. arguments: a
 * JSON object, which is written as it is; NULL: none. Both texts are copied. Without a trace it
 * does nothing. The alarms of a watch (watch.h) are such moments. At most 65,536 are kept. */
TOL_API void tol_trace_mark(const char *name, const char *arguments);

/* Collects, then writes the trace to file as JSON. is_part false: a complete document. is_part
 * true: only the events, each followed by a comma, so that the events of several processes can form
 * one list. process is the name of this process. TOL_INVALID_ARGUMENT: there is no trace. */
TOL_API tol_status tol_trace_write(FILE *file, const char *process, bool is_part);

/* Ends the trace and frees what it recorded. A no-op if there is none. */
TOL_API void tol_trace_remove(struct tol_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
