/*
 * Capturing streams into graphs. As in "Stream Management" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "api/export.h"
#include "state/handle_set.h"
#include "state/thread_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_mode(CUstreamCaptureMode mode) {
    return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

/* Reads dependencies that a program names: nodes of a graph. */
static CUresult read_front(const struct soft_graph *graph, const CUgraphNode *nodes,
                           const CUgraphEdgeData *data, size_t count, struct soft_front *front) {
    if (count > 0 && nodes == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct soft_edge edge = {.from = (struct soft_node *)nodes[i]};
        if (data != NULL) edge.data = data[i];
        if (!soft_handle_is(SOFT_HANDLE_NODE, edge.from) || edge.from->graph != graph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!soft_front_add(front, &edge)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static CUresult capture_begin(CUstream handle, struct soft_graph *graph, const CUgraphNode *nodes,
                              const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_front front = {0};
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
    if (stream == context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&soft_lock);
    if (graph != NULL && (!soft_handle_is(SOFT_HANDLE_GRAPH, graph) || graph->capturing)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (stream->capture != NULL) {
        result = CUDA_ERROR_ILLEGAL_STATE;
    }
    if (result == CUDA_SUCCESS) result = read_front(graph, nodes, data, count, &front);
    if (result == CUDA_SUCCESS) result = soft_capture_begin(stream, graph, &front, mode);
    pthread_mutex_unlock(&soft_lock);
    soft_front_clear(&front);
    return result;
}

EXPORT(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode)) {
    return capture_begin(stream, NULL, NULL, NULL, 0, mode);
}

EXPORT(cuStreamBeginCapture, (CUstream stream)) {
    return capture_begin(stream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

EXPORT(cuStreamBeginCaptureToGraph,
       (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data,
        size_t count, CUstreamCaptureMode mode)) {
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    return capture_begin(stream, (struct soft_graph *)graph, nodes, data, count, mode);
}

EXPORT(cuStreamEndCapture, (CUstream handle, CUgraph *result_graph)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_graph *graph = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    /* A stream without a capture is reported before a NULL graph pointer. */
    bool lost = result_graph == NULL && stream->capture != NULL;
    result = lost ? CUDA_ERROR_INVALID_VALUE : soft_capture_end(stream, &graph);
    pthread_mutex_unlock(&soft_lock);
    if (result_graph != NULL) *result_graph = (CUgraph)graph;
    return result;
}

EXPORT(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (mode == NULL || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = soft_thread()->capture_mode;
    soft_thread()->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- what is going on ---- */

static CUstreamCaptureStatus status_of(const struct soft_stream *stream) {
    if (stream->capture == NULL) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Whether a stream that the legacy one waits for is being captured. The caller holds soft_lock. */
static bool is_implied(const struct soft_stream *stream) {
    if (stream != stream->context->legacy) return false;
    for (const struct soft_stream *s = stream->context->streams; s != NULL; s = s->next) {
        if (s->capture != NULL && (s->flags & CU_STREAM_NON_BLOCKING) == 0) return true;
    }
    return false;
}

EXPORT(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *status)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (is_implied(stream)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else {
        *status = status_of(stream);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* The dependencies of the result; the stream keeps them until the next query. */
static bool list_front(struct soft_stream *stream) {
    size_t count = stream->front.count;
    free((void *)stream->info_nodes);
    free(stream->info_data);
    stream->info_nodes = calloc(count + 1, sizeof *stream->info_nodes);
    stream->info_data = calloc(count + 1, sizeof *stream->info_data);
    if (stream->info_nodes == NULL || stream->info_data == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        stream->info_nodes[i] = (CUgraphNode)stream->front.edges[i].from;
        stream->info_data[i] = stream->front.edges[i].data;
    }
    return true;
}

static bool capture_is_plain(const struct soft_front *front) {
    static const CUgraphEdgeData plain = {0};
    for (unsigned i = 0; i < front->count; i++) {
        if (memcmp(&front->edges[i].data, &plain, sizeof plain) != 0) return false;
    }
    return true;
}

EXPORT(cuStreamGetCaptureInfo_v3,
       (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (status == NULL || (data != NULL && nodes == NULL)) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (is_implied(stream)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else if (nodes != NULL && data == NULL && !capture_is_plain(&stream->front)) {
        result = CUDA_ERROR_LOSSY_QUERY;
    } else if (stream->capture != NULL && !list_front(stream)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) *status = status_of(stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) {
        if (id != NULL) *id = stream->capture->id;
        if (graph != NULL) *graph = (CUgraph)stream->capture->graph;
        if (nodes != NULL) *nodes = stream->info_nodes;
        if (data != NULL) *data = stream->info_data;
        if (count != NULL) *count = stream->front.count;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *count)) {
    return soft_cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

EXPORT(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)) {
    return soft_cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

EXPORT(cuStreamUpdateCaptureDependencies_v2,
       (CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
        unsigned int flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_front front = {0};
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    if (stream->capture == NULL) result = CUDA_ERROR_ILLEGAL_STATE;
    if (result == CUDA_SUCCESS) {
        result = read_front(stream->capture->graph, nodes, data, count, &front);
    }
    if (result == CUDA_SUCCESS && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        soft_front_clear(&stream->front);
    }
    for (unsigned i = 0; i < front.count && result == CUDA_SUCCESS; i++) {
        if (!soft_front_add(&stream->front, &front.edges[i])) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&soft_lock);
    soft_front_clear(&front);
    return result;
}

EXPORT(cuStreamUpdateCaptureDependencies,
       (CUstream stream, CUgraphNode *nodes, size_t count, unsigned int flags)) {
    return soft_cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
