/*
 * The streams of a context: the lists of live and orphaned streams, and waits for all of them.
 */
#include "check.h"
#include "nvtx.h"
#include "tollens/context.h"
#include "deadline.h"
#include "deep.h"
#include "event_state.h"
#include "outcome.h"
#include "stream_state.h"

#include <stdlib.h>

static void free_stream(struct tol_stream *stream) {
    if (stream->blocking) atomic_fetch_sub(&stream->context->blocking_streams, 1);
    tol_outcome_destroy(atomic_load(&stream->outcome));
    free(stream);
}

static void context_streams_destroy_all(struct tol_context *context, struct tol_stream *stream) {
    while (stream != NULL) {
        struct tol_stream *next = stream->next;
        if (!stream->adopted) context->functions->cuStreamDestroy_v2(stream->handle);
        free_stream(stream);
        stream = next;
    }
}

void tol_context_add_stream(struct tol_context *context, struct tol_stream *stream) {
    pthread_mutex_lock(&context->lock);
    stream->references = 1;
    stream->number = ++context->streams_made;
    stream->next = context->streams;
    context->streams = stream;
    assert(tol_stream_is_valid(stream));
    TOL_DEEP_ASSERT(tol_context_is_valid(context));
    pthread_mutex_unlock(&context->lock);
}

bool tol_stream_asks_capture(const struct tol_stream *stream) {
    CUstreamCaptureStatus captured = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!tol_driver_has(stream->context->driver, TOL_FEATURE_GRAPH)) return false;
    return stream->functions->cuStreamIsCapturing(stream->handle, &captured) != CUDA_SUCCESS ||
           captured != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Whether an orphan still has work. An adopted stream may be gone by now, so it is not queried. */
static bool context_streams_has_work(const struct tol_stream *stream) {
    return !stream->adopted &&
           (tol_stream_is_captured(stream) ||
            stream->functions->cuStreamQuery(stream->handle) == CUDA_ERROR_NOT_READY);
}

/* Takes the orphans whose work is done out of the list. The caller holds the context's lock. */
static struct tol_stream *take_idle_orphans(struct tol_context *context) {
    struct tol_stream *idle = NULL;
    for (struct tol_stream **link = &context->streams; *link != NULL;) {
        struct tol_stream *stream = *link;
        if (stream->references > 0 || context_streams_has_work(stream)) {
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
    assert(tol_stream_is_valid(stream) && stream->references > 0);
    stream->references++;
    pthread_mutex_unlock(&stream->context->lock);
}

void tol_context_release_stream(struct tol_stream *stream) {
    struct tol_context *context = stream->context;
    struct tol_stream *idle = NULL;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    pthread_mutex_lock(&context->lock);
    assert(tol_stream_is_valid(stream) && stream->references > 0);
    if (--stream->references == 0) idle = take_idle_orphans(context);
    TOL_DEEP_ASSERT(tol_context_is_valid(context));
    pthread_mutex_unlock(&context->lock);
    context_streams_destroy_all(context, idle);
}

/* Only orphans can be left: a live stream holds a reference to the context. */
void tol_context_end_streams(struct tol_context *context) {
    struct tol_stream *orphans = context->streams;
    context->streams = NULL;
    context_streams_destroy_all(context, orphans);
}

/* Takes a reference to each stream of the context, so that none is freed while it is waited for. */
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
    TOL_RANGE("tol_context_synchronize", 0);
    tol_status status = TOL_OK;
    struct tol_stream **held = NULL;
    size_t count = 0;
    struct tol_deadline deadline = tol_deadline_after(deadline_ms);
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "tol_context_synchronize: context is NULL");
    TOL_TRY(tol_context_enter(context));
    held = hold_streams(context, &count);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a list of %zu streams",
              count);
    for (size_t i = 0; i < count && status == TOL_OK; i++) {
        if (!tol_stream_is_captured(held[i])) status = tol_deadline_wait_stream(held[i], &deadline);
    }
out:
    for (size_t i = 0; held != NULL && i < count; i++) tol_context_release_stream(held[i]);
    free(held);
    return status;
}

/* On a stream without work an event is reached at once, so waiting for it takes no time. If another
 * thread has queued work since, this gives up. */
static tol_status show_end(struct tol_context *context, CUstream stream, struct tol_event *event) {
    enum { REACHED_MS = 10 };
    tol_status status = TOL_OK;
    struct tol_deadline deadline = tol_deadline_after(REACHED_MS);
    CUresult result = context->functions->cuStreamQuery(stream);
    if (result == CUDA_ERROR_NOT_READY) return TOL_OK;
    if (result != CUDA_SUCCESS) {
        return tol_context_fail(context, __FILE__, __LINE__, "cuStreamQuery", (int)result,
                                "querying a stream");
    }
    TOL_CONTEXT_CU(context, cuEventRecord, (event->handle, stream),
                   "recording the end of a stream");
    status = tol_deadline_wait_event(event, &deadline);
    if (status == TOL_TIMEOUT) return TOL_OK;
    if (status != TOL_OK) return status;
    TOL_CONTEXT_CU(context, cuEventSynchronize, (event->handle), "waiting for the end of a stream");
out:
    return status;
}

tol_status tol_context_show_ends(struct tol_context *context) {
    tol_status status = TOL_OK;
    struct tol_event event = {.context = context};
    struct tol_stream **held = NULL;
    size_t count = 0;
    TOL_CONTEXT_CU(context, cuEventCreate, (&event.handle, CU_EVENT_DISABLE_TIMING),
                   "creating an event for the end of a stream");
    held = hold_streams(context, &count);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a list of %zu streams",
              count);
    TOL_TRY(show_end(context, NULL, &event));
    for (size_t i = 0; i < count; i++) {
        if (!tol_stream_is_captured(held[i])) TOL_TRY(show_end(context, held[i]->handle, &event));
    }
out:
    for (size_t i = 0; held != NULL && i < count; i++) tol_context_release_stream(held[i]);
    free(held);
    if (event.handle != NULL) context->functions->cuEventDestroy_v2(event.handle);
    return status;
}

tol_status tol_context_ask_streams(struct tol_context *context, unsigned *streams, unsigned *busy) {
    tol_status status = TOL_OK;
    size_t count = 0;
    struct tol_stream **held = hold_streams(context, &count);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a list of %zu streams",
              count);
    *streams = *busy = 0;
    for (size_t i = 0; i < count; i++) {
        (*streams)++;
        if (tol_stream_is_captured(held[i])) continue;
        CUresult result = context->functions->cuStreamQuery(held[i]->handle);
        if (result == CUDA_ERROR_NOT_READY) (*busy)++;
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) continue;
        status = tol_context_fail(context, __FILE__, __LINE__, "cuStreamQuery", (int)result,
                                  "querying stream %u", held[i]->number);
        break;
    }
out:
    for (size_t i = 0; held != NULL && i < count; i++) tol_context_release_stream(held[i]);
    free(held);
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
        if (tol_stream_is_captured(held[i]) || (blocking_only && !held[i]->blocking)) continue;
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
    TOL_CHECK(
        tol_context_is_idle(context, true), TOL_TIMEOUT,
        "a synchronous call would wait for blocking streams, which have not finished after %u ms",
        context->patience_ms);
out:
    return status;
}
