/*
 * Captured work: nodes of all types, also in graphs that the program has created.
 */
#include "test/test_graph.h"

#include <stdint.h>

static const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;

Test(api_capture_node, host_functions_values_and_launches_become_nodes) {
    CUdeviceptr memory = 0;
    CUgraphNode nodes[4] = {NULL};
    CUgraphExec exec = NULL;
    CUgraph child = NULL;
    size_t count = 4;
    int calls = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream();
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuLaunchHostFunc(stream, graph_add_one, &calls));
    OK(cuStreamWriteValue32_v2(stream, memory, 77, 0));
    CUgraph inner = capture_end(stream);
    OK(cuGraphInstantiateWithFlags(&exec, inner, 0));
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuGraphLaunch(exec, stream));
    OK(cuLaunchHostFunc(stream, graph_add_one, &calls));
    CUgraph outer = capture_end(stream);
    OK(cuGraphGetNodes(outer, nodes, &count));
    cr_assert(count == 2 && graph_node_type(nodes[0]) == CU_GRAPH_NODE_TYPE_GRAPH);
    cr_assert_eq(graph_node_type(nodes[1]), CU_GRAPH_NODE_TYPE_HOST);
    OK(cuGraphChildGraphNodeGetGraph(nodes[0], &child));
    count = 4;
    OK(cuGraphGetNodes(child, nodes, &count));
    cr_assert(count == 2 && graph_node_type(nodes[0]) == CU_GRAPH_NODE_TYPE_HOST);
    cr_assert_eq(graph_node_type(nodes[1]), CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    REFUSED(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(inner));
    cr_assert_eq(calls, 0);
    graph_run(outer, stream);
    cr_assert(calls == 2 && api_read(memory) == 77);
}

Test(api_capture_node, memory_in_a_capture_is_the_graphs) {
    CUdeviceptr memory = 0, out = 0, plain = 0;
    CUgraphNode nodes[4] = {NULL};
    size_t count = 4;
    api_context(0);
    OK(cuMemAlloc_v2(&out, 64));
    OK(cuMemAllocAsync(&plain, 64, NULL));
    CUstream stream = graph_stream();
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuMemAllocAsync(&memory, 64, stream));
    OK(cuMemsetD32Async(memory, 5, 16, stream));
    OK(cuMemcpyDtoDAsync_v2(out, memory, 64, stream));
    REFUSED(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(memory, stream));
    CUgraph graph = capture_end(stream);
    OK(cuGraphGetNodes(graph, nodes, &count));
    cr_assert(count == 4 && graph_node_type(nodes[0]) == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    cr_assert_eq(graph_node_type(nodes[3]), CU_GRAPH_NODE_TYPE_MEM_FREE);
    graph_run(graph, stream);
    cr_assert_eq(api_read(out), 5);
}

Test(api_capture_node, external_events_become_nodes) {
    CUdeviceptr flag_address = 0, memory = 0;
    CUgraphNode nodes[4] = {NULL};
    CUgraphExec exec = NULL;
    CUevent found = NULL;
    size_t count = 4;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuMemAlloc_v2(&memory, 64));
    api_put(memory, 0, NULL);
    CUstream stream = graph_stream(), other = graph_stream();
    CUevent before = graph_event(), after = graph_event();
    REFUSED(cuEventRecordWithFlags(after, stream, CU_EVENT_RECORD_EXTERNAL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitEvent(stream, before, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamBeginCapture_v2(stream, global));
    OK(cuStreamWaitEvent(stream, before, CU_EVENT_WAIT_EXTERNAL));
    api_put(memory, 9, stream);
    OK(cuEventRecordWithFlags(after, stream, CU_EVENT_RECORD_EXTERNAL));
    CUgraph graph = capture_end(stream);
    OK(cuGraphGetNodes(graph, nodes, &count));
    cr_assert(count == 3 && graph_node_type(nodes[0]) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    OK(cuGraphEventWaitNodeGetEvent(nodes[0], &found));
    cr_assert(found == before);
    OK(cuGraphEventRecordNodeGetEvent(nodes[2], &found));
    cr_assert(found == after);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    api_hold(flag_address, other);
    OK(cuEventRecord(before, other));
    OK(cuGraphLaunch(exec, stream));
    REFUSED(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    cr_assert_eq(api_read(memory), 0);
    *flag = 1;
    OK(cuEventSynchronize(after));
    cr_assert_eq(api_read(memory), 9);
}

Test(api_capture_node, a_graph_of_the_programs_can_be_captured_to) {
    CUdeviceptr memory = 0;
    CUgraph graph = NULL, ended = NULL;
    CUgraphNode first = NULL, second = NULL, nodes[4] = {NULL};
    const CUgraphNode *front = NULL;
    CUstreamCaptureStatus status = 9;
    size_t count = 4;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUstream stream = graph_stream();
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&first, graph, NULL, 0));
    REFUSED(cuStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, global),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 1, global),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, global));
    REFUSED(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD8Async(memory, 1, 1, stream));
    OK(cuGraphAddEmptyNode(&second, graph, NULL, 0)); /* while it is being captured to */
    OK(cuStreamUpdateCaptureDependencies(stream, &second, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &front, &count));
    cr_assert(count == 2 && front[1] == second);
    OK(cuMemsetD8Async(memory, 2, 1, stream));
    OK(cuStreamUpdateCaptureDependencies(stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuMemsetD8Async(memory + 1, 3, 1, stream));
    /* The data of an edge is known before the edge exists. */
    const CUgraphEdgeData programmatic = {.from_port = 1, .type = 1}, *told = NULL;
    OK(cuStreamUpdateCaptureDependencies_v2(stream, &second, &programmatic, 1,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &front, &told, &count));
    cr_assert(count == 1 && told[0].type == 1 && told[0].from_port == 1);
    OK(cuStreamUpdateCaptureDependencies(stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamEndCapture(stream, &ended));
    cr_assert(ended == graph);
    count = 4;
    OK(cuGraphGetRootNodes(graph, nodes, &count));
    cr_assert(count == 2 && nodes[0] == first && nodes[1] == second);
    cr_assert(graph_node_count(graph) == 5 && graph_edge_count(graph) == 4);
    REFUSED(cuStreamUpdateCaptureDependencies(stream, &first, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuGraphDestroy(graph));
}
