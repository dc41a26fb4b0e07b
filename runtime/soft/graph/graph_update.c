/*
 * Updates executable graphs: their shape does not change, nor the place where each node runs.
 */
#include "graph_exec.h"

#include <string.h>

static int graph_update_device_of(uint64_t address) {
    struct soft_allocation found;
    return soft_space_find(address, &found) ? found.device : -1;
}

/* Both of the host, or both of one device. */
static bool same_place(const struct soft_copy_end *one, const struct soft_copy_end *other) {
    if (one->in_space != other->in_space) return false;
    return !one->in_space ||
           graph_update_device_of(one->address) == graph_update_device_of(other->address);
}

static CUgraphExecUpdateResult check_fill(const struct soft_fill_rows *one,
                                          const struct soft_fill_rows *other) {
    bool flat = one->height == 1 && other->height == 1;
    bool same_shape = one->width == other->width && one->height == other->height &&
                      one->pitch == other->pitch && one->element_bytes == other->element_bytes;
    bool ok = (flat || same_shape) &&
              graph_update_device_of(one->address) == graph_update_device_of(other->address);
    return ok ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

CUgraphExecUpdateResult soft_content_may_become(const struct soft_node_content *content,
                                                const struct soft_node_content *other) {
    const struct soft_task *one = &content->task, *two = &other->task;
    if (content->params.type != other->params.type) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    switch (one->kind) {
    case SOFT_TASK_KERNEL:
        if (content->context != other->context) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
        }
        return one->is.kernel.cooperative == two->is.kernel.cooperative &&
                       memcmp(one->is.kernel.cluster, two->is.kernel.cluster,
                              sizeof one->is.kernel.cluster) == 0
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    case SOFT_TASK_COPY:
        return two->kind == SOFT_TASK_COPY && same_place(&one->is.copy.to, &two->is.copy.to) &&
                       same_place(&one->is.copy.from, &two->is.copy.from)
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    case SOFT_TASK_FILL:
        return check_fill(&one->is.fill, &two->is.fill);
    case SOFT_TASK_ALLOC:
    case SOFT_TASK_FREE:
        return one->is.address == two->is.address ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                  : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    default:
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    }
}

static void graph_update_replace(struct soft_node *node, struct soft_node_content *content) {
    soft_content_clear(&node->content);
    node->content = *content;
    *content = (struct soft_node_content){.params.type = CU_GRAPH_NODE_TYPE_EMPTY};
}

CUresult soft_exec_set(struct soft_exec *exec, const struct soft_node *origin,
                       struct soft_node_content *content) {
    struct soft_node *node = soft_graph_find_copy(exec->graph, origin);
    if (node == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (soft_content_may_become(&node->content, content) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* Parameters that a call does not set are unchanged. */
    content->hints = node->content.hints;
    graph_update_replace(node, content);
    return CUDA_SUCCESS;
}

/* ---- a whole graph ---- */

static CUresult graph_update_fail(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult what,
                                  const struct soft_node *node, const struct soft_node *from) {
    info->result = what;
    info->errorNode = (CUgraphNode)(uintptr_t)node;
    info->errorFromNode = (CUgraphNode)(uintptr_t)from;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

/* The position of a node in its graph's list. */
static unsigned index_of(const struct soft_node *node) {
    unsigned index = 0;
    for (const struct soft_node *n = node->graph->first; n != node; n = n->next) index++;
    return index;
}

/* Pairs nodes in the order they were made, and checks each pair; nothing is changed. */
static CUresult graph_update_compare(const struct soft_graph *old, const struct soft_graph *graph,
                                     CUgraphExecUpdateResultInfo *info) {
    if (old->node_count != graph->node_count) {
        return graph_update_fail(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
    }
    const struct soft_node *o = old->first;
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next, o = o->next) {
        if (o->edge_count != n->edge_count) {
            return graph_update_fail(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, NULL);
        }
        for (unsigned i = 0; i < n->edge_count; i++) {
            if (index_of(o->edges[i].from) != index_of(n->edges[i].from)) {
                return graph_update_fail(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n,
                                         n->edges[i].from);
            }
        }
        CUgraphExecUpdateResult what = soft_content_may_become(&o->content, &n->content);
        if (what != CU_GRAPH_EXEC_UPDATE_SUCCESS) return graph_update_fail(info, what, n, NULL);
        if (n->content.child != NULL) {
            CUresult result = graph_update_compare(o->content.child, n->content.child, info);
            if (result != CUDA_SUCCESS) return result;
        }
    }
    return CUDA_SUCCESS;
}

/* Copies contents, of children node by node, for their nodes are in the order. */
static CUresult graph_update_take_all(struct soft_graph *old, const struct soft_graph *graph) {
    struct soft_node *o = old->first;
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next, o = o->next) {
        CUresult result = CUDA_SUCCESS;
        if (n->content.child != NULL) {
            result = graph_update_take_all(o->content.child, n->content.child);
        } else {
            struct soft_node_content content = {0};
            result = soft_content_copy(&n->content, &content);
            if (result == CUDA_SUCCESS) graph_update_replace(o, &content);
        }
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

CUresult soft_graph_update(struct soft_graph *own, const struct soft_graph *graph,
                           CUgraphExecUpdateResultInfo *info) {
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    CUresult result = graph_update_compare(own, graph, info);
    return result == CUDA_SUCCESS ? graph_update_take_all(own, graph) : result;
}
