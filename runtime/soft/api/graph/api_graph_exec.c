/*
 * Executable graphs. As in "Graph Management" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "api/export.h"
#include "graph/graph_call.h"
#include "state/handle_set.h"
#include "state/memory_pool.h"

static bool graph_exec_are_flags(unsigned long long flags) {
    const unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    return (flags & ~known) == 0;
}

static CUresult graph_exec_instantiate(CUgraphExec *result_exec, CUgraph handle,
                                       unsigned long long flags, struct soft_node **culprit,
                                       CUgraphInstantiateResult *why) {
    struct soft_graph *graph = NULL;
    struct soft_exec *exec = NULL;
    *culprit = NULL;
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (result_exec == NULL || !graph_exec_are_flags(flags)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
        result = CUDA_ERROR_NOT_SUPPORTED; /* kernels cannot launch */
    } else {
        result = soft_exec_new(graph, flags, &exec, culprit, why);
    }
    soft_graph_leave();
    if (result == CUDA_SUCCESS) *result_exec = (CUgraphExec)exec;
    return result;
}

EXPORT(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) {
    struct soft_node *culprit = NULL;
    CUgraphInstantiateResult why = 0;
    return graph_exec_instantiate(exec, graph, flags, &culprit, &why);
}

/* The log of this older form remains empty, as since CUDA 12. */
EXPORT(cuGraphInstantiate_v2,
       (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)) {
    struct soft_node *culprit = NULL;
    CUgraphInstantiateResult why = 0;
    CUresult result = graph_exec_instantiate(exec, graph, 0, &culprit, &why);
    if (error_node != NULL) *error_node = (CUgraphNode)culprit;
    if (log != NULL && log_bytes > 0) log[0] = '\0';
    return result;
}

