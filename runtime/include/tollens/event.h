/*
 * Event: a point in a stream, to wait for or to measure time between.
 *
 * An event may be recorded many times; waiting and querying refer to the latest recording. An event
 * that was never recorded counts as reached. Threads: as for streams. Source: D-24.
 */
#ifndef TOLLENS_EVENT_H
#define TOLLENS_EVENT_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_event;
struct tol_stream;

/* Creates an event. tol_event_elapsed_ns needs timed events; the others cost less. */
TOL_API tol_status tol_event_create(struct tol_context *context, bool timed,
                                    struct tol_event **event);

/* Destroys the handle. A queued recording still runs. NULL is a no-op. */
TOL_API void tol_event_destroy(struct tol_event *event);

/* Records the event after all work queued on the stream so far. TOL_WRONG_CONTEXT: the event and
 * the stream belong to different contexts. */
TOL_API tol_status tol_event_record(struct tol_event *event, struct tol_stream *stream);

/* Makes work queued on the stream after this call wait for the event's latest recording, which may
 * be on another stream. Does not block the host. TOL_WRONG_CONTEXT. */
TOL_API tol_status tol_stream_wait_event(struct tol_stream *stream, struct tol_event *event);

/* Returns TOL_OK if the latest recording has been reached, TOL_NOT_READY if not, or the error that
 * ended the work before it. Does not wait. TOL_NOT_READY sets no message. */
TOL_API tol_status tol_event_query(struct tol_event *event);

/* Waits for the latest recording, for at most TOL_DEADLINE_MS or deadline_ms. TOL_TIMEOUT, or the
 * error that ended the work before it. */
TOL_API tol_status tol_event_synchronize(struct tol_event *event);
TOL_API tol_status tol_event_synchronize_for(struct tol_event *event, unsigned deadline_ms);

/*
 * Gets the nanoseconds on the device's clock from one recording to another; negative if end was
 * reached first. The resolution is about 500 ns (the driver's). TOL_INVALID_ARGUMENT: an event is
 * not timed, or was never recorded. TOL_NOT_READY: one has not been reached. TOL_WRONG_CONTEXT.
 */
TOL_API tol_status tol_event_elapsed_ns(struct tol_event *begin, struct tol_event *end, double *ns);

#ifdef __cplusplus
}
#endif
#endif
