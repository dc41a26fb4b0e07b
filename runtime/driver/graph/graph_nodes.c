/*
 * Graphs from nodes: adding, changing and copying nodes.
 */
#include "core/check.h"
#include "graph_state.h"

#include <stdlib.h>

CUDA_KERNEL_NODE_PARAMS tol_graph_parameters(const struct tol_kernel *kernel,
                                             const struct tol_launch_shape *shape,
                                             const struct tol_arguments *arguments) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = kernel->handle,
                                     .gridDimX = shape->grid_x,
                                     .gridDimY = shape->grid_y,
                                     .gridDimZ = shape->grid_z,
                                     .blockDimX = shape->block_x,
                                     .blockDimY = shape->block_y,
                                     .blockDimZ = shape->block_z,
                                     .sharedMemBytes = shape->shared_bytes,
                                     .kernelParams = arguments->values};
}

tol_status tol_graph_check(const struct tol_context *context, const struct tol_kernel *kernel,
                           const struct tol_launch_shape *shape,
                           const struct tol_arguments *arguments) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernel != NULL, TOL_INVALID_ARGUMENT, "a graph node: the kernel is NULL");
    TOL_CHECK(kernel->context == context, TOL_WRONG_CONTEXT,
              "the graph belongs to device %d, the kernel \"%s\" to device %d",
              context->device.ordinal, kernel->name, kernel->context->device.ordinal);
    status = tol_launch_check(kernel, shape, arguments);
out:
    return status;
}

tol_status tol_graph_wrap(struct tol_context *context, CUgraph handle, struct tol_capture *capture,
                          struct tol_graph **result) {
    tol_status status = TOL_OK;
    struct tol_graph *graph = calloc(1, sizeof *graph);
    TOL_CHECK(graph != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a graph of %zu bytes",
              sizeof *graph);
    graph->context = context;
    graph->handle = handle;
    graph->capture = capture;
    if (capture != NULL) atomic_fetch_add(&capture->references, 1);
    atomic_init(&graph->references, 1);
    pthread_mutex_init(&graph->lock, NULL);
    tol_context_retain(context);
    *result = graph;
out:
    return status;
}

tol_status tol_graph_create(struct tol_context *context, struct tol_graph **result) {
    tol_status status = TOL_OK;
    CUgraph handle = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_create: an argument is NULL");
    TOL_CHECK(tol_driver_has(context->driver, TOL_FEATURE_GRAPH), TOL_UNSUPPORTED,
              "the driver has no graphs");
    TOL_TRY(tol_context_enter(context));
    TOL_CONTEXT_CU(context, cuGraphCreate, (&handle, 0), "creating a graph");
    status = tol_graph_wrap(context, handle, NULL, result);
    if (status == TOL_OK) handle = NULL;
out:
    if (handle != NULL) context->functions->cuGraphDestroy(handle);
    return status;
}

void tol_graph_destroy(struct tol_graph *graph) {
    if (graph == NULL || atomic_fetch_sub(&graph->references, 1) != 1) return;
    struct tol_context *context = graph->context;
    if (tol_bound_context != context->id) (void)tol_context_bind_slow(context);
    context->functions->cuGraphDestroy(graph->handle);
    tol_capture_release(graph->capture);
    pthread_mutex_destroy(&graph->lock);
    free(graph->nodes);
    free(graph);
    tol_context_destroy(context);
}

/* Room for one more node. The caller holds the lock. */
static tol_status graph_nodes_grow(struct tol_graph *graph) {
    tol_status status = TOL_OK;
    if (graph->count < graph->room) return TOL_OK;
    unsigned room = graph->room > 0 ? 2 * graph->room : 16;
    CUgraphNode *nodes = realloc(graph->nodes, room * sizeof *nodes);
    TOL_CHECK(nodes != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a graph of %u nodes",
              room);
    graph->nodes = nodes;
    graph->room = room;
out:
    return status;
}

