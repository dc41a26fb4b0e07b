/*
 * Nodes of each type: creation, queries and changes. As in "Graph Management" of the CUDA Driver
 * API 13.0.
 *
 * The calls of each type are the general ones with typed parameters.
 */
#include "api/export.h"
#include "graph/graph_call.h"

#include <string.h>

/* ---- any type ---- */

EXPORT(cuGraphAddNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                           const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)) {
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    return soft_graph_add_params(node, graph, nodes, data, count, params);
}

EXPORT(cuGraphAddNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count,
                        CUgraphNodeParams *params)) {
    return soft_cuGraphAddNode_v2(node, graph, nodes, NULL, count, params);
}

EXPORT(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *params)) {
    return params == NULL ? CUDA_ERROR_INVALID_VALUE : soft_node_set_params(node, params);
}

EXPORT(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)) {
    return params == NULL ? CUDA_ERROR_INVALID_VALUE : soft_exec_set_params(exec, node, params);
}

/* A node's parameters, if it is of a type. */
static CUresult graph_node_get(CUgraphNode handle, CUgraphNodeType type, const void *answer,
                               CUgraphNodeParams *params) {
    struct soft_node *node = NULL;
    CUresult result = soft_node_enter_type(handle, type, &node);
    if (result != CUDA_SUCCESS) return result;
    *params = node->content.params;
    soft_graph_leave();
    return answer != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- kernels ---- */

static CUgraphNodeParams graph_node_of_kernel(const CUDA_KERNEL_NODE_PARAMS *kernel) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    params.kernel = *kernel;
    return params;
}

EXPORT(cuGraphAddKernelNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *kernel)) {
    if (kernel == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_kernel(kernel);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *kernel)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_KERNEL, kernel, &params);
    if (result == CUDA_SUCCESS) *kernel = params.kernel;
    return result;
}

EXPORT(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)) {
    if (kernel == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_kernel(kernel);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecKernelNodeSetParams_v2,
       (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)) {
    if (kernel == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_kernel(kernel);
    return soft_exec_set_params(exec, node, &params);
}

/* As before CUDA 12. The functions whose structure has a kernel and a context begin with the same
 * fields. */
static CUDA_KERNEL_NODE_PARAMS graph_node_of_old_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *old) {
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = NULL};
    memcpy(&kernel, old, sizeof *old);
    return kernel;
}

EXPORT(cuGraphAddKernelNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *old)) {
    if (old == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS kernel = graph_node_of_old_kernel(old);
    return soft_cuGraphAddKernelNode_v2(node, graph, nodes, count, &kernel);
}

EXPORT(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *old)) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUresult result = soft_cuGraphKernelNodeGetParams_v2(node, old != NULL ? &kernel : NULL);
    if (result == CUDA_SUCCESS) memcpy(old, &kernel, sizeof *old);
    return result;
}

EXPORT(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *old)) {
    if (old == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS kernel = graph_node_of_old_kernel(old);
    return soft_cuGraphKernelNodeSetParams_v2(node, &kernel);
}

EXPORT(cuGraphExecKernelNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *old)) {
    if (old == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS kernel = graph_node_of_old_kernel(old);
    return soft_cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

/* ---- copies ---- */

static CUgraphNodeParams graph_node_of_copy(const CUDA_MEMCPY3D *copy, CUcontext context) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyParams = *copy;
    params.memcpy.copyCtx = context;
    return params;
}

EXPORT(cuGraphAddMemcpyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)) {
    if (copy == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_copy(copy, context);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphMemcpyNodeGetParams, (CUgraphNode node, CUDA_MEMCPY3D *copy)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy, &params);
    if (result == CUDA_SUCCESS) *copy = params.memcpy.copyParams;
    return result;
}

EXPORT(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *copy)) {
    CUgraphNodeParams old;
    if (copy == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &old, &old);
    if (result != CUDA_SUCCESS) return result;
    CUgraphNodeParams params = graph_node_of_copy(copy, old.memcpy.copyCtx);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecMemcpyNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)) {
    if (copy == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_copy(copy, context);
    return soft_exec_set_params(exec, node, &params);
}

/* ---- fills ---- */

static CUgraphNodeParams graph_node_of_fill(const CUDA_MEMSET_NODE_PARAMS *fill,
                                            CUcontext context) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    memcpy(&params.memset, fill, sizeof *fill);
    params.memset.ctx = context;
    return params;
}

