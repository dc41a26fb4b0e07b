/*
 * Executable graphs: instantiation, launches, and later changes.
 */
#include "test/test_graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = NULL;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static CUdeviceptr new_memory(void) {
    CUdeviceptr memory = 0;
    OK(cuMemAlloc_v2(&memory, 64));
    OK(cuMemsetD8_v2(memory, 0, 64));
    OK(cuCtxSynchronize());
    return memory;
}

static CUgraphNode add_put(CUgraph graph, CUdeviceptr address, unsigned value, CUgraphNode behind) {
    CUgraphNode node = NULL;
    void *parameters[] = {&address, &value};
    CUDA_KERNEL_NODE_PARAMS params = graph_kernel("put", parameters);
    OK(cuGraphAddKernelNode_v2(&node, graph, &behind, behind != NULL, &params));
    return node;
}

static CUgraphNode add_hold(CUgraph graph, CUdeviceptr address) {
    CUgraphNode node = NULL;
    void *parameters[] = {&address};
    CUDA_KERNEL_NODE_PARAMS params = graph_kernel("hold", parameters);
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
    return node;
}

static CUDA_MEMSET_NODE_PARAMS filling(CUdeviceptr address, unsigned value) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = address, .value = value, .elementSize = 4, .width = 1, .height = 1};
}

static void add_ten(void *data) {
    *(int *)data += 10;
}

