/*
 * The order of streams: a missing dependency is reported, and an existing one is not.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static CUstream a, b;
static CUdeviceptr data, more;
static CUevent event;

static void open_streams(void) {
    setenv("TOLLENS_SOFT_CHECK", "stream", 1);
    api_context(0);
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&data, 64));
    OK(cuMemAlloc_v2(&more, 64));
    OK(cuMemsetD8_v2(data, 0, 64));
    OK(cuMemsetD8_v2(more, 0, 64));
    OK(cuCtxSynchronize());
    test_capture(stderr);
}

TestSuite(stream_order, .init = open_streams);

static void expect_nothing(void) {
    OK(cuCtxSynchronize());
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Exactly one report, with this in it. */
static void expect(const char *text) {
    OK(cuCtxSynchronize());
    const char *told = test_captured(stderr), *line = strchr(told, '\n');
    cr_assert(line != NULL && line[1] == '\0', "one report, not:\n%s", told);
    cr_assert(strstr(told, "missing order of streams: ") != NULL, "%s", told);
    cr_assert(strstr(told, text) != NULL, "'%s' is not in:\n%s", text, told);
}

Test(stream_order, two_kernels_that_write_the_same_are_told_of) {
    api_put(data + 8, 1, a);
    api_put(data + 8, 2, b);
    expect("kernel put in stream 2 writes and kernel put in stream 3 writes bytes 8 to 11 of "
           "allocation 1 of 64 bytes");
}

Test(stream_order, an_event_that_is_waited_for_orders) {
    api_put(data, 1, a);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    api_put(data, 2, b);
    expect_nothing();
}

Test(stream_order, an_event_that_is_recorded_too_early_does_not) {
    OK(cuEventRecord(event, a));
    api_put(data, 1, a);
    OK(cuStreamWaitEvent(b, event, 0));
    api_put(data, 2, b);
    expect("kernel put in stream 2 writes and kernel put in stream 3 writes bytes 0 to 3");
}

Test(stream_order, an_event_orders_also_when_it_was_reached_long_ago) {
    api_put(data, 1, a);
    OK(cuEventRecord(event, a));
    while (cuStreamQuery(a) == CUDA_ERROR_NOT_READY) continue;
    OK(cuStreamWaitEvent(b, event, 0));
    api_put(data, 2, b);
    expect_nothing();
}

Test(stream_order, what_is_not_waited_for_is_told_of_though_it_was_over) {
    /* The first kernel has ended when the second one is launched, but the program has not waited
     * for it: another stream's wait has executed it. */
    CUstream c = NULL;
    OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
    api_put(data, 1, a);
    api_put(more, 1, c);
    OK(cuStreamSynchronize(c));
    api_put(data, 2, b);
    expect("bytes 0 to 3 of allocation 1");
}

Test(stream_order, order_goes_from_stream_to_stream) {
    CUstream c = NULL;
    CUevent second = NULL;
    OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&second, 0));
    api_put(data, 1, a);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuEventRecord(second, b));
    OK(cuStreamWaitEvent(c, second, 0));
    api_put(data, 2, c);
    expect_nothing();
}

Test(stream_order, waits_of_the_program_order) {
    api_put(data, 1, a);
    OK(cuStreamSynchronize(a));
    api_put(data, 2, b);
    OK(cuEventRecord(event, b));
    OK(cuEventSynchronize(event));
    api_put(data, 3, a);
    while (cuStreamQuery(a) == CUDA_ERROR_NOT_READY) continue;
    api_put(data, 4, b);
    OK(cuEventRecord(event, b));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) continue;
    api_put(data, 5, a);
    OK(cuCtxSynchronize());
    api_put(data, 6, b);
    expect_nothing();
}

Test(stream_order, streams_that_are_no_more_are_waited_for_as_well) {
    api_put(data, 1, a);
    OK(cuStreamDestroy_v2(a));
    OK(cuCtxSynchronize());
    api_put(data, 2, b);
    expect_nothing();
}

Test(stream_order, a_wait_orders_what_comes_later_alone) {
    api_put(data, 1, a);
    api_put(data, 2, b);
    OK(cuStreamSynchronize(a));
    expect("bytes 0 to 3 of allocation 1");
}

Test(stream_order, the_legacy_stream_orders_what_blocks) {
    CUstream c = NULL, d = NULL;
    OK(cuStreamCreate(&c, 0));
    OK(cuStreamCreate(&d, 0));
    api_put(data, 1, c);
    api_put(data, 2, NULL);
    api_put(data, 3, d);
    OK(cuMemsetD32Async(data, 0, 1, NULL));
    api_put(data, 4, CU_STREAM_PER_THREAD);
    OK(cuMemcpyDtoDAsync_v2(more, data, 4, NULL));
    expect_nothing();
}

Test(stream_order, the_legacy_stream_does_not_order_others) {
    api_put(data, 1, a);
    api_put(data, 2, NULL);
    expect("kernel put in stream 2 writes and kernel put in stream 1 writes bytes 0 to 3");
}

