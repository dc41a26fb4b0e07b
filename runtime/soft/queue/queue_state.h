/*
 * The contents of queues: streams, their operations, and events.
 *
 * An event holds an event point, a place in a stream that is reached once. Recording the event
 * again makes a new point; waiters of the old one are unaffected. The legacy stream's implicit
 * order consists of event points too.
 */
#ifndef SOFT_STREAM_STATE_H
#define SOFT_STREAM_STATE_H

#include "state/driver_state.h"
#include "state/fault.h"
#include "machine/machine_state.h"
#include "task.h"

struct soft_capture;
struct soft_stream_clock;
struct soft_exec;
struct soft_shared_event;
struct soft_thread;
struct soft_prior;

/* A set of nodes that something in a capture depends on. */
struct soft_front {
    struct soft_edge *edges;
    unsigned count;
};

struct soft_event_point {
    int references;
    bool reached;
    bool of_event; /* recorded by the program, not by an implicit order */
    uint64_t time_ns;
    struct soft_prior *prior; /* of a kernel that has this point as its programmatic event */
    struct soft_stream_clock
        *clock; /* if the order of streams is checked; likewise in streams and operations */
};

struct soft_event {
    struct soft_context *context;
    unsigned flags;
    struct soft_event_point *point;     /* of the latest recording; NULL before the first */
    struct soft_capture *capture;       /* the capture of the latest recording, if any */
    struct soft_front front;            /* the graph nodes that it represents */
    struct soft_shared_event *shared;   /* with other processes; NULL: with none */
    struct soft_event *next, *previous; /* in the context's list */
};

enum soft_operation_kind {
    SOFT_OPERATION_TASK,
    SOFT_OPERATION_RECORD,
    SOFT_OPERATION_WAIT,
    SOFT_OPERATION_FAULT
};

struct soft_operation {
    enum soft_operation_kind kind;
    struct soft_task task;
    struct soft_operation *next;
    int workers; /* threads at work on it */
    bool begun;
    uint64_t begun_ns;              /* for the trace; 0: there is none */
    unsigned done;                  /* values that are dealt with */
    struct soft_launch *launch;     /* of a kernel */
    struct soft_event_point *point; /* to record or to wait for */
    struct soft_exec *exec;         /* whose launch this ends; release drops its reference */
    void (*release)(struct soft_exec *exec);
    uint8_t *staged; /* a copy of a pageable source */
    struct soft_stream_fault fault;
    struct soft_stream_clock *clock;
    uint64_t serial;  /* its number in the order of submission to any stream */
    uint64_t queued;  /* its number in the order of queueing, if that is checked */
    const void *site; /* likewise, of the call that queued it: base/call_site.h */
};

/* The kernels that the next kernel in a stream may overlap; see dependence.h. */
struct soft_dependence {
    struct soft_prior *last;                    /* of the kernel that was queued last; or NULL */
    struct soft_prior *events[SOFT_PRIORS_MAX]; /* whose programmatic events are waited for */
    unsigned event_count;
};

/* Attributes of a stream without effect. */
struct soft_stream_hints {
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
    struct soft_stream_hints hints;
    struct soft_capture *capture; /* that it is in; leave_capture takes it out */
    void (*leave_capture)(struct soft_stream *stream);
    struct soft_front front; /* the nodes that its next node will depend on */
    CUgraphNode *info_nodes; /* what cuStreamGetCaptureInfo returned last */
    CUgraphEdgeData *info_data;
    struct soft_operation *first, *last;
    struct soft_stream_clock *clock;
    struct soft_dependence dependence;
    bool is_traced;           /* its row in the trace has a name */
    struct soft_stream *next; /* in the context's list */
};

#endif
