/*
 * Lists of nodes and edges.
 */
#include "task_graph.h"

#include "base/options.h"
#include "state/handle_set.h"
#include "user_object.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct soft_graph *all; /* so that graphs that a program never destroys remain reachable */

struct soft_graph *soft_graph_new(void) {
    struct soft_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) return NULL;
    graph->last = &graph->first;
    graph->next = all;
    graph->link = &all;
    if (all != NULL) all->link = &graph->next;
    return all = graph;
}

static void free_node(struct soft_node *node) {
    soft_handle_remove(SOFT_HANDLE_NODE, node);
    soft_content_clear(&node->content);
    free(node->edges);
    free(node);
}

void soft_graph_free(struct soft_graph *graph) {
    if (graph == NULL) return;
    soft_handle_remove(SOFT_HANDLE_GRAPH, graph);
    while (graph->first != NULL) {
        struct soft_node *node = graph->first;
        graph->first = node->next;
        free_node(node);
    }
    soft_objects_free(&graph->objects);
    *graph->link = graph->next;
    if (graph->next != NULL) graph->next->link = graph->link;
    free(graph);
}

bool soft_graph_register(struct soft_graph *graph) {
    if (!soft_handle_add(SOFT_HANDLE_GRAPH, graph)) return false;
    for (struct soft_node *node = graph->first; node != NULL; node = node->next) {
        if (!soft_handle_add(SOFT_HANDLE_NODE, node)) return false;
        struct soft_graph *child = node->content.child;
        if (child != NULL && !soft_graph_register(child)) return false;
    }
    return true;
}

/* ---- nodes ---- */

static bool has_edge(const struct soft_node *to, const struct soft_node *from) {
    for (unsigned i = 0; i < to->edge_count; i++) {
        if (to->edges[i].from == from) return true;
    }
    return false;
}

