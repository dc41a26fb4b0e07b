/*
 * What a program has not freed is reported; what it has freed is not.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void watch(void) {
    setenv("TOLLENS_SOFT_CHECK", "leak", 1);
    test_capture(stderr);
}

TestSuite(leak, .init = watch);

static unsigned lines_with(const char *text) {
    unsigned lines = 0;
    for (const char *at = test_captured(stderr); (at = strstr(at, text)) != NULL; at++) lines++;
    return lines;
}

#define TOLD(count, text)                                                                          \
    cr_assert_eq(lines_with(text), (unsigned)(count), "%u of '%s' in:\n%s", lines_with(text),      \
                 text, test_captured(stderr))

/* Everything that can be made; given back if clean. */
static void make_all(bool clean) {
    CUdeviceptr address = 0, pooled = 0, reserved = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUmodule module = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUmemoryPool pool = NULL;
    CUmemGenericAllocationHandle physical = 0;
    void *host = NULL;
    static int own[1024];
    const CUmemPoolProps shape = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    OK(cuMemAlloc_v2(&address, 100));
    OK(cuMemHostAlloc(&host, 200, 0));
    OK(cuMemHostRegister_v2(own, sizeof own, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuMemPoolCreate(&pool, &shape));
    OK(cuMemAllocFromPoolAsync(&pooled, 300, pool, stream));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemCreate(&physical, 2 << 20, &property, 0));
    OK(cuMemAddressReserve(&reserved, 4 << 20, 0, 0, 0));
    OK(cuMemMap(reserved, 2 << 20, 0, physical, 0));
    if (!clean) return;
    OK(cuMemUnmap(reserved, 2 << 20));
    OK(cuMemAddressFree(reserved, 4 << 20));
    OK(cuMemRelease(physical));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemFreeAsync(pooled, stream));
    OK(cuMemPoolDestroy(pool));
    OK(cuModuleUnload(module));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemHostUnregister(own));
    OK(cuMemFreeHost(host));
    OK(cuMemFree_v2(address));
}

static void expect_all(void) {
    TOLD(1, "leak: 100 bytes of device memory at 0x");
    TOLD(1, "leak: 200 bytes of pinned host memory at 0x");
    TOLD(1, "leak: 4096 bytes of registered host memory at 0x");
    TOLD(1, "leak: a stream, number 2, at 0x");
    TOLD(1, "leak: an event at 0x");
    TOLD(1, "leak: a module at 0x");
    TOLD(1, "leak: a memory pool at 0x");
    TOLD(1, "leak: 300 bytes of memory of a pool at 0x");
    TOLD(1, "leak: a graph at 0x");
    TOLD(1, "leak: an executable graph at 0x");
    TOLD(1, "leak: 2097152 bytes of physical memory at 0x");
    TOLD(1, "leak: 2097152 bytes of a mapping at 0x");
    TOLD(1, "leak: 4194304 bytes of reserved addresses at 0x");
    TOLD(13, "leak: ");
    TOLD(1, ", allocation 1, created by call 3, cuMemAlloc_v2, at ");
    TOLD(1, ", created by call 7, cuEventCreate, at ");
}

Test(leak, what_a_context_leaves_is_told_of_when_it_ends) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    make_all(false);
    TOLD(0, "leak: ");
    OK(cuCtxDestroy_v2(context));
    expect_all();
}

Test(leak, what_was_given_back_is_not_told_of) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    make_all(true);
    OK(cuCtxDestroy_v2(context));
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(leak, primary_contexts_leave_things_too) {
    CUdeviceptr address = 0;
    CUcontext context = api_context(0);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuMemAlloc_v2(&address, 100));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    TOLD(0, "leak: ");
    OK(cuDevicePrimaryCtxRelease_v2(0));
    TOLD(1, "leak: 100 bytes of device memory");
    TOLD(1, "leak: ");
    api_context(0);
    OK(cuMemAlloc_v2(&address, 200));
    OK(cuDevicePrimaryCtxReset_v2(0));
    TOLD(1, "leak: 200 bytes of device memory");
    TOLD(2, "leak: ");
}

Test(leak, each_context_answers_for_itself) {
    CUcontext one = NULL, other = NULL;
    CUdeviceptr address = 0;
    CUgraph graph = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&one, 0, 0));
    OK(cuMemAlloc_v2(&address, 100));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuCtxDestroy_v2(other));
    TOLD(0, "leak: ");
    OK(cuCtxDestroy_v2(one));
    TOLD(1, "leak: 100 bytes of device memory");
    TOLD(1, "leak: a graph");
    TOLD(2, "leak: ");
}

Test(leak, a_loop_that_leaks_is_cut_short) {
    CUcontext context = NULL;
    CUdeviceptr address = 0;
    CUevent event = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    for (int i = 0; i < 25; i++) {
        OK(cuMemAlloc_v2(&address, 10));
        OK(cuEventCreate(&event, 0));
    }
    OK(cuCtxDestroy_v2(context));
    TOLD(20, "leak: 10 bytes of device memory");
    TOLD(1, "leak: 50 more bytes in 5 allocations");
    TOLD(20, "leak: an event");
    TOLD(1, "leak: 5 more handles of the same kind");
}

/* Runs something in a process of its own, to its end. */
static void in_child(void (*body)(void)) {
    int status = 0;
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        body();
        exit(0); /* NOLINT(concurrency-mt-unsafe): there is one thread, and its end is the point */
    }
    cr_assert(waitpid(child, &status, 0) == child && status == 0, "%d", status);
}

static void leave_all(void) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    make_all(false);
}

static void leave_nothing(void) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    make_all(true);
}

static void leave_nothing_new(void) {
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    make_all(false);
    OK(cuCtxDestroy_v2(context));
}

Test(leak, the_end_of_the_process_tells_of_what_is_left) {
    in_child(leave_all);
    expect_all();
}

Test(leak, the_end_of_the_process_tells_of_nothing_else) {
    in_child(leave_nothing);
    TOLD(0, "leak: "); /* a sanitizer has its own say at the end of a process */
}

Test(leak, nothing_is_told_of_twice) {
    in_child(leave_nothing_new);
    expect_all();
}

Test(leak_off, nothing_is_told_unless_it_is_asked_for) {
    test_capture(stderr);
    in_child(leave_nothing_new);
    TOLD(0, "leak: "); /* a sanitizer has its own say at the end of a process */
}

Test(leak, arrays_and_objects_of_them_are_told_of) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    const CUDA_TEXTURE_DESC description = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUcontext context = NULL;
    for (int clean = 1; clean >= 0; clean--) {
        CUarray array = NULL;
        CUtexObject texture = 0;
        CUsurfObject surface = 0;
        OK(cuInit(0));
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuArray3DCreate_v2(&array, &shape));
        resource.res.array.hArray = array;
        OK(cuTexObjectCreate(&texture, &resource, &description, NULL));
        OK(cuSurfObjectCreate(&surface, &resource));
        if (clean) {
            OK(cuTexObjectDestroy(texture));
            OK(cuSurfObjectDestroy(surface));
            OK(cuArrayDestroy(array));
        }
        OK(cuCtxDestroy_v2(context));
        TOLD(clean ? 0 : 1, "a CUDA array at");
        TOLD(clean ? 0 : 1, "a texture object, 0x");
        TOLD(clean ? 0 : 1, "a surface object, 0x");
    }
}
