/*
 * Several threads make, use and destroy everything at once: no call may fail, nothing may be lost.
 *
 * By itself this finds crashes and wrong results. A thread sanitizer finds races; for it, the work
 * is in functions that can run without a test around them.
 */
#include "test/test_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 12, WORDS = 64 };

struct crew {
    CUcontext context;
    CUdeviceptr shared; /* that all threads' kernels add to */
    CUevent event;      /* that all of them record and wait for */
    CUstream stream;
    CUfunction add;
    atomic_int calls; /* of host functions */
};

static const char *const add_ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 own;\n"
    ".visible .entry add(.param .u64 p) { .reg .u64 %a; ld.param.u64 %a, [p];\n"
    "red.global.add.u32 [%a], 1; ret; }\n";

static void count_call(void *argument) {
    atomic_fetch_add((atomic_int *)argument, 1);
}

static void use_memory(CUstream stream) {
    uint32_t host[WORDS], back[WORDS] = {0};
    CUdeviceptr plain = 0, pooled = 0;
    void *pinned = NULL;
    for (int i = 0; i < WORDS; i++) host[i] = (uint32_t)(uintptr_t)&host ^ (uint32_t)i;
    OK(cuMemAlloc_v2(&plain, sizeof host));
    OK(cuMemAllocAsync(&pooled, sizeof host, stream));
    OK(cuMemHostAlloc(&pinned, sizeof host, 0));
    OK(cuMemcpyHtoDAsync_v2(plain, host, sizeof host, stream));
    OK(cuMemcpyDtoDAsync_v2(pooled, plain, sizeof host, stream));
    OK(cuMemcpyDtoHAsync_v2(pinned, pooled, sizeof host, stream));
    OK(cuMemFreeAsync(pooled, stream));
    OK(cuStreamSynchronize(stream));
    memcpy(back, pinned, sizeof back);
    cr_assert_eq(memcmp(back, host, sizeof host), 0);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(plain));
}

static void use_mapping(void) {
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {.location = property.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    const size_t bytes = 2 << 20;
    OK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    OK(cuMemCreate(&handle, bytes, &property, 0));
    OK(cuMemMap(address, bytes, 0, handle, 0));
    OK(cuMemSetAccess(address, bytes, &access, 1));
    OK(cuMemsetD32_v2(address, 5, 1));
    cr_assert_eq(api_read(address), 5);
    OK(cuMemUnmap(address, bytes));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(address, bytes));
}

static void use_modules(CUstream stream, CUdeviceptr address) {
    CUmodule module = NULL;
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    CUdeviceptr variable = 0;
    size_t bytes = 0;
    void *parameters[] = {&address};
    OK(cuModuleLoadData(&module, add_ptx));
    OK(cuModuleGetFunction(&function, module, "add"));
    OK(cuModuleGetGlobal_v2(&variable, &bytes, module, "own"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    OK(cuModuleUnload(module));
    OK(cuLibraryLoadData(&library, add_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "add"));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    OK(cuStreamSynchronize(stream));
    OK(cuLibraryUnload(library));
}

static void use_graph(struct crew *crew) {
    /* The legacy stream, which others use meanwhile, would break the capture of a blocking one. */
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    void *parameters[] = {&crew->shared};
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuLaunchKernel(crew->add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    OK(cuLaunchHostFunc(stream, count_call, &crew->calls));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy_v2(stream));
}

static void use_events(struct crew *crew, CUstream stream) {
    CUevent own = NULL;
    CUresult result = CUDA_SUCCESS;
    OK(cuEventCreate(&own, 0));
    OK(cuEventRecord(own, stream));
    OK(cuStreamWaitEvent(crew->stream, own, 0));
    OK(cuEventRecord(crew->event, crew->stream));
    OK(cuStreamWaitEvent(stream, crew->event, 0));
    OK(cuEventSynchronize(own));
    result = cuEventQuery(crew->event);
    cr_assert(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY);
    OK(cuEventDestroy_v2(own));
}

static void use_context(struct crew *crew) {
    CUcontext own = NULL;
    OK(cuCtxCreate_v2(&own, 0, 0));
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, 4));
    OK(cuMemsetD32_v2(address, 3, 1));
    cr_assert_eq(api_read(address), 3);
    OK(cuMemFree_v2(address));
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxSetCurrent(crew->context));
}

static void *work(void *argument) {
    struct crew *crew = argument;
    OK(cuCtxSetCurrent(crew->context));
    for (int round = 0; round < ROUNDS; round++) {
        CUstream stream = NULL;
        void *parameters[] = {&crew->shared};
        OK(cuStreamCreate(&stream, round % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        use_memory(stream);
        use_modules(stream, crew->shared);
        use_graph(crew);
        use_events(crew, stream);
        OK(cuLaunchKernel(crew->add, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, parameters, NULL));
        OK(cuLaunchHostFunc(stream, count_call, &crew->calls));
        OK(cuStreamDestroy_v2(stream));
        if (round % 4 == 0) use_mapping();
        if (round % 4 == 1) use_context(crew);
    }
    return NULL;
}

static void work_together(void) {
    static struct crew crew;
    pthread_t threads[THREADS];
    crew.context = api_context(0);
    OK(cuMemAlloc_v2(&crew.shared, 4));
    OK(cuMemsetD32_v2(crew.shared, 0, 1));
    OK(cuEventCreate(&crew.event, 0));
    OK(cuStreamCreate(&crew.stream, CU_STREAM_NON_BLOCKING));
    crew.add = api_function(add_ptx, "add");
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &crew), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(crew.shared), 4 * THREADS * ROUNDS);
    OK(cuMemFree_v2(crew.shared));
    OK(cuEventDestroy_v2(crew.event));
    OK(cuStreamDestroy_v2(crew.stream));
    cr_assert_eq(atomic_load(&crew.calls), 2 * THREADS * ROUNDS);
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

Test(api_threads, everything_can_be_done_by_all_at_once) {
    setenv("TOLLENS_SOFT_WORKERS", "2", 1);
    work_together();
}

Test(api_threads, everything_can_be_checked_at_once) {
    /* Threads of the program count as one, so what they share is ordered; kernels add with
     * atomics. */
    setenv("TOLLENS_SOFT_WORKERS", "2", 1);
    setenv("TOLLENS_SOFT_CHECK", "init,stream,leak", 1);
    setenv("TOLLENS_SOFT_SEED", "3", 1);
    api_faults("{\"quiet\": true, \"rules\": [{\"function\": \"cu*\", \"percent\": 1, \"action\": "
               "\"delay\", \"us\": 10}]}");
    work_together();
}
