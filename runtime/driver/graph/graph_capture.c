/*
 * Capturing: which streams take part, and what the graph must keep alive.
 *
 * The driver knows which streams are in a capture. The runtime must know as well, because a
 * captured copy marks its pinned block when it runs, not when it is captured. An event carries the
 * capture's number, so a stream that waits for the event joins the capture.
 */
#include "core/check.h"
#include "graph_state.h"

#include <stdlib.h>

static _Atomic uint64_t next_id = 1;

static struct tol_capture *new_capture(struct tol_context *context) {
    struct tol_capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL) return NULL;
    capture->outcome = tol_outcome_create(0);
    if (capture->outcome == NULL) {
        free(capture);
        return NULL;
    }
    capture->id = atomic_fetch_add(&next_id, 1);
    capture->context = context;
    atomic_init(&capture->references, 1);
    pthread_mutex_init(&capture->lock, NULL);
    return capture;
}

void tol_capture_release(struct tol_capture *capture) {
    if (capture == NULL || atomic_fetch_sub(&capture->references, 1) != 1) return;
    tol_outcome_destroy(capture->outcome);
    pthread_mutex_destroy(&capture->lock);
    free(capture->pinned);
    free(capture);
}

void tol_capture_join(struct tol_stream *stream, uint64_t id) {
    struct tol_context *context = stream->context;
    pthread_mutex_lock(&context->lock);
    for (struct tol_stream *other = context->streams; other != NULL; other = other->next) {
        struct tol_capture *capture = atomic_load_explicit(&other->capture, memory_order_relaxed);
        if (capture == NULL || capture->id != id) continue;
        atomic_store_explicit(&stream->capture, capture, memory_order_relaxed);
        break;
    }
    pthread_mutex_unlock(&context->lock);
}

/* No stream takes part any more. */
static void graph_capture_disband(struct tol_capture *capture) {
    struct tol_context *context = capture->context;
    pthread_mutex_lock(&context->lock);
    for (struct tol_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        if (atomic_load_explicit(&stream->capture, memory_order_relaxed) == capture) {
            atomic_store_explicit(&stream->capture, NULL, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&context->lock);
}

tol_status tol_capture_keep(struct tol_capture *capture, struct tol_pinned *pinned) {
    tol_status status = TOL_OK;
    pthread_mutex_lock(&capture->lock);
    for (size_t i = 0; i < capture->pinned_count; i++) {
        if (capture->pinned[i] == pinned) goto out;
    }
    if (capture->pinned_count == capture->pinned_room) {
        size_t room = capture->pinned_room > 0 ? 2 * capture->pinned_room : 8;
        struct tol_pinned **more = realloc(capture->pinned, room * sizeof *more);
        TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for %zu pinned blocks of a graph", room);
        capture->pinned = more;
        capture->pinned_room = room;
    }
    capture->pinned[capture->pinned_count++] = pinned;
out:
    pthread_mutex_unlock(&capture->lock);
    return status;
}

tol_status tol_graph_capture_begin(struct tol_stream *stream) {
    tol_status status = TOL_OK;
    struct tol_capture *capture = NULL;
    TOL_CHECK(stream != NULL, TOL_INVALID_ARGUMENT, "tol_graph_capture_begin: stream is NULL");
    TOL_CHECK(tol_driver_has(stream->context->driver, TOL_FEATURE_GRAPH), TOL_UNSUPPORTED,
              "the driver has no graphs");
    TOL_CHECK(atomic_load(&stream->capture) == NULL, TOL_INVALID_ARGUMENT,
              "stream %u is being captured already", stream->number);
    TOL_TRY(tol_context_enter(stream->context));
    capture = new_capture(stream->context);
    TOL_CHECK(capture != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a capture");
    /* In another mode the driver would reject calls of this thread, or break the capture: on an
     * H200 cuStreamQuery of another stream, which a pool makes, breaks it. */
    TOL_CONTEXT_CU(stream->context, cuStreamBeginCapture_v2,
                   (stream->handle, CU_STREAM_CAPTURE_MODE_RELAXED), "capturing stream %u",
                   stream->number);
    atomic_store(&stream->capture, capture);
    capture = NULL;
out:
    tol_capture_release(capture);
    return status;
}

tol_status tol_graph_capture_end(struct tol_stream *stream, struct tol_graph **result) {
    tol_status status = TOL_OK;
    struct tol_capture *capture = NULL;
    struct tol_graph *graph = NULL;
    CUgraph handle = NULL;
    size_t nodes = 0;
    TOL_CHECK(stream != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_capture_end: an argument is NULL");
    capture = atomic_load(&stream->capture);
    TOL_CHECK(capture != NULL, TOL_INVALID_ARGUMENT, "stream %u is not being captured",
              stream->number);
    TOL_TRY(tol_context_enter(stream->context));
    CUresult answer = stream->functions->cuStreamEndCapture(stream->handle, &handle);
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(stream->context, __FILE__, __LINE__, "cuStreamEndCapture",
                                  (int)answer, "ending the capture of stream %u", stream->number);
        /* If the driver has not ended it, the stream would never run again. */
        if (stream->functions->cuStreamEndCapture(stream->handle, &handle) != CUDA_SUCCESS) {
            handle = NULL;
        }
        goto out;
    }
    TOL_CONTEXT_CU(stream->context, cuGraphGetNodes, (handle, NULL, &nodes),
                   "counting the captured nodes");
    TOL_TRY(tol_graph_wrap(stream->context, handle, capture, &graph));
    handle = NULL;
    graph->captured = (unsigned)nodes;
    graph->last_kernel = atomic_load_explicit(&stream->last_kernel, memory_order_relaxed);
    *result = graph;
out:
    if (handle != NULL) stream->context->functions->cuGraphDestroy(handle);
    if (capture != NULL) {
        graph_capture_disband(capture);
        tol_capture_release(capture);
    }
    return status;
}
