/*
 * Noting calls and device work: what happens in the path, as little as can be.
 */
#include "../check.h"
#include "trace_state.h"

#include <stdlib.h>
#include <string.h>

/* A stream that got nothing for GAP_NS may be idle; a tight loop of launches takes less. The
 * handles up to DEFAULT_STREAMS are NULL and CUDA's legacy and per-thread default streams. */
enum { CALLS = 65536, OPERATIONS = 8192, GAP_NS = 5000, DEFAULT_STREAMS = 2 };

/* What a call queues, where its stream stands among the arguments, and its bytes. */
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

/* What a thread remembers, so that the path has no lock and asks the driver nothing. */
static _Thread_local struct {
    struct tol_trace_operation *current; /* of the call that it is in */
    struct tol_trace_context *context;   /* that is current in it, as of generation */
    unsigned generation;
    CUstream stream; /* its latest operation's, with an event behind it; NULL: none */
    unsigned gates;
    uint64_t ended_ns; /* when that operation's call came back */
    unsigned since;    /* operations since the last one that got events */
    unsigned number;
    bool ends_capture;
} own;

#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

static CUstream stream_of(const struct tol_interpose_call *call, const struct work *work) {
    if (call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx) {
        return ARGUMENT(call, 0, const CUlaunchConfig *)->hStream;
    }
    return ARGUMENT(call, work->stream_at, CUstream);
}

const char *tol_trace_name_of(const struct tol_trace_operation *operation) {
    /* From what was the end: a handle may be another kernel's by now. */
    for (unsigned i = operation->names; operation->function != NULL && i-- > 0;) {
        if (tol_trace.names[i].function == operation->function) return tol_trace.names[i].text;
    }
    return tol_driver_function_name(operation->index);
}

