/*
 * Stream: a queue of device work that runs in order.
 *
 * Streams are independent of the legacy default stream unless asked otherwise (D-27). Every wait
 * has a deadline and never hangs (D-18). A stream may be shared between threads; its order is then
 * the order in which their calls reach the driver. Source: spec 004 CRT-004.
 */
#ifndef TOLLENS_STREAM_H
#define TOLLENS_STREAM_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_stream;

struct tol_stream_options {
    bool blocking; /* true: wait for the legacy default stream, and it for this one */
    int priority; /* numerically lower runs first; the driver clamps it to its range; 0 is normal */
};

/* Creates a stream. options may be NULL: non-blocking, normal priority.
 * TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY, TOL_POISONED, TOL_DRIVER_ERROR. */
TOL_API tol_status tol_stream_create(struct tol_context *context,
                                     const struct tol_stream_options *options,
                                     struct tol_stream **stream);

/* Ends the handle; work already queued still runs. NULL is a no-op. */
TOL_API void tol_stream_destroy(struct tol_stream *stream);

/* TOL_OK when all work is done, TOL_NOT_READY while some is not, or the error the work ended with.
 * Does not wait, and TOL_NOT_READY makes no message. */
TOL_API tol_status tol_stream_query(struct tol_stream *stream);

/* Waits until all work is done, TOL_DEADLINE_MS at most. TOL_TIMEOUT leaves stream and work as they
 * are: the message names the kernel launched last. Any error the work ended with, or the first that
 * a host function did (host_function.h). */
TOL_API tol_status tol_stream_synchronize(struct tol_stream *stream);

/* The same with another deadline; 0 asks once. */
TOL_API tol_status tol_stream_synchronize_for(struct tol_stream *stream, unsigned deadline_ms);

/* The priority the driver gave it, and whether it is non-blocking. Either may be NULL. */
TOL_API tol_status tol_stream_properties(struct tol_stream *stream, int *priority,
                                         bool *non_blocking);

/* The context it belongs to. Valid while the stream lives. */
TOL_API struct tol_context *tol_stream_context(const struct tol_stream *stream);

/* The driver's handle, for calls that the runtime does not wrap. Valid while the stream lives. */
TOL_API CUstream tol_stream_handle(const struct tol_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
