/*
 * Begins and ends captures, and lets streams join them.
 */
#include "capture.h"

#include "state/contexts.h"
#include "programmatic.h"
#include "state/handle_set.h"
#include "state/thread_state.h"

#include <stdlib.h>
#include <string.h>

static struct soft_capture *all; /* those that have not ended */

/* ---- fronts ---- */

bool soft_front_set(struct soft_front *front, const struct soft_edge *edges, unsigned count) {
    struct soft_edge *copy = malloc((count > 0 ? count : 1) * sizeof *copy);
    if (copy == NULL) return false;
    if (count > 0) memcpy(copy, edges, count * sizeof *copy);
    free(front->edges);
    front->edges = copy;
    front->count = count;
    return true;
}

bool soft_front_add(struct soft_front *front, const struct soft_edge *edge) {
    for (unsigned i = 0; i < front->count; i++) {
        if (front->edges[i].from != edge->from) continue;
        /* After the end of a node is after all of it. */
        if (edge->data.type == 0) front->edges[i].data = edge->data;
        return true;
    }
    struct soft_edge *more = realloc(front->edges, (front->count + 1) * sizeof *more);
    if (more == NULL) return false;
    front->edges = more;
    front->edges[front->count++] = *edge;
    return true;
}

void soft_front_clear(struct soft_front *front) {
    free(front->edges);
    *front = (struct soft_front){0};
}

/* ---- captures ---- */

static void capture_release(struct soft_capture *capture) {
    if (--capture->references > 0) return;
    soft_front_clear(&capture->left);
    free(capture);
}

static void capture_join(struct soft_stream *stream, struct soft_capture *capture) {
    stream->capture = capture;
    stream->leave_capture = soft_capture_forget_stream;
    capture->references++;
}

static void capture_leave(struct soft_stream *stream) {
    struct soft_capture *capture = stream->capture;
    stream->capture = NULL;
    soft_front_clear(&stream->front);
    free((void *)stream->info_nodes);
    free(stream->info_data);
    stream->info_nodes = NULL;
    stream->info_data = NULL;
    if (capture != NULL) capture_release(capture);
}

CUresult soft_capture_begin(struct soft_stream *stream, struct soft_graph *graph,
                            const struct soft_front *front, CUstreamCaptureMode mode) {
    static uint64_t last_id;
    struct soft_capture *capture = calloc(1, sizeof *capture);
    if (capture == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    capture->graph = graph != NULL ? graph : soft_graph_new();
    capture->owns_graph = graph == NULL;
    bool ok = capture->graph != NULL &&
              (graph != NULL || soft_handle_add(SOFT_HANDLE_GRAPH, capture->graph)) &&
              soft_front_set(&stream->front, front->edges, front->count);
    if (!ok) {
        if (graph == NULL) soft_graph_free(capture->graph);
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = soft_thread();
    capture->origin = stream;
    capture->graph->capturing = true;
    capture->references = 1;
    capture_join(stream, capture);
    capture->next = all;
    capture->link = &all;
    if (all != NULL) all->link = &capture->next;
    all = capture;
    return CUDA_SUCCESS;
}

/* Ends a capture: all streams leave it; its events are unchanged. */
static void capture_close(struct soft_capture *capture) {
    capture->ended = true;
    capture->graph->capturing = false;
    *capture->link = capture->next;
    if (capture->next != NULL) capture->next->link = capture->link;
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            if (s->capture == capture) capture_leave(s);
        }
    }
    capture_release(capture);
}

/* Marks all nodes that a front depends on, from the end of an order to its begin. */
static void mark_behind(const struct soft_front *front, struct soft_node **order, unsigned count) {
    for (unsigned i = 0; i < count; i++) order[i]->mark = 0;
    for (unsigned i = 0; i < front->count; i++) front->edges[i].from->mark = 1;
    for (unsigned i = count; i > 0; i--) {
        const struct soft_node *node = order[i - 1];
        for (unsigned e = 0; node->mark != 0 && e < node->edge_count; e++) {
            node->edges[e].from->mark = 1;
        }
    }
}

/* Whether the origin is joined with the work of all other streams: CUDA_SUCCESS if so. A capture
 * has no cycles, so a missing order means out of memory. */
