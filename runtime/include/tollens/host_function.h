/*
 * Host function: a function of the program that runs on the host in stream order.
 *
 * It runs on a thread of the driver, after the work queued before it; work queued after it waits
 * for it. If it fails, the next call that waits for the stream (tol_stream_synchronize,
 * tol_context_synchronize) returns its status once, with its reason in the message. Later work
 * runs regardless. If several fail before such a call, the first failure is returned.
 *
 * It must not call CUDA or this runtime, because the driver could deadlock: every runtime call that
 * needs a context returns TOL_INVALID_ARGUMENT there. It is never called if the context is poisoned
 * before its turn.
 *
 * Keep it short. A device has fewer hardware queues than a program may have streams, so work queued
 * after a blocking host function can keep other streams from starting.
 *
 * Threads: as for streams. Source: CUDA Driver API, cuLaunchHostFunc.
 */
#ifndef TOLLENS_HOST_FUNCTION_H
#define TOLLENS_HOST_FUNCTION_H

#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns TOL_OK or a failure. On failure it may write a sentence to reason, which has room for
 * bytes characters with the NUL. */
typedef tol_status (*tol_host_function)(void *user, char *reason, size_t bytes);

/* Queues a call of function(user, ...). user must stay valid until it has run. If the stream is
 * being captured, the call becomes part of the graph and runs at each launch; then user must
 * outlive the graph and its instances. */
TOL_API tol_status tol_stream_call(struct tol_stream *stream, tol_host_function function,
                                   void *user);

#ifdef __cplusplus
}
#endif
#endif
