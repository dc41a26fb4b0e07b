/*
 * Records calls and device work: the part in the path of calls, kept as short as possible.
 */
#include "trace_state.h"

#include "core/monotonic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The handles up to DEFAULT_STREAMS are NULL and CUDA's legacy and per-thread default streams. */
enum { DEFAULT_STREAMS = 2, PLACES = 8 };

/* What a call queues, which argument is its stream, and its bytes. */
static const struct work {
    enum tol_driver_index index;
    enum tol_trace_kind kind;
    unsigned stream_at;
    int bytes_at, element_bytes; /* -1: it has none */
} works[] = {
    {TOL_DRIVER_INDEX_cuLaunchKernel, TOL_TRACE_KERNEL, 8, -1, 0},
    {TOL_DRIVER_INDEX_cuLaunchKernelEx, TOL_TRACE_KERNEL, 0, -1, 0},
    {TOL_DRIVER_INDEX_cuGraphLaunch, TOL_TRACE_GRAPH, 1, -1, 0},
    {TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2, TOL_TRACE_COPY, 3, 2, 1},
    {TOL_DRIVER_INDEX_cuMemcpyDtoHAsync_v2, TOL_TRACE_COPY, 3, 2, 1},
    {TOL_DRIVER_INDEX_cuMemcpyDtoDAsync_v2, TOL_TRACE_COPY, 3, 2, 1},
    {TOL_DRIVER_INDEX_cuMemcpyPeerAsync, TOL_TRACE_COPY, 5, 4, 1},
    {TOL_DRIVER_INDEX_cuMemcpy2DAsync_v2, TOL_TRACE_COPY, 1, -1, 0},
    {TOL_DRIVER_INDEX_cuMemsetD8Async, TOL_TRACE_FILL, 3, 2, 1},
    {TOL_DRIVER_INDEX_cuMemsetD16Async, TOL_TRACE_FILL, 3, 2, 2},
    {TOL_DRIVER_INDEX_cuMemsetD32Async, TOL_TRACE_FILL, 3, 2, 4},
    {TOL_DRIVER_INDEX_cuEventRecord, TOL_TRACE_EVENT, 1, -1, 0},
};

static unsigned char work_of[TOL_DRIVER_FUNCTIONS]; /* 1 + the place in works; 0: none */

/* What a thread remembers of a stream: the state after its latest operation there, which
 * is or will be followed by an event. */
struct note_place {
    CUstream stream; /* NULL: nothing is known */
    unsigned gates;
    uint64_t ended_ns; /* when that operation's call came back */
};

/* What a thread remembers, so that the path takes no lock and makes no driver call. */
static _Thread_local struct {
    struct tol_trace_operation *current; /* of the call that it is in */
    struct note_place *place;            /* of that call's stream; NULL: it is no operation */
    struct tol_trace_run *run;           /* its own; NULL: there are too many threads */
    struct tol_trace_context *context;   /* that is current in it, as of generation */
    unsigned generation;
    struct note_place places[PLACES]; /* by the streams' handles; one may replace another */
    unsigned since;                   /* operations since the last one that got events */
    unsigned number;
    bool has_run; /* it left its run open, and perhaps another thread has ended it */
    bool joins;   /* the call's operation shares the run's event; the run is taken */
    bool bursts;  /* the call's operation may leave the event to a later one */
    bool ends_capture;
} own;

#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

static CUstream trace_note_stream_of(const struct tol_interpose_call *call,
                                     const struct work *work) {
    if (call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx) {
        return ARGUMENT(call, 0, const CUlaunchConfig *)->hStream;
    }
    return ARGUMENT(call, work->stream_at, CUstream);
}

const char *tol_trace_name_of(const struct tol_trace_operation *operation) {
    /* Searches from the end: a handle may be reused for another kernel. */
    for (unsigned i = operation->names; operation->function != NULL && i-- > 0;) {
        if (tol_trace.names[i].function == operation->function) return tol_trace.names[i].text;
    }
    return tol_driver_function_name(operation->index);
}