CUresult soft_node_add_edge(struct soft_node *to, const struct soft_edge *edge) {
    if (has_edge(to, edge->from) || edge->from == to) return CUDA_ERROR_INVALID_VALUE;
    struct soft_edge *more = realloc(to->edges, (to->edge_count + 1) * sizeof *more);
    if (more == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    to->edges = more;
    to->edges[to->edge_count++] = *edge;
    edge->from->dependents++;
    return CUDA_SUCCESS;
}

CUresult soft_node_remove_edge(struct soft_node *to, const struct soft_edge *edge) {
    for (unsigned i = 0; i < to->edge_count; i++) {
        if (to->edges[i].from != edge->from) continue;
        memmove(&to->edges[i], &to->edges[i + 1], (to->edge_count - i - 1) * sizeof *to->edges);
        to->edge_count--;
        edge->from->dependents--;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static void task_graph_append(struct soft_graph *graph, struct soft_node *node) {
    static atomic_uint_least64_t numbers; /* contents are copied without soft_lock */
    node->number = atomic_fetch_add(&numbers, 1);
    node->graph = graph;
    node->link = graph->last;
    *graph->last = node;
    graph->last = &node->next;
    graph->node_count++;
}

CUresult soft_graph_add(struct soft_graph *graph, struct soft_node_content *content,
                        const struct soft_edge *edges, unsigned edge_count,
                        struct soft_node **result) {
    struct soft_node *node = calloc(1, sizeof *node);
    if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult added = CUDA_SUCCESS;
    if (!soft_handle_add(SOFT_HANDLE_NODE, node)) added = CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < edge_count && added == CUDA_SUCCESS; i++) {
        added = soft_node_add_edge(node, &edges[i]);
    }
    if (added != CUDA_SUCCESS) {
        for (unsigned i = 0; i < node->edge_count; i++) node->edges[i].from->dependents--;
        free_node(node);
        return added;
    }
    task_graph_append(graph, node);
    node->content = *content;
    if (node->content.child != NULL) node->content.child->owner = node;
    *content = (struct soft_node_content){0};
    *result = node;
    return CUDA_SUCCESS;
}

void soft_node_free(struct soft_node *node) {
    struct soft_graph *graph = node->graph;
    const struct soft_edge edge = {.from = node};
    for (struct soft_node *other = graph->first; other != NULL; other = other->next) {
        if (has_edge(other, node)) soft_node_remove_edge(other, &edge);
    }
    for (unsigned i = 0; i < node->edge_count; i++) node->edges[i].from->dependents--;
    *node->link = node->next;
    if (node->next != NULL) node->next->link = node->link;
    if (graph->last == &node->next) graph->last = node->link;
    graph->node_count--;
    free_node(node);
}

/* ---- copies ---- */

/* The copy of a node in a graph that was copied from its graph. */
static struct soft_node *copy_in(const struct soft_graph *copy, const struct soft_node *origin) {
    struct soft_node *node = copy->first;
    while (node != NULL && node->origin != origin) node = node->next;
    return node;
}

static CUresult copy_node(const struct soft_node *from, struct soft_graph *copy) {
    struct soft_node *node = calloc(1, sizeof *node);
    if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    node->origin = from;
    node->origin_number = from->number;
    node->disabled = from->disabled;
    task_graph_append(copy, node);
    CUresult result = soft_content_copy(&from->content, &node->content);
    if (result == CUDA_SUCCESS && node->content.child != NULL) node->content.child->owner = node;
    return result;
}

CUresult soft_graph_copy(const struct soft_graph *graph, struct soft_graph **result) {
    struct soft_graph *copy = soft_graph_new();
    if (copy == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult copied = CUDA_SUCCESS;
    copy->origin = graph;
    for (const struct soft_node *n = graph->first; n != NULL && copied == CUDA_SUCCESS;
         n = n->next) {
        copied = copy_node(n, copy);
    }
    const struct soft_node *from = graph->first;
    for (struct soft_node *n = copy->first; n != NULL && copied == CUDA_SUCCESS; n = n->next) {
        for (unsigned i = 0; i < from->edge_count && copied == CUDA_SUCCESS; i++) {
            struct soft_edge edge = from->edges[i];
            edge.from = copy_in(copy, edge.from);
            copied = soft_node_add_edge(n, &edge);
        }
        from = from->next;
    }
    if (copied == CUDA_SUCCESS) copied = soft_objects_copy(graph->objects, &copy->objects);
    if (copied != CUDA_SUCCESS) {
        soft_graph_free(copy);
        return copied;
    }
    *result = copy;
    return CUDA_SUCCESS;
}

struct soft_node *soft_graph_find_copy(struct soft_graph *copy, const struct soft_node *origin) {
    const bool lives = soft_handle_is(SOFT_HANDLE_NODE, origin);
    for (struct soft_node *node = copy->first; node != NULL; node = node->next) {
        if (node->origin == origin && (!lives || node->origin_number == origin->number)) {
            return node;
        }
        if (node->content.child == NULL) continue;
        struct soft_node *found = soft_graph_find_copy(node->content.child, origin);
        if (found != NULL) return found;
    }
    return NULL;
}

bool soft_graph_has_memory(const struct soft_graph *graph) {
    for (const struct soft_node *node = graph->first; node != NULL; node = node->next) {
        int type = node->content.params.type;
        if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
        if (node->content.child != NULL && soft_graph_has_memory(node->content.child)) return true;
    }
    return false;
}

/* ---- order ---- */

static bool task_graph_is_ready(const struct soft_node *node) {
    bool ready = node->mark == 0;
    for (unsigned i = 0; i < node->edge_count && ready; i++) {
        ready = node->edges[i].from->mark != 0;
    }
    return ready;
}

/* The ready node that comes first in the order of TOLLENS_SOFT_ORDER, if that is not the usual one.
 */
static struct soft_node *next_of_order(const struct soft_graph *graph) {
    struct soft_node *best = NULL;
    uint64_t number = 0;
    uint64_t least = UINT64_MAX;
    for (struct soft_node *n = graph->first; n != NULL; n = n->next) {
        const uint64_t place = soft_options_turn(++number);
        if (place >= least || !task_graph_is_ready(n)) continue;
        best = n;
        least = place;
    }
    return best;
}

struct soft_node **soft_graph_order(struct soft_graph *graph, struct soft_node **culprit) {
    struct soft_node **order = calloc(graph->node_count + 1, sizeof *order);
    unsigned done = 0, done_before = 0;
    *culprit = NULL;
    if (order == NULL) return NULL;
    for (struct soft_node *n = graph->first; n != NULL; n = n->next) n->mark = 0;
    /* Nodes are usually added after those they depend on; then one round is enough. */
    const bool is_usual = soft_options()->order == SOFT_ORDER_TURNS;
    do {
        done_before = done;
        for (struct soft_node *n = is_usual ? graph->first : next_of_order(graph); n != NULL;
             n = is_usual ? n->next : next_of_order(graph)) {
            if (!task_graph_is_ready(n)) continue;
            n->mark = 1;
            order[done++] = n;
        }
    } while (done < graph->node_count && done > done_before);
    if (done == graph->node_count) return order;
    struct soft_node *n = graph->first;
    while (n->mark != 0) n = n->next;
    *culprit = n;
    free((void *)order);
    return NULL;
}
