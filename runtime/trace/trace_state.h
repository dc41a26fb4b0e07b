/*
 * What a trace keeps. Internal: not installed.
 */
#ifndef TOLLENS_TRACE_STATE_H
#define TOLLENS_TRACE_STATE_H

#include "../trace.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TOL_TRACE_CONTEXTS = 8, TOL_TRACE_NAMES = 1024, TOL_TRACE_NAME_BYTES = 64 };

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
    TOL_TRACE_BEGIN_CALL   /* the call, which came later than that end */
};

/* A piece of device work. */
struct tol_trace_operation {
    enum tol_trace_kind kind;
    enum tol_driver_index index;
    CUfunction function; /* of a kernel, else NULL */
    unsigned names;      /* how many names there were: the latest of function's is its own */
    CUstream stream;
    size_t bytes; /* of a copy or a fill; 0: not known */
    CUevent begin, end;
    uint64_t call_ns;        /* when the driver was called */
    double begin_ns, end_ns; /* on the host's clock, once it is collected */
    enum tol_trace_begin begin_from;
    bool has_begin;        /* begin is recorded too */
    atomic_bool is_queued; /* its events are recorded */
    bool is_collected;
};

struct tol_trace_context {
    CUcontext handle;
    CUevent origin;
    uint64_t origin_ns; /* the host's clock when origin was reached */
    struct tol_trace_operation *operations;
    size_t usable; /* that have events */
    bool is_open;
    _Alignas(64) atomic_size_t noted; /* may pass operations_max: the rest is lost */
};

struct tol_trace_name {
    CUfunction function;
    char text[TOL_TRACE_NAME_BYTES];
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
    struct tol_trace_name names[TOL_TRACE_NAMES];
    atomic_uint name_count;
    _Alignas(64) atomic_size_t noted; /* alone in its line: each call writes it */
};

extern struct tol_trace tol_trace;

/* The context that is current, if the trace has it; else NULL. */
struct tol_trace_context *tol_trace_current(void);

/* The name of an operation's kernel, or of its call. */
const char *tol_trace_name_of(const struct tol_trace_operation *operation);

/* Makes events for a context that has just become current and is not known yet. */
void tol_trace_open_context(CUcontext handle);

/* Reads the times of what is done, and gives the events back where closes is set. */
void tol_trace_read_all(bool closes);

/* The same for a device whose primary context is about to be released. */
void tol_trace_close_device(CUdevice device);

/* The interposer's clock. */
uint64_t tol_trace_now_ns(void);

#endif
