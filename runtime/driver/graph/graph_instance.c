/*
 * Instances: made of a graph, changed in place, launched.
 */
#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "tollens/event.h"
#include "graph_state.h"

#include <stdio.h>
#include <stdlib.h>

/* Keeps what launches from now on use. */
static tol_status graph_instance_hold(struct tol_graph_exec *exec, struct tol_capture *capture) {
    tol_status status = TOL_OK;
    if (capture == NULL) return TOL_OK;
    struct tol_held_capture *held = malloc(sizeof *held);
    TOL_CHECK(held != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for an instance of a graph");
    atomic_fetch_add(&capture->references, 1);
    held->capture = capture;
    held->next = exec->held;
    exec->held = held;
    if (exec->done == NULL && tol_outcome_has_calls(capture->outcome)) {
        status = tol_event_create(exec->context, false, &exec->done);
    }
out:
    return status;
}

tol_status tol_graph_instantiate(struct tol_graph *graph, struct tol_graph_exec **result) {
    TOL_RANGE("tol_graph_instantiate", 0);
    tol_status status = TOL_OK;
    struct tol_graph_exec *exec = NULL;
    char label[256];
    bool is_locked = false;
    TOL_CHECK(graph != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_instantiate: an argument is NULL");
    TOL_TRY(tol_context_enter(graph->context));
    exec = calloc(1, sizeof *exec);
    TOL_CHECK(exec != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for an instance of a graph");
    exec->context = graph->context;
    exec->graph = graph;
    atomic_fetch_add(&graph->references, 1);
    tol_context_retain(graph->context);
    pthread_mutex_init(&exec->lock, NULL);
    pthread_mutex_lock(&graph->lock);
    is_locked = true;
    snprintf(label, sizeof label, "%.200s, in a graph of %u nodes",
             graph->last_kernel != NULL ? graph->last_kernel : "none", tol_graph_nodes(graph));
    exec->label = tol_context_intern(graph->context, label);
    TOL_CHECK(exec->label != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for an instance of a graph");
    TOL_TRY(graph_instance_hold(exec, graph->capture));
    TOL_CONTEXT_CU(graph->context, cuGraphInstantiateWithFlags, (&exec->handle, graph->handle, 0),
                   "instantiating a graph of %u nodes", tol_graph_nodes(graph));
    *result = exec;
    exec = NULL;
out:
    if (is_locked) pthread_mutex_unlock(&graph->lock);
    tol_graph_exec_destroy(exec);
    return status;
}

void tol_graph_exec_destroy(struct tol_graph_exec *exec) {
    if (exec == NULL) return;
    struct tol_context *context = exec->context;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    bool runs = exec->done != NULL && tol_event_synchronize(exec->done) == TOL_TIMEOUT;
    if (exec->handle != NULL) context->functions->cuGraphExecDestroy(exec->handle);
    tol_event_destroy(exec->done);
    while (exec->held != NULL) {
        struct tol_held_capture *held = exec->held;
        exec->held = held->next;
        /* Keeps what unfinished host functions need. */
        if (!runs) tol_capture_release(held->capture);
        free(held);
    }
    tol_graph_destroy(exec->graph);
    pthread_mutex_destroy(&exec->lock);
    free(exec);
    tol_context_destroy(context);
}

tol_status tol_graph_exec_set_kernel(struct tol_graph_exec *exec, unsigned node,
                                     const struct tol_kernel *kernel, struct tol_launch_shape shape,
                                     struct tol_arguments arguments) {
    tol_status status = TOL_OK;
    struct tol_graph *graph = NULL;
    TOL_CHECK(exec != NULL, TOL_INVALID_ARGUMENT, "tol_graph_exec_set_kernel: exec is NULL");
    TOL_TRY(tol_graph_check(exec->context, kernel, &shape, &arguments));
    TOL_TRY(tol_context_enter(exec->context));
    graph = exec->graph;
    pthread_mutex_lock(&graph->lock);
    pthread_mutex_lock(&exec->lock);
    TOL_CHECK(node < graph->count, TOL_INVALID_ARGUMENT,
              "node %u does not exist: the graph has %u added nodes", node, graph->count);
    CUDA_KERNEL_NODE_PARAMS parameters = tol_graph_parameters(kernel, &shape, &arguments);
    TOL_CONTEXT_CU(exec->context, cuGraphExecKernelNodeSetParams_v2,
                   (exec->handle, graph->nodes[node], &parameters),
                   "changing node %u of an instance to the kernel \"%s\"", node, kernel->name);
out:
    if (graph != NULL) {
        pthread_mutex_unlock(&exec->lock);
        pthread_mutex_unlock(&graph->lock);
    }
    return status;
}

tol_status tol_graph_exec_update(struct tol_graph_exec *exec, struct tol_graph *graph) {
    TOL_RANGE("tol_graph_exec_update", 0);
    tol_status status = TOL_OK;
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    bool is_locked = false;
    TOL_CHECK(exec != NULL && graph != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_exec_update: an argument is NULL");
    TOL_CHECK(exec->context == graph->context, TOL_WRONG_CONTEXT,
              "the instance belongs to device %d, the graph to device %d",
              exec->context->device.ordinal, graph->context->device.ordinal);
    TOL_TRY(tol_context_enter(exec->context));
    pthread_mutex_lock(&graph->lock);
    pthread_mutex_lock(&exec->lock);
    is_locked = true;
    CUresult answer =
        exec->context->functions->cuGraphExecUpdate_v2(exec->handle, graph->handle, &info);
    if (answer == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) {
        TOL_FAIL(TOL_INVALID_ARGUMENT,
                 "an instance of a graph with %u nodes cannot be updated from a graph with %u: "
                 "cuGraphExecUpdate_v2 returned the result %d",
                 tol_graph_nodes(exec->graph), tol_graph_nodes(graph), info.result);
    }
    if (answer != CUDA_SUCCESS) {
        status = tol_context_fail(exec->context, __FILE__, __LINE__, "cuGraphExecUpdate_v2",
                                  (int)answer, "updating an instance of a graph");
        goto out;
    }
    status = graph_instance_hold(exec, graph->capture);
out:
    if (is_locked) {
        pthread_mutex_unlock(&exec->lock);
        pthread_mutex_unlock(&graph->lock);
    }
    return status;
}

/* The records of all pinned blocks that a launch uses; nothing is marked yet. */
static tol_status prepare_pinned(struct tol_capture *capture, struct tol_stream *stream,
                                 struct tol_copy_use **uses) {
    tol_status status = TOL_OK;
    for (size_t i = 0; i < capture->pinned_count; i++) {
        TOL_TRY(tol_check_alive("pinned block of a graph", &capture->pinned[i]->life));
        TOL_TRY(tol_pinned_prepare(capture->pinned[i], stream, &uses[i]));
    }
out:
    return status;
}

static tol_status graph_instance_launch(struct tol_graph_exec *exec, struct tol_stream *stream,
                                        struct tol_capture *capture) {
    tol_status status = TOL_OK;
    struct tol_copy_use **uses = NULL;
    size_t pinned = capture != NULL ? capture->pinned_count : 0;
    bool calls = capture != NULL && tol_outcome_has_calls(capture->outcome), queued = false;
    if (pinned > 0) {
        uses = malloc(pinned * sizeof(struct tol_copy_use *));
        TOL_CHECK(uses != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a launch of a graph");
        TOL_TRY(prepare_pinned(capture, stream, uses));
    }
    atomic_store_explicit(&stream->last_kernel, exec->label, memory_order_relaxed);
    TOL_CONTEXT_CU(exec->context, cuGraphLaunch, (exec->handle, stream->handle),
                   "launching a graph of %u nodes on stream %u", tol_graph_nodes(exec->graph),
                   stream->number);
    queued = true;
    for (size_t i = 0; i < pinned; i++) {
        TOL_TRY(tol_pinned_mark(capture->pinned[i], stream, uses[i]));
    }
    if (calls) {
        TOL_TRY(tol_outcome_relay(stream, capture->outcome));
        status = tol_event_record(exec->done, stream);
    }
out:
    /* As for a copy: waits for blocks that could not be marked. The first failure is returned. */
    if (queued && status != TOL_OK) {
        struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
        (void)tol_deadline_settle(stream, &deadline);
    }
    free(uses);
    return status;
}

tol_status tol_graph_launch(struct tol_graph_exec *exec, struct tol_stream *stream) {
    TOL_RANGE("tol_graph_launch", 0);
    tol_status status = TOL_OK;
    TOL_CHECK(exec != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_launch: an argument is NULL");
    TOL_CHECK(exec->context == stream->context, TOL_WRONG_CONTEXT,
              "the graph belongs to device %d, the stream to device %d",
              exec->context->device.ordinal, stream->context->device.ordinal);
    TOL_CHECK(atomic_load_explicit(&stream->capture, memory_order_relaxed) == NULL,
              TOL_INVALID_ARGUMENT, "stream %u is being captured: a graph cannot be launched on it",
              stream->number);
    TOL_TRY(tol_context_enter(exec->context));
    pthread_mutex_lock(&exec->lock);
    status = graph_instance_launch(exec, stream, exec->held != NULL ? exec->held->capture : NULL);
    pthread_mutex_unlock(&exec->lock);
out:
    return status;
}
