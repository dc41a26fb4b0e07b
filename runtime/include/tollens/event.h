/*
 * Event: a point in a stream, to wait for and to measure between.
 *
 * An event may be recorded again and again; waiting concerns the latest recording. An event that
 * was never recorded counts as reached. Shared between threads like a stream. Source: D-24.
 */
#ifndef TOLLENS_EVENT_H
#define TOLLENS_EVENT_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_event;
struct tol_stream;

/* Creates an event. timed events can be measured between; others cost less. */
TOL_API tol_status tol_event_create(struct tol_context *context, bool timed,
                                    struct tol_event **event);

/* Ends the handle; a recording still queued runs. NULL is a no-op. */
TOL_API void tol_event_destroy(struct tol_event *event);

/* Puts the event after all work queued on the stream so far. TOL_WRONG_CONTEXT when the two belong
 * to different contexts. */
TOL_API tol_status tol_event_record(struct tol_event *event, struct tol_stream *stream);

/* Makes all work queued on the stream from now on wait for the event's latest recording, also one
 * on another stream. The host does not wait. TOL_WRONG_CONTEXT. */
TOL_API tol_status tol_stream_wait_event(struct tol_stream *stream, struct tol_event *event);

/* TOL_OK when the latest recording has been reached, TOL_NOT_READY before, or the error the work in
 * front of it ended with. Does not wait, and TOL_NOT_READY makes no message. */
TOL_API tol_status tol_event_query(struct tol_event *event);

/* Waits for the latest recording, TOL_DEADLINE_MS at most, or deadline_ms. TOL_TIMEOUT. */
TOL_API tol_status tol_event_synchronize(struct tol_event *event);
TOL_API tol_status tol_event_synchronize_for(struct tol_event *event, unsigned deadline_ms);

/*
 * Nanoseconds on the device's clock from one recording to the other, negative when end came first.
 * The driver's resolution is about 500 ns. TOL_INVALID_ARGUMENT for an event that is not timed or
 * was never recorded; TOL_NOT_READY when one has not been reached; TOL_WRONG_CONTEXT.
 */
TOL_API tol_status tol_event_elapsed_ns(struct tol_event *begin, struct tol_event *end, double *ns);

#ifdef __cplusplus
}
#endif
#endif