static CUresult check_joined(const struct soft_capture *capture) {
    struct soft_node *culprit = NULL, **order = soft_graph_order(capture->graph, &culprit);
    if (order == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    bool joined = true;
    mark_behind(&capture->origin->front, order, capture->graph->node_count);
    for (unsigned i = 0; i < capture->left.count; i++) joined &= capture->left.edges[i].from->mark;
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        for (const struct soft_stream *s = c->streams; s != NULL; s = s->next) {
            if (s->capture != capture) continue;
            for (unsigned i = 0; i < s->front.count; i++) joined &= s->front.edges[i].from->mark;
        }
    }
    free((void *)order);
    return joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

CUresult soft_capture_end(struct soft_stream *stream, struct soft_graph **graph) {
    struct soft_capture *capture = stream->capture;
    *graph = NULL;
    if (capture == NULL) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    bool own = capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == soft_thread();
    if (!own) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result =
        capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture);
    struct soft_graph *made = capture->graph;
    bool owned = capture->owns_graph;
    capture_close(capture);
    if (result == CUDA_SUCCESS) {
        *graph = made;
    } else if (owned) {
        soft_graph_free(made);
    }
    return result;
}

void soft_capture_break(struct soft_stream *stream) {
    if (stream->capture != NULL) stream->capture->broken = true;
}

/* Whether a stream and the legacy stream wait for each other's work. */
static bool capture_is_blocking(const struct soft_stream *stream) {
    return (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

CUresult soft_capture_check(struct soft_stream *stream, bool *capturing) {
    *capturing = false;
    if (all == NULL) return CUDA_SUCCESS;
    if (stream->capture != NULL) {
        *capturing = true;
        return stream->capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    }
    if (stream != stream->context->legacy) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct soft_stream *s = stream->context->streams; s != NULL; s = s->next) {
        if (s->capture == NULL || !capture_is_blocking(s)) continue;
        s->capture->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return result;
}

CUresult soft_capture_add(struct soft_stream *stream, struct soft_node_content *content) {
    struct soft_edge edge = {0};
    soft_front_shape(stream->front.edges, stream->front.count, content);
    CUresult result = soft_graph_add(stream->capture->graph, content, stream->front.edges,
                                     stream->front.count, &edge.from);
    if (result != CUDA_SUCCESS) return result;
    /* The front has at least this capacity, or is allocated again. */
    return soft_front_set(&stream->front, &edge, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void soft_capture_forget_event(struct soft_event *event) {
    if (event->capture != NULL) capture_release(event->capture);
    event->capture = NULL;
    soft_front_clear(&event->front);
}

void soft_capture_forget_stream(struct soft_stream *stream) {
    struct soft_capture *capture = stream->capture;
    if (capture == NULL) return;
    if (capture->origin != stream) {
        for (unsigned i = 0; i < stream->front.count; i++) {
            capture->broken |= !soft_front_add(&capture->left, &stream->front.edges[i]);
        }
        capture_leave(stream);
        return;
    }
    capture->broken = true;
    struct soft_graph *graph = capture->graph;
    bool owned = capture->owns_graph;
    capture_close(capture);
    if (owned) soft_graph_free(graph);
}

CUresult soft_capture_record(struct soft_stream *stream, struct soft_event *event, bool early) {
    struct soft_front front = {0};
    if (!soft_front_set(&front, stream->front.edges, stream->front.count)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (unsigned i = 0; i < front.count && early; i++) {
        front.edges[i].data = soft_edge_data_behind(front.edges[i].from, true);
    }
    soft_capture_forget_event(event);
    event->front = front;
    event->capture = stream->capture;
    event->capture->references++;
    return CUDA_SUCCESS;
}

CUresult soft_capture_wait(struct soft_stream *stream, struct soft_event *event) {
    struct soft_capture *capture = event->capture;
    if (capture == NULL) { /* recorded outside, waited for inside */
        soft_capture_break(stream);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (capture->ended) {
        soft_capture_break(stream);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == stream->context->legacy) {
        capture->broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->capture != NULL && stream->capture != capture) {
        stream->capture->broken = capture->broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream->capture == NULL) capture_join(stream, capture);
    for (unsigned i = 0; i < event->front.count; i++) {
        if (!soft_front_add(&stream->front, &event->front.edges[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

/* ---- what may be called meanwhile ---- */

CUresult soft_capture_allows(void) {
    const struct soft_thread *thread = soft_thread();
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    for (struct soft_capture *capture = all; capture != NULL; capture = capture->next) {
        bool own = capture->thread == thread;
        bool forbids = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                           : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                 thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!forbids || thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        capture->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

CUresult soft_capture_allows_stream(struct soft_stream *stream) {
    bool capturing = false;
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_capture_check(stream, &capturing);
    if (capturing) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* broken before or not */
    if (capturing) soft_capture_break(stream);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

CUresult soft_capture_allows_context(const struct soft_context *context) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    for (struct soft_stream *s = context->streams; s != NULL; s = s->next) {
        if (s->capture == NULL) continue;
        s->capture->broken = true;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}
