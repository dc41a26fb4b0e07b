/*
 * Shared by the calls about graphs.
 */
#ifndef SOFT_GRAPH_CALL_H
#define SOFT_GRAPH_CALL_H

#include "graph_exec.h"

/* Locks, and resolves a handle. On failure nothing is locked: CUDA_ERROR_INVALID_VALUE, or
 * CUDA_ERROR_NOT_INITIALIZED. */
CUresult soft_graph_enter(CUgraph handle, struct soft_graph **graph);
CUresult soft_node_enter(CUgraphNode handle, struct soft_node **node);
CUresult soft_exec_enter(CUgraphExec handle, struct soft_exec **exec);

/* The same for a node of a given type. */
CUresult soft_node_enter_type(CUgraphNode handle, CUgraphNodeType type, struct soft_node **node);

void soft_graph_leave(void);

/* Makes a node of parameters of any type. */
CUresult soft_graph_add_params(CUgraphNode *result, CUgraph graph, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count,
                               CUgraphNodeParams *params);

/* Gives a node, or an executable graph's copy of it, new parameters of the same type. */
CUresult soft_node_set_params(CUgraphNode handle, const CUgraphNodeParams *params);
CUresult soft_exec_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params);

#endif
