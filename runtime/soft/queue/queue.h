/*
 * Queues: streams of operations, and the threads that carry them out.
 *
 * Work is done by whoever waits for it: a thread that synchronizes takes operations off the queues
 * and runs them itself, which costs nothing but the work. Helper threads join in when a grid turns
 * out to be large, and one of them looks after work that nobody waits for. Grids run in slices, so
 * streams advance side by side however long their kernels are. Host functions are the exception:
 * they run on a thread of their own, because they may block until the program goes on.
 *
 * An event is a moment: a point in a stream that is reached once. Recording an event again makes a
 * new moment; whoever waits for the old one still does. The legacy stream's implicit order is made
 * of moments too.
 */
#ifndef SOFT_QUEUE_H
#define SOFT_QUEUE_H

#include "state/driver_state.h"
#include "driver/fault.h"
#include "task.h"
#include "machine/machine_state.h"

struct soft_capture;
struct soft_clock;
struct soft_exec;
struct soft_thread;

/* A set of nodes that something in a capture depends on. */
struct soft_front {
    struct soft_edge *edges;
    unsigned count;
};

struct soft_moment {
    int references;
    bool reached;
    uint64_t time_ns;
    struct soft_clock
        *clock; /* where the order of streams is checked; so in streams and operations */
};

struct soft_event {
    struct soft_context *context;
    unsigned flags;
    struct soft_moment *moment;   /* of the latest recording; NULL before the first */
    struct soft_capture *capture; /* that it was recorded in, if the latest time was in one */
    struct soft_front front;      /* the nodes that it stands for there */
    struct soft_event *next;      /* in the context's list */
};

enum soft_operation_kind {
    SOFT_OPERATION_TASK,
    SOFT_OPERATION_RECORD,
    SOFT_OPERATION_WAIT,
    SOFT_OPERATION_BLOW
};

struct soft_operation {
    enum soft_operation_kind kind;
    struct soft_task task;
    struct soft_operation *next;
    int workers; /* threads at work on it */
    bool begun;
    unsigned done;              /* values that are dealt with */
    struct soft_launch *launch; /* of a kernel */
    struct soft_moment *moment; /* to record or to wait for */
    struct soft_exec *exec;     /* whose launch this ends */
    uint8_t *staged;            /* a copy of a pageable source */
    struct soft_blow blow;
    struct soft_clock *clock;
    uint64_t queued; /* its number in the order of queueing, where that is checked */
};

/* Attributes of a stream that change nothing here. */
struct soft_wishes {
    CUaccessPolicyWindow window;
    int synchronization, domain;
};

struct soft_stream {
    struct soft_context *context;
    uint64_t id;
    unsigned flags;
    int priority;
    const struct soft_thread *thread; /* whose own default stream it is, or NULL */
    bool destroyed;                   /* freed when it has drained */
    unsigned waiting;                 /* threads that wait for it to drain */
    struct soft_wishes wishes;
    struct soft_capture *capture; /* that it is in */
    struct soft_front front;      /* the nodes that its next one will depend on */
    CUgraphNode *told_nodes;      /* what cuStreamGetCaptureInfo has last said of them */
    CUgraphEdgeData *told_data;
    struct soft_operation *first, *last;
    struct soft_clock *clock;
    struct soft_stream *next; /* in the context's list */
};

/* ---- streams; see streams.c ---- */

/* Makes a stream and puts it into the context's list; NULL without memory. The caller holds
 * soft_lock. */
struct soft_stream *soft_stream_new(struct soft_context *context, unsigned flags, int priority);

/* The calling thread's context and the stream that a handle means: NULL, CU_STREAM_LEGACY and
 * CU_STREAM_PER_THREAD mean default streams of that context; any other has its own, which is what
 * context becomes. The codes of soft_context_current; CUDA_ERROR_INVALID_HANDLE. */
CUresult soft_stream_find(CUstream handle, struct soft_context **context,
                          struct soft_stream **stream);

/* Ends a stream: at once if it is empty, else when it has drained. The caller holds soft_lock. */
void soft_stream_drop(struct soft_stream *stream);

/* Ends the default streams of a thread that ends. */
void soft_stream_drop_own(const struct soft_thread *thread);

/* Frees a stream that has been ended, once it has drained. The caller holds soft_lock. */
void soft_stream_settle(struct soft_stream *stream);

/* Makes a stream wait for what the legacy stream's rule says it must. The caller holds soft_lock.
 * */
CUresult soft_stream_order(struct soft_stream *stream);

/* ---- operations; see operation.c ---- */

/* An operation for a task, whose belongings it takes over on success; NULL without memory. */
struct soft_operation *soft_operation_new(struct soft_task *task);

/* An operation that records or waits for a moment, whose reference it takes over. */
struct soft_operation *soft_operation_moment(enum soft_operation_kind kind,
                                             struct soft_moment *moment);
void soft_operation_free(struct soft_operation *operation);

/* A moment with so many references; NULL without memory. */
struct soft_moment *soft_moment_new(int references);

/* Gives back a moment. The caller holds soft_lock. */
void soft_moment_release(struct soft_moment *moment);

/* ---- the queues; see queue.c ---- */

/* Puts an operation behind a stream's others and takes it over. */
CUresult soft_queue_add(struct soft_stream *stream, struct soft_operation *operation);

/* The same for a row of operations, which it takes over on success alone. The caller holds
 * soft_lock. */
CUresult soft_queue_add_all(struct soft_stream *stream, struct soft_operation *operations);

/* The same for one that waits for its turn alone: no implicit order, no check of the context. The
 * caller holds soft_lock. */
void soft_queue_append(struct soft_stream *stream, struct soft_operation *operation);

/* Waits until the stream is empty, the moment is reached, or all of the context's streams are
 * empty, working meanwhile. Returns the context's error. */
CUresult soft_queue_wait_stream(struct soft_stream *stream);
CUresult soft_queue_wait_moment(struct soft_context *context, struct soft_moment *moment);
CUresult soft_queue_wait_context(struct soft_context *context);

/* Waits for the work of all contexts of a device; -1: of all devices. */
void soft_queue_wait_device(int device);

/* Works a little on what a query is about, then says whether it is done: CUDA_SUCCESS,
 * CUDA_ERROR_NOT_READY, or the context's error. */
CUresult soft_queue_query_stream(struct soft_stream *stream);
CUresult soft_queue_query_context(struct soft_context *context);
CUresult soft_queue_query_moment(struct soft_context *context, struct soft_moment *moment);

/* Takes what a finished context leaves: its streams, and spare memory. */
void soft_queue_end_context(struct soft_context *context);

#endif
