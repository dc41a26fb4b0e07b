/*
 * Programmatic edges: they let a kernel begin before the preceding kernel has ended.
 *
 * As in "Graph Management" of the CUDA Driver API 13.0, CUgraphEdgeData. The caller holds
 * soft_lock.
 */
#ifndef SOFT_PROGRAMMATIC_H
#define SOFT_PROGRAMMATIC_H

#include "task_graph.h"

/* Whether an edge to content has valid data: programmatic edges lead from a kernel's port to a
 * kernel. */
bool soft_edge_is_sound(const struct soft_edge *edge, const struct soft_node_content *to);

/* The data of an edge after a captured node: with early, after a kernel's programmatic event; after
 * other nodes plain. */
CUgraphEdgeData soft_edge_data_behind(const struct soft_node *from, bool early);

/* Sets the edge data of a front for the content of the next node: edges to anything but a kernel
 * are plain; an edge between kernels is programmatic if the second has stream serialization. */
void soft_front_shape(struct soft_edge *edges, unsigned count, const struct soft_node_content *to);

/* Makes programmatic edges of an executable graph plain if other edges order the two nodes anyway.
 * order: as soft_graph_order gives it. */
void soft_graph_settle_edges(struct soft_graph *graph, struct soft_node **order);

#endif
