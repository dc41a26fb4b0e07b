/*
 * Nodes that copy. As in "Graph Management" of the CUDA Runtime API 13.0: three ways to add a node,
 * to change it, and to change it in an executable graph.
 */
#include "cudart/memory/cudart_copy.h"
#include "cudart/cudart_export.h"

/* The target of a copy's parameters: a new node of a graph, a node, or a node of an executable
 * graph. */
struct target {
    cudaGraphNode_t *made;
    cudaGraph_t graph;
    const cudaGraphNode_t *after;
    size_t count;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
};

/* error: of describing the copy. */
static cudaError_t graph_copy_apply(const struct target *target, cudaError_t error,
                                    const CUDA_MEMCPY3D *copy) {
    CUcontext context = NULL;
    if (error == cudaSuccess) error = CU_CALL(cuCtxGetCurrent, (&context));
    if (error != cudaSuccess) return error;
    if (target->made != NULL) {
        return (cudaError_t)CU(cuGraphAddMemcpyNode)(target->made, target->graph, target->after,
                                                     target->count, copy, context);
    }
    if (target->exec != NULL) {
        return (cudaError_t)CU(cuGraphExecMemcpyNodeSetParams)(target->exec, target->node, copy,
                                                               context);
    }
    return (cudaError_t)CU(cuGraphMemcpyNodeSetParams)(target->node, copy);
}

static cudaError_t apply_3d(const struct target *target, const cudaMemcpy3DParms *parameters) {
    CUDA_MEMCPY3D copy = {.Depth = 0};
    return graph_copy_apply(target, cudart_copy_3d(parameters, &copy), &copy);
}

static cudaError_t apply_1d(const struct target *target, void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind) {
    CUDA_MEMCPY3D copy = {.Depth = 0};
    return graph_copy_apply(target, cudart_copy_1d(to, from, bytes, kind, &copy), &copy);
}

static cudaError_t graph_copy_find_symbol(const void *symbol, size_t offset, size_t bytes,
                                          void **address) {
    cudaError_t error = cudart_context();
    return error != cudaSuccess ? error : cudart_copy_symbol(symbol, offset, bytes, address);
}

static cudaError_t apply_to(const struct target *target, const void *symbol, const void *from,
                            size_t bytes, size_t offset, cudaMemcpyKind kind) {
    void *to = NULL;
    cudaError_t error = graph_copy_find_symbol(symbol, offset, bytes, &to);
    return error != cudaSuccess ? error : apply_1d(target, to, from, bytes, kind);
}

static cudaError_t apply_from(const struct target *target, void *to, const void *symbol,
                              size_t bytes, size_t offset, cudaMemcpyKind kind) {
    void *from = NULL;
    cudaError_t error = graph_copy_find_symbol(symbol, offset, bytes, &from);
    return error != cudaSuccess ? error : apply_1d(target, to, from, bytes, kind);
}

/* ---- new nodes ---- */

RT(cudaGraphAddMemcpyNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
                            size_t count, const cudaMemcpy3DParms *parameters)) {
    if (node == NULL) return cudaErrorInvalidValue;
    return apply_3d(&(struct target){node, graph, after, count, NULL, NULL}, parameters);
}

RT(cudaGraphAddMemcpyNode1D,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, void *to,
    const void *from, size_t bytes, cudaMemcpyKind kind)) {
    if (node == NULL) return cudaErrorInvalidValue;
    return apply_1d(&(struct target){node, graph, after, count, NULL, NULL}, to, from, bytes, kind);
}

RT(cudaGraphAddMemcpyNodeToSymbol,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
    const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind)) {
    if (node == NULL) return cudaErrorInvalidValue;
    return apply_to(&(struct target){node, graph, after, count, NULL, NULL}, symbol, from, bytes,
                    offset, kind);
}

RT(cudaGraphAddMemcpyNodeFromSymbol,
   (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, void *to,
    const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind)) {
    if (node == NULL) return cudaErrorInvalidValue;
    return apply_from(&(struct target){node, graph, after, count, NULL, NULL}, to, symbol, bytes,
                      offset, kind);
}

/* ---- nodes ---- */

RT(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, cudaMemcpy3DParms *parameters)) {
    CUDA_MEMCPY3D copy;
    if (parameters == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuGraphMemcpyNodeGetParams, (node, &copy));
    return error != cudaSuccess ? error : cudart_copy_runtime(&copy, parameters);
}

RT(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const cudaMemcpy3DParms *parameters)) {
    return apply_3d(&(struct target){.node = node}, parameters);
}

RT(cudaGraphMemcpyNodeSetParams1D,
   (cudaGraphNode_t node, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)) {
    return apply_1d(&(struct target){.node = node}, to, from, bytes, kind);
}

RT(cudaGraphMemcpyNodeSetParamsToSymbol,
   (cudaGraphNode_t node, const void *symbol, const void *from, size_t bytes, size_t offset,
    cudaMemcpyKind kind)) {
    return apply_to(&(struct target){.node = node}, symbol, from, bytes, offset, kind);
}

RT(cudaGraphMemcpyNodeSetParamsFromSymbol, (cudaGraphNode_t node, void *to, const void *symbol,
                                            size_t bytes, size_t offset, cudaMemcpyKind kind)) {
    return apply_from(&(struct target){.node = node}, to, symbol, bytes, offset, kind);
}

/* ---- nodes of executable graphs ---- */

RT(cudaGraphExecMemcpyNodeSetParams,
   (cudaGraphExec_t graph, cudaGraphNode_t node, const cudaMemcpy3DParms *parameters)) {
    if (graph == NULL) return cudaErrorInvalidValue;
    return apply_3d(&(struct target){.exec = graph, .node = node}, parameters);
}

RT(cudaGraphExecMemcpyNodeSetParams1D, (cudaGraphExec_t graph, cudaGraphNode_t node, void *to,
                                        const void *from, size_t bytes, cudaMemcpyKind kind)) {
    if (graph == NULL) return cudaErrorInvalidValue;
    return apply_1d(&(struct target){.exec = graph, .node = node}, to, from, bytes, kind);
}

RT(cudaGraphExecMemcpyNodeSetParamsToSymbol,
   (cudaGraphExec_t graph, cudaGraphNode_t node, const void *symbol, const void *from, size_t bytes,
    size_t offset, cudaMemcpyKind kind)) {
    if (graph == NULL) return cudaErrorInvalidValue;
    return apply_to(&(struct target){.exec = graph, .node = node}, symbol, from, bytes, offset,
                    kind);
}

RT(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
   (cudaGraphExec_t graph, cudaGraphNode_t node, void *to, const void *symbol, size_t bytes,
    size_t offset, cudaMemcpyKind kind)) {
    if (graph == NULL) return cudaErrorInvalidValue;
    return apply_from(&(struct target){.exec = graph, .node = node}, to, symbol, bytes, offset,
                      kind);
}
