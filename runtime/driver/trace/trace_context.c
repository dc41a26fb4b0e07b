/*
 * A context's part of a trace: its events, created when it is opened and destroyed when it is
 * closed.
 */
#include "trace_state.h"

#include <stdlib.h>

struct tol_trace tol_trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

/* Fills a list with as many events as the driver creates, and returns their number. */
static size_t trace_context_make_events(CUevent *events, size_t most) {
    size_t count = 0;
    while (count < most &&
           tol_trace.driver->cuEventCreate(&events[count], CU_EVENT_DEFAULT) == CUDA_SUCCESS) {
        count++;
    }
    return count;
}

static void trace_context_end_events(const CUevent *events, size_t count) {
    for (size_t i = 0; i < count; i++) (void)tol_trace.driver->cuEventDestroy_v2(events[i]);
}

/* The two kinds of events are not created alternately: most operations use only one kind, and those
 * are then adjacent in memory. */
static void trace_context_make_room(struct tol_trace_context *context, size_t most) {
    context->operations = calloc(most, sizeof *context->operations);
    context->ends = calloc(most, sizeof(CUevent));
    context->begins = calloc(most, sizeof(CUevent));
    if (context->operations == NULL || context->ends == NULL || context->begins == NULL) return;
    size_t ends = trace_context_make_events(context->ends, most);
    context->usable = trace_context_make_events(context->begins, ends);
    trace_context_end_events(context->ends + context->usable, ends - context->usable);
}

void tol_trace_open_context(CUcontext handle) {
    pthread_mutex_lock(&tol_trace.lock);
    unsigned count = atomic_load(&tol_trace.context_count);
    bool is_known = tol_trace.options.host_only || count == TOL_TRACE_CONTEXTS;
    for (unsigned i = 0; i < count; i++) {
        const struct tol_trace_context *context = &tol_trace.contexts[i];
        is_known = is_known || (context->handle == handle && context->is_open);
    }
    if (!is_known) {
        struct tol_trace_context *context = &tol_trace.contexts[count];
        context->handle = handle;
        context->is_open = tol_trace_set_origin(context);
        if (context->is_open) trace_context_make_room(context, tol_trace.options.operations_max);
        atomic_store_explicit(&tol_trace.context_count, count + 1, memory_order_release);
        atomic_fetch_add(&tol_trace.generation, 1);
    }
    pthread_mutex_unlock(&tol_trace.lock);
}

static void close_context(struct tol_trace_context *context) {
    const struct tol_driver_table *cu = tol_trace.driver;
    trace_context_end_events(context->ends, context->usable);
    trace_context_end_events(context->begins, context->usable);
    (void)cu->cuEventDestroy_v2(context->origin);
    (void)cu->cuEventDestroy_v2(context->spare);
    (void)cu->cuStreamDestroy_v2(context->stream);
    context->is_open = false;
    atomic_fetch_add(&tol_trace.generation, 1);
}

/* Calls a function for each open context, or for one, with it current, and restores the current
 * context. */
static void read_some(CUcontext only, bool closes) {
    CUcontext now = NULL;
    if (tol_trace.driver->cuCtxGetCurrent(&now) != CUDA_SUCCESS) return;
    pthread_mutex_lock(&tol_trace.lock);
    for (unsigned i = 0; i < atomic_load(&tol_trace.context_count); i++) {
        struct tol_trace_context *context = &tol_trace.contexts[i];
        if (!context->is_open || (only != NULL && context->handle != only)) continue;
        if (tol_trace.driver->cuCtxSetCurrent(context->handle) == CUDA_SUCCESS) {
            tol_trace_read_context(context);
            if (closes) close_context(context);
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
    /* The driver reports which context it is only to a call that retains it. */
    if (tol_trace.driver->cuDevicePrimaryCtxRetain(&handle, device) != CUDA_SUCCESS) return;
    if (handle != NULL) read_some(handle, true);
    tol_trace.driver->cuDevicePrimaryCtxRelease_v2(device);
}

void tol_trace_collect(void) {
    if (tol_trace.is_on) tol_trace_read_all(false);
}
