/*
 * Stream: a queue of device work that runs in order.
 *
 * By default a stream does not synchronize with the legacy default stream (D-27). Every wait has
 * a timeout, so no call hangs (D-18). Several threads may use one stream; its order is the order in
 * which their calls reach the driver. Source: spec 004 CRT-004.
 */
#ifndef TOLLENS_STREAM_H
#define TOLLENS_STREAM_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_stream;

/* All zero are the defaults. */
struct tol_stream_options {
    bool blocking; /* true: synchronize with the legacy default stream, in both directions */
    int priority;  /* lower numbers run first; the driver clamps it to its range; 0 is normal */
};

/* Creates a stream. options may be NULL, which means non-blocking, normal priority.
 * TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY, TOL_POISONED, TOL_DRIVER_ERROR. */
TOL_API tol_status tol_stream_create(struct tol_context *context,
                                     const struct tol_stream_options *options,
                                     struct tol_stream **stream);

/*
 * Makes a handle for a stream that other code of the process has created on the same primary
 * context; 0 is the legacy default stream. The driver's stream stays that code's: it must live
 * until this handle and all pools that it was used with are destroyed, and tol_stream_destroy does
 * not destroy it. The driver is queried whether it is being captured. A stream that is adopted
 * while it is captured counts as non-blocking: synchronous copies then wait for it without a
 * deadline.
 * TOL_OUT_OF_HOST_MEMORY, TOL_POISONED, TOL_UNSUPPORTED: the driver has no captures,
 * TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_stream_adopt(struct tol_context *context, CUstream handle,
                                    struct tol_stream **stream);

/* Destroys the handle. Queued work still runs. NULL is a no-op. */
TOL_API void tol_stream_destroy(struct tol_stream *stream);

/* Returns TOL_OK if all work is done, TOL_NOT_READY if not, or the error that ended the work. Does
 * not wait. TOL_NOT_READY sets no message. */
TOL_API tol_status tol_stream_query(struct tol_stream *stream);

/* Waits up to TOL_DEADLINE_MS until all work is done. TOL_TIMEOUT: it is not; the work continues,
 * and the message names the kernel launched last. Otherwise returns the error that ended the work,
 * or the first failure of a host function (host_function.h). */
TOL_API tol_status tol_stream_synchronize(struct tol_stream *stream);

/* The same with a timeout of deadline_ms; 0 checks once. */
TOL_API tol_status tol_stream_synchronize_for(struct tol_stream *stream, unsigned deadline_ms);

/* Gets the priority that the driver assigned, and whether the stream is non-blocking. Either
 * pointer may be NULL. */
TOL_API tol_status tol_stream_properties(struct tol_stream *stream, int *priority,
                                         bool *non_blocking);

/* The context of the stream. Valid while the stream lives. */
TOL_API struct tol_context *tol_stream_context(const struct tol_stream *stream);

/* The driver's handle, for calls that the runtime does not wrap. Valid while the stream lives. */
TOL_API CUstream tol_stream_handle(const struct tol_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
