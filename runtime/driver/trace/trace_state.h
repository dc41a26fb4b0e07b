/*
 * What a trace keeps.
 */
#ifndef TOLLENS_TRACE_STATE_H
#define TOLLENS_TRACE_STATE_H

#include "tollens/trace.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    TOL_TRACE_CONTEXTS = 8,
    TOL_TRACE_NAMES = 1024,
    TOL_TRACE_NAME_BYTES = 64,
    TOL_TRACE_RUNS = 256 /* threads that can share events; those after them do not */
};

struct tol_trace_call {
    enum tol_driver_index index;
    CUresult result;
    unsigned thread; /* in the order of each thread's first call, from 1 */
    uint64_t begin_ns, end_ns;
    atomic_bool is_whole; /* written to its end */
};

enum tol_trace_kind {
    TOL_TRACE_KERNEL,
    TOL_TRACE_COPY,
    TOL_TRACE_FILL,
    TOL_TRACE_GRAPH,
    TOL_TRACE_EVENT
};

/* Where the time of a beginning is from. */
enum tol_trace_begin {
    TOL_TRACE_BEGIN_EVENT, /* the operation's own event */
    TOL_TRACE_BEGIN_END,   /* the end of what came before on the stream */
    TOL_TRACE_BEGIN_CALL,  /* the call, which came later than that end */
    TOL_TRACE_BEGIN_SHARED /* its place among those that have one event */
};

/* A piece of device work. The first of those that share an event is their head, which has it. */
struct tol_trace_operation {
    enum tol_trace_kind kind;
    enum tol_driver_index index;
    CUfunction function; /* of a kernel, else NULL */
    unsigned names;      /* how many names there were: the latest of function's is its own */
    unsigned place;      /* how many of those that share came before it, events not counted */
    CUstream stream;
    size_t bytes;                     /* of a copy or a fill; 0: not known */
    uint64_t call_ns;                 /* when the driver was called */
    struct tol_trace_operation *head; /* itself, if it is the first or the only one */
    unsigned sharers, works;          /* of a head: how many have its event; without events */
    float begin_ms, end_ms;           /* of the device's clock; once is_collected */
    double begin_ns, end_ns;          /* on the host's clock, once they are derived */
    enum tol_trace_begin begin_from;
    bool has_begin; /* the event in front is recorded */
    bool is_late;   /* of a head: its event was recorded when the stream may have been idle */
    bool is_collected;
    atomic_bool is_queued; /* the driver has it */
    atomic_bool is_ended;  /* of a head: the event after the last is recorded; no other joins */
};

struct tol_trace_context {
    CUcontext handle;
    CUstream stream;             /* for the clock: nothing else is on it */
    CUevent origin, spare;       /* the zero of the device's times; the second clock point */
    double origin_ns, per_ms_ns; /* the host's clock at origin; its advance per ms of the device */
    struct tol_trace_operation *operations;
    CUevent *ends, *begins; /* of the operation at the same place */
    size_t usable;          /* that have events */
    bool is_open;
    _Alignas(64) atomic_size_t noted; /* may pass operations_max: the rest is lost */
};

enum tol_trace_run_state {
    TOL_TRACE_RUN_NONE,
    TOL_TRACE_RUN_OPEN,
    TOL_TRACE_RUN_TAKEN, /* its thread is in a call that adds to it */
    TOL_TRACE_RUN_ENDING /* a thread records its event */
};

/* Operations of one thread that wait for the event after the last of them. While it is open,
 * several threads may record that event: its own, one that collects, and one that is about to queue
 * other work on the stream or to destroy it. Fields that are not atomic belong to its thread, or,
 * while it ends, to the thread that ends it. */
struct tol_trace_run {
    _Alignas(64) atomic_int state;
    _Atomic(CUstream) stream; /* any thread may read this and context */
    _Atomic(struct tol_trace_context *) context;
    struct tol_trace_operation *head;
    uint64_t ended_ns; /* when the latest one's call came back */
};

struct tol_trace_name {
    CUfunction function;
    char text[TOL_TRACE_NAME_BYTES];
};

/* A moment of tol_trace_mark. */
struct tol_trace_moment {
    uint64_t at_ns;
    unsigned thread;
    char *name, *arguments; /* a JSON object */
    struct tol_trace_moment *next;
};

struct tol_trace {
    bool is_on;
    struct tol_trace_options options;
    struct tol_interpose_options under;
    const struct tol_driver_table *driver;
    uint64_t begin_ns;
    struct tol_trace_call *calls;
    atomic_uint generation; /* raised when what threads remember of contexts may be wrong */
    atomic_uint captures;   /* that have begun and not ended */
    atomic_uint gates;      /* calls that put something between operations of a stream */
    atomic_uint threads;
    pthread_mutex_t lock; /* guards opening and closing contexts, and adding names */
    struct tol_trace_context contexts[TOL_TRACE_CONTEXTS];
    atomic_uint context_count;
    struct tol_trace_run runs[TOL_TRACE_RUNS]; /* by the threads' numbers */
    struct tol_trace_name names[TOL_TRACE_NAMES];
    atomic_uint name_count;
    _Alignas(64) atomic_size_t noted; /* alone in its line: each call writes it */
};

extern struct tol_trace tol_trace;

/* The number of the calling thread, assigned at its first driver call or mark. */
unsigned tol_trace_thread(void);

/* Calls use for each mark in the order they came. Returns how many were not kept. */
size_t tol_trace_each_mark(void (*use)(const struct tol_trace_moment *moment, void *user),
                           void *user);
void tol_trace_clear_marks(void);

/* The context that is current, if the trace has it; else NULL. */
struct tol_trace_context *tol_trace_current(void);

/* The name of an operation's kernel, or of its call. */
const char *tol_trace_name_of(const struct tol_trace_operation *operation);

/* Makes events for a context that has just become current and is not known yet. */
void tol_trace_open_context(CUcontext handle);

/* Reads the times of finished operations, and destroys the events if closes is set. */
void tol_trace_read_all(bool closes);

/* The same for a device whose primary context is about to be released. */
void tol_trace_close_device(CUdevice device);

/* One context's, which is current; the lock is held. */
void tol_trace_read_context(struct tol_trace_context *context);

/* Installs the trace's hooks in place of the present ones. */
void tol_trace_hook(struct tol_interpose_options *hooks);

/* Finds a context's origin on both clocks. false: it has none. */
bool tol_trace_set_origin(struct tol_trace_context *context);

/* Finds a second clock point and the ratio of the two clocks' rates. */
void tol_trace_set_rate(struct tol_trace_context *context);

/* Takes the thread's run, if it is open. false: another has ended it. */
bool tol_trace_run_take(struct tol_trace_run *run);

/* Records the event of operations whose run or head the thread has taken. false: it failed, and
 * their times stay unknown. */
bool tol_trace_end_head(struct tol_trace_context *context, struct tol_trace_operation *head);

/* Ends a run that is open, or waits for the thread that is ending it. */
void tol_trace_run_end(struct tol_trace_run *run);

/* Ends all threads' runs on a stream, or in a context: the other is NULL. */
void tol_trace_runs_end(CUstream stream, const struct tol_trace_context *context);

#endif
