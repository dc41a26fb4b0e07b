/*
 * Programmatic: edges by which a kernel may begin before the kernel in front of it has ended.
 *
 * As in "Graph Management" of the CUDA Driver API 13.0, CUgraphEdgeData. The caller holds
 * soft_lock.
 */
#ifndef SOFT_PROGRAMMATIC_H
#define SOFT_PROGRAMMATIC_H

#include "task_graph.h"

/* Whether an edge to content has data that make sense: programmatic ones lead from a kernel's port
 * to a kernel. */
bool soft_edge_is_sound(const struct soft_edge *edge, const struct soft_node_content *to);

/* The data of an edge behind a node that is captured: behind a kernel's programmatic event, if
 * early; plain ones behind other nodes. */
CUgraphEdgeData soft_edge_data_behind(const struct soft_node *from, bool early);

/* Gives a front the data that it has for the content of the next node: all edges to what is no
 * kernel are plain, and one from a kernel to a kernel with stream serialization is programmatic. */
void soft_front_shape(struct soft_edge *edges, unsigned count, const struct soft_node_content *to);

/* Makes the programmatic edges of a graph that is to be executed plain where other edges order the
 * two nodes anyway. order: as soft_graph_order gives it. */
void soft_graph_settle_edges(struct soft_graph *graph, struct soft_node **order);

#endif
