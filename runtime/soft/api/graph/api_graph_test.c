/*
 * Graphs as a program builds them: nodes of every type, edges, copies and queries.
 */
#include "test/test_graph.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUgraphNode add_empty(CUgraph graph, CUgraphNode behind) {
    CUgraphNode node = NULL;
    OK(cuGraphAddEmptyNode(&node, graph, &behind, behind != NULL));
    return node;
}

Test(api_graph, nodes_of_each_type_do_their_work_in_the_order_of_edges) {
    CUdeviceptr memory = 0;
    CUgraphNode kernel = NULL, fill = NULL, copy = NULL, host = NULL, batch = NULL;
    unsigned value = 42, out = 0;
    int calls = 0;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new();
    void *parameters[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS put = graph_kernel("put", parameters);
    CUDA_MEMSET_NODE_PARAMS zero = {.dst = memory, .elementSize = 4, .width = 16, .height = 1};
    CUDA_MEMCPY3D read = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = memory,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = &out,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    CUDA_HOST_NODE_PARAMS call = {.fn = graph_add_one, .userData = &calls};
    CUstreamBatchMemOpParams write = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory + 4, {.value = 43}, 0, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS values = {context, 1, &write, 0};
    /* Added backwards: the edges make the order. */
    OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &read, context));
    OK(cuGraphAddKernelNode_v2(&kernel, graph, NULL, 0, &put));
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &zero, context));
    OK(cuGraphAddDependencies(graph, &fill, &kernel, 1));
    OK(cuGraphAddDependencies(graph, &kernel, &copy, 1));
    OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
    OK(cuGraphAddBatchMemOpNode(&batch, graph, &host, 1, &values));
    value = 1; /* the node has its own copy of what it points to */
    write.writeValue.value = 1;
    cr_assert_eq(graph_node_type(kernel), CU_GRAPH_NODE_TYPE_KERNEL);
    cr_assert_eq(graph_node_type(copy), CU_GRAPH_NODE_TYPE_MEMCPY);
    cr_assert_eq(graph_node_type(fill), CU_GRAPH_NODE_TYPE_MEMSET);
    cr_assert_eq(graph_node_type(host), CU_GRAPH_NODE_TYPE_HOST);
    cr_assert_eq(graph_node_type(batch), CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    for (int round = 1; round < 3; round++) {
        out = 0;
        graph_run(graph, NULL);
        cr_assert(out == 42 && calls == round && api_read(memory + 4) == 43);
        cr_assert_eq(api_read(memory + 8), 0);
    }
}

