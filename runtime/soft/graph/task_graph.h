/*
 * Graphs of tasks: nodes, their dependencies, and copies of both.
 *
 * The content of a node is its CUgraphNodeParams, with copies of everything they point to, and the
 * task made from them. An executable graph is a copy of a graph, so changing one does not change
 * the other; each copied node has a pointer to its original.
 *
 * soft_lock guards all graphs. Functions that return a CUresult may fail for lack of memory.
 */
#ifndef SOFT_TASK_GRAPH_H
#define SOFT_TASK_GRAPH_H

#include "state/driver_state.h"
#include "queue/task.h"

struct soft_graph_memory;

/* Attributes of kernel nodes that can be set; all but the first are hints. */
struct soft_node_hints {
    int priority, cluster_policy, domain;
    unsigned carveout;
    CUaccessPolicyWindow window;
};

struct soft_node_content {
    CUgraphNodeParams params; /* its targets belong to the content */
    struct soft_task task;    /* EMPTY for nodes that are none */
    struct soft_context *context;
    struct soft_module *module;       /* of a kernel; held */
    struct soft_graph *child;         /* the content's own */
    struct soft_graph_memory *memory; /* of an allocation; held */
    struct soft_node_hints hints;
};

struct soft_edge {
    struct soft_node *from;
    CUgraphEdgeData data;
};

struct soft_node {
    struct soft_graph *graph;
    struct soft_node_content content;
    struct soft_edge *edges; /* its dependencies, in the given order */
    unsigned edge_count;
    unsigned dependents;
    const struct soft_node *origin; /* its original; an identity, not to be dereferenced */
    uint64_t number, origin_number; /* unique, although addresses may be reused */
    bool disabled;                  /* in an executable graph */
    unsigned mark;                  /* for walks */
    struct soft_launch *launched;   /* while a launch of the graph is assembled */
    struct soft_node *next, **link; /* in the graph's list, in the order made */
};

struct soft_graph {
    struct soft_node *first, **last;
    unsigned node_count;
    const struct soft_graph *origin; /* what it was copied from; a name */
    struct soft_node *owner;         /* whose child it is */
    bool capturing;       /* nodes are being added by a capture: not to be instantiated */
    unsigned executables; /* made of it */
    struct soft_held_object *objects; /* user objects that it keeps */
    struct soft_graph *next, **link;  /* in the list of all */
};

/* ---- graphs ---- */

/* An empty graph, not registered; NULL without memory. */
struct soft_graph *soft_graph_new(void);

/* Frees a graph with its nodes, and unregisters them. */
void soft_graph_free(struct soft_graph *graph);

/* Registers a graph, its nodes and its children. */
bool soft_graph_register(struct soft_graph *graph);

/* Copies a graph with all nodes and children, not registered. */
CUresult soft_graph_copy(const struct soft_graph *graph, struct soft_graph **copy);

/* The copy of a node, also in children; NULL. A node at the reused address of a destroyed one is
 * not that node. */
struct soft_node *soft_graph_find_copy(struct soft_graph *copy, const struct soft_node *origin);

/* Whether a graph, or a child of it, has nodes that allocate or free memory. */
bool soft_graph_has_memory(const struct soft_graph *graph);

/* Sorts the nodes so that each follows all that it depends on: an array of node_count, to be freed.
 * NULL: the dependencies have a cycle, which contains *culprit; or, with *culprit NULL, the host is
 * out of memory. */
struct soft_node **soft_graph_order(struct soft_graph *graph, struct soft_node **culprit);

/* ---- nodes ---- */

/* Adds a node with such content, which it takes over on success. The edges' nodes must be of the
 * graph. */
CUresult soft_graph_add(struct soft_graph *graph, struct soft_node_content *content,
                        const struct soft_edge *edges, unsigned edge_count,
                        struct soft_node **node);

/* Removes a node with all of its edges, and frees it. */
void soft_node_free(struct soft_node *node);

/* Adds or removes an edge. CUDA_ERROR_INVALID_VALUE: the added edge exists, or the removed one does
 * not. */
CUresult soft_node_add_edge(struct soft_node *to, const struct soft_edge *edge);
CUresult soft_node_remove_edge(struct soft_node *to, const struct soft_edge *edge);

/* ---- contents; see node_content.c. The caller does not hold soft_lock. ---- */

/* Makes content of parameters: checks them, copies what they point to, makes the task. */
CUresult soft_content_of_params(const CUgraphNodeParams *params, struct soft_node_content *content);

/* Makes content of a task that was captured, which it takes over on success. The caller may hold
 * soft_lock. */
CUresult soft_content_of_task(struct soft_task *task, struct soft_context *context,
                              struct soft_node_content *content);

/* Copies content with what it owns. */
CUresult soft_content_copy(const struct soft_node_content *from, struct soft_node_content *to);

/* Frees what content owns. The caller may hold soft_lock. */
void soft_content_clear(struct soft_node_content *content);

#endif