static void trace_note_add_name(const struct tol_interpose_call *call) {
    const char *text = ARGUMENT(call, 2, const char *);
    pthread_mutex_lock(&tol_trace.lock);
    unsigned count = atomic_load(&tol_trace.name_count);
    if (count < TOL_TRACE_NAMES) {
        struct tol_trace_name *name = &tol_trace.names[count];
        name->function = *ARGUMENT(call, 0, CUfunction *);
        snprintf(name->text, sizeof name->text, "%s", text);
        atomic_store_explicit(&tol_trace.name_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&tol_trace.lock);
}

unsigned tol_trace_thread(void) {
    if (own.number == 0) {
        own.number = atomic_fetch_add(&tol_trace.threads, 1) + 1;
        own.run = own.number <= TOL_TRACE_RUNS ? &tol_trace.runs[own.number - 1] : NULL;
    }
    return own.number;
}

/* The context that is current, as this thread last saw it. */
static struct tol_trace_context *context_of_thread(void) {
    unsigned generation = atomic_load_explicit(&tol_trace.generation, memory_order_acquire);
    if (own.context == NULL || own.generation != generation) {
        own.context = tol_trace_current();
        own.generation = generation;
        memset(own.places, 0, sizeof own.places);
    }
    return own.context;
}

static struct note_place *trace_note_place_of(CUstream stream) {
    uintptr_t bits = (uintptr_t)stream;
    return &own.places[(bits >> 4 ^ bits >> 7 ^ bits >> 12) % PLACES];
}

static bool trace_note_is_captured(CUstream stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    const struct tol_driver_table *cu = tol_trace.driver;
    if (atomic_load_explicit(&tol_trace.captures, memory_order_relaxed) == 0) return false;
    return cu->cuStreamIsCapturing(stream, &captured) != CUDA_SUCCESS ||
           captured != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Whether what this thread queued last on the stream ends where the next operation may begin. The
 * default streams' handles wait for other streams or are several streams': never on those. */
static bool goes_on(const struct note_place *place, CUstream stream) {
    return place->stream == stream && (uintptr_t)stream > DEFAULT_STREAMS &&
           place->gates == atomic_load_explicit(&tol_trace.gates, memory_order_relaxed);
}

/* A record for an operation in the context that is current; NULL: there is none. */
static struct tol_trace_operation *take_record(enum tol_trace_kind kind, CUstream stream) {
    if (tol_trace.options.host_only || trace_note_is_captured(stream)) return NULL;
    if (tol_trace.options.kernels_only && kind != TOL_TRACE_KERNEL) return NULL;
    if (own.since++ % tol_trace.options.every != 0) return NULL;
    struct tol_trace_context *context = context_of_thread();
    if (context == NULL) return NULL;
    size_t at = atomic_fetch_add_explicit(&context->noted, 1, memory_order_relaxed);
    if (at >= context->usable) return NULL;
    /* The next record is likely this thread's as well, and was last written when it was created. */
    if (at + 1 < context->usable) {
        __builtin_prefetch(&context->operations[at + 1], 1);
        __builtin_prefetch(context->ends[at + 1], 1); /* a driver's handle is a place in memory */
    }
    return &context->operations[at];
}

static void trace_note_describe(struct tol_trace_operation *operation,
                                const struct tol_interpose_call *call, const struct work *work,
                                CUstream stream) {
    operation->kind = work->kind;
    operation->index = call->index;
    operation->stream = stream;
    operation->head = operation;
    if (work->bytes_at >= 0) {
        operation->bytes = ARGUMENT(call, work->bytes_at, size_t) * (size_t)work->element_bytes;
    }
    if (work->kind == TOL_TRACE_KERNEL) {
        bool is_ex = call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx;
        operation->function = ARGUMENT(call, is_ex ? 1 : 0, CUfunction);
        operation->names = atomic_load_explicit(&tol_trace.name_count, memory_order_acquire);
    }
}

static void end_own_run(void) {
    if (own.has_run) tol_trace_run_end(own.run);
    own.has_run = false;
}

/* Records an event before an operation. false: it failed. */
static bool put_begin(struct tol_trace_operation *operation) {
    size_t at = (size_t)(operation - own.context->operations);
    operation->has_begin = true;
    return tol_trace.driver->cuEventRecord(own.context->begins[at], operation->stream) ==
           CUDA_SUCCESS;
}

/* Takes a record, and records an event before the operation if needed. NULL: it is not recorded. */
static struct tol_trace_operation *trace_note_begin(struct tol_interpose_call *call) {
    const struct work *work = &works[work_of[call->index] - 1];
    CUstream stream = trace_note_stream_of(call, work);
    struct note_place *place = own.place = trace_note_place_of(stream);
    struct tol_trace_operation *operation = take_record(work->kind, stream);
    bool is_known = operation != NULL && goes_on(place, stream);
    call->begin_ns = tol_now_ns();
    assert(place->ended_ns <= call->begin_ns); /* 0: nothing is known */
    own.bursts = is_known && call->begin_ns - place->ended_ns < tol_trace.options.gap_ns &&
                 tol_trace.options.share > 1 && own.run != NULL;
    own.joins = own.bursts && own.has_run && atomic_load(&own.run->stream) == stream &&
                tol_trace_run_take(own.run);
    if (!own.joins) end_own_run();
    /* The operations of other threads there, or anywhere, since a default stream is ordered after
     * all others. */
    bool is_default = (uintptr_t)stream <= DEFAULT_STREAMS;
    if (!is_known) tol_trace_runs_end(stream, is_default ? own.context : NULL);
    if (operation == NULL) return NULL;
    trace_note_describe(operation, call, work, stream);
    if (own.joins) operation->head = own.run->head;
    if (work->kind == TOL_TRACE_EVENT) return operation;
    bool is_idle = call->begin_ns - place->ended_ns >= tol_trace.options.gap_ns;
    if (is_known && (tol_trace.options.begins == TOL_TRACE_BEGINS_DERIVED ||
                     (tol_trace.options.begins == TOL_TRACE_BEGINS_IDLE && !is_idle))) {
        return operation;
    }
    bool ok = put_begin(operation);
    call->begin_ns = tol_now_ns();
    return ok ? operation : NULL;
}

/* Calls that queue something that is not an operation on a stream, or end one, and which argument
 * is that stream. */
static bool is_gate(enum tol_driver_index index, unsigned *stream_at) {
    switch (index) {
    case TOL_DRIVER_INDEX_cuStreamWaitEvent:
    case TOL_DRIVER_INDEX_cuLaunchHostFunc:
    case TOL_DRIVER_INDEX_cuStreamDestroy_v2:
    case TOL_DRIVER_INDEX_cuStreamBeginCapture_v2:
        *stream_at = 0;
        return true;
    case TOL_DRIVER_INDEX_cuMemFreeAsync:
        *stream_at = 1;
        return true;
    case TOL_DRIVER_INDEX_cuMemAllocFromPoolAsync:
        *stream_at = 3;
        return true;
    default:
        return false;
    }
}

/* Whether a capture's end has ended it: a call from the wrong thread has not. */
static bool trace_note_has_ended(CUstream stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return tol_trace.driver->cuStreamIsCapturing(stream, &captured) == CUDA_SUCCESS &&
           captured == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Before a call that is not an operation: the operations that share an event get it now. */
static void look_out(const struct tol_interpose_call *call) {
    unsigned stream_at = 0;
    end_own_run();
    if (is_gate(call->index, &stream_at)) {
        tol_trace_runs_end(ARGUMENT(call, stream_at, CUstream), NULL);
    }
    own.ends_capture = call->index == TOL_DRIVER_INDEX_cuStreamEndCapture &&
                       !trace_note_has_ended(ARGUMENT(call, 0, CUstream));
}

static void trace_note_before(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (tol_trace.under.before != NULL) tol_trace.under.before(call, tol_trace.under.user);
    if (call->index == TOL_DRIVER_INDEX_cuDevicePrimaryCtxRelease_v2) {
        tol_trace_close_device(ARGUMENT(call, 0, CUdevice));
    }
    own.current = NULL;
    own.place = NULL;
    own.joins = false;
    (void)tol_trace_thread();
    if (call->forward && work_of[call->index] != 0) {
        own.current = trace_note_begin(call);
    } else {
        if (call->forward) look_out(call);
        call->begin_ns = tol_now_ns();
    }
}

/* An operation that the driver has accepted joins earlier ones, or begins a run; the last one has
 * the event. false: its end will be unknown. */
static bool trace_note_queue(struct tol_trace_operation *operation, uint64_t ended_ns) {
    struct tol_trace_operation *head = operation->head;
    operation->place = head->works;
    head->works += operation->kind != TOL_TRACE_EVENT;
    head->sharers++;
    atomic_store_explicit(&operation->is_queued, true, memory_order_release);
    if (!own.bursts || head->sharers >= tol_trace.options.share) {
        return tol_trace_end_head(own.context, head);
    }
    own.run->head = head;
    own.run->ended_ns = ended_ns;
    atomic_store(&own.run->context, own.context);
    atomic_store(&own.run->stream, head->stream);
    own.has_run = true;
    return true;
}

/* If no event follows an operation, the next one needs an event before it. */
static void trace_note_end(const struct tol_interpose_call *call) {
    struct tol_trace_operation *operation = own.current;
    struct note_place *place = own.place;
    bool had_run = own.joins, is_known = false;
    /* Read before the event: the next operation then sees what is queued after it. */
    unsigned gates = atomic_load_explicit(&tol_trace.gates, memory_order_relaxed);
    own.current = NULL;
    if (operation != NULL && call->result == CUDA_SUCCESS) {
        operation->call_ns = call->begin_ns;
        own.has_run = false;
        is_known = trace_note_queue(operation, call->end_ns);
    }
    if (had_run || own.has_run) {
        atomic_store_explicit(&own.run->state,
                              own.has_run ? TOL_TRACE_RUN_OPEN : TOL_TRACE_RUN_NONE,
                              memory_order_release);
    }
    *place = (struct note_place){is_known ? operation->stream : NULL, gates, call->end_ns};
}

/* Calls that are not operations but affect the trace. */
static void trace_note_watch(const struct tol_interpose_call *call) {
    if (call->index == TOL_DRIVER_INDEX_cuCtxSetCurrent) own.context = NULL;
    unsigned stream_at = 0;
    if (is_gate(call->index, &stream_at)) {
        atomic_fetch_add_explicit(&tol_trace.gates, 1, memory_order_relaxed);
    }
    if (own.ends_capture && trace_note_has_ended(ARGUMENT(call, 0, CUstream))) {
        atomic_fetch_sub(&tol_trace.captures, 1);
    }
    own.ends_capture = false;
    if (call->result != CUDA_SUCCESS) return;
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) {
        trace_note_add_name(call);
    } else if (call->index == TOL_DRIVER_INDEX_cuStreamBeginCapture_v2) {
        atomic_fetch_add(&tol_trace.captures, 1);
    } else if (call->index == TOL_DRIVER_INDEX_cuCtxSetCurrent &&
               ARGUMENT(call, 0, CUcontext) != NULL) {
        tol_trace_open_context(ARGUMENT(call, 0, CUcontext));
    }
}

static void note_call(const struct tol_interpose_call *call) {
    size_t at = atomic_fetch_add_explicit(&tol_trace.noted, 1, memory_order_relaxed);
    if (at >= tol_trace.options.calls_max) return;
    struct tol_trace_call *kept = &tol_trace.calls[at];
    kept->index = call->index;
    kept->result = call->result;
    kept->thread = tol_trace_thread();
    kept->begin_ns = call->begin_ns;
    kept->end_ns = call->end_ns;
    atomic_store_explicit(&kept->is_whole, true, memory_order_release);
}

static void trace_note_after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->end_ns == 0) call->end_ns = tol_now_ns();
    if (own.place != NULL) {
        trace_note_end(call);
    } else {
        trace_note_watch(call);
    }
    if (tol_trace.under.after != NULL) tol_trace.under.after(call, tol_trace.under.user);
    note_call(call);
}

void tol_trace_hook(struct tol_interpose_options *hooks) {
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        work_of[works[i].index] = (unsigned char)(i + 1);
    }
    hooks->before = trace_note_before;
    hooks->after = trace_note_after;
    hooks->user = NULL;
}
