/*
 * Graphs, their nodes and edges. As in "Graph Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "graph/programmatic.h"
#include "graph/graph_call.h"
#include "state/handle_set.h"

#include <string.h>

EXPORT(cuGraphCreate, (CUgraph * result_graph, unsigned int flags)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (result_graph == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    struct soft_graph *graph = soft_graph_new();
    if (graph != NULL && !soft_graph_register(graph)) {
        soft_graph_free(graph);
        graph = NULL;
    }
    pthread_mutex_unlock(&soft_lock);
    if (graph == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *result_graph = (CUgraph)graph;
    return CUDA_SUCCESS;
}

/* A child graph is destroyed with its node, a graph being captured with its capture. */
EXPORT(cuGraphDestroy, (CUgraph handle)) {
    struct soft_graph *graph = NULL;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (graph->owner != NULL || graph->capturing) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        soft_execs_forget(graph);
        soft_graph_free(graph);
    }
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphClone, (CUgraph * result_graph, CUgraph original)) {
    struct soft_graph *graph = NULL, *copy = NULL;
    CUresult result = soft_graph_enter(original, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (result_graph == NULL || graph->capturing) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (soft_graph_has_memory(graph)) {
        result = CUDA_ERROR_NOT_SUPPORTED; /* its addresses can be used once */
    } else {
        result = soft_graph_copy(graph, &copy);
        if (result == CUDA_SUCCESS && !soft_graph_register(copy)) {
            soft_graph_free(copy);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (result == CUDA_SUCCESS) *result_graph = (CUgraph)copy;
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphNodeFindInClone, (CUgraphNode * found, CUgraphNode original, CUgraph clone)) {
    struct soft_graph *graph = NULL;
    CUresult result = soft_graph_enter(clone, &graph);
    if (result != CUDA_SUCCESS) return result;
    struct soft_node *node =
        original != NULL ? soft_graph_find_copy(graph, (const struct soft_node *)original) : NULL;
    if (found == NULL || node == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        *found = (CUgraphNode)node;
    }
    soft_graph_leave();
    return result;
}

/* ---- lists: *count is the list's capacity, then the number written; without a list, the total
 * ---- */

struct listing {
    CUgraphNode *nodes, *others;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy; /* an edge has data, but the caller passed no array for it */
};

static void graph_list(struct listing *listing, const struct soft_node *node,
                       const struct soft_node *other, const CUgraphEdgeData *data) {
    static const CUgraphEdgeData plain = {0};
    size_t i = listing->found++;
    if (listing->data == NULL && data != NULL && memcmp(data, &plain, sizeof plain) != 0) {
        listing->lossy = true;
    }
    if (listing->nodes == NULL || i >= listing->room) return;
    listing->nodes[i] = (CUgraphNode)(uintptr_t)node;
    if (listing->others != NULL) listing->others[i] = (CUgraphNode)(uintptr_t)other;
    if (listing->data != NULL && data != NULL) listing->data[i] = *data;
}

/* Ends a listing: unused entries are set to NULL. */
static CUresult graph_finish(struct listing *listing, size_t *count) {
    for (size_t i = listing->found; listing->nodes != NULL && i < listing->room; i++) {
        listing->nodes[i] = NULL;
        if (listing->others != NULL) listing->others[i] = NULL;
    }
    bool cut = listing->nodes != NULL && listing->found > listing->room;
    if (!cut) *count = listing->found;
    soft_graph_leave();
    return listing->lossy && listing->nodes != NULL ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots_only) {
    struct soft_graph *graph = NULL;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    struct listing listing = {.nodes = nodes, .room = *count};
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next) {
        if (!roots_only || n->edge_count == 0) graph_list(&listing, n, NULL, NULL);
    }
    return graph_finish(&listing, count);
}

EXPORT(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
    return list_nodes(graph, nodes, count, false);
}

EXPORT(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
    return list_nodes(graph, nodes, count, true);
}

EXPORT(cuGraphGetEdges_v2,
       (CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)) {
    struct soft_graph *graph = NULL;
    if (count == NULL || (from == NULL) != (to == NULL)) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    struct listing listing = {.nodes = from, .others = to, .data = data, .room = *count};
    for (const struct soft_node *n = graph->first; n != NULL; n = n->next) {
        for (unsigned i = 0; i < n->edge_count; i++) {
            graph_list(&listing, n->edges[i].from, n, &n->edges[i].data);
        }
    }
    return graph_finish(&listing, count);
}

EXPORT(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)) {
    return soft_cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

EXPORT(cuGraphNodeGetDependencies_v2,
       (CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)) {
    struct soft_node *node = NULL;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_node_enter(handle, &node);
    if (result != CUDA_SUCCESS) return result;
    struct listing listing = {.nodes = nodes, .data = data, .room = *count};
    for (unsigned i = 0; i < node->edge_count; i++) {
        graph_list(&listing, node->edges[i].from, NULL, &node->edges[i].data);
    }
    return graph_finish(&listing, count);
}

EXPORT(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
    return soft_cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

EXPORT(cuGraphNodeGetDependentNodes_v2,
       (CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)) {
    struct soft_node *node = NULL;
    if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = soft_node_enter(handle, &node);
    if (result != CUDA_SUCCESS) return result;
    struct listing listing = {.nodes = nodes, .data = data, .room = *count};
    for (const struct soft_node *n = node->graph->first; n != NULL; n = n->next) {
        for (unsigned i = 0; i < n->edge_count; i++) {
            if (n->edges[i].from == node) graph_list(&listing, n, NULL, &n->edges[i].data);
        }
    }
    return graph_finish(&listing, count);
}

EXPORT(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) {
    return soft_cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

EXPORT(cuGraphNodeGetType, (CUgraphNode handle, CUgraphNodeType *type)) {
    struct soft_node *node = NULL;
    CUresult result = soft_node_enter(handle, &node);
    if (result != CUDA_SUCCESS) return result;
    if (type != NULL) *type = node->content.params.type;
    soft_graph_leave();
    return type != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- edges ---- */

/* Adds or removes edges: all of them, or none if one is invalid. */
static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *data, size_t count, bool adds) {
    struct soft_graph *graph = NULL;
    CUresult result = soft_graph_enter(handle, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (count > 0 && (from == NULL || to == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !adds && soft_graph_has_memory(graph)) {
        result = CUDA_ERROR_NOT_SUPPORTED;
    }
    size_t done = 0;
    for (; done < count && result == CUDA_SUCCESS; done++) {
        struct soft_node *one = (struct soft_node *)from[done], *two = (struct soft_node *)to[done];
        bool known = soft_handle_is(SOFT_HANDLE_NODE, one) &&
                     soft_handle_is(SOFT_HANDLE_NODE, two) && one->graph == graph &&
                     two->graph == graph;
        struct soft_edge edge = {.from = one};
        if (data != NULL) edge.data = data[done];
        bool sound = known && (!adds || soft_edge_is_sound(&edge, &two->content));
        result = !sound ? CUDA_ERROR_INVALID_VALUE
                 : adds ? soft_node_add_edge(two, &edge)
                        : soft_node_remove_edge(two, &edge);
    }
    /* The last one failed; those before it are undone. */
    for (size_t i = 0; result != CUDA_SUCCESS && i + 1 < done; i++) {
        struct soft_edge edge = {.from = (struct soft_node *)from[i]};
        struct soft_node *two = (struct soft_node *)to[i];
        if (data != NULL) edge.data = data[i];
        (void)(adds ? soft_node_remove_edge(two, &edge) : soft_node_add_edge(two, &edge));
    }
    soft_graph_leave();
    return result;
}

EXPORT(cuGraphAddDependencies_v2, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t count)) {
    return change_edges(graph, from, to, data, count, true);
}

EXPORT(cuGraphAddDependencies,
       (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
    return change_edges(graph, from, to, NULL, count, true);
}

EXPORT(cuGraphRemoveDependencies_v2, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *data, size_t count)) {
    return change_edges(graph, from, to, data, count, false);
}

EXPORT(cuGraphRemoveDependencies,
       (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
    return change_edges(graph, from, to, NULL, count, false);
}

EXPORT(cuGraphDestroyNode, (CUgraphNode handle)) {
    struct soft_node *node = NULL;
    CUresult result = soft_node_enter(handle, &node);
    if (result != CUDA_SUCCESS) return result;
    if (soft_graph_has_memory(node->graph)) {
        result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (node->graph->capturing) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        soft_node_free(node);
    }
    soft_graph_leave();
    return result;
}
