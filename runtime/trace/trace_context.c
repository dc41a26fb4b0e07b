/*
 * A context's part of a trace: its events, and what they say in the end.
 */
#include "trace_state.h"

#include <stdlib.h>
#include <time.h>

struct tol_trace tol_trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t tol_trace_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct tol_trace_context *tol_trace_current(void) {
    CUcontext handle = NULL;
    if (tol_trace.options.host_only || tol_trace.driver->cuCtxGetCurrent(&handle) != CUDA_SUCCESS ||
        handle == NULL) {
        return NULL;
    }
    unsigned count = atomic_load_explicit(&tol_trace.context_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        struct tol_trace_context *context = &tol_trace.contexts[i];
        if (context->handle == handle && context->is_open) return context;
    }
    return NULL;
}

/* The device's clock and the host's at one moment, on a stream that has nothing else to do: never
 * behind work that may not end. */
static bool set_origin(struct tol_trace_context *context) {
    const struct tol_driver_table *cu = tol_trace.driver;
    CUstream stream = NULL;
    bool ok = cu->cuEventCreate(&context->origin, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
              cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
    /* The first one may take the driver a while; the second is on time. */
    for (int turn = 0; ok && turn < 2; turn++) {
        ok = cu->cuEventRecord(context->origin, stream) == CUDA_SUCCESS &&
             cu->cuEventSynchronize(context->origin) == CUDA_SUCCESS;
        context->origin_ns = tol_trace_now_ns();
    }
    if (stream != NULL) cu->cuStreamDestroy_v2(stream);
    return ok;
}

void tol_trace_open_context(CUcontext handle) {
    const struct tol_driver_table *cu = tol_trace.driver;
    pthread_mutex_lock(&tol_trace.lock);
    unsigned count = atomic_load(&tol_trace.context_count);
    bool is_known = tol_trace.options.host_only || count == TOL_TRACE_CONTEXTS;
    for (unsigned i = 0; i < count; i++) {
        const struct tol_trace_context *context = &tol_trace.contexts[i];
        is_known = is_known || (context->handle == handle && context->is_open);
    }
    if (!is_known) {
        struct tol_trace_context *context = &tol_trace.contexts[count];
        size_t most = tol_trace.options.operations_max;
        context->handle = handle;
        context->operations = calloc(most, sizeof *context->operations);
        if (context->operations == NULL) most = 0;
        context->is_open = set_origin(context);
        for (; context->is_open && context->usable < most; context->usable++) {
            struct tol_trace_operation *operation = &context->operations[context->usable];
            if (cu->cuEventCreate(&operation->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS) break;
            if (cu->cuEventCreate(&operation->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) break;
        }
        atomic_store_explicit(&tol_trace.context_count, count + 1, memory_order_release);
        atomic_fetch_add(&tol_trace.generation, 1);
    }
    pthread_mutex_unlock(&tol_trace.lock);
}

static bool read_time(const struct tol_trace_context *context, CUevent event, double *ns) {
    float ms = 0;
    if (tol_trace.driver->cuEventElapsedTime(&ms, context->origin, event) != CUDA_SUCCESS) {
        return false;
    }
    *ns = (double)context->origin_ns + (double)ms * 1e6;
    return true;
}

/* Streams apart, and each stream's operations as they ended. */
static int compare(const void *left, const void *right) {
    const struct tol_trace_operation *a = *(struct tol_trace_operation *const *)left,
                                     *b = *(struct tol_trace_operation *const *)right;
    if (a->stream != b->stream) return (uintptr_t)a->stream < (uintptr_t)b->stream ? -1 : 1;
    if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
    return (a > b) - (a < b);
}

/* An operation without an event in front began when the one before it on its stream had ended, or,
 * if it was called later than that, after its call. */
static void set_begins(struct tol_trace_context *context) {
    size_t count = 0;
    struct tol_trace_operation **done = malloc((context->usable + 1) * sizeof *done);
    if (done == NULL) return; /* they begin with their calls */
    for (size_t i = 0; i < context->usable; i++) {
        if (context->operations[i].is_collected) done[count++] = &context->operations[i];
    }
    qsort(done, count, sizeof *done, compare);
    for (size_t i = 1; i < count; i++) {
        struct tol_trace_operation *operation = done[i];
        double before_ns = done[i - 1]->end_ns;
        if (operation->has_begin || operation->kind == TOL_TRACE_EVENT ||
            operation->stream != done[i - 1]->stream || before_ns < (double)operation->call_ns) {
            continue;
        }
        operation->begin_ns = before_ns;
        operation->begin_from = TOL_TRACE_BEGIN_END;
    }
    free(done);
}

static void read_operation(const struct tol_trace_context *context,
                           struct tol_trace_operation *operation) {
    if (!atomic_load(&operation->is_queued) || operation->is_collected ||
        !read_time(context, operation->end, &operation->end_ns)) {
        return;
    }
    operation->is_collected = true;
    operation->begin_from = TOL_TRACE_BEGIN_EVENT;
    operation->begin_ns = operation->end_ns; /* an event takes no time */
    if (operation->kind == TOL_TRACE_EVENT) return;
    if (operation->has_begin) {
        operation->is_collected = read_time(context, operation->begin, &operation->begin_ns);
    } else {
        double call_ns = (double)operation->call_ns; /* the clocks may drift */
        operation->begin_ns = call_ns < operation->end_ns ? call_ns : operation->end_ns;
        operation->begin_from = TOL_TRACE_BEGIN_CALL;
    }
}

static void read_context(struct tol_trace_context *context, bool closes) {
    const struct tol_driver_table *cu = tol_trace.driver;
    if (!context->is_open) return;
    size_t noted = atomic_load(&context->noted);
    for (size_t i = 0; i < context->usable; i++) {
        struct tol_trace_operation *operation = &context->operations[i];
        if (i < noted) read_operation(context, operation);
        if (!closes) continue;
        cu->cuEventDestroy_v2(operation->begin);
        cu->cuEventDestroy_v2(operation->end);
    }
    set_begins(context);
    if (!closes) return;
    cu->cuEventDestroy_v2(context->origin);
    context->is_open = false;
    atomic_fetch_add(&tol_trace.generation, 1);
}

/* For each open context, or for one, with it current, and what was current before afterwards. */
static void read_some(CUcontext only, bool closes) {
    CUcontext now = NULL;
    if (tol_trace.driver->cuCtxGetCurrent(&now) != CUDA_SUCCESS) return;
    pthread_mutex_lock(&tol_trace.lock);
    for (unsigned i = 0; i < atomic_load(&tol_trace.context_count); i++) {
        struct tol_trace_context *context = &tol_trace.contexts[i];
        if (!context->is_open || (only != NULL && context->handle != only)) continue;
        if (tol_trace.driver->cuCtxSetCurrent(context->handle) == CUDA_SUCCESS) {
            read_context(context, closes);
        }
    }
    (void)tol_trace.driver->cuCtxSetCurrent(now);
    pthread_mutex_unlock(&tol_trace.lock);
}

void tol_trace_read_all(bool closes) {
    read_some(NULL, closes);
}

void tol_trace_close_device(CUdevice device) {
    CUcontext handle = NULL;
    /* Which context it is, the driver tells to those who retain it. */
    if (tol_trace.driver->cuDevicePrimaryCtxRetain(&handle, device) != CUDA_SUCCESS) return;
    if (handle != NULL) read_some(handle, true);
    tol_trace.driver->cuDevicePrimaryCtxRelease_v2(device);
}

void tol_trace_collect(void) {
    if (tol_trace.is_on) tol_trace_read_all(false);
}
