/*
 * The fields of struct tol_stream, and its place in the context's list.
 */
#ifndef TOLLENS_STREAM_STATE_H
#define TOLLENS_STREAM_STATE_H

#include "context_state.h"

struct tol_capture;
struct tol_outcome;

struct tol_stream {
    const struct tol_driver_table *functions;
    struct tol_context *context;
    CUstream handle;
    _Atomic(const char *) last_kernel;     /* the name of what was launched last; NULL before */
    _Atomic(struct tol_outcome *) outcome; /* of host functions; NULL while there was none */
    _Atomic(struct tol_capture *) capture; /* what becomes a graph; NULL: work runs */
    struct tol_stream *next;               /* in context->streams */
    int references;                        /* guarded by context->lock; an orphan has none */
    unsigned number;                       /* small and unique in the context, for messages */
    bool blocking;                         /* the legacy stream waits for it */
    bool adopted; /* other code's: never destroyed here, and may be captured unnoticed */
};

/* Queries the driver whether a stream is being captured; true if the query fails. */
bool tol_stream_asks_capture(const struct tol_stream *stream);

/* Whether a stream is being captured into a graph. Then it must not be queried or waited for, which
 * would end the capture. */
static inline bool tol_stream_is_captured(const struct tol_stream *stream) {
    if (TOL_UNLIKELY(stream->adopted)) return tol_stream_asks_capture(stream);
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

/* Puts a new stream, with one reference, into its context's list and numbers it. */
void tol_context_add_stream(struct tol_context *context, struct tol_stream *stream);

/* Keeps a stream and its driver's stream alive after the program has destroyed it. */
void tol_context_retain_stream(struct tol_stream *stream);

/* Releases a reference to a stream. After the last one, the driver's stream is destroyed as soon as
 * its work is done; until then the context still waits for it. */
void tol_context_release_stream(struct tol_stream *stream);

#endif