tol_status tol_graph_add_kernel(struct tol_graph *graph, const struct tol_kernel *kernel,
                                struct tol_launch_shape shape, struct tol_arguments arguments,
                                const unsigned *after, unsigned after_count, unsigned *node) {
    enum { FEW = 16 };
    tol_status status = TOL_OK;
    CUgraphNode few[FEW], *dependencies = few;
    bool is_locked = false;
    TOL_CHECK(graph != NULL && (after != NULL || after_count == 0), TOL_INVALID_ARGUMENT,
              "tol_graph_add_kernel: an argument is NULL");
    TOL_TRY(tol_graph_check(graph->context, kernel, &shape, &arguments));
    TOL_TRY(tol_context_enter(graph->context));
    if (after_count > FEW) {
        dependencies = malloc(after_count * sizeof *dependencies);
        TOL_CHECK(dependencies != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for %u dependencies", after_count);
    }
    pthread_mutex_lock(&graph->lock);
    is_locked = true;
    TOL_TRY(graph_nodes_grow(graph));
    for (unsigned i = 0; i < after_count; i++) {
        TOL_CHECK(after[i] < graph->count, TOL_INVALID_ARGUMENT,
                  "node %u depends on node %u, but the graph has %u nodes", graph->count, after[i],
                  graph->count);
        dependencies[i] = graph->nodes[after[i]];
    }
    CUDA_KERNEL_NODE_PARAMS parameters = tol_graph_parameters(kernel, &shape, &arguments);
    TOL_CONTEXT_CU(
        graph->context, cuGraphAddKernelNode_v2,
        (&graph->nodes[graph->count], graph->handle, dependencies, after_count, &parameters),
        "adding the kernel \"%s\" to a graph", kernel->name);
    graph->last_kernel = kernel->name;
    if (node != NULL) *node = graph->count;
    graph->count++;
out:
    if (is_locked) pthread_mutex_unlock(&graph->lock);
    if (dependencies != few) free(dependencies);
    return status;
}

unsigned tol_graph_nodes(const struct tol_graph *graph) {
    return graph->count + graph->captured;
}

tol_status tol_graph_clone(struct tol_graph *graph, struct tol_graph **result) {
    tol_status status = TOL_OK;
    struct tol_graph *clone = NULL;
    CUgraph handle = NULL;
    bool is_locked = false;
    TOL_CHECK(graph != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_graph_clone: an argument is NULL");
    TOL_TRY(tol_context_enter(graph->context));
    pthread_mutex_lock(&graph->lock);
    is_locked = true;
    TOL_CONTEXT_CU(graph->context, cuGraphClone, (&handle, graph->handle), "cloning a graph");
    TOL_TRY(tol_graph_wrap(graph->context, handle, graph->capture, &clone));
    handle = NULL;
    clone->last_kernel = graph->last_kernel;
    clone->captured = graph->captured;
    for (; clone->count < graph->count; clone->count++) {
        TOL_TRY(graph_nodes_grow(clone));
        TOL_CONTEXT_CU(graph->context, cuGraphNodeFindInClone,
                       (&clone->nodes[clone->count], graph->nodes[clone->count], clone->handle),
                       "finding node %u in a clone", clone->count);
    }
    *result = clone;
    clone = NULL;
out:
    if (is_locked) pthread_mutex_unlock(&graph->lock);
    if (handle != NULL) graph->context->functions->cuGraphDestroy(handle);
    tol_graph_destroy(clone);
    return status;
}

tol_status tol_graph_set_kernel(struct tol_graph *graph, unsigned node,
                                const struct tol_kernel *kernel, struct tol_launch_shape shape,
                                struct tol_arguments arguments) {
    tol_status status = TOL_OK;
    bool is_locked = false;
    TOL_CHECK(graph != NULL, TOL_INVALID_ARGUMENT, "tol_graph_set_kernel: graph is NULL");
    TOL_TRY(tol_graph_check(graph->context, kernel, &shape, &arguments));
    TOL_TRY(tol_context_enter(graph->context));
    pthread_mutex_lock(&graph->lock);
    is_locked = true;
    TOL_CHECK(node < graph->count, TOL_INVALID_ARGUMENT,
              "node %u does not exist: the graph has %u added nodes", node, graph->count);
    CUDA_KERNEL_NODE_PARAMS parameters = tol_graph_parameters(kernel, &shape, &arguments);
    TOL_CONTEXT_CU(graph->context, cuGraphKernelNodeSetParams_v2, (graph->nodes[node], &parameters),
                   "changing node %u of a graph to the kernel \"%s\"", node, kernel->name);
out:
    if (is_locked) pthread_mutex_unlock(&graph->lock);
    return status;
}
