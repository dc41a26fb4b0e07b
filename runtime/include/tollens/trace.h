/*
 * Trace: every driver call, kernel, copy and event, with the host's and the device's times, for
 * Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 * It is an interposer: off, nothing of it is in the path, since contexts call through another
 * table. On, each call is noted when it returns, and a kernel, a copy, a fill, a graph or a
 * recorded event has an event of the driver's behind it. Memory and events are made when a context
 * is opened and are all there will be: what comes after is counted and not kept. What is captured
 * gets no events, and one event of a graph is one piece of work.
 *
 * What device times mean. args.begin and args.end of an operation say where each is from:
 *
 *     begin  event         an event in front of it
 *            previous end  the end of what came before on the stream
 *            call          the moment of its call, which was later than that end; the device began
 *                          later still, by what a submission takes
 *            shared        a share of the time of the operations that have one event behind them
 *     end    event         the event behind it
 *            shared        a share, as above; of the last of them, their event
 *
 * Only what is from an event is measured. late says that the event came more than gap_ns after the
 * call, on a stream that may have been idle by then: the end was at that moment or before.
 *
 * Which operations share. A thread that queues one operation on a stream less than gap_ns after
 * another is in a burst. From the second of a burst on, up to share operations have one event,
 * behind the last of them. The time from what ended before is dealt out evenly among those that are
 * no recorded events, none beginning before its call; shared_by counts all. Any other call of the
 * thread ends them there. share = 1 measures each end.
 *
 * Which have an event in front: begins says so. Where nothing is known of what came before on the
 * stream, they have it in any case: the first of a thread on a stream, one behind a wait, a host
 * function or an allocation in the stream's order, and those on the default streams.
 *
 * The device's times are single-precision milliseconds since the context was opened, so in steps of
 * half a microsecond at first and 4 us after a minute. They are put on the host's clock by that
 * moment and the moment of collecting, each known to some microseconds, so that clocks which run
 * apart do not move them. An event takes a device about a microsecond: small kernels back to back
 * are further apart under a trace than without.
 *
 * What it costs a call: two readings of the clock, a few atomic additions, no lock and no memory,
 * together 0.1 to 0.25 us; an operation, its events besides. One an operation kept an H200's host
 * 1.0 to 1.3 us, shared by two 0.6, and of every 16th 0.5; `ninja bench-streams` shows each way
 * beside the other. Times are read by collect, when a trace is written or a context closed. A
 * capture that was begun past the trace is not seen.
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

/* Which operations have an event in front of them besides those that must. */
enum tol_trace_begins {
    TOL_TRACE_BEGINS_DERIVED, /* none: what came before, or the call, says when they began */
    TOL_TRACE_BEGINS_IDLE,    /* where the thread did not queue on the stream for gap_ns */
    TOL_TRACE_BEGINS_EACH     /* all: both times of each are measured, and none shares */
};

enum { TOL_TRACE_SHARE_DEFAULT = 2, TOL_TRACE_SHARE_MAX = 64 };

struct tol_trace_options {
    size_t calls_max;      /* driver calls that are kept; 0: 65536 */
    size_t operations_max; /* pieces of device work, of each context; 0: 8192 */
    bool host_only;        /* no events: the calls alone */
    enum tol_trace_begins begins;
    unsigned share;  /* operations of a burst that may have one event: 1 to TOL_TRACE_SHARE_MAX; 0:
                      * TOL_TRACE_SHARE_DEFAULT, or 1 where every or begins leave no bursts */
    unsigned gap_ns; /* what follows sooner is a burst, and the stream was not idle; 0: 5000 */
    unsigned every;  /* of each thread's operations, every so many get device times, both measured;
                      * of the others the calls alone are kept. 0: each */
};

/*
 * Begins a trace for contexts opened from now on. options may be NULL. under (may be NULL) are
 * hooks and rules that go on working beneath the trace, which notes what becomes of them.
 * TOL_INVALID_ARGUMENT: an interposer is installed already; an option out of its range; share above
 * 1 with every above 1 or with TOL_TRACE_BEGINS_EACH. TOL_OUT_OF_HOST_MEMORY.
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
