/*
 * Injected faults: the effect of each action, and the calls of each selector.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Rules that report each fault on stderr, and others. */
#define TOLD(text) "{\"rules\": [" text "]}"
#define RULES(text) "{\"quiet\": true, \"rules\": [" text "]}"

Test(fault, the_nth_call_returns_a_code_and_does_nothing) {
    CUdeviceptr address[4] = {0};
    size_t before = 0, after = 0;
    api_faults(TOLD("{\"function\": \"cuMemAlloc\", \"nth\": 2, \"action\": \"return\", "
                    "\"code\": \"CUDA_ERROR_OUT_OF_MEMORY\"}"));
    test_capture(stderr);
    api_context(0);
    OK(cuMemAlloc_v2(&address[0], 512));
    OK(cuMemGetInfo_v2(&before, NULL));
    REFUSED(cuMemAlloc_v2(&address[1], 512), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert(address[1] == 0 && before == after);
    OK(cuMemAlloc_v2(&address[2], 512));
    cr_assert_str_eq(test_captured(stderr), "tollens-soft: fault 1 (line 1): call 2 of "
                                            "cuMemAlloc_v2 returns CUDA_ERROR_OUT_OF_MEMORY\n");
    cr_assert(strstr(test_log(), "fault 1 (line 1): call 2 of cuMemAlloc_v2") != NULL);
}

Test(fault, every_so_manieth_call_is_meant_and_only_so_often) {
    CUevent event = NULL;
    api_faults(RULES("{\"function\": \"cuEventQuery\", \"every\": 3, \"times\": 2, "
                     "\"action\": \"return\", \"code\": 999}"));
    api_context(0);
    OK(cuEventCreate(&event, 0));
    for (int i = 1; i <= 12; i++) {
        REFUSED(cuEventQuery(event), i == 3 || i == 6 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    }
}

Test(fault, each_function_is_counted_by_itself) {
    CUdevice device = 0;
    int count = 0;
    api_faults(RULES("{\"function\": \"cuDeviceGet*\", \"nth\": 2, \"action\": \"return\", "
                     "\"code\": 801}"));
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDeviceGetCount(&count));
    REFUSED(cuDeviceGetCount(&count), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuDeviceGet(&device, 0));
}

/* Which of 64 calls of a function failed, a bit each. */
static uint64_t failures_of_events(CUevent event) {
    uint64_t failed = 0;
    for (int i = 0; i < 64; i++) {
        failed |= (uint64_t)(cuEventQuery(event) != CUDA_SUCCESS) << i;
    }
    return failed;
}

static uint64_t failures_of_streams(void) {
    uint64_t failed = 0;
    for (int i = 0; i < 64; i++) failed |= (uint64_t)(cuStreamQuery(NULL) != CUDA_SUCCESS) << i;
    return failed;
}

Test(fault, chance_depends_on_seed_function_and_count_alone) {
    /* What the seed gives is written down: it is to stay the same in all versions and programs. */
    CUevent event = NULL;
    api_faults(RULES("{\"function\": \"cuEventQuery\", \"percent\": 25, \"seed\": 1, \"action\": "
                     "\"return\", \"code\": 1}, {\"function\": \"cuStreamQuery\", \"percent\": "
                     "25, \"seed\": 2, \"action\": \"return\", \"code\": 1}"));
    api_context(0);
    OK(cuEventCreate(&event, 0));
    uint64_t events = failures_of_events(event), streams = failures_of_streams();
    cr_assert_eq(events, 0x805082f5d00dc14ull, "%#llx", (unsigned long long)events);
    cr_assert_eq(streams, 0xd01000050000f208ull, "%#llx", (unsigned long long)streams);
}

Test(fault, chances_of_nothing_and_of_all_are_certain) {
    CUevent event = NULL;
    api_faults(RULES("{\"function\": \"cuEventQuery\", \"percent\": 0, \"action\": \"return\", "
                     "\"code\": 1}, {\"function\": \"cuStreamQuery\", \"percent\": 100, "
                     "\"action\": \"return\", \"code\": 1}"));
    api_context(0);
    OK(cuEventCreate(&event, 0));
    cr_assert_eq(failures_of_events(event), 0);
    cr_assert_eq(failures_of_streams(), UINT64_MAX);
}

Test(fault, streams_are_counted_apart_if_that_is_asked_for) {
    CUstream streams[2];
    api_faults(RULES("{\"function\": \"cuStreamQuery\", \"nth\": 2, \"stream\": \"each\", "
                     "\"action\": \"return\", \"code\": 1}"));
    api_context(0);
    for (int i = 0; i < 2; i++) OK(cuStreamCreate(&streams[i], 0));
    OK(cuStreamQuery(streams[0]));
    OK(cuStreamQuery(streams[1]));
    OK(cuStreamQuery(NULL));
    for (int i = 0; i < 2; i++) {
        REFUSED(cuStreamQuery(streams[i]), CUDA_ERROR_INVALID_VALUE);
        OK(cuStreamQuery(streams[i]));
    }
    REFUSED(cuStreamQuery(NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(fault, one_stream_can_be_meant) {
    CUstream streams[3];
    unsigned long long id = 0;
    api_faults(RULES("{\"function\": \"cuStreamSynchronize\", \"stream\": 3, "
                     "\"action\": \"return\", \"code\": 1}"));
    api_context(0);
    for (int i = 0; i < 3; i++) OK(cuStreamCreate(&streams[i], 0));
    for (int i = 0; i < 3; i++) {
        OK(cuStreamGetId(streams[i], &id));
        REFUSED(cuStreamSynchronize(streams[i]), id == 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    }
}

static void *query_five(void *argument) {
    int *failed = argument;
    OK(cuCtxSetCurrent(*(CUcontext *)(void *)&failed[6]));
    for (int i = 1; i <= 5; i++) failed[i] = cuStreamQuery(NULL) != CUDA_SUCCESS;
    return NULL;
}

Test(fault, threads_are_counted_apart_if_that_is_asked_for) {
    struct {
        int failed[6];
        CUcontext context;
    } own[4];
    pthread_t threads[4];
    api_faults(RULES("{\"function\": \"cuStreamQuery\", \"nth\": 4, \"thread\": \"each\", "
                     "\"action\": \"return\", \"code\": 1}, {\"function\": \"cuCtxGetDevice\", "
                     "\"thread\": 1, \"action\": \"return\", \"code\": 2}"));
    CUcontext context = api_context(0);
    CUdevice device = 0;
    REFUSED(cuCtxGetDevice(&device), CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 4; i++) {
        own[i].context = context;
        cr_assert_eq(pthread_create(&threads[i], NULL, query_five, own[i].failed), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 1; k <= 5; k++) cr_assert_eq(own[i].failed[k], k == 4, "%d, %d", i, k);
    }
}

enum { THREADS = 4, CALLS = 250 };

static void *query_many(void *argument) {
    uintptr_t failed = 0;
    for (int i = 0; i < CALLS; i++) {
        int count = 0;
        failed += cuDeviceGetCount(&count) != CUDA_SUCCESS;
    }
    (void)argument;
    return (void *)failed;
}

Test(fault, several_threads_share_a_count) {
    pthread_t threads[THREADS];
    uintptr_t failed = 0;
    api_faults(RULES("{\"function\": \"cuDeviceGetCount\", \"every\": 10, \"action\": "
                     "\"return\", \"code\": 1}"));
    test_capture(stderr);
    OK(cuInit(0));
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, query_many, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *own = NULL;
        pthread_join(threads[i], &own);
        failed += (uintptr_t)own;
    }
    cr_assert_eq(failed, THREADS * CALLS / 10);
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(fault, variants_of_a_function_have_names_of_their_own) {
    api_faults(RULES("{\"function\": \"cuStreamQuery_ptsz\", \"action\": \"return\", "
                     "\"code\": 1}"));
    api_context(0);
    void *own = NULL;
    OK(cuGetProcAddress_v2("cuStreamQuery", &own, 12000,
                           CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    CUresult (*query)(CUstream) = NULL;
    memcpy(&query, &own, sizeof query);
    REFUSED(query(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamQuery(NULL));
}

Test(fault, a_call_can_be_late) {
    /* The delay is not measured; only its message is checked. */
    api_faults(TOLD("{\"function\": \"cuCtxSynchronize\", \"nth\": 1, \"action\": \"delay\", "
                    "\"us\": 1000}"));
    test_capture(stderr);
    api_context(0);
    OK(cuCtxSynchronize());
    OK(cuCtxSynchronize());
    cr_assert_str_eq(test_captured(stderr), "tollens-soft: fault 1 (line 1): call 1 of "
                                            "cuCtxSynchronize is delayed by 1000 us\n");
}

Test(fault, a_lost_context_stays_lost_and_others_do_not_mind) {
    CUcontext lost = NULL, other = NULL;
    CUdeviceptr address = 0;
    api_faults(RULES("{\"function\": \"cuCtxSynchronize\", \"nth\": 1, \"action\": "
                     "\"lose_context\", \"code\": \"CUDA_ERROR_ECC_UNCORRECTABLE\"}"));
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxCreate_v2(&lost, 0, 0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
    REFUSED(cuMemAlloc_v2(&address, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
    OK(cuCtxSetCurrent(other));
    OK(cuMemAlloc_v2(&address, 4));
    OK(cuCtxDestroy_v2(lost));
    OK(cuCtxCreate_v2(&lost, 0, 0));
    OK(cuCtxSynchronize());
}

Test(fault, a_lost_device_takes_all_its_contexts) {
    CUcontext one = NULL, other = NULL, elsewhere = NULL;
    CUdeviceptr address = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    api_faults(RULES("{\"function\": \"cuCtxSynchronize\", \"action\": \"lose_device\"}"));
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&elsewhere, 0, 1));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxCreate_v2(&one, 0, 0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
    OK(cuCtxSetCurrent(other));
    REFUSED(cuMemAlloc_v2(&address, 4), CUDA_ERROR_DEVICE_UNAVAILABLE);
    OK(cuCtxDestroy_v2(one));
    REFUSED(cuCtxCreate_v2(&one, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    REFUSED(cuDevicePrimaryCtxRetain(&one, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    OK(cuCtxSetCurrent(elsewhere));
    OK(cuMemAlloc_v2(&address, 4));
}

Test(fault, an_asynchronous_error_is_seen_by_a_later_call) {
    CUdeviceptr address = 0, flag_address = 0;
    CUstream stream = NULL;
    api_faults(RULES("{\"function\": \"cuMemsetD32Async\", \"nth\": 2, \"action\": \"later\", "
                     "\"code\": 719}"));
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&address, 4));
    OK(cuMemsetD32Async(address, 7, 1, stream));
    /* While the stream is held the error has not come to pass. */
    api_hold(flag_address, stream);
    OK(cuMemsetD32Async(flag_address + 0, 9, 1, stream));
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    *flag = 1;
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    cr_assert_eq(*flag, 9, "the call's own work was done");
    REFUSED(cuMemAlloc_v2(&address, 4), CUDA_ERROR_LAUNCH_FAILED);
}

static void capture_a_fill(void) {
    static CUstream stream;
    static CUdeviceptr address;
    CUgraph graph = NULL;
    if (stream == NULL) {
        OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        OK(cuMemAlloc_v2(&address, 4));
    }
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD32Async(address, 7, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
}

/* A capture does nothing that could fail later. */
Test(fault, an_asynchronous_error_does_not_come_to_a_capture) {
    api_faults(RULES("{\"function\": \"cuMemsetD32Async\", \"action\": \"later\", "
                     "\"code\": 719}"));
    api_context(0);
    api_must_keep_nothing(capture_a_fill, 1000);
    OK(cuCtxSynchronize());
}

Test(fault, an_asynchronous_error_needs_no_stream) {
    CUdeviceptr address = 0;
    api_faults(RULES("{\"function\": \"cuMemAlloc\", \"action\": \"later\", \"code\": 700}"));
    api_context(0);
    OK(cuMemAlloc_v2(&address, 4));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(fault, a_bit_flips_in_front_of_a_launch) {
    CUdeviceptr first = 0, second = 0;
    uint8_t bytes[16] = {0};
    api_faults(TOLD("{\"function\": \"cuLaunchKernel\", \"nth\": 2, \"action\": \"flip\", "
                    "\"allocation\": 2, \"byte\": 9, \"bit\": 5}"));
    api_context(0);
    OK(cuMemAlloc_v2(&first, 16));
    OK(cuMemAlloc_v2(&second, 16));
    OK(cuMemsetD8_v2(first, 0, 16));
    OK(cuMemsetD8_v2(second, 0xff, 16));
    api_put(first, 1, NULL);
    OK(cuMemcpyDtoH_v2(bytes, second, 16));
    cr_assert_eq(bytes[9], 0xff);
    test_capture(stderr);
    api_put(first, 2, NULL);
    OK(cuMemcpyDtoH_v2(bytes, second, 16));
    for (int i = 0; i < 16; i++) cr_assert_eq(bytes[i], i == 9 ? 0xdf : 0xff, "byte %d", i);
    cr_assert_eq(api_read(first), 2);
    cr_assert_str_eq(test_captured(stderr),
                     "tollens-soft: fault 1 (line 1): flips bit 5 of byte 9 of an "
                     "allocation of 16 bytes\n");
}

Test(fault, which_bit_flips_can_be_left_to_the_seed) {
    CUdeviceptr address[2] = {0};
    uint8_t bytes[128];
    int bits = 0;
    api_faults(TOLD("{\"function\": \"cuLaunchKernel\", \"seed\": 5, \"action\": \"flip\"}"));
    api_context(0);
    for (int i = 0; i < 2; i++) {
        OK(cuMemAlloc_v2(&address[i], 64));
        OK(cuMemsetD8_v2(address[i], 0, 64));
    }
    test_capture(stderr);
    api_put(address[0], 0, NULL);
    for (int i = 0; i < 2; i++) OK(cuMemcpyDtoH_v2(bytes + 64 * i, address[i], 64));
    cr_assert_str_eq(test_captured(stderr),
                     "tollens-soft: fault 1 (line 1): flips bit 0 of byte 29 of "
                     "an allocation of 64 bytes\n");
    for (int i = 0; i < 128; i++) bits += __builtin_popcount(bytes[i]);
    cr_assert_eq(bits, 1);
}

Test(fault, there_may_be_nothing_to_flip) {
    CUdeviceptr address = 0;
    api_faults(TOLD("{\"function\": \"cuLaunchKernel\", \"action\": \"flip\", "
                    "\"allocation\": 2}"));
    test_capture(stderr);
    api_context(0);
    OK(cuMemAlloc_v2(&address, 64));
    api_put(address, 0, NULL);
    OK(cuCtxSynchronize());
    cr_assert_str_eq(test_captured(stderr), "tollens-soft: fault 1 (line 1): flips no bit: there "
                                            "is no such byte\n");
}

Test(fault, a_copy_ends_early_and_succeeds) {
    CUdeviceptr address = 0;
    uint8_t bytes[16];
    memset(bytes, 0xaa, sizeof bytes);
    api_faults(RULES("{\"function\": \"cuMemcpyHtoDAsync\", \"nth\": 2, \"action\": \"truncate\", "
                     "\"bytes\": 5}"));
    api_context(0);
    OK(cuMemAlloc_v2(&address, 16));
    OK(cuMemsetD8_v2(address, 0, 16));
    OK(cuMemcpyHtoDAsync_v2(address, bytes, 3, NULL));
    OK(cuMemsetD8_v2(address, 0, 16));
    OK(cuMemcpyHtoDAsync_v2(address, bytes, 16, NULL));
    OK(cuMemcpyDtoH_v2(bytes, address, 16));
    for (int i = 0; i < 16; i++) cr_assert_eq(bytes[i], i < 5 ? 0xaa : 0, "byte %d", i);
}

Test(fault, a_copy_of_rows_ends_within_one) {
    uint8_t from[12], to[12] = {0};
    CUdeviceptr address = 0;
    api_faults(RULES("{\"function\": \"cuMemcpy2D\", \"action\": \"truncate\", \"bytes\": 7}"));
    memset(from, 1, sizeof from);
    api_context(0);
    OK(cuMemAlloc_v2(&address, 12));
    OK(cuMemcpyHtoD_v2(address, from, 12));
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = address,
                                .srcPitch = 4,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = to,
                                .dstPitch = 4,
                                .WidthInBytes = 3,
                                .Height = 3};
    OK(cuMemcpy2D_v2(&copy));
    static const uint8_t wanted[12] = {1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0};
    cr_assert_eq(memcmp(to, wanted, sizeof to), 0);
}

Test(fault, a_kernel_is_ended) {
    /* One that would not end, and one that would be over before anybody counts. */
    CUdeviceptr address = 0;
    api_faults(TOLD("{\"function\": \"cuLaunchKernel\", \"nth\": 1, \"action\": \"timeout\", "
                    "\"instructions\": 1000}"));
    test_capture(stderr);
    api_context(0);
    OK(cuMemAlloc_v2(&address, 4));
    OK(cuMemsetD32_v2(address, 0, 1));
    api_hold(address, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
    cr_assert(strstr(test_captured(stderr), "its budget of 1000 instructions") != NULL);
}

Test(fault, a_short_kernel_is_ended_as_well) {
    CUdeviceptr address = 0;
    api_faults(RULES("{\"function\": \"cuLaunchKernel\", \"nth\": 2, \"action\": \"timeout\"}"));
    api_context(0);
    OK(cuMemAlloc_v2(&address, 4));
    api_put(address, 1, NULL);
    OK(cuCtxSynchronize());
    api_put(address, 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
    REFUSED(cuMemAlloc_v2(&address, 4), CUDA_ERROR_LAUNCH_TIMEOUT);
}

Test(fault, memory_runs_out_early) {
    CUdeviceptr one = 0, other = 0, third = 0;
    size_t free = 0, total = 0;
    CUmemGenericAllocationHandle physical = 0;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    setenv("TOLLENS_SOFT_MEMORY", "64M", 1);
    api_faults(RULES("{\"action\": \"budget\", \"bytes\": \"4M\", \"device\": 0}"));
    api_context(0);
    OK(cuMemGetInfo_v2(&free, &total));
    cr_assert(free == 64 << 20 && total == 64 << 20);
    OK(cuMemAlloc_v2(&one, 3 << 20));
    cr_assert(strstr(test_log(), "device 0 is limited to 4194304 bytes") != NULL, "%s", test_log());
    REFUSED(cuMemAlloc_v2(&other, 2 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemAllocAsync(&other, 2 << 20, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    REFUSED(cuMemCreate(&physical, 2 << 20, &property, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&third, 1 << 20));
    OK(cuMemFree_v2(one));
    OK(cuMemAllocAsync(&other, 2 << 20, NULL));
    api_context(1);
    OK(cuMemAlloc_v2(&one, 32 << 20));
}

Test(fault, several_rules_apply_to_one_call) {
    api_faults(TOLD("{\"function\": \"cuCtxSynchronize\", \"action\": \"delay\", \"us\": 1},\n"
                    "{\"function\": \"cuCtx*\", \"nth\": 1, \"action\": \"return\", "
                    "\"code\": 4}, {\"function\": \"*\", \"nth\": 1, \"action\": \"return\", "
                    "\"code\": 5, \"thread\": 9}"));
    test_capture(stderr);
    OK(cuInit(0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_DEINITIALIZED);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    cr_assert_str_eq(
        test_captured(stderr),
        "tollens-soft: fault 1 (line 1): call 1 of cuCtxSynchronize is delayed by 1 us\n"
        "tollens-soft: fault 2 (line 2): call 1 of cuCtxSynchronize returns "
        "CUDA_ERROR_DEINITIALIZED\n"
        "tollens-soft: fault 1 (line 1): call 2 of cuCtxSynchronize is delayed by 1 us\n");
}