Test(stream_order, copies_and_fills_are_operations_too) {
    OK(cuMemsetD8Async(data, 1, 64, a));
    OK(cuMemcpyDtoDAsync_v2(more, data + 16, 32, b));
    expect("a memset of 64 bytes in stream 2 writes and a copy of 32 bytes in stream 3 reads bytes "
           "16 to 47 of allocation 1");
}

Test(stream_order, rows_that_lie_between_each_other_do_not_meet) {
    OK(cuMemsetD2D8Async(data, 16, 1, 8, 4, a));
    OK(cuMemsetD2D8Async(data + 8, 16, 2, 8, 4, b));
    expect_nothing();
    OK(cuMemsetD2D8Async(data, 16, 1, 8, 4, a));
    OK(cuMemsetD2D8Async(data + 7, 16, 2, 8, 4, b));
    expect("bytes 7 to 55");
}

/* A fill over two mappings that touch each other, and a copy to the second: each half is an
 * allocation of its own. */
Test(stream_order, what_spans_allocations_touches_each_of_them) {
    enum { GRANULE = 2 << 20 };
    const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    OK(cuMemAddressReserve(&address, 2 * GRANULE, 0, 0, 0));
    for (unsigned half = 0; half < 2; half++) {
        CUmemGenericAllocationHandle handle = 0;
        OK(cuMemCreate(&handle, GRANULE, &on_device, 0));
        OK(cuMemMap(address + half * GRANULE, GRANULE, 0, handle, 0));
    }
    OK(cuMemSetAccess(address, 2 * GRANULE, &access, 1));
    OK(cuMemsetD8Async(address + GRANULE - 8, 1, 16, a));
    OK(cuMemcpyDtoDAsync_v2(address + GRANULE + 4, data, 4, b));
    expect("bytes 4 to 7 of allocation");
}

Test(stream_order, pinned_memory_is_memory_too) {
    CUdeviceptr address = 0;
    volatile unsigned *flag = api_flag(&address);
    OK(cuMemcpyDtoHAsync_v2((void *)(uintptr_t)flag, data, 4, a));
    OK(cuMemcpyHtoDAsync_v2(more, (const void *)(uintptr_t)flag, 4, b));
    expect("a copy of 4 bytes in stream 2 writes and a copy of 4 bytes in stream 3 reads bytes 0 "
           "to 3");
}

Test(stream_order, reads_may_meet) {
    OK(cuMemcpyDtoDAsync_v2(more, data, 4, a));
    OK(cuMemcpyDtoDAsync_v2(more + 4, data, 4, b));
    expect_nothing();
}

Test(stream_order, what_has_only_read_must_be_waited_for_by_who_writes) {
    OK(cuMemcpyDtoDAsync_v2(more, data, 4, a));
    api_put(data, 1, b);
    expect("a copy of 4 bytes in stream 2 reads and kernel put in stream 3 writes bytes 0 to 3 of "
           "allocation 1");
}

Test(stream_order, all_readers_must_be_waited_for) {
    /* The second reader does not make the first one forgotten. */
    CUstream c = NULL;
    OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyDtoDAsync_v2(more, data, 4, a));
    OK(cuMemcpyDtoDAsync_v2(more + 4, data, 4, b));
    OK(cuEventRecord(event, b));
    OK(cuStreamWaitEvent(c, event, 0));
    api_put(data, 1, c);
    expect("stream 2 reads and kernel put in stream 4 writes");
}

static const char *const atomics =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry count(.param .u64 p) { .reg .u64 %a; ld.param.u64 %a, [p];\n"
    "red.global.add.u32 [%a], 1; ret; }\n"
    ".visible .entry look(.param .u64 p) { .reg .u64 %a; .reg .u32 %v; ld.param.u64 %a, [p];\n"
    "ld.relaxed.gpu.global.u32 %v, [%a]; ret; }\n"
    ".visible .entry read(.param .u64 p) { .reg .u64 %a; .reg .u32 %v; ld.param.u64 %a, [p];\n"
    "ld.global.u32 %v, [%a]; ret; }\n";

static const char *const fetches =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 p) { .reg .u64 %a; .reg .u32 %s;\n"
    ".shared .align 16 .b8 room[16]; ld.param.u64 %a, [p]; mov.u32 %s, room;\n"
    "cp.async.ca.shared.global [%s], [%a], 8; cp.async.wait_all; ret; }\n";

static void launch(const char *name, CUdeviceptr address, CUstream stream) {
    static CUmodule module;
    CUfunction function = NULL;
    void *parameters[] = {&address};
    if (module == NULL) OK(cuModuleLoadData(&module, atomics));
    OK(cuModuleGetFunction(&function, module, name));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

Test(stream_order, strong_accesses_may_meet) {
    launch("count", data, a);
    launch("count", data, b);
    launch("look", data, a);
    expect_nothing();
    cr_assert_eq(api_read(data), 64);
}

Test(stream_order, a_strong_access_and_a_weak_one_may_not) {
    launch("count", data, a);
    launch("read", data, b);
    expect("kernel count in stream 2 writes and kernel read in stream 3 reads bytes 0 to 3");
}

Test(stream_order, asynchronous_copies_of_kernels_touch_memory_too) {
    void *parameters[] = {&data};
    CUfunction function = api_function(fetches, "fetch");
    api_put(data + 4, 1, a);
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, b, parameters, NULL));
    expect("kernel put in stream 2 writes and kernel fetch in stream 3 reads bytes 4 to 7");
}