EXPORT(cuGraphAddMemsetNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count,
        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)) {
    if (fill == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_fill(fill, context);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *fill)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, fill, &params);
    if (result == CUDA_SUCCESS) memcpy(fill, &params.memset, sizeof *fill);
    return result;
}

EXPORT(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill)) {
    CUgraphNodeParams old;
    if (fill == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, &old, &old);
    if (result != CUDA_SUCCESS) return result;
    CUgraphNodeParams params = graph_node_of_fill(fill, old.memset.ctx);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecMemsetNodeSetParams, (CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)) {
    if (fill == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_fill(fill, context);
    return soft_exec_set_params(exec, node, &params);
}

/* ---- host functions ---- */

static CUgraphNodeParams graph_node_of_host(const CUDA_HOST_NODE_PARAMS *host) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host = *host;
    return params;
}

EXPORT(cuGraphAddHostNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                            size_t count, const CUDA_HOST_NODE_PARAMS *host)) {
    if (host == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_host(host);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *host)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_HOST, host, &params);
    if (result == CUDA_SUCCESS) *host = params.host;
    return result;
}

EXPORT(cuGraphHostNodeSetParams, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)) {
    if (host == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_host(host);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecHostNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)) {
    if (host == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_host(host);
    return soft_exec_set_params(exec, node, &params);
}

/* ---- operations on values ---- */

static CUgraphNodeParams graph_node_of_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    params.memOp = *batch;
    return params;
}

EXPORT(cuGraphAddBatchMemOpNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)) {
    if (batch == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_batch(batch);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphBatchMemOpNodeGetParams, (CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, batch, &params);
    if (result == CUDA_SUCCESS) *batch = params.memOp;
    return result;
}

EXPORT(cuGraphBatchMemOpNodeSetParams,
       (CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)) {
    if (batch == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_batch(batch);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecBatchMemOpNodeSetParams,
       (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)) {
    if (batch == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = graph_node_of_batch(batch);
    return soft_exec_set_params(exec, node, &params);
}

/* ---- children, and nothing ---- */

static CUgraphNodeParams graph_node_of_child(CUgraph child) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.graph.graph = child;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    return params;
}

EXPORT(cuGraphAddChildGraphNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count, CUgraph child)) {
    CUgraphNodeParams params = graph_node_of_child(child);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *child)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_GRAPH, child, &params);
    if (result == CUDA_SUCCESS) *child = params.graph.graph;
    return result;
}

EXPORT(cuGraphAddEmptyNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count)) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

/* ---- events ---- */

static CUgraphNodeParams graph_node_of_event(CUgraphNodeType type, CUevent event) {
    CUgraphNodeParams params = {.type = type};
    params.eventWait.event = event;
    return params;
}

static CUresult get_event(CUgraphNode node, CUgraphNodeType type, CUevent *event) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, type, event, &params);
    if (result == CUDA_SUCCESS) *event = params.eventWait.event;
    return result;
}

EXPORT(cuGraphAddEventRecordNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *event)) {
    return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

EXPORT(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return soft_exec_set_params(exec, node, &params);
}

EXPORT(cuGraphAddEventWaitNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes, size_t count, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *event)) {
    return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

EXPORT(cuGraphEventWaitNodeSetEvent, (CUgraphNode node, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return soft_node_set_params(node, &params);
}

EXPORT(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event)) {
    CUgraphNodeParams params = graph_node_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return soft_exec_set_params(exec, node, &params);
}

/* ---- memory ---- */

EXPORT(cuGraphAddMemAllocNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)) {
    if (alloc == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    params.alloc = *alloc;
    CUresult result = soft_graph_add_params(node, graph, nodes, NULL, count, &params);
    if (result == CUDA_SUCCESS) alloc->dptr = params.alloc.dptr;
    return result;
}

EXPORT(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, alloc, &params);
    if (result == CUDA_SUCCESS) *alloc = params.alloc;
    return result;
}

EXPORT(cuGraphAddMemFreeNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *nodes,
                               size_t count, CUdeviceptr dptr)) {
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    params.free.dptr = dptr;
    return soft_graph_add_params(node, graph, nodes, NULL, count, &params);
}

EXPORT(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *dptr)) {
    CUgraphNodeParams params;
    CUresult result = graph_node_get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr, &params);
    if (result == CUDA_SUCCESS) *dptr = params.free.dptr;
    return result;
}