EXPORT(cuGraphInstantiate,
       (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)) {
    return soft_cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

EXPORT(cuGraphInstantiateWithParams,
       (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_node *culprit = NULL;
    if (params == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
        result = soft_stream_find(params->hUploadStream, &context, &stream);
    }
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (result == CUDA_SUCCESS) {
        result = graph_exec_instantiate(exec, graph, params->flags, &culprit, &params->result_out);
    }
    params->hErrNode_out = (CUgraphNode)culprit;
    return result;
}

EXPORT(cuGraphExecGetFlags, (CUgraphExec handle, cuuint64_t *flags)) {
    struct soft_exec *exec = NULL;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    if (flags != NULL) *flags = exec->flags;
    soft_graph_leave();
    return flags != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Launches already in a stream are still executed. */
EXPORT(cuGraphExecDestroy, (CUgraphExec handle)) {
    struct soft_exec *exec = NULL;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    soft_exec_drop(exec);
    soft_graph_leave();
    return CUDA_SUCCESS;
}

/* Nothing has to be uploaded to the device. */
EXPORT(cuGraphUpload, (CUgraphExec handle, CUstream stream_handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_exec *exec = NULL;
    CUresult result = soft_stream_find(stream_handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_capture_allows_stream(stream);
    if (result == CUDA_SUCCESS) result = soft_exec_enter(handle, &exec);
    if (result == CUDA_SUCCESS) soft_graph_leave();
    return result;
}

/* In a stream that is being captured a launch becomes a child. The caller holds soft_lock. */
static CUresult capture_launch(const struct soft_exec *exec, struct soft_stream *stream) {
    struct soft_node_content content = {.params = {.type = CU_GRAPH_NODE_TYPE_GRAPH}};
    if (soft_graph_has_memory(exec->graph)) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = soft_graph_copy(exec->graph, &content.child);
    if (result == CUDA_SUCCESS && !soft_graph_register(content.child)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    content.params.graph.graph = (CUgraph)content.child;
    if (result == CUDA_SUCCESS) result = soft_capture_add(stream, &content);
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    return result;
}

EXPORT(cuGraphLaunch, (CUgraphExec handle, CUstream stream_handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_exec *exec = NULL;
    bool capturing = false;
    CUresult result = soft_stream_find(stream_handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    result = soft_capture_check(stream, &capturing);
    if (result == CUDA_SUCCESS) {
        result = capturing ? capture_launch(exec, stream) : soft_exec_launch(exec, stream);
    }
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphExecUpdate_v2,
       (CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)) {
    struct soft_exec *exec = NULL;
    if (info == NULL) return CUDA_ERROR_INVALID_VALUE;
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    const struct soft_graph *graph = (const struct soft_graph *)graph_handle;
    if (!soft_handle_is(SOFT_HANDLE_GRAPH, graph) || graph->capturing) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        result = soft_graph_update(exec->graph, graph, info);
    }
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphExecUpdate,
       (CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *what)) {
    CUgraphExecUpdateResultInfo info;
    if (what == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node != NULL) *error_node = info.errorNode;
    *what = info.result;
    return result;
}

/* A child's nodes are changed one by one: the shape must be the same. */
EXPORT(cuGraphExecChildGraphNodeSetParams, (CUgraphExec handle, CUgraphNode node, CUgraph child)) {
    struct soft_exec *exec = NULL;
    CUgraphExecUpdateResultInfo info;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    struct soft_node *own =
        node != NULL ? soft_graph_find_copy(exec->graph, (const struct soft_node *)node) : NULL;
    const struct soft_graph *graph = (const struct soft_graph *)child;
    if (own == NULL || own->content.child == NULL || !soft_handle_is(SOFT_HANDLE_GRAPH, graph)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        result = soft_graph_update(own->content.child, graph, &info);
        if (result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) result = CUDA_ERROR_INVALID_VALUE;
    }
    soft_graph_leave();
    return result;
}

/* Kernels, copies and fills can be disabled. */
static bool can_be_disabled(const struct soft_node *node) {
    const int type = node->content.params.type;
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           type == CU_GRAPH_NODE_TYPE_MEMSET;
}

EXPORT(cuGraphNodeSetEnabled, (CUgraphExec handle, CUgraphNode node, unsigned int enabled)) {
    struct soft_exec *exec = NULL;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    struct soft_node *own =
        node != NULL ? soft_graph_find_copy(exec->graph, (const struct soft_node *)node) : NULL;
    if (own == NULL || !can_be_disabled(own)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        own->disabled = enabled == 0;
    }
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphNodeGetEnabled, (CUgraphExec handle, CUgraphNode node, unsigned int *enabled)) {
    struct soft_exec *exec = NULL;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    const struct soft_node *own =
        node != NULL ? soft_graph_find_copy(exec->graph, (const struct soft_node *)node) : NULL;
    if (own == NULL || !can_be_disabled(own) || enabled == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        *enabled = !own->disabled;
    }
    soft_graph_leave();
    return result;
}

/* ---- memory that graphs hold ---- */

static CUresult find_pool(CUdevice dev, struct soft_pool **pool) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    const struct soft_device *device = soft_device_of(dev);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    *pool = device->graph_pool;
    return CUDA_SUCCESS;
}

EXPORT(cuDeviceGraphMemTrim, (CUdevice device)) {
    struct soft_pool *pool = NULL;
    CUresult result = find_pool(device, &pool);
    if (result != CUDA_SUCCESS) return result;
    return soft_cuMemPoolTrimTo((CUmemoryPool)pool, 0);
}

/* The same numbers as a pool's, under other names. */
static CUmemPool_attribute of_pool(CUgraphMem_attribute attribute) {
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        return CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
    default:
        return 0;
    }
}

EXPORT(cuDeviceGetGraphMemAttribute,
       (CUdevice device, CUgraphMem_attribute attribute, void *value)) {
    struct soft_pool *pool = NULL;
    CUresult result = find_pool(device, &pool);
    if (result != CUDA_SUCCESS) return result;
    return soft_cuMemPoolGetAttribute((CUmemoryPool)pool, of_pool(attribute), value);
}

EXPORT(cuDeviceSetGraphMemAttribute,
       (CUdevice device, CUgraphMem_attribute attribute, void *value)) {
    struct soft_pool *pool = NULL;
    CUresult result = find_pool(device, &pool);
    if (result != CUDA_SUCCESS) return result;
    return soft_cuMemPoolSetAttribute((CUmemoryPool)pool, of_pool(attribute), value);
}