Test(stream_order, a_pair_is_told_of_once) {
    for (int i = 0; i < 5; i++) {
        api_put(data, 1, a);
        api_put(data, 2, b);
        api_put(data + 4, 2, b);
    }
    OK(cuCtxSynchronize());
    const char *told = test_captured(stderr);
    unsigned lines = 0;
    for (; *told != '\0'; told++) lines += *told == '\n';
    cr_assert_eq(lines, 1);
}

static void set(void *argument) {
    *(volatile unsigned *)argument = 1;
}

static CUcontext context;

static void *launch_when_set(void *argument) {
    OK(cuCtxSetCurrent(context));
    while (*(volatile unsigned *)argument == 0) continue;
    api_put(data, 2, b);
    return NULL;
}

Test(stream_order, a_host_function_may_tell_another_thread) {
    volatile unsigned flag = 0;
    pthread_t thread;
    OK(cuCtxGetCurrent(&context));
    cr_assert_eq(pthread_create(&thread, NULL, launch_when_set, (void *)(uintptr_t)&flag), 0);
    api_put(data, 1, a);
    OK(cuLaunchHostFunc(a, set, (void *)(uintptr_t)&flag));
    OK(cuStreamSynchronize(a));
    pthread_join(thread, NULL);
    expect_nothing();
}

Test(stream_order, a_kernel_may_tell_the_program) {
    CUdeviceptr address = 0;
    volatile unsigned *flag = api_flag(&address);
    api_put(data, 1, a);
    api_put(address, 1, a);
    while (*flag == 0) (void)cuStreamQuery(a);
    api_put(data, 2, b);
    expect_nothing();
}

Test(stream_order, values_order) {
    api_put(data, 1, a);
    OK(cuStreamWriteValue32_v2(a, more, 7, 0));
    OK(cuStreamWaitValue32_v2(b, more, 7, CU_STREAM_WAIT_VALUE_EQ));
    api_put(data, 2, b);
    expect_nothing();
}

Test(stream_order, a_graph_is_ordered_with_its_stream) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    OK(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD8Async(data, 1, 64, a));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemcpyDtoDAsync_v2(more, data, 32, b));
    OK(cuEventRecord(event, b));
    OK(cuStreamWaitEvent(a, event, 0));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, a));
    OK(cuGraphLaunch(exec, a));
    /* Launches of one graph come one after the other. */
    OK(cuGraphLaunch(exec, b));
    expect_nothing();
    OK(cuGraphLaunch(exec, b));
    api_put(data + 40, 2, a);
    expect(
        "a memset of 64 bytes in stream 3 writes and kernel put in stream 2 writes bytes 40 to 43");
}

Test(stream_order, memory_is_freed_in_order_too) {
    CUdeviceptr address = 0;
    OK(cuMemAllocAsync(&address, 64, a));
    api_put(address, 1, a);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemFreeAsync(address, b));
    expect_nothing();
}

/* Were the free done first, the kernel would fail. Everything that could make it wait would also
 * order it, so a long fill precedes it. */
Test(stream_order, memory_is_not_freed_while_another_stream_uses_it) {
    enum { LONG = 64 << 20 };
    CUdeviceptr address = 0, large = 0;
    OK(cuMemAllocAsync(&address, 64, a));
    OK(cuMemAlloc_v2(&large, LONG));
    api_put(address + 8, 1, a);
    OK(cuMemsetD8Async(large, 0, LONG, b));
    OK(cuMemFreeAsync(address, b));
    expect("kernel put in stream 2 writes and a free in stream 3 writes bytes 8 to 11 of "
           "allocation 3");
}

Test(stream_order, memory_that_is_freed_has_no_past) {
    /* Pinned memory gets the addresses of what was freed. */
    for (int i = 0; i < 8; i++) {
        CUdeviceptr address = 0;
        volatile unsigned *flag = api_flag(&address);
        api_put(address, 1, i % 2 == 0 ? a : b);
        OK(cuMemFreeHost((void *)(uintptr_t)flag));
    }
    expect_nothing();
}

Test(stream_order_off, nothing_is_told_unless_it_is_asked_for) {
    setenv("TOLLENS_SOFT_CHECK", "init", 1);
    api_context(0);
    test_capture(stderr);
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&data, 64));
    api_put(data, 1, a);
    api_put(data, 2, CU_STREAM_PER_THREAD);
    expect_nothing();
}
