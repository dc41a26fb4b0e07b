/*
 * Finds graphs and nodes, and sets their parameters.
 */
#include "graph_call.h"

#include "capture.h"
#include "programmatic.h"
#include "state/handle_set.h"

/* Locks if a handle is registered with the right kind. */
static CUresult graph_call_enter(enum soft_handle_kind kind, const void *handle) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(kind, handle)) return CUDA_SUCCESS;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_graph_enter(CUgraph handle, struct soft_graph **graph) {
    *graph = (struct soft_graph *)handle;
    return graph_call_enter(SOFT_HANDLE_GRAPH, handle);
}

CUresult soft_node_enter(CUgraphNode handle, struct soft_node **node) {
    *node = (struct soft_node *)handle;
    return graph_call_enter(SOFT_HANDLE_NODE, handle);
}

CUresult soft_exec_enter(CUgraphExec handle, struct soft_exec **exec) {
    *exec = (struct soft_exec *)handle;
    return graph_call_enter(SOFT_HANDLE_EXEC, handle);
}

CUresult soft_node_enter_type(CUgraphNode handle, CUgraphNodeType type, struct soft_node **node) {
    CUresult result = soft_node_enter(handle, node);
    if (result != CUDA_SUCCESS || (*node)->content.params.type == type) return result;
    soft_graph_leave();
    return CUDA_ERROR_INVALID_VALUE;
}

void soft_graph_leave(void) {
    pthread_mutex_unlock(&soft_lock);
}

/* Adds a node after the nodes that the program names. The caller holds soft_lock. */
static CUresult graph_call_add(struct soft_graph *graph, struct soft_node_content *content,
                               const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
                               struct soft_node **node) {
    struct soft_front front = {0};
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct soft_edge edge = {.from = (struct soft_node *)nodes[i]};
        if (data != NULL) edge.data = data[i];
        bool known = soft_handle_is(SOFT_HANDLE_NODE, edge.from) && edge.from->graph == graph;
        unsigned before = front.count;
        if (!known || !soft_edge_is_sound(&edge, content)) {
            result = CUDA_ERROR_INVALID_VALUE;
        } else if (!soft_front_add(&front, &edge)) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        } else if (front.count == before) { /* named twice */
            result = CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (result == CUDA_SUCCESS) {
        result = soft_graph_add(graph, content, front.edges, front.count, node);
    }
    soft_front_clear(&front);
    return result;
}

CUresult soft_graph_add_params(CUgraphNode *result_node, CUgraph handle, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count,
                               CUgraphNodeParams *params) {
    struct soft_graph *graph = NULL;
    struct soft_node *node = NULL;
    struct soft_node_content content;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    soft_graph_leave();
    if (result_node == NULL || (count > 0 && nodes == NULL)) return CUDA_ERROR_INVALID_VALUE;
    result = soft_content_of_params(params, &content);
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr allocated = content.params.alloc.dptr;
    result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) {
        pthread_mutex_lock(&soft_lock);
    } else {
        result = graph_call_add(graph, &content, nodes, data, count, &node);
    }
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    soft_graph_leave();
    if (result != CUDA_SUCCESS) return result;
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params->alloc.dptr = allocated;
    *result_node = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

/* Nodes that allocate or free cannot change. */
static bool is_fixed(int type) {
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

CUresult soft_node_set_params(CUgraphNode handle, const CUgraphNodeParams *params) {
    struct soft_node *node = NULL;
    struct soft_node_content content;
    CUresult result = soft_node_enter_type(handle, params->type, &node);
    if (result != CUDA_SUCCESS) return result;
    soft_graph_leave();
    if (is_fixed(params->type)) return CUDA_ERROR_NOT_SUPPORTED;
    result = soft_content_of_params(params, &content);
    if (result != CUDA_SUCCESS) return result;
    result = soft_node_enter_type(handle, params->type, &node);
    if (result != CUDA_SUCCESS) {
        pthread_mutex_lock(&soft_lock);
        soft_content_clear(&content);
    } else {
        content.hints = node->content.hints;
        soft_content_clear(&node->content);
        node->content = content;
        if (content.child != NULL) content.child->owner = node;
    }
    soft_graph_leave();
    return result;
}

CUresult soft_exec_set_params(CUgraphExec handle, CUgraphNode node,
                              const CUgraphNodeParams *params) {
    struct soft_exec *exec = NULL;
    struct soft_node_content content;
    CUresult result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) return result;
    soft_graph_leave();
    if (node == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (is_fixed(params->type)) return CUDA_ERROR_NOT_SUPPORTED;
    result = soft_content_of_params(params, &content);
    if (result != CUDA_SUCCESS) return result;
    result = soft_exec_enter(handle, &exec);
    if (result != CUDA_SUCCESS) {
        pthread_mutex_lock(&soft_lock);
    } else {
        result = soft_exec_set(exec, (const struct soft_node *)node, &content);
    }
    if (result != CUDA_SUCCESS) soft_content_clear(&content);
    soft_graph_leave();
    return result;
}
