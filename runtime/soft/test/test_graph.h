/*
 * Shared by the tests of graphs and captures, in addition to test_api.h.
 */
#ifndef SOFT_TEST_GRAPH_H
#define SOFT_TEST_GRAPH_H

#include "test_api.h"

CUgraph graph_new(void);

/* A non-blocking stream, and an event. */
CUstream graph_stream(void);
CUevent graph_event(void);

size_t graph_node_count(CUgraph graph);
size_t graph_edge_count(CUgraph graph);
CUgraphNodeType graph_node_type(CUgraphNode node);

/* Instantiates a graph, launches it on a stream, waits and destroys it. */
void graph_run(CUgraph graph, CUstream stream);

/* Ends a capture that must succeed. */
CUgraph capture_end(CUstream stream);

/* A kernel of api_kernels as a node's parameters, with one block of one thread. */
CUDA_KERNEL_NODE_PARAMS graph_kernel(const char *name, void **parameters);

/* A host function: increments an int. */
void graph_add_one(void *data);

#endif
