/*
 * Each allocation of the soft device fails once: the call reports it, nothing leaks, and the next
 * call works.
 */
#include "test_graph.h"
#include "test_memory.h"
#include "test_soft.h"

#include <stdlib.h>

static CUstream stream;
static CUdeviceptr memory;

static CUresult first_of(CUresult result, CUresult later) {
    return result != CUDA_SUCCESS ? result : later;
}

/* A capture with one node of each way into a graph, which is read and destroyed. */
static CUresult capture(void) {
    CUstreamBatchMemOpParams items[2] = {{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32},
                                         {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32}};
    CUgraph graph = NULL;
    CUgraphNode nodes[4] = {NULL};
    size_t count = 4;
    for (unsigned i = 0; i < 2; i++) {
        items[i].writeValue.address = memory + 4 * i;
        items[i].writeValue.value = 7;
    }
    CUresult result = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (result != CUDA_SUCCESS) return result;
    result = cuStreamBatchMemOp_v2(stream, 2, items, 0);
    if (result == CUDA_SUCCESS) result = cuMemsetD32Async(memory, 5, 4, stream);
    const CUresult ended = cuStreamEndCapture(stream, &graph);
    result = first_of(result, ended);
    if (result == CUDA_SUCCESS) result = cuGraphGetNodes(graph, nodes, &count);
    if (result == CUDA_SUCCESS) {
        CUDA_BATCH_MEM_OP_NODE_PARAMS params = {0};
        cr_assert_eq(count, 2);
        result = cuGraphBatchMemOpNodeGetParams(nodes[0], &params);
        if (result == CUDA_SUCCESS) {
            cr_assert(params.count == 2 && params.paramArray != NULL);
            cr_assert_eq(params.paramArray[1].writeValue.value, 7);
        }
    }
    if (graph != NULL) OK(cuGraphDestroy(graph));
    return result;
}

Test(out_of_memory, in_a_capture, .timeout = 60) {
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    stream = graph_stream();
    const struct test_memory_count count = test_each_allocation_fails(capture, 20);
    cr_assert_geq(count.refusals, 3, "%u of %u", count.refusals, count.failures);
}

/* A graph that waits for itself is made ready, launched twice and destroyed. */
static CUgraph graph;

static CUresult instantiate(void) {
    CUgraphExec exec = NULL;
    CUresult result = cuGraphInstantiateWithFlags(&exec, graph, 0);
    for (int i = 0; result == CUDA_SUCCESS && i < 2; i++) result = cuGraphLaunch(exec, stream);
    const CUresult waited = cuStreamSynchronize(stream);
    if (exec != NULL) OK(cuGraphExecDestroy(exec));
    return first_of(result, waited);
}

Test(out_of_memory, in_a_graph, .timeout = 60) {
    const CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 4, .width = 4, .height = 1};
    CUgraphNode nodes[3] = {NULL};
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&memory, 64));
    stream = graph_stream();
    graph = graph_new();
    for (unsigned i = 0; i < 3; i++) {
        CUDA_MEMSET_NODE_PARAMS own = fill;
        own.dst = memory + 16 * i;
        own.value = i + 1;
        OK(cuGraphAddMemsetNode(&nodes[i], graph, nodes, i, &own, context));
    }
    const struct test_memory_count count = test_each_allocation_fails(instantiate, 20);
    cr_assert_geq(count.refusals, 8, "%u of %u", count.refusals, count.failures);
    cr_assert(api_read(memory) == 1 && api_read(memory + 32) == 3);
}

/* Loads a kernel and launches it. Each thread reads strongly what it has written, for which the
 * check of races keeps more than for others. A launch that fails takes the context with it. */
static CUresult load_and_launch(void) {
    static const char ptx[] =
        TEST_KERNEL("st.relaxed.gpu.global.u32 [%rd2], %r1; ld.acquire.gpu.global.u32 %r4, "
                    "[%rd2]; st.global.u32 [%rd2], %r4;\n");
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    void *arguments[] = {&memory};
    CUresult result = cuDevicePrimaryCtxRetain(&context, 0);
    if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = cuMemAlloc_v2(&memory, 4 * 4096);
    if (result == CUDA_SUCCESS) result = cuModuleLoadData(&module, ptx);
    if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, "k");
    if (result == CUDA_SUCCESS) {
        result = cuLaunchKernel(function, 16, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
    }
    if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
    OK(cuDevicePrimaryCtxReset_v2(0));
    return result;
}

Test(out_of_memory, in_a_kernel_that_is_checked, .timeout = 60) {
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race", 1);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    OK(cuInit(0));
    const struct test_memory_count count = test_each_allocation_fails(load_and_launch, 0);
    cr_assert_geq(count.refusals, 8, "%u of %u", count.refusals, count.failures);
}
