/*
 * Host function: a function of the program that runs in the order of a stream.
 *
 * It runs on a thread of the driver's, behind what was queued before it, and what is queued after
 * it waits for it. It may fail: then the next call that waits for the stream
 * (tol_stream_synchronize, tol_context_synchronize) returns its status, once, with its reason in
 * the message; work behind it runs all the same. Of several failures until then the first is told.
 *
 * It must not call CUDA or this runtime, which the driver forbids since it could wait for itself:
 * every call that needs a context returns TOL_INVALID_ARGUMENT there. When the context is poisoned
 * before its turn, it is never called.
 *
 * It should be short. A driver has fewer queues to a GPU than there may be streams, and on an H200
 * what is queued behind a host function that blocks sometimes kept the work of other streams from
 * starting; with nothing behind it, it never did (reports/published/, streams.txt).
 *
 * Threads: as for streams. Source: CUDA Driver API, cuLaunchHostFunc.
 */
#ifndef TOLLENS_HOST_FUNCTION_H
#define TOLLENS_HOST_FUNCTION_H

#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TOL_OK, or why it failed; it may write a sentence of at most bytes, with its NUL, to reason. */
typedef tol_status (*tol_host_function)(void *user, char *reason, size_t bytes);

/* Queues a call. user must be valid until it has run. While the stream is captured, it becomes part
 * of the graph, runs at each launch, and user must outlive the graph and what is made of it. */
TOL_API tol_status tol_stream_call(struct tol_stream *stream, tol_host_function function,
                                   void *user);

#ifdef __cplusplus
}
#endif
#endif
