/*
 * Executable graphs: a copy of a graph, in an order in which it can be executed.
 *
 * A launch submits the work of all nodes to one stream, one after the other. The edges allow this
 * order; programs must not rely on parallel branches.
 */
#ifndef SOFT_GRAPH_EXEC_H
#define SOFT_GRAPH_EXEC_H

#include "queue/queue.h"
#include "task_graph.h"

struct soft_exec {
    struct soft_graph *graph;  /* its own copy */
    struct soft_graph *source; /* its source; only an identity once that is destroyed */
    struct soft_node **order;  /* of all nodes, including those of children */
    unsigned count;
    unsigned references; /* the program's, and one per unfinished launch */
    unsigned long long flags;
    struct soft_event_point *last;  /* when the latest launch ends; NULL before the first */
    struct soft_exec *next, **link; /* in the list of all */
};

/* The caller holds soft_lock for all of these. */

/* Makes one. On failure *culprit may be the responsible node, and *why a
 * CUgraphInstantiateResult. */
CUresult soft_exec_new(struct soft_graph *graph, unsigned long long flags, struct soft_exec **exec,
                       struct soft_node **culprit, CUgraphInstantiateResult *why);

/* Destroys it for the program; unfinished launches keep it. */
void soft_exec_drop(struct soft_exec *exec);

/* Releases a reference; exec may be NULL. */
void soft_exec_release(struct soft_exec *exec);

/* Forgets a graph that is freed. */
void soft_execs_forget(const struct soft_graph *graph);

/* Puts a launch into a stream. */
CUresult soft_exec_launch(struct soft_exec *exec, struct soft_stream *stream);

/* Replaces the content of the copy of a node with new content, which it takes over on success.
 * CUDA_ERROR_INVALID_VALUE: there is no such node, or the replacement is not allowed. */
CUresult soft_exec_set(struct soft_exec *exec, const struct soft_node *origin,
                       struct soft_node_content *content);

/* Copies all contents of a graph of the same shape into an executable graph, or a child of it. */
CUresult soft_graph_update(struct soft_graph *own, const struct soft_graph *graph,
                           CUgraphExecUpdateResultInfo *info);

/* Whether one content may replace another in an executable graph: CU_GRAPH_EXEC_UPDATE_SUCCESS, or
 * the reason. */
CUgraphExecUpdateResult soft_content_may_become(const struct soft_node_content *content,
                                                const struct soft_node_content *other);

#endif