Test(api_graph, parameters_can_be_read_and_set) {
    CUdeviceptr memory = 0;
    CUgraphNode kernel = NULL, fill = NULL, copy = NULL, host = NULL, batch = NULL;
    unsigned value = 42, other = 50, in = 60;
    int calls = 0;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new();
    void *parameters[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS put = graph_kernel("put", parameters), had = {0};
    OK(cuGraphAddKernelNode_v2(&kernel, graph, NULL, 0, &put));
    OK(cuGraphKernelNodeGetParams_v2(kernel, &had));
    cr_assert(had.func == put.func && had.blockDimX == 1 && had.extra == NULL);
    cr_assert(*(CUdeviceptr *)had.kernelParams[0] == memory && had.ctx == context);
    cr_assert_eq(*(unsigned *)had.kernelParams[1], 42);
    had.kernelParams[1] = &other;
    OK(cuGraphKernelNodeSetParams_v2(kernel, &had));
    CUDA_MEMSET_NODE_PARAMS zero = {.dst = memory, .elementSize = 4, .width = 16, .height = 1};
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &zero, context));
    zero.dst = memory + 4;
    zero.value = 7;
    zero.width = 1;
    OK(cuGraphMemsetNodeSetParams(fill, &zero));
    zero = (CUDA_MEMSET_NODE_PARAMS){0};
    OK(cuGraphMemsetNodeGetParams(fill, &zero));
    cr_assert(zero.dst == memory + 4 && zero.value == 7 && zero.width == 1);
    CUDA_MEMCPY3D write = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = &value,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = memory + 8,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &write, context));
    write.srcHost = &in;
    OK(cuGraphMemcpyNodeSetParams(copy, &write));
    write = (CUDA_MEMCPY3D){0};
    OK(cuGraphMemcpyNodeGetParams(copy, &write));
    cr_assert(write.srcHost == &in && write.dstDevice == memory + 8 && write.WidthInBytes == 4);
    CUDA_HOST_NODE_PARAMS call = {.fn = graph_add_one, .userData = NULL};
    OK(cuGraphAddHostNode(&host, graph, NULL, 0, &call));
    call.userData = &calls;
    OK(cuGraphHostNodeSetParams(host, &call));
    call = (CUDA_HOST_NODE_PARAMS){0};
    OK(cuGraphHostNodeGetParams(host, &call));
    cr_assert(call.fn == graph_add_one && call.userData == &calls);
    CUstreamBatchMemOpParams item = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory + 12, {.value = 1}, 0, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS values = {context, 1, &item, 0};
    OK(cuGraphAddBatchMemOpNode(&batch, graph, NULL, 0, &values));
    item.writeValue.value = 9;
    OK(cuGraphBatchMemOpNodeSetParams(batch, &values));
    OK(cuGraphBatchMemOpNodeGetParams(batch, &values));
    cr_assert(values.count == 1 && values.paramArray != &item);
    cr_assert_eq(values.paramArray[0].writeValue.value, 9);
    graph_run(graph, NULL);
    cr_assert(api_read(memory) == 50 && api_read(memory + 4) == 7 && api_read(memory + 8) == 60);
    cr_assert(api_read(memory + 12) == 9 && calls == 1);
    /* Only of their own type. */
    REFUSED(cuGraphKernelNodeGetParams_v2(fill, &had), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphMemsetNodeSetParams(copy, &zero), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphHostNodeGetParams(batch, &call), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph, one_call_adds_and_sets_all_types) {
    CUdeviceptr memory = 0;
    CUgraphNode node = NULL, second = NULL;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new();
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        .dst = memory, .value = 3, .elementSize = 4, .width = 1, .height = 1, .ctx = context};
    OK(cuGraphAddNode(&node, graph, NULL, 0, &params));
    params.memset.value = 4;
    OK(cuGraphNodeSetParams(node, &params));
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraphEdgeData data = {0};
    OK(cuGraphAddNode_v2(&second, graph, &node, &data, 1, &params));
    REFUSED(cuGraphNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    REFUSED(cuGraphAddNode(&second, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
    params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    REFUSED(cuGraphAddNode(&second, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
    params.type = 99;
    REFUSED(cuGraphAddNode(&second, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddNode(&second, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    graph_run(graph, NULL);
    cr_assert_eq(api_read(memory), 4);
}

Test(api_graph, edges_are_added_listed_and_removed) {
    CUgraphNode nodes[8] = {NULL}, from[8] = {NULL}, to[8] = {NULL};
    size_t count = 8;
    api_context(0);
    CUgraph graph = graph_new(), other = graph_new();
    CUgraphNode a = add_empty(graph, NULL), b = add_empty(graph, a), c = add_empty(graph, a),
                d = add_empty(graph, NULL), far = add_empty(other, NULL);
    CUgraphNode ends[] = {b, c}, starts[] = {d, d};
    OK(cuGraphAddDependencies(graph, ends, starts, 2));
    cr_assert(graph_node_count(graph) == 4 && graph_edge_count(graph) == 4);
    OK(cuGraphGetRootNodes(graph, nodes, &count));
    cr_assert(count == 1 && nodes[0] == a);
    count = 8;
    OK(cuGraphGetEdges(graph, from, to, &count));
    cr_assert(count == 4 && from[0] == a && to[0] == b && from[3] == c && to[3] == d);
    cr_assert(from[4] == NULL && to[4] == NULL);
    count = 2;
    OK(cuGraphGetNodes(graph, nodes, &count));
    cr_assert(count == 2 && nodes[1] == b);
    REFUSED(cuGraphAddDependencies(graph, &a, &b, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddDependencies(graph, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddDependencies(graph, &far, &a, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddDependencies(graph, NULL, &a, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphRemoveDependencies(graph, &a, &d, 1), CUDA_ERROR_INVALID_VALUE);
    /* All or none. */
    CUgraphNode some[] = {a, far}, others[] = {d, d};
    REFUSED(cuGraphAddDependencies(graph, some, others, 2), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(graph_edge_count(graph), 4);
    OK(cuGraphRemoveDependencies(graph, ends, starts, 2));
    OK(cuGraphDestroyNode(a));
    cr_assert(graph_node_count(graph) == 3 && graph_edge_count(graph) == 0);
    REFUSED(cuGraphDestroyNode(a), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddEmptyNode(&a, graph, &far, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddEmptyNode(&a, graph, others, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddEmptyNode(&a, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddEmptyNode(NULL, graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(other));
    REFUSED(cuGraphNodeGetType(far, &(CUgraphNodeType){0}), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph, data_of_edges_must_not_be_lost) {
    CUgraphNode from = NULL, to = NULL;
    CUgraphEdgeData data = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC},
                    had = {0};
    size_t count = 1;
    api_context(0);
    CUgraph graph = graph_new();
    CUgraphNode a = NULL, b = NULL;
    CUdeviceptr memory = 0;
    unsigned value = 1;
    void *parameters[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS params = graph_kernel("put", parameters);
    OK(cuGraphAddKernelNode_v2(&a, graph, NULL, 0, &params));
    OK(cuGraphAddKernelNode_v2(&b, graph, NULL, 0, &params));
    OK(cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    REFUSED(cuGraphGetEdges(graph, &from, &to, &count), CUDA_ERROR_LOSSY_QUERY);
    REFUSED(cuGraphNodeGetDependencies(b, &from, &count), CUDA_ERROR_LOSSY_QUERY);
    OK(cuGraphGetEdges_v2(graph, &from, &to, &had, &count));
    cr_assert(from == a && to == b && had.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    OK(cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1));
}

Test(api_graph, children_are_copies) {
    CUdeviceptr memory = 0;
    CUgraphNode fill = NULL, node = NULL, inner = NULL;
    CUgraph child = NULL;
    size_t count = 1;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new(), source = graph_new();
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = memory, .value = 1, .elementSize = 4, .width = 16, .height = 1};
    OK(cuGraphAddMemsetNode(&fill, source, NULL, 0, &params, context));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, source));
    OK(cuGraphDestroy(source));
    cr_assert_eq(graph_node_type(node), CU_GRAPH_NODE_TYPE_GRAPH);
    OK(cuGraphChildGraphNodeGetGraph(node, &child));
    OK(cuGraphGetNodes(child, &inner, &count));
    cr_assert(count == 1 && inner != fill);
    params.value = 2;
    OK(cuGraphMemsetNodeSetParams(inner, &params)); /* the child may be changed */
    graph_run(graph, NULL);
    cr_assert_eq(api_read(memory), 2);
    OK(cuGraphDestroyNode(node));
    REFUSED(cuGraphGetNodes(child, NULL, &count), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph, clones_know_their_originals) {
    CUgraph clone = NULL;
    CUgraphNode found = NULL, from = NULL;
    size_t count = 1;
    api_context(0);
    CUgraph graph = graph_new();
    CUgraphNode a = add_empty(graph, NULL), b = add_empty(graph, a);
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&found, b, clone));
    cr_assert(found != b && graph_node_count(clone) == 2);
    OK(cuGraphNodeGetDependencies(found, &from, &count));
    OK(cuGraphNodeFindInClone(&found, a, clone));
    cr_assert(count == 1 && found == from);
    OK(cuGraphDestroyNode(b));
    cr_assert(graph_node_count(clone) == 2 && graph_node_count(graph) == 1);
    CUgraphNode later = add_empty(graph, NULL);
    REFUSED(cuGraphNodeFindInClone(&found, later, clone), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphNodeFindInClone(&found, a, graph), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphNodeFindInClone(NULL, a, clone), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphNodeFindInClone(&found, NULL, clone), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphClone(NULL, graph), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphClone(&clone, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* More than malloc keeps aside, so that some of the new nodes lie where old ones were. */
Test(api_graph, what_lies_where_an_original_was_is_no_original) {
    enum { NODES = 64 };
    CUgraphNode old[NODES], found = NULL;
    CUgraph clone = NULL;
    unsigned reused = 0;
    api_context(0);
    CUgraph graph = graph_new();
    for (unsigned i = 0; i < NODES; i++) old[i] = add_empty(graph, NULL);
    OK(cuGraphClone(&clone, graph));
    for (unsigned i = 0; i < NODES; i++) OK(cuGraphDestroyNode(old[i]));
    for (unsigned i = 0; i < NODES; i++) {
        CUgraphNode later = add_empty(graph, NULL);
        for (unsigned j = 0; j < NODES; j++) reused += later == old[j];
        REFUSED(cuGraphNodeFindInClone(&found, later, clone), CUDA_ERROR_INVALID_VALUE);
    }
    printf("%u of %d nodes lie where others were\n", reused, NODES);
}

Test(api_graph, event_nodes_record_and_wait) {
    CUdeviceptr flag_address = 0, memory = 0;
    CUgraphNode wait = NULL, record = NULL;
    CUevent before = NULL, after = NULL, unused = NULL;
    CUstream stream = NULL;
    CUgraphExec exec = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuMemAlloc_v2(&memory, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    OK(cuEventCreate(&unused, 0));
    CUgraph graph = graph_new();
    OK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, unused));
    OK(cuGraphEventWaitNodeSetEvent(wait, before));
    OK(cuGraphAddEventRecordNode(&record, graph, &wait, 1, unused));
    OK(cuGraphEventRecordNodeSetEvent(record, after));
    REFUSED(cuGraphEventRecordNodeSetEvent(wait, after), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    api_hold(flag_address, stream);
    OK(cuEventRecord(before, stream));
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuEventQuery(after), CUDA_ERROR_NOT_READY);
    OK(cuEventQuery(unused));
    *flag = 1;
    OK(cuEventSynchronize(after));
    OK(cuEventQuery(before));
    REFUSED(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph, attributes_of_kernel_nodes_are_kept) {
    CUdeviceptr memory = 0;
    unsigned value = 1;
    CUgraphNode one = NULL, two = NULL, empty = NULL;
    CUkernelNodeAttrValue attribute = {.pad = {0}};
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new();
    void *parameters[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS put = graph_kernel("put", parameters);
    OK(cuGraphAddKernelNode_v2(&one, graph, NULL, 0, &put));
    OK(cuGraphAddKernelNode_v2(&two, graph, NULL, 0, &put));
    empty = add_empty(graph, NULL);
    attribute.cooperative = 1;
    OK(cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
    attribute.priority = -3;
    OK(cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
    OK(cuGraphKernelNodeCopyAttributes(two, one));
    OK(cuGraphKernelNodeGetAttribute(two, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
    cr_assert_eq(attribute.priority, -3);
    OK(cuGraphKernelNodeGetAttribute(two, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
    cr_assert_eq(attribute.cooperative, 1);
    attribute.clusterDim.x = 2;
    attribute.clusterDim.y = attribute.clusterDim.z = 1;
    REFUSED(cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute),
            CUDA_ERROR_INVALID_VALUE); /* the grid is of one block */
    attribute.clusterDim.x = 1;
    OK(cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute));
    attribute.clusterDim.x = 0;
    REFUSED(cuGraphKernelNodeSetAttribute(one, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphKernelNodeGetAttribute(one, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &attribute));
    cr_assert_eq(attribute.clusterDim.x, 1);
    REFUSED(cuGraphKernelNodeSetAttribute(one, 99, &attribute), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphKernelNodeGetAttribute(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphKernelNodeCopyAttributes(two, empty), CUDA_ERROR_INVALID_VALUE);
}

/* A kernel that requires clusters is launched with them, also if the attribute has none. */
Test(api_graph, clusters_that_a_kernel_requires_stay_explicit) {
    static const char ptx[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 to) .reqnctapercluster 1\n"
        "{ .reg .u32 %r; .reg .u64 %a; .reg .pred %p; ld.param.u64 %a, [to];\n"
        "mov.pred %p, %is_explicit_cluster; selp.u32 %r, 7, 5, %p; st.global.u32 [%a], %r; ret;}\n";
    const CUkernelNodeAttrValue none = {.pad = {0}};
    CUdeviceptr memory = 0;
    CUgraphNode node = NULL;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 4));
    void *parameters[] = {&memory};
    CUDA_KERNEL_NODE_PARAMS kernel = graph_kernel("put", parameters);
    kernel.func = api_function(ptx, "k");
    CUgraph graph = graph_new();
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
    OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &none));
    graph_run(graph, NULL);
    cr_assert_eq(api_read(memory), 7);
}

Test(api_graph, bad_parameters_are_refused) {
    CUdeviceptr memory = 0;
    CUgraphNode node = NULL;
    CUgraph graph = NULL;
    REFUSED(cuGraphCreate(&graph, 0), CUDA_ERROR_NOT_INITIALIZED);
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    REFUSED(cuGraphCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
    graph = graph_new();
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = NULL, .gridDimX = 1};
    REFUSED(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel), CUDA_ERROR_INVALID_HANDLE);
    kernel.func = api_function(api_kernels, "put");
    REFUSED(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = memory, .elementSize = 3, .width = 1, .height = 1};
    REFUSED(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context), CUDA_ERROR_INVALID_VALUE);
    CUgraph others = graph_new();
    for (fill.elementSize = 1; fill.elementSize <= 4; fill.elementSize *= 2) {
        OK(cuGraphAddMemsetNode(&node, others, NULL, 0, &fill, context));
    }
    OK(cuGraphDestroy(others));
    fill.elementSize = 4;
    fill.width = 17;
    REFUSED(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddMemsetNode(&node, graph, NULL, 0, NULL, context), CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = memory,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = 16,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    REFUSED(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context), CUDA_ERROR_INVALID_VALUE);
    copy.dstDevice = memory + 8;
    REFUSED(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, (CUcontext)(uintptr_t)64),
            CUDA_ERROR_INVALID_CONTEXT);
    CUDA_HOST_NODE_PARAMS host = {.fn = NULL};
    REFUSED(cuGraphAddHostNode(&node, graph, NULL, 0, &host), CUDA_ERROR_INVALID_VALUE);
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {.ctx = context, .count = 0};
    REFUSED(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(graph_node_count(graph), 0);
    REFUSED(cuGraphGetNodes(graph, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(graph));
    REFUSED(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddEmptyNode(&node, graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* A node that may not be added: it depends on a node of another graph. */
static void add_behind_a_foreign_node(void) {
    static CUgraph graph;
    static CUgraphNode foreign;
    static CUdeviceptr memory;
    CUgraphNode node = NULL;
    CUcontext context = NULL;
    OK(cuCtxGetCurrent(&context));
    if (graph == NULL) {
        OK(cuMemAlloc_v2(&memory, 64));
        foreign = add_empty(graph_new(), NULL);
        graph = graph_new();
    }
    CUstreamBatchMemOpParams write = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory, {.value = 1}, 0, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS values = {context, 1, &write, 0};
    REFUSED(cuGraphAddBatchMemOpNode(&node, graph, &foreign, 1, &values), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph, a_node_that_is_refused_leaves_nothing) {
    api_context(0);
    api_must_keep_nothing(add_behind_a_foreign_node, 1000);
}

Test(api_graph, a_graph_can_be_drawn) {
    CUdeviceptr memory = 0;
    CUgraphNode fill = NULL, child = NULL;
    char text[2000] = "", path[] = "/tmp/graph_XXXXXX";
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new(), inner = graph_new();
    CUgraphNode first = add_empty(graph, NULL);
    CUDA_MEMSET_NODE_PARAMS params = {.dst = memory, .elementSize = 4, .width = 16, .height = 1};
    OK(cuGraphAddMemsetNode(&fill, graph, &first, 1, &params, context));
    (void)add_empty(inner, NULL);
    OK(cuGraphAddChildGraphNode(&child, graph, &fill, 1, inner));
    int file = mkstemp(path);
    cr_assert(file >= 0);
    OK(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    cr_assert(read(file, text, sizeof text - 1) > 0);
    cr_assert(strncmp(text, "digraph", 7) == 0 && strstr(text, "memset") != NULL, "%s", text);
    cr_assert(strstr(text, "\"0\" -> \"1\"") != NULL && strstr(text, "\"2.0\"") != NULL, "%s",
              text);
    cr_assert(strstr(text, "16 elements of 4 bytes") != NULL, "%s", text);
    close(file);
    unlink(path);
    REFUSED(cuGraphDebugDotPrint(graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM);
    REFUSED(cuGraphDebugDotPrint(graph, path, 1u << 31), CUDA_ERROR_INVALID_VALUE);
}