Test(api_graph_exec, it_does_not_change_with_its_graph) {
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode node = add_put(graph, memory, 1, NULL);
    CUgraphExec exec = instantiate(graph), second = NULL;
    (void)add_put(graph, memory, 2, node);
    second = instantiate(graph);
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 1);
    OK(cuGraphLaunch(second, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 2);
    OK(cuGraphExecDestroy(exec));
    REFUSED(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph_exec, one_launch_at_a_time_in_whatever_streams) {
    CUdeviceptr flag_address = 0;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new(), free_graph = graph_new();
    (void)add_put(graph, memory, 1, add_hold(graph, flag_address));
    (void)add_put(free_graph, memory + 4, 1, NULL);
    CUgraphExec exec = instantiate(graph), other = instantiate(free_graph);
    CUstream one = graph_stream(), two = graph_stream(), three = graph_stream();
    OK(cuGraphLaunch(exec, one));
    OK(cuGraphLaunch(exec, two));
    OK(cuGraphLaunch(other, three));
    OK(cuStreamSynchronize(three));
    cr_assert_eq(api_read(memory + 4), 1);
    REFUSED(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    REFUSED(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuStreamSynchronize(two));
    OK(cuStreamQuery(one));
    cr_assert_eq(api_read(memory), 1);
}

Test(api_graph_exec, it_may_be_destroyed_while_it_runs) {
    CUdeviceptr flag_address = 0;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    (void)add_put(graph, memory, 6, add_hold(graph, flag_address));
    CUgraphExec exec = instantiate(graph);
    CUstream stream = graph_stream();
    OK(cuGraphUpload(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    cr_assert_eq(api_read(memory), 0);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(api_read(memory), 6);
}

Test(api_graph_exec, circles_and_gone_kernels_are_refused) {
    CUgraphExec exec = NULL;
    CUgraphNode culprit = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    char log[16] = "before";
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode a = add_put(graph, memory, 1, NULL), b = add_put(graph, memory, 2, a);
    OK(cuGraphAddDependencies(graph, &b, &a, 1));
    REFUSED(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphInstantiate_v2(&exec, graph, &culprit, log, sizeof log),
            CUDA_ERROR_INVALID_VALUE);
    cr_assert((culprit == a || culprit == b) && log[0] == '\0');
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = 0};
    REFUSED(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    cr_assert(params.hErrNode_out == a || params.hErrNode_out == b);
    OK(cuGraphRemoveDependencies(graph, &b, &a, 1));
    OK(cuGraphInstantiateWithParams(&exec, graph, &params));
    cr_assert(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS && params.hErrNode_out == NULL);
    /* What is executable keeps its kernels; a graph does not. */
    unsigned value = 5;
    void *parameters[] = {&memory, &value};
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&function, module, "put"));
    CUDA_KERNEL_NODE_PARAMS put = graph_kernel("put", parameters);
    put.func = function;
    CUgraph other = graph_new();
    OK(cuGraphAddKernelNode_v2(&a, other, NULL, 0, &put));
    exec = instantiate(other);
    OK(cuModuleUnload(module));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 5);
    REFUSED(cuGraphInstantiateWithFlags(&exec, other, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph_exec, flags_are_kept) {
    CUgraphExec exec = NULL;
    cuuint64_t flags = 9;
    api_context(0);
    CUgraph graph = graph_new();
    OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
    OK(cuGraphExecGetFlags(exec, &flags));
    cr_assert_eq(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                            .hUploadStream = graph_stream()};
    OK(cuGraphInstantiateWithParams(&exec, graph, &params));
    params.hUploadStream = (CUstream)(uintptr_t)64;
    REFUSED(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuGraphInstantiateWithFlags(&exec, graph, 1u << 20), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
            CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuGraphInstantiateWithFlags(NULL, graph, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphInstantiateWithFlags(&exec, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphInstantiateWithParams(&exec, graph, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecGetFlags(exec, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphLaunch(exec, (CUstream)(uintptr_t)64), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuGraphLaunch(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph_exec, nodes_take_new_parameters) {
    int calls = 0;
    unsigned first = 20, second = 30;
    CUgraphNode fill = NULL, copy = NULL, host = NULL, batch = NULL;
    CUcontext context = api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode put = add_put(graph, memory, 1, NULL);
    CUDA_MEMSET_NODE_PARAMS fill_params = filling(memory + 4, 10);
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_params, context));
    CUDA_MEMCPY3D copy_params = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = &first,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = memory + 8,
                                 .WidthInBytes = 4,
                                 .Height = 1,
                                 .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &copy_params, context));
    CUDA_HOST_NODE_PARAMS host_params = {.fn = graph_add_one, .userData = &calls};
    OK(cuGraphAddHostNode(&host, graph, NULL, 0, &host_params));
    CUstreamBatchMemOpParams item = {
        .writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory + 12, {.value = 40}, 0, 0}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch_params = {context, 1, &item, 0};
    OK(cuGraphAddBatchMemOpNode(&batch, graph, NULL, 0, &batch_params));
    CUgraphExec exec = instantiate(graph);
    unsigned value = 2;
    void *parameters[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS put_params = graph_kernel("put", parameters);
    OK(cuGraphExecKernelNodeSetParams_v2(exec, put, &put_params));
    fill_params.value = 11;
    OK(cuGraphExecMemsetNodeSetParams(exec, fill, &fill_params, context));
    copy_params.srcHost = &second;
    OK(cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_params, context));
    host_params.fn = add_ten;
    OK(cuGraphExecHostNodeSetParams(exec, host, &host_params));
    item.writeValue.value = 41;
    OK(cuGraphExecBatchMemOpNodeSetParams(exec, batch, &batch_params));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert(api_read(memory) == 2 && api_read(memory + 4) == 11 && api_read(memory + 8) == 30);
    cr_assert(api_read(memory + 12) == 41 && calls == 10);
    /* The graph's own nodes are as they were. */
    OK(cuGraphLaunch(instantiate(graph), NULL));
    OK(cuCtxSynchronize());
    cr_assert(api_read(memory) == 1 && api_read(memory + 4) == 10 && calls == 11);
    /* Where a copy leads, and what a node is, stay. */
    copy_params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy_params.srcDevice = memory;
    REFUSED(cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_params, context),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecMemsetNodeSetParams(exec, copy, &fill_params, context),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecMemsetNodeSetParams(exec, NULL, &fill_params, context),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecMemsetNodeSetParams(NULL, fill, &fill_params, context),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecMemsetNodeSetParams(exec, fill, NULL, context), CUDA_ERROR_INVALID_VALUE);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
    params.host.fn = graph_add_one;
    params.host.userData = &calls;
    OK(cuGraphExecNodeSetParams(exec, host, &params));
    REFUSED(cuGraphExecNodeSetParams(exec, fill, &params), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(calls, 12);
}

Test(api_graph_exec, events_and_children_are_changed_as_well) {
    CUgraphNode record = NULL, wait = NULL, child_node = NULL;
    CUevent one = NULL, two = NULL;
    api_context(0);
    CUdeviceptr memory = new_memory();
    OK(cuEventCreate(&one, 0));
    OK(cuEventCreate(&two, 0));
    CUgraph graph = graph_new(), child = graph_new();
    CUgraphNode put = add_put(child, memory, 1, NULL);
    OK(cuGraphAddEventRecordNode(&record, graph, NULL, 0, one));
    OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, one));
    OK(cuGraphAddChildGraphNode(&child_node, graph, &wait, 1, child));
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphExecEventRecordNodeSetEvent(exec, record, two));
    OK(cuGraphExecEventWaitNodeSetEvent(exec, wait, two));
    REFUSED(cuGraphExecEventWaitNodeSetEvent(exec, record, two), CUDA_ERROR_INVALID_VALUE);
    (void)put;
    CUgraph other = graph_new(), larger = graph_new();
    (void)add_put(other, memory, 2, NULL);
    (void)add_put(larger, memory, 3, add_put(larger, memory, 2, NULL));
    OK(cuGraphExecChildGraphNodeSetParams(exec, child_node, other));
    REFUSED(cuGraphExecChildGraphNodeSetParams(exec, child_node, larger), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecChildGraphNodeSetParams(exec, wait, other), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuEventSynchronize(two));
    float milliseconds = 0;
    REFUSED(cuEventElapsedTime(&milliseconds, one, two), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 2);
}

Test(api_graph_exec, nodes_can_be_passed_over) {
    CUgraphNode empty = NULL;
    unsigned enabled = 9;
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode one = add_put(graph, memory, 1, NULL), two = add_put(graph, memory, 2, one);
    OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphNodeGetEnabled(exec, two, &enabled));
    cr_assert_eq(enabled, 1);
    OK(cuGraphNodeSetEnabled(exec, two, 0));
    OK(cuGraphNodeGetEnabled(exec, two, &enabled));
    cr_assert_eq(enabled, 0);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 1);
    OK(cuGraphNodeSetEnabled(exec, two, 1));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 2);
    REFUSED(cuGraphNodeSetEnabled(exec, empty, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphNodeGetEnabled(exec, one, NULL), CUDA_ERROR_INVALID_VALUE);
}