static void add_name(const struct tol_interpose_call *call) {
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

/* The context that is current, as this thread last saw it. */
static struct tol_trace_context *context_of_thread(void) {
    unsigned generation = atomic_load_explicit(&tol_trace.generation, memory_order_acquire);
    if (own.context == NULL || own.generation != generation) {
        own.context = tol_trace_current();
        own.generation = generation;
        own.stream = NULL;
    }
    return own.context;
}

static bool is_captured(CUstream stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    const struct tol_driver_table *cu = tol_trace.driver;
    if (atomic_load_explicit(&tol_trace.captures, memory_order_relaxed) == 0) return false;
    return cu->cuStreamIsCapturing(stream, &captured) != CUDA_SUCCESS ||
           captured != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Whether the event behind this thread's latest operation serves as the one in front of the next.
 * The default streams' handles wait for other streams or are several streams': never on those. */
static bool goes_on(CUstream stream) {
    return stream == own.stream && (uintptr_t)stream > DEFAULT_STREAMS &&
           own.gates == atomic_load_explicit(&tol_trace.gates, memory_order_relaxed) &&
           tol_trace_now_ns() - own.ended_ns < GAP_NS;
}

/* Takes a record and its events, and puts one in front if need be. NULL: it is not noted. */
static struct tol_trace_operation *begin(const struct tol_interpose_call *call) {
    const struct tol_driver_table *cu = tol_trace.driver;
    const struct work *work = &works[work_of[call->index] - 1];
    CUstream stream = stream_of(call, work);
    if (tol_trace.options.host_only || is_captured(stream)) return NULL;
    if (own.since++ % tol_trace.options.every != 0) return NULL;
    struct tol_trace_context *context = context_of_thread();
    if (context == NULL) return NULL;
    size_t at = atomic_fetch_add_explicit(&context->noted, 1, memory_order_relaxed);
    if (at >= context->usable) return NULL;
    struct tol_trace_operation *operation = &context->operations[at];
    operation->kind = work->kind;
    operation->index = call->index;
    operation->stream = stream;
    if (work->bytes_at >= 0) {
        operation->bytes = ARGUMENT(call, work->bytes_at, size_t) * (size_t)work->element_bytes;
    }
    if (work->kind == TOL_TRACE_KERNEL) {
        bool is_ex = call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx;
        operation->function = ARGUMENT(call, is_ex ? 1 : 0, CUfunction);
        operation->names = atomic_load_explicit(&tol_trace.name_count, memory_order_acquire);
    }
    if (work->kind == TOL_TRACE_EVENT) return operation;
    if (!tol_trace.options.both_events && goes_on(stream)) return operation;
    operation->has_begin = true;
    return cu->cuEventRecord(operation->begin, stream) == CUDA_SUCCESS ? operation : NULL;
}

/* Calls that put something on a stream which is no operation, or end one. */
static bool is_gate(enum tol_driver_index index) {
    return index == TOL_DRIVER_INDEX_cuStreamWaitEvent ||
           index == TOL_DRIVER_INDEX_cuLaunchHostFunc ||
           index == TOL_DRIVER_INDEX_cuMemAllocFromPoolAsync ||
           index == TOL_DRIVER_INDEX_cuMemFreeAsync || index == TOL_DRIVER_INDEX_cuStreamDestroy_v2;
}

/* Whether a capture's end has ended it: a call from the wrong thread has not. */
static bool has_ended(CUstream stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return tol_trace.driver->cuStreamIsCapturing(stream, &captured) == CUDA_SUCCESS &&
           captured == CU_STREAM_CAPTURE_STATUS_NONE;
}

static void before(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (tol_trace.under.before != NULL) tol_trace.under.before(call, tol_trace.under.user);
    if (call->index == TOL_DRIVER_INDEX_cuDevicePrimaryCtxRelease_v2) {
        tol_trace_close_device(ARGUMENT(call, 0, CUdevice));
    }
    own.current = NULL;
    if (!call->forward) return;
    if (work_of[call->index] != 0) own.current = begin(call);
    own.ends_capture = call->index == TOL_DRIVER_INDEX_cuStreamEndCapture &&
                       !has_ended(ARGUMENT(call, 0, CUstream));
}

/* Puts an event behind an operation. Without one, the next needs one of its own in front. */
static void end(const struct tol_interpose_call *call) {
    struct tol_trace_operation *operation = own.current;
    own.current = NULL;
    own.stream = NULL;
    /* Read in front of the event: what is queued behind it is then seen by the next operation. */
    own.gates = atomic_load_explicit(&tol_trace.gates, memory_order_relaxed);
    if (operation == NULL || call->result != CUDA_SUCCESS ||
        tol_trace.driver->cuEventRecord(operation->end, operation->stream) != CUDA_SUCCESS) {
        return;
    }
    operation->call_ns = call->begin_ns;
    atomic_store_explicit(&operation->is_queued, true, memory_order_release);
    own.stream = operation->stream;
    own.ended_ns = call->end_ns;
}

/* What the trace has to know of calls that are no operations. */
static void watch(const struct tol_interpose_call *call) {
    if (call->index == TOL_DRIVER_INDEX_cuCtxSetCurrent) own.context = NULL;
    if (is_gate(call->index)) {
        atomic_fetch_add_explicit(&tol_trace.gates, 1, memory_order_relaxed);
    }
    if (own.ends_capture && has_ended(ARGUMENT(call, 0, CUstream))) {
        atomic_fetch_sub(&tol_trace.captures, 1);
    }
    own.ends_capture = false;
    if (call->result != CUDA_SUCCESS) return;
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) {
        add_name(call);
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
    if (own.number == 0) own.number = atomic_fetch_add(&tol_trace.threads, 1) + 1;
    struct tol_trace_call *kept = &tol_trace.calls[at];
    kept->index = call->index;
    kept->result = call->result;
    kept->thread = own.number;
    kept->begin_ns = call->begin_ns;
    kept->end_ns = call->end_ns;
    atomic_store_explicit(&kept->is_whole, true, memory_order_release);
}

static void after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (work_of[call->index] != 0) {
        end(call);
    } else {
        watch(call);
    }
    if (tol_trace.under.after != NULL) tol_trace.under.after(call, tol_trace.under.user);
    note_call(call);
}

tol_status tol_trace_install(struct tol_driver *driver, const struct tol_trace_options *options,
                             const struct tol_interpose_options *under) {
    tol_status status = TOL_OK;
    struct tol_trace_call *calls = NULL;
    struct tol_interpose_options hooks = {.before = NULL};
    TOL_CHECK(driver != NULL, TOL_INVALID_ARGUMENT, "tol_trace_install: driver is NULL");
    TOL_CHECK(!tol_trace.is_on, TOL_INVALID_ARGUMENT, "there is a trace already");
    struct tol_trace_options wanted = options != NULL ? *options : (struct tol_trace_options){0};
    if (wanted.calls_max == 0) wanted.calls_max = CALLS;
    if (wanted.operations_max == 0) wanted.operations_max = OPERATIONS;
    if (wanted.every == 0) wanted.every = 1;
    calls = calloc(wanted.calls_max, sizeof *calls);
    TOL_CHECK(calls != NULL, TOL_OUT_OF_HOST_MEMORY, "a trace of %zu calls", wanted.calls_max);
    if (under != NULL) hooks = *under;
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        work_of[works[i].index] = (unsigned char)(i + 1);
    }
    tol_trace.under = hooks;
    tol_trace.options = wanted;
    tol_trace.driver = tol_driver_functions(driver);
    tol_trace.calls = calls;
    hooks.before = before;
    hooks.after = after;
    hooks.user = NULL;
    hooks.time = true;
    TOL_TRY(tol_interpose_install(driver, &hooks));
    tol_trace.begin_ns = tol_trace_now_ns();
    tol_trace.is_on = true;
    atomic_fetch_add(&tol_trace.generation, 1);
    calls = NULL;
out:
    free(calls);
    return status;
}

void tol_trace_remove(struct tol_driver *driver) {
    if (!tol_trace.is_on) return;
    tol_interpose_remove(driver);
    tol_trace_read_all(true);
    tol_trace.is_on = false;
    for (unsigned i = 0; i < TOL_TRACE_CONTEXTS; i++) {
        free(tol_trace.contexts[i].operations);
        tol_trace.contexts[i] = (struct tol_trace_context){.handle = NULL};
    }
    free(tol_trace.calls);
    tol_trace.calls = NULL;
    atomic_store(&tol_trace.context_count, 0);
    atomic_store(&tol_trace.name_count, 0);
    atomic_store(&tol_trace.noted, 0);
    atomic_store(&tol_trace.captures, 0);
}
