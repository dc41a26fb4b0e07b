/*
 * Memory that graphs allocate, and objects of the program that they keep alive.
 */
#include "test/test_graph.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { MEBI = 1 << 20 };

static CUDA_MEM_ALLOC_NODE_PARAMS wanting(size_t bytes) {
    return (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                        .bytesize = bytes};
}

static CUgraphNode add_alloc(CUgraph graph, size_t bytes, CUdeviceptr *address) {
    CUgraphNode node = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS params = wanting(bytes);
    OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    *address = params.dptr;
    return node;
}

static CUgraphNode add_fill(CUgraph graph, CUgraphNode behind, CUdeviceptr address,
                            unsigned value) {
    CUgraphNode node = NULL;
    CUcontext context = NULL;
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = address, .value = value, .elementSize = 4, .width = 1, .height = 1};
    OK(cuCtxGetCurrent(&context));
    OK(cuGraphAddMemsetNode(&node, graph, &behind, behind != NULL, &params, context));
    return node;
}

static cuuint64_t ask(CUgraphMem_attribute attribute) {
    cuuint64_t value = 99;
    OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

Test(api_graph_memory, it_is_there_between_its_nodes) {
    CUdeviceptr memory = 0, found = 0, out = 0;
    CUgraphNode copy = NULL, release = NULL;
    CUgraphExec exec = NULL;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&out, 64));
    CUgraph graph = graph_new();
    CUgraphNode alloc = add_alloc(graph, MEBI, &memory), fill = add_fill(graph, alloc, memory, 8);
    CUDA_MEMCPY3D params = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = memory,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = out,
                            .WidthInBytes = 4,
                            .Height = 1,
                            .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &params, context));
    OK(cuGraphAddMemFreeNode(&release, graph, &copy, 1, memory));
    OK(cuGraphMemFreeNodeGetParams(release, &found));
    cr_assert(found == memory && memory != 0);
    CUDA_MEM_ALLOC_NODE_PARAMS had = {.bytesize = 0};
    OK(cuGraphMemAllocNodeGetParams(alloc, &had));
    cr_assert(had.dptr == memory && had.bytesize == MEBI);
    cr_assert_eq(had.poolProps.allocType, CU_MEM_ALLOCATION_TYPE_PINNED);
    REFUSED(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    for (int round = 0; round < 3; round++) {
        OK(cuGraphLaunch(exec, NULL));
        OK(cuCtxSynchronize());
        cr_assert_eq(api_read(out), 8);
        cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    }
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), MEBI);
    OK(cuDeviceGraphMemTrim(0));
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    /* After its free node it is gone. */
    api_put(memory, 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(api_graph_memory, what_a_launch_leaves_the_program_frees) {
    CUdeviceptr memory = 0;
    CUgraphExec exec = NULL;
    api_context(0);
    CUgraph graph = graph_new();
    CUgraphNode alloc = add_alloc(graph, 100, &memory);
    (void)add_fill(graph, alloc, memory, 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    REFUSED(cuMemFreeAsync(memory, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 3);
    REFUSED(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(memory, NULL));
    REFUSED(cuMemFreeAsync(memory, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(exec, NULL)); /* after the free in the stream */
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(memory));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    /* It outlives the graph. */
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    cr_assert_eq(api_read(memory), 3);
    OK(cuMemFree_v2(memory));
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

Test(api_graph_memory, another_graph_can_free_it) {
    CUdeviceptr memory = 0;
    CUgraphNode release = NULL;
    CUgraphExec allocating = NULL, freeing = NULL;
    api_context(0);
    CUgraph one = graph_new(), two = graph_new();
    (void)add_alloc(one, 100, &memory);
    OK(cuGraphAddMemFreeNode(&release, two, NULL, 0, memory));
    OK(cuGraphInstantiateWithFlags(&allocating, one, 0));
    OK(cuGraphInstantiateWithFlags(&freeing, two, 0));
    for (int round = 0; round < 2; round++) {
        OK(cuGraphLaunch(allocating, NULL));
        OK(cuGraphLaunch(freeing, NULL));
    }
    OK(cuCtxSynchronize());
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

Test(api_graph_memory, a_launch_can_free_what_the_last_one_left) {
    CUdeviceptr memory = 0;
    CUgraphExec exec = NULL;
    api_context(0);
    CUgraph graph = graph_new();
    CUgraphNode alloc = add_alloc(graph, 100, &memory);
    (void)add_fill(graph, alloc, memory, 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int round = 0; round < 3; round++) OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(memory), 3);
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 512);
}

Test(api_graph_memory, a_launch_keeps_it_when_all_else_is_destroyed) {
    CUdeviceptr memory = 0, flag_address = 0, out = 0;
    CUgraphNode release = NULL, copy = NULL;
    CUgraphExec exec = NULL;
    CUstream stream = NULL;
    CUcontext context = api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuMemAlloc_v2(&out, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUgraph graph = graph_new();
    CUgraphNode alloc = add_alloc(graph, 100, &memory), fill = add_fill(graph, alloc, memory, 4);
    CUDA_MEMCPY3D params = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = memory,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = out,
                            .WidthInBytes = 4,
                            .Height = 1,
                            .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &params, context));
    OK(cuGraphAddMemFreeNode(&release, graph, &copy, 1, memory));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    api_hold(flag_address, stream);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(api_read(out), 4);
    cr_assert_eq(ask(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
}

Test(api_graph_memory, such_graphs_cannot_be_copied_or_bent) {
    CUdeviceptr memory = 0;
    CUgraph clone = NULL;
    CUgraphNode child = NULL;
    CUgraphExec exec = NULL, second = NULL;
    api_context(0);
    CUgraph graph = graph_new(), parent = graph_new();
    CUgraphNode alloc = add_alloc(graph, 100, &memory), fill = add_fill(graph, alloc, memory, 3);
    REFUSED(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuGraphDestroyNode(fill), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuGraphRemoveDependencies(graph, &alloc, &fill, 1), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    REFUSED(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphInstantiateWithFlags(&second, graph, 0));
}

Test(api_graph_memory, it_can_run_out) {
    CUdeviceptr memory = 0;
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    setenv("TOLLENS_SOFT_MEMORY", "4M", 1);
    api_context(0);
    CUgraph graph = graph_new();
    CUDA_MEM_ALLOC_NODE_PARAMS params = wanting(5 * MEBI);
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_OUT_OF_MEMORY);
    (void)add_alloc(graph, 3 * MEBI, &memory);
    (void)add_alloc(graph, 3 * MEBI, &memory);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
}

Test(api_graph_memory, bad_arguments_are_refused) {
    CUdeviceptr memory = 0, plain = 0;
    CUgraphNode node = NULL;
    cuuint64_t value = 1;
    api_context(0);
    CUgraph graph = graph_new();
    CUDA_MEM_ALLOC_NODE_PARAMS params = wanting(0);
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    params = wanting(64);
    params.poolProps.location.id = 4;
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_DEVICE);
    params = wanting(64);
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
    params = wanting(64);
    params.accessDescCount = 1;
    REFUSED(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&plain, 64));
    REFUSED(cuGraphAddMemFreeNode(&node, graph, NULL, 0, plain), CUDA_ERROR_INVALID_VALUE);
    node = add_alloc(graph, 64, &memory);
    REFUSED(cuGraphMemFreeNodeGetParams(node, &memory), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphMemAllocNodeGetParams(node, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGraphMemTrim(4), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceGetGraphMemAttribute(0, 9, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value),
            CUDA_ERROR_INVALID_VALUE);
    value = 0;
    OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
}

/* ---- user objects ---- */

/* A destructor tells the test's thread that it has been called. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    CUresult call_from_it;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void destroyed(void *data) {
    int count = 0;
    CUresult result = cuDeviceGetCount(&count);
    pthread_mutex_lock(&told.lock);
    told.calls += *(int *)data;
    told.call_from_it = result;
    pthread_cond_signal(&told.changed);
    pthread_mutex_unlock(&told.lock);
}

static void await_destroyed(int calls) {
    pthread_mutex_lock(&told.lock);
    while (told.calls < calls) pthread_cond_wait(&told.changed, &told.lock);
    cr_assert_eq(told.calls, calls);
    pthread_mutex_unlock(&told.lock);
}

static CUuserObject new_object(int *one, unsigned references) {
    CUuserObject object = NULL;
    OK(cuUserObjectCreate(&object, one, destroyed, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
}

Test(api_graph_memory, user_objects_live_as_long_as_graphs_hold_them) {
    CUdeviceptr flag_address = 0;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    CUstream stream = NULL;
    int one = 1;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUuserObject object = new_object(&one, 1);
    OK(cuUserObjectRetain(object, 2));
    OK(cuUserObjectRelease(object, 2));
    CUgraph graph = graph_new();
    OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    api_hold(flag_address, stream);
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphDestroy(graph));
    OK(cuGraphExecDestroy(exec));
    cr_assert_eq(told.calls, 0, "the launch holds it");
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    await_destroyed(1);
    cr_assert_eq(told.call_from_it, CUDA_ERROR_NOT_PERMITTED);
    REFUSED(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
}

Test(api_graph_memory, user_objects_are_counted) {
    CUuserObject object = NULL;
    int one = 1;
    api_context(0);
    REFUSED(cuUserObjectCreate(&object, &one, destroyed, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuUserObjectCreate(&object, &one, destroyed, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuUserObjectCreate(&object, &one, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_ERROR_INVALID_VALUE);
    object = new_object(&one, 2);
    CUgraph graph = graph_new();
    OK(cuGraphRetainUserObject(graph, object, 1, 0));
    REFUSED(cuGraphRetainUserObject(graph, object, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphRetainUserObject(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphRetainUserObject(NULL, object, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphReleaseUserObject(graph, object, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuUserObjectRelease(object, 2));
    cr_assert_eq(told.calls, 0);
    OK(cuGraphReleaseUserObject(graph, object, 1));
    await_destroyed(1);
    REFUSED(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

/* A copy that runs after the launch may name a graph's memory before it; a copy that runs before
 * the launch fails, and copies none of its rows. */
Test(api_graph_memory, a_copy_that_comes_too_early_copies_nothing) {
    CUdeviceptr there = 0, promised = 0;
    CUgraphExec exec = NULL;
    unsigned rows[2] = {7, 7};
    api_context(0);
    CUgraph first = graph_new(), second = graph_new();
    CUgraphNode alloc = add_alloc(first, MEBI, &there);
    (void)add_fill(first, alloc, there, 8);
    (void)add_alloc(second, MEBI, &promised);
    OK(cuGraphInstantiateWithFlags(&exec, first, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(there), 8);
    cr_assert_lt(there, promised);
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = there,
                                .srcPitch = promised - there,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = rows,
                                .dstPitch = sizeof rows[0],
                                .WidthInBytes = sizeof rows[0],
                                .Height = 2};
    REFUSED(cuMemcpy2DUnaligned_v2(&copy), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(rows[0] == 7 && rows[1] == 7, "%u %u", rows[0], rows[1]);
}