static CUgraphExecUpdateResultInfo update(CUgraphExec exec, CUgraph graph, CUresult code) {
    CUgraphExecUpdateResultInfo info = {.result = 99};
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    cr_assert(result == code, "%s instead of %s", api_code(result), api_code(code));
    return info;
}

Test(api_graph_exec, a_graph_of_the_same_shape_updates_it) {
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new(), same = graph_new(), larger = graph_new(), bent = graph_new(),
            other = graph_new();
    CUgraphNode first = add_put(graph, memory, 1, NULL), node = NULL, culprit = NULL;
    (void)add_put(graph, memory + 4, 2, first);
    CUgraphExec exec = instantiate(graph);
    (void)add_put(same, memory + 4, 4, add_put(same, memory, 3, NULL));
    CUgraphExecUpdateResultInfo info = update(exec, same, CUDA_SUCCESS);
    cr_assert(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && info.errorNode == NULL);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert(api_read(memory) == 3 && api_read(memory + 4) == 4);
    /* It can still be changed by its own nodes' names. */
    OK(cuGraphNodeSetEnabled(exec, first, 0));
    node = add_put(larger, memory, 1, NULL);
    node = add_put(larger, memory, 1, node);
    (void)add_put(larger, memory, 1, node);
    info = update(exec, larger, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    cr_assert_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    (void)add_put(bent, memory, 1, NULL);
    culprit = add_put(bent, memory, 1, NULL);
    info = update(exec, bent, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    cr_assert(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED &&
              info.errorNode == culprit);
    node = add_put(other, memory, 9, NULL);
    OK(cuGraphAddEmptyNode(&culprit, other, &node, 1));
    info = update(exec, other, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    cr_assert(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED &&
              info.errorNode == culprit);
    /* A failed update changes nothing. */
    OK(cuGraphNodeSetEnabled(exec, first, 1));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert(api_read(memory) == 3 && api_read(memory + 4) == 4);
    REFUSED(cuGraphExecUpdate_v2(exec, NULL, &info), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecUpdate_v2(NULL, same, &info), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphExecUpdate_v2(exec, same, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph_exec, a_fault_in_it_is_the_contexts) {
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    (void)add_put(graph, memory, 1, add_put(graph, 16, 1, NULL));
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuGraphLaunch(exec, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(api_graph_exec, it_ends_with_the_context_of_its_nodes) {
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    CUgraphNode node = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc_v2(&memory, 64));
    CUgraph graph = graph_new();
    CUDA_MEMSET_NODE_PARAMS params = filling(memory, 1);
    OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
    CUgraphExec exec = instantiate(graph);
    OK(cuCtxDestroy_v2(context));
    api_context(0);
    REFUSED(cuGraphLaunch(exec, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* The last of three nodes to write, of which the second depends on the first. */
static unsigned last_of_nodes(const char *order) {
    setenv("TOLLENS_SOFT_ORDER", order, 1);
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode first = add_put(graph, memory, 1, NULL);
    (void)add_put(graph, memory, 2, first);
    (void)add_put(graph, memory, 3, NULL);
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    return api_read(memory);
}

Test(api_graph_exec, the_oldest_node_can_run_first) {
    cr_assert_eq(last_of_nodes("oldest"), 3);
}

Test(api_graph_exec, the_newest_node_can_run_first_but_not_before_its_edges) {
    cr_assert_eq(last_of_nodes("newest"), 2);
}

/* Python programs call the names without a version, and pass the structure without the last two
 * fields. */
Test(api_graph_exec, the_functions_before_cuda_12_do_the_same) {
    api_context(0);
    CUdeviceptr memory = new_memory();
    CUgraph graph = graph_new();
    CUgraphNode node = NULL;
    unsigned value = 5;
    void *parameters[] = {&memory, &value};
    const CUDA_KERNEL_NODE_PARAMS kernel = graph_kernel("put", parameters);
    struct {
        CUDA_KERNEL_NODE_PARAMS_v1 old;
        uint64_t after[2]; /* no fields of the structure */
    } params = {.after = {~0ull, ~0ull}}, got = params;
    memcpy(&params.old, &kernel, sizeof params.old);
    REFUSED(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &params.old));
    CUgraphExec exec = instantiate(graph);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 5);

    value = 6;
    REFUSED(cuGraphExecKernelNodeSetParams(exec, node, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecKernelNodeSetParams(exec, node, &params.old));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 6);

    value = 7;
    params.old.sharedMemBytes = 16;
    REFUSED(cuGraphKernelNodeSetParams(node, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphKernelNodeSetParams(node, &params.old));
    REFUSED(cuGraphKernelNodeGetParams(node, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphKernelNodeGetParams(node, &got.old));
    cr_assert(got.old.func == kernel.func && got.old.gridDimX == 1);
    cr_assert_eq(got.old.sharedMemBytes, 16);
    cr_assert(got.after[0] == ~0ull && got.after[1] == ~0ull);
    graph_run(graph, NULL);
    cr_assert_eq(api_read(memory), 7);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}
