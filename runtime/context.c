/*
 * The primary context: got once a device, bound to each thread that needs it, and remembered as
 * poisoned when the driver says it cannot go on.
 */
#include "context.h"

#include "check.h"
#include "deadline.h"
#include "handles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local uint64_t tol_bound_context;

static _Atomic uint64_t next_id = 1;

/* Contexts that ended while their work did not: the driver may still write to what they hold. */
static struct tol_context *left_behind;

static void free_context(struct tol_context *context) {
    while (context->names != NULL) {
        struct tol_name *name = context->names;
        context->names = name->next;
        free(name);
    }
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static void free_stream(struct tol_stream *stream) {
    if (stream->blocking) atomic_fetch_sub(&stream->context->blocking_streams, 1);
    tol_outcome_destroy(atomic_load(&stream->outcome));
    free(stream);
}

static void free_memory(struct tol_context *context, CUdeviceptr address, void *pinned) {
    if (address != 0) context->functions->cuMemFree_v2(address);
    if (pinned != NULL) context->functions->cuMemFreeHost(pinned);
}

static void free_left(struct tol_context *context) {
    pthread_mutex_lock(&context->lock);
    struct tol_left *left = context->left;
    context->left = NULL;
    pthread_mutex_unlock(&context->lock);
    while (left != NULL) {
        struct tol_left *next = left->next;
        free_memory(context, left->address, left->pinned);
        free(left);
        left = next;
    }
}

/* Only orphans can be left in the list of streams: a live one holds a reference to the context. */
static bool end_context(struct tol_context *context) {
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    if (!tol_context_is_idle(context, false)) return false;
    free_left(context);
    while (context->streams != NULL) {
        struct tol_stream *orphan = context->streams;
        context->streams = orphan->next;
        context->functions->cuStreamDestroy_v2(orphan->handle);
        free_stream(orphan);
    }
    while (context->staging != NULL) {
        struct tol_staging *block = context->staging;
        context->staging = block->next;
        context->functions->cuEventDestroy_v2(block->done);
        context->functions->cuMemFreeHost(block->data);
        free(block);
    }
    context->functions->cuCtxSetCurrent(NULL);
    tol_bound_context = 0;
    context->functions->cuDevicePrimaryCtxRelease_v2(context->device_handle);
    free_context(context);
    return true;
}

/* Makes the context of a device. The caller holds the driver's lock. */
static tol_status new_context(struct tol_driver *driver, int ordinal, struct tol_context **result) {
    tol_status status = TOL_OK;
    bool retained = false;
    struct tol_context *context = calloc(1, sizeof *context);
    TOL_CHECK(context != NULL, TOL_OUT_OF_HOST_MEMORY, "a context of %zu bytes", sizeof *context);
    pthread_mutex_init(&context->lock, NULL);
    context->functions = driver->functions;
    context->driver = driver;
    context->id = atomic_fetch_add(&next_id, 1);
    context->references = 1;
    context->patience_ms = TOL_DEADLINE_MS;
    atomic_init(&context->poisoned, false);

    TOL_TRY(tol_device_read(driver, ordinal, &context->device));
    TOL_CHECK(context->device.compute_capability >= TOL_COMPUTE_CAPABILITY_MIN,
              TOL_DEVICE_UNSUPPORTED,
              "device %d, %s, has compute capability %d.%d; %d.%d or newer is required", ordinal,
              context->device.name, context->device.compute_capability / 10,
              context->device.compute_capability % 10, TOL_COMPUTE_CAPABILITY_MIN / 10,
              TOL_COMPUTE_CAPABILITY_MIN % 10);
    TOL_CU(context->functions, cuDeviceGet, (&context->device_handle, ordinal), "device %d",
           ordinal);
    TOL_CU(context->functions, cuDevicePrimaryCtxRetain, (&context->handle, context->device_handle),
           "retaining the context of device %d", ordinal);
    retained = true;
    TOL_TRY(tol_context_bind(context));
    *result = context;
    context = NULL;
out:
    if (context != NULL) {
        if (retained) context->functions->cuDevicePrimaryCtxRelease_v2(context->device_handle);
        free_context(context);
    }
    return status;
}

tol_status tol_context_create(struct tol_driver *driver, int ordinal, struct tol_context **result) {
    tol_status status = TOL_OK;
    struct tol_context *context = NULL;
    TOL_CHECK(driver != NULL && result != NULL, TOL_INVALID_ARGUMENT, "tol_context_create: NULL");
    pthread_mutex_lock(&driver->lock);
    for (context = driver->contexts; context != NULL; context = context->next) {
        if (context->device.ordinal == ordinal) break;
    }
    if (context != NULL) {
        context->references++;
    } else {
        status = new_context(driver, ordinal, &context);
        if (status == TOL_OK) {
            context->next = driver->contexts;
            driver->contexts = context;
            atomic_fetch_add(&driver->references, 1);
        }
    }
    pthread_mutex_unlock(&driver->lock);
    if (status == TOL_OK) *result = context;
out:
    return status;
}

void tol_context_retain(struct tol_context *context) {
    pthread_mutex_lock(&context->driver->lock);
    context->references++;
    pthread_mutex_unlock(&context->driver->lock);
}

void tol_context_destroy(struct tol_context *context) {
    if (context == NULL) return;
    struct tol_driver *driver = context->driver;
    pthread_mutex_lock(&driver->lock);
    bool last = --context->references == 0;
    if (last) {
        struct tol_context **link = &driver->contexts;
        while (*link != context) link = &(*link)->next;
        *link = context->next;
        if (!end_context(context)) {
            context->next = left_behind;
            left_behind = context;
        }
    }
    pthread_mutex_unlock(&driver->lock);
    if (last) tol_driver_close(driver);
}

const struct tol_device *tol_context_device(const struct tol_context *context) {
    return &context->device;
}

struct tol_driver *tol_context_driver(const struct tol_context *context) {
    return context->driver;
}

const struct tol_driver_table *tol_context_functions(const struct tol_context *context) {
    return context->functions;
}

tol_status tol_context_bind_slow(struct tol_context *context) {
    tol_status status = TOL_OK;
    TOL_CHECK(!tol_inside_host_function, TOL_INVALID_ARGUMENT,
              "a host function must not call CUDA or this runtime");
    TOL_CONTEXT_CU(context, cuCtxSetCurrent, (context->handle),
                   "making the context of device %d current", context->device.ordinal);
    tol_bound_context = context->id;
out:
    return status;
}

tol_status tol_context_bind(struct tol_context *context) {
    tol_status status = TOL_OK;
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_bind: context is NULL");
    TOL_TRY(tol_context_check(context));
    status = tol_context_bind_slow(context);
out:
    return status;
}

tol_status tol_context_memory(struct tol_context *context, size_t *free_bytes,
                              size_t *total_bytes) {
    tol_status status = TOL_OK;
    size_t free_now = 0, total = 0;
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_memory: context is NULL");
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuMemGetInfo_v2, (&free_now, &total), "asking for the free memory");
    if (free_bytes != NULL) *free_bytes = free_now;
    if (total_bytes != NULL) *total_bytes = total;
out:
    return status;
}

