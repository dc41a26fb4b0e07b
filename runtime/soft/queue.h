/*
 * Queues: streams of operations, and the threads that carry them out.
 *
 * Work is done by whoever waits for it: a thread that synchronizes takes operations off the queues
 * and runs them itself, which costs nothing but the work. Helper threads join in when a grid turns
 * out to be large, and one of them looks after work that nobody waits for. Grids run in slices, so
 * streams advance side by side however long their kernels are.
 *
 * An event is a moment: a point in a stream that is reached once. Recording an event again makes a
 * new moment; whoever waits for the old one still does. The legacy stream's implicit order is made
 * of moments too.
 */
#ifndef SOFT_QUEUE_H
#define SOFT_QUEUE_H

#include "driver_state.h"
#include "grid.h"

struct soft_moment {
    int references;
    bool reached;
    uint64_t time_ns;
};

struct soft_event {
    struct soft_context *context;
    unsigned flags;
    struct soft_moment *moment; /* of the latest recording; NULL before the first */
    struct soft_event *next;    /* in the context's list */
};

enum soft_operation_kind {
    SOFT_OPERATION_LAUNCH,
    SOFT_OPERATION_COPY,
    SOFT_OPERATION_FILL,
    SOFT_OPERATION_RECORD,
    SOFT_OPERATION_WAIT
};

/* Which way a copy goes. */
enum soft_copy_kind { SOFT_COPY_TO_DEVICE, SOFT_COPY_TO_HOST, SOFT_COPY_ON_DEVICE };

struct soft_operation {
    enum soft_operation_kind kind;
    struct soft_operation *next;
    int workers; /* threads at work on it */
    bool begun;
    struct soft_launch *launch;
    struct soft_moment *moment;
    enum soft_copy_kind copy;
    uint64_t destination, source; /* addresses, of the host or the device */
    void *staged;                 /* a copy of a pageable source; freed with the operation */
    uint64_t bytes;               /* of a copy; elements of a fill */
    uint32_t pattern;
    unsigned pattern_bytes;
};

struct soft_stream {
    struct soft_context *context;
    unsigned flags;
    int priority;
    bool destroyed; /* freed when it has drained */
    struct soft_operation *first, *last;
    struct soft_stream *next; /* in the context's list */
};

/* Makes a stream and puts it into the context's list; NULL without memory. */
struct soft_stream *soft_stream_new(struct soft_context *context, unsigned flags, int priority);

/* The calling thread's context and the stream that a handle means in it: NULL is the legacy stream.
 * The codes of soft_context_current; CUDA_ERROR_INVALID_HANDLE. */
CUresult soft_stream_find(CUstream handle, struct soft_context **context,
                          struct soft_stream **stream);

/* Ends a stream: at once if it is empty, else when it has drained. The caller holds soft_lock. */
void soft_stream_drop(struct soft_stream *stream);

/* Puts an operation behind a stream's others and takes it over. The operation is on the heap. */
CUresult soft_queue_add(struct soft_stream *stream, struct soft_operation *operation);

/* Waits until the stream is empty, the moment is reached, or all of the context's streams are
 * empty, working meanwhile. Returns the context's error. */
CUresult soft_queue_wait_stream(struct soft_stream *stream);
CUresult soft_queue_wait_moment(struct soft_context *context, struct soft_moment *moment);
CUresult soft_queue_wait_context(struct soft_context *context);

/* Works a little on what a query is about, then says whether it is done: CUDA_SUCCESS,
 * CUDA_ERROR_NOT_READY, or the context's error. */
CUresult soft_queue_query_stream(struct soft_stream *stream);
CUresult soft_queue_query_moment(struct soft_context *context, struct soft_moment *moment);

/* Gives back a moment. The caller holds soft_lock. */
void soft_moment_release(struct soft_moment *moment);

/* Takes what a finished context leaves: its streams, and spare memory. */
void soft_queue_end_context(struct soft_context *context);

#endif
