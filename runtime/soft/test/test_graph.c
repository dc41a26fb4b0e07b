/*
 * Graphs made, counted and run.
 */
#include "test_graph.h"

CUgraph graph_new(void) {
    CUgraph graph = NULL;
    OK(cuGraphCreate(&graph, 0));
    return graph;
}

CUstream graph_stream(void) {
    CUstream stream = NULL;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUevent graph_event(void) {
    CUevent event = NULL;
    OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    return event;
}

size_t graph_node_count(CUgraph graph) {
    size_t count = 0;
    OK(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

size_t graph_edge_count(CUgraph graph) {
    size_t count = 0;
    OK(cuGraphGetEdges(graph, NULL, NULL, &count));
    return count;
}

CUgraphNodeType graph_node_type(CUgraphNode node) {
    CUgraphNodeType type = 99;
    OK(cuGraphNodeGetType(node, &type));
    return type;
}

void graph_run(CUgraph graph, CUstream stream) {
    CUgraphExec exec = NULL;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
}

CUgraph capture_end(CUstream stream) {
    CUgraph graph = NULL;
    OK(cuStreamEndCapture(stream, &graph));
    return graph;
}

static CUfunction function_named(const char *name) {
    static CUmodule module;
    CUfunction function = NULL;
    if (module == NULL) OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

CUDA_KERNEL_NODE_PARAMS graph_kernel(const char *name, void **parameters) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = function_named(name),
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = parameters};
}

void graph_add_one(void *data) {
    ++*(int *)data;
}