tol_status tol_context_priorities(struct tol_context *context, int *lowest, int *highest) {
    tol_status status = TOL_OK;
    int least = 0, greatest = 0;
    TOL_CHECK(context != NULL && lowest != NULL && highest != NULL, TOL_INVALID_ARGUMENT,
              "tol_context_priorities: NULL");
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuCtxGetStreamPriorityRange, (&least, &greatest),
                   "asking for the range of priorities");
    *lowest = least;
    *highest = greatest;
out:
    return status;
}

tol_status tol_context_check(const struct tol_context *context) {
    if (!atomic_load_explicit(&context->poisoned, memory_order_acquire)) return TOL_OK;
    return tol_context_report_poison(context);
}

tol_status tol_context_report_poison(const struct tol_context *context) {
    /* Pairs with the release in poison(): the message is written before the flag. */
    atomic_thread_fence(memory_order_acquire);
    return tol_fail_again(TOL_POISONED, context->poison_result, context->poison_message);
}

static void poison(struct tol_context *context, int result) {
    pthread_mutex_lock(&context->lock);
    if (!atomic_load_explicit(&context->poisoned, memory_order_relaxed)) {
        context->poison_result = result;
        snprintf(context->poison_message, sizeof context->poison_message,
                 "the context of device %d can do no more since: %.15000s", context->device.ordinal,
                 tol_message());
        atomic_store_explicit(&context->poisoned, true, memory_order_release);
    }
    pthread_mutex_unlock(&context->lock);
}

/* Adds what the driver itself logged since the last failure: newer drivers say there in words what
 * a code cannot. */
static void add_driver_log(struct tol_driver *driver) {
    if (!tol_driver_has(driver, TOL_FEATURE_LOGS)) return;
    static _Thread_local char log[8192];
    size_t bytes = sizeof log;
    pthread_mutex_lock(&driver->log_lock);
    CUresult result = driver->table.cuLogsDumpToMemory(&driver->log_position, log, &bytes, 0);
    pthread_mutex_unlock(&driver->log_lock);
    if (result != CUDA_SUCCESS || bytes == 0) return;
    while (bytes > 0 && (log[bytes - 1] == '\n' || log[bytes - 1] == '\0')) bytes--;
    if (bytes > 0) tol_message_add("; the driver's log: %.*s", (int)bytes, log);
}

tol_status tol_context_fail(struct tol_context *context, const char *file, int line,
                            const char *call, int result, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tol_status status = tol_fail_cuda(file, line, call, result, "%s", text);
    if (status == TOL_NOT_READY) return status;
    add_driver_log(context->driver);
    if (tol_cuda_is_sticky(result)) poison(context, result);
    return status;
}

void tol_context_add_stream(struct tol_context *context, struct tol_stream *stream) {
    pthread_mutex_lock(&context->lock);
    stream->references = 1;
    stream->number = ++context->streams_made;
    stream->next = context->streams;
    context->streams = stream;
    pthread_mutex_unlock(&context->lock);
}

/* Asking a stream that is captured would end the capture, which may be another thread's. */
static bool is_captured(const struct tol_stream *stream) {
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

/* Takes the orphans whose work is done out of the list. The caller holds the context's lock. */
static struct tol_stream *take_idle_orphans(struct tol_context *context) {
    struct tol_stream *idle = NULL;
    for (struct tol_stream **link = &context->streams; *link != NULL;) {
        struct tol_stream *stream = *link;
        if (stream->references > 0 || is_captured(stream) ||
            context->functions->cuStreamQuery(stream->handle) == CUDA_ERROR_NOT_READY) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        stream->next = idle;
        idle = stream;
    }
    return idle;
}

void tol_context_retain_stream(struct tol_stream *stream) {
    pthread_mutex_lock(&stream->context->lock);
    stream->references++;
    pthread_mutex_unlock(&stream->context->lock);
}

void tol_context_release_stream(struct tol_stream *stream) {
    struct tol_context *context = stream->context;
    struct tol_stream *idle = NULL;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    pthread_mutex_lock(&context->lock);
    if (--stream->references == 0) idle = take_idle_orphans(context);
    pthread_mutex_unlock(&context->lock);
    while (idle != NULL) {
        struct tol_stream *next = idle->next;
        context->functions->cuStreamDestroy_v2(idle->handle);
        free_stream(idle);
        idle = next;
    }
}

const char *tol_context_intern(struct tol_context *context, const char *text) {
    size_t bytes = strlen(text) + 1;
    pthread_mutex_lock(&context->lock);
    struct tol_name *name = context->names;
    while (name != NULL && strcmp(name->text, text) != 0) name = name->next;
    if (name == NULL && (name = malloc(sizeof *name + bytes)) != NULL) {
        memcpy(name->text, text, bytes);
        name->next = context->names;
        context->names = name;
    }
    pthread_mutex_unlock(&context->lock);
    return name != NULL ? name->text : NULL;
}

/* Takes a reference to each stream of the context, so that none goes away while
 * it is waited for. */
static struct tol_stream **hold_streams(struct tol_context *context, size_t *count) {
    pthread_mutex_lock(&context->lock);
    *count = 0;
    for (struct tol_stream *s = context->streams; s != NULL; s = s->next) (*count)++;
    struct tol_stream **held = malloc((*count + 1) * sizeof(struct tol_stream *));
    size_t i = 0;
    for (struct tol_stream *s = context->streams; held != NULL && s != NULL; s = s->next) {
        s->references++;
        held[i++] = s;
    }
    pthread_mutex_unlock(&context->lock);
    return held;
}

tol_status tol_context_synchronize(struct tol_context *context, unsigned deadline_ms) {
    tol_status status = TOL_OK;
    struct tol_stream **held = NULL;
    size_t count = 0;
    struct tol_deadline deadline = tol_deadline_after(deadline_ms);
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_synchronize: context is NULL");
    TOL_TRY(tol_context_enter(context));
    held = hold_streams(context, &count);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "a list of %zu streams", count);
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        if (!is_captured(held[i])) status = tol_deadline_wait_stream(held[i], &deadline);
    }
out:
    for (size_t i = 0; held != NULL && i < count; i++) tol_context_release_stream(held[i]);
    free(held);
    return status;
}

/* A stream without work: an event on it is reached at once, and waiting for it takes no time. Where
 * another thread has queued some since, this gives up. */
static tol_status show_end(struct tol_context *context, CUstream stream, struct tol_event *event) {
    enum { REACHED_MS = 10 };
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(REACHED_MS);
    CUresult result = context->functions->cuStreamQuery(stream);
    if (result == CUDA_ERROR_NOT_READY) return TOL_OK;
    if (result != CUDA_SUCCESS) {
        return tol_context_fail(context, __FILE__, __LINE__, "cuStreamQuery", (int)result,
                                "whether a stream has come to its end");
    }
    TOL_CONTEXT_CU(context, cuEventRecord, (event->handle, stream), "the end of a stream");
    status = tol_deadline_wait_event(event, &deadline);
    if (status == TOL_TIMEOUT) return TOL_OK;
    if (status != TOL_OK) return status;
    TOL_CONTEXT_CU(context, cuEventSynchronize, (event->handle), "the end of a stream");
out:
    return status;
}

tol_status tol_context_show_ends(struct tol_context *context) {
    tol_status status = TOL_OK;
    struct tol_event event = {.context = context};
    struct tol_stream **held = NULL;
    size_t count = 0;
    TOL_CONTEXT_CU(context, cuEventCreate, (&event.handle, CU_EVENT_DISABLE_TIMING),
                   "an event for the ends of streams");
    held = hold_streams(context, &count);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "a list of %zu streams", count);
    TOL_TRY(show_end(context, NULL, &event));
    for (size_t i = 0; i < count; i++) {
        if (!is_captured(held[i])) TOL_TRY(show_end(context, held[i]->handle, &event));
    }
out:
    for (size_t i = 0; held != NULL && i < count; i++) tol_context_release_stream(held[i]);
    free(held);
    if (event.handle != NULL) context->functions->cuEventDestroy_v2(event.handle);
    return status;
}

bool tol_context_is_idle(struct tol_context *context, bool blocking_only) {
    size_t count = 0;
    bool is_idle = true;
    if (atomic_load_explicit(&context->poisoned, memory_order_relaxed)) return true;
    struct tol_stream **held = hold_streams(context, &count);
    if (held == NULL) return false;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    bool is_stuck = atomic_load_explicit(&context->is_stuck, memory_order_relaxed);
    struct tol_deadline deadline = tol_deadline_after(is_stuck ? 0 : context->patience_ms);
    for (size_t i = 0; i < count; i++) {
        if (is_captured(held[i]) || (blocking_only && !held[i]->blocking)) continue;
        is_idle = tol_deadline_settle(held[i], &deadline) && is_idle;
    }
    atomic_store_explicit(&context->is_stuck, !is_idle, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) tol_context_release_stream(held[i]);
    free(held);
    return is_idle;
}

tol_status tol_context_wait_blocking(struct tol_context *context) {
    tol_status status = TOL_OK;
    if (atomic_load_explicit(&context->blocking_streams, memory_order_relaxed) == 0) return TOL_OK;
    TOL_CHECK(tol_context_is_idle(context, true), TOL_TIMEOUT,
              "a synchronous call would wait for blocking streams that have not finished after "
              "%u ms",
              context->patience_ms);
out:
    return status;
}

void tol_context_free_later(struct tol_context *context, CUdeviceptr address, void *pinned) {
    struct tol_left *left = NULL;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    if (tol_context_is_idle(context, false)) {
        free_memory(context, address, pinned);
        free_left(context);
    } else if ((left = malloc(sizeof *left)) != NULL) {
        left->address = address;
        left->pinned = pinned;
        pthread_mutex_lock(&context->lock);
        left->next = context->left;
        context->left = left;
        pthread_mutex_unlock(&context->lock);
    }
}

void tol_context_set_patience(struct tol_context *context, unsigned patience_ms) {
    if (context != NULL) context->patience_ms = patience_ms;
}
