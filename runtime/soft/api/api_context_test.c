/*
 * Contexts: creation and destruction, the stack of each thread, and sticky errors.
 */
#include "test/test_api.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static CUcontext current(void) {
    CUcontext context = NULL;
    OK(cuCtxGetCurrent(&context));
    return context;
}

Test(api_context, calls_without_a_context_say_so) {
    OK(cuInit(0));
    CUdeviceptr pointer = 0;
    size_t bytes = 0;
    void *host = NULL;
    int number = 0;
    CUdevice device = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUmodule module = NULL;
    unsigned flags = 0;
    cr_assert(current() == NULL);
    REFUSED(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxGetFlags(&flags), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxSetFlags(0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxSynchronize_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxGetStreamPriorityRange(&number, &number), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemFree_v2(4096), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemHostAlloc(&host, 4, 0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemcpyHtoD_v2(4096, &number, 4), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemsetD8_v2(4096, 0, 4), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuModuleLoadData(&module, api_kernels), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
}

Test(api_context, making_one_makes_it_current) {
    CUcontext context = NULL;
    CUdevice device = -1;
    unsigned long long id = 0;
    unsigned version = 0;
    OK(cuInit(0));
    REFUSED(cuCtxCreate_v2(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxCreate_v2(&context, 0x100, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxCreate_v2(&context, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxCreate_v2(&context, 0, 1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuCtxCreate_v2(&context, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    cr_assert(current() == context);
    OK(cuCtxGetDevice(&device));
    cr_assert_eq(device, 0);
    OK(cuCtxGetDevice_v2(&device, context));
    OK(cuCtxGetId(NULL, &id));
    OK(cuCtxGetApiVersion(context, &version));
    cr_assert(version >= 3020);
    CUcontext old = NULL;
    OK(cuCtxCreate(&old, 0, 0));
    OK(cuCtxGetApiVersion(old, &version));
    cr_assert_eq(version, 3010);
    OK(cuCtxDestroy(old));
    REFUSED(cuCtxGetDevice(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxGetId(context, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxGetApiVersion((CUcontext)(uintptr_t)16, &version), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext second = NULL;
    unsigned long long other = 0;
    OK(cuCtxCreate_v2(&second, 0, 0));
    OK(cuCtxGetId(NULL, &other));
    cr_assert(other != id && second != context);
    OK(cuCtxDestroy_v2(second));
    cr_assert(current() == context, "the one before is current again");
    OK(cuCtxDestroy_v2(context));
    cr_assert(current() == NULL);
    REFUSED(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxDestroy_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxPushCurrent_v2(context), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
}

Test(api_context, the_stack_gives_back_what_was_pushed) {
    enum { DEEP = 40 };
    CUcontext made[3], popped = NULL;
    OK(cuInit(0));
    for (int i = 0; i < 3; i++) {
        OK(cuCtxCreate_v2(&made[i], 0, 0));
        OK(cuCtxPopCurrent_v2(&popped));
        cr_assert(popped == made[i]);
    }
    for (int i = 0; i < DEEP; i++) OK(cuCtxPushCurrent_v2(made[i % 3]));
    for (int i = DEEP - 1; i >= 0; i--) {
        cr_assert(current() == made[i % 3]);
        OK(cuCtxPopCurrent_v2(i % 2 == 0 ? &popped : NULL));
    }
    REFUSED(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuCtxPushCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    /* Setting replaces the top; NULL takes it off. */
    OK(cuCtxPushCurrent_v2(made[0]));
    OK(cuCtxPushCurrent_v2(made[1]));
    OK(cuCtxSetCurrent(made[2]));
    cr_assert(current() == made[2]);
    OK(cuCtxSetCurrent(NULL));
    cr_assert(current() == made[0]);
    OK(cuCtxSetCurrent(NULL));
    OK(cuCtxSetCurrent(NULL));
    cr_assert(current() == NULL);
}

static void *look_on_thread(void *context) {
    CUcontext mine = context;
    OK(cuCtxGetCurrent(&mine));
    if (mine != NULL) return NULL;
    OK(cuCtxPushCurrent_v2(context));
    OK(cuCtxPushCurrent_v2(context));
    return context;
}

Test(api_context, each_thread_has_a_stack_of_its_own) {
    CUcontext context = NULL;
    pthread_t thread;
    void *result = NULL;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    pthread_create(&thread, NULL, look_on_thread, context);
    pthread_join(thread, &result);
    cr_assert(result == context);
    cr_assert(current() == context);
}

static void *destroy_on_thread(void *context) {
    return cuCtxDestroy_v2(context) == CUDA_SUCCESS ? context : NULL;
}

Test(api_context, one_that_another_thread_ended_stays_current_and_dead) {
    CUcontext context = NULL, fresh = NULL;
    pthread_t thread;
    void *result = NULL;
    CUdeviceptr pointer = 0;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    pthread_create(&thread, NULL, destroy_on_thread, context);
    pthread_join(thread, &result);
    cr_assert(result == context);
    cr_assert(current() == context);
    REFUSED(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    /* A new one never takes its address, so the old one stays dead. */
    OK(cuCtxCreate_v2(&fresh, 0, 0));
    cr_assert(fresh != context);
    OK(cuCtxPopCurrent_v2(NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

Test(api_context, its_end_takes_all_that_was_made_in_it) {
    CUcontext outer = api_context(0), inner = NULL;
    size_t before = 0, after = 0;
    CUdeviceptr pointer = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    void *host = NULL;
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuCtxCreate_v2(&inner, 0, 0));
    OK(cuMemAlloc_v2(&pointer, 1000));
    OK(cuMemHostAlloc(&host, 1000, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&function, module, "put"));
    OK(cuCtxDestroy_v2(inner));
    cr_assert(current() == outer);
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after);
    REFUSED(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    int value = 0;
    REFUSED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
            CUDA_ERROR_INVALID_HANDLE);
}

Test(api_context, more_than_there_is_room_for_are_refused) {
    CUcontext context = NULL;
    CUresult result = CUDA_SUCCESS;
    int made = 0;
    OK(cuInit(0));
    while (result == CUDA_SUCCESS && made < 1000) {
        result = cuCtxCreate_v2(&context, 0, 0);
        made += result == CUDA_SUCCESS;
    }
    cr_assert_eq(result, CUDA_ERROR_OUT_OF_MEMORY, "%s", api_code(result));
    cr_assert(made >= 16, "%d", made);
    OK(cuCtxDestroy_v2(current()));
    OK(cuCtxCreate_v2(&context, 0, 0));
}

Test(api_context, a_primary_one_lives_while_it_is_retained) {
    CUcontext first = NULL, second = NULL;
    unsigned flags = 9;
    int active = 9;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    cr_assert(flags == 0 && active == 0);
    REFUSED(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    cr_assert(first == second && current() == NULL, "it is not made current");
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    cr_assert_eq(active, 1);
    OK(cuCtxSetCurrent(first));
    REFUSED(cuCtxDestroy_v2(first), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    REFUSED(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    unsigned long long id = 0, again = 0;
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    OK(cuCtxGetId(second, &id));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    OK(cuCtxGetId(second, &again));
    cr_assert(id != again, "a new life has a new number");
    REFUSED(cuDevicePrimaryCtxRetain(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDevicePrimaryCtxRetain(&first, 1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDevicePrimaryCtxGetState(0, NULL, &active), CUDA_ERROR_INVALID_VALUE);
}

Test(api_context, resetting_a_primary_one_frees_and_does_not_release) {
    CUcontext context = api_context(0);
    CUdeviceptr pointer = 0;
    int active = 9;
    unsigned flags = 0;
    size_t free_bytes = 0, total = 0;
    OK(cuMemAlloc_v2(&pointer, 4096));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    cr_assert_eq(active, 0);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    cr_assert_eq(free_bytes, total);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    REFUSED(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxReset_v2(0));
}

Test(api_context, flags_are_kept_and_checked) {
    CUcontext context = NULL;
    unsigned flags = 0;
    int active = 0;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
    REFUSED(cuDevicePrimaryCtxSetFlags_v2(0, 3), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDevicePrimaryCtxSetFlags_v2(0, 0x1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    cr_assert_eq(flags, (unsigned)CU_CTX_SCHED_YIELD);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuCtxGetFlags(&flags));
    cr_assert_eq(flags, (unsigned)CU_CTX_SCHED_YIELD);
    OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN));
    REFUSED(cuDevicePrimaryCtxSetFlags(0, 0), CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
    OK(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    REFUSED(cuCtxSetFlags(0x100), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetFlags(&flags));
    cr_assert_eq(flags, (unsigned)CU_CTX_SCHED_BLOCKING_SYNC);
}

Test(api_context, limits_can_be_asked_for_and_set) {
    size_t value = 0;
    api_context(0);
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    cr_assert_eq(value, 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4001));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    cr_assert(value >= 4001 && value % 16 == 0);
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 24));
    OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    cr_assert_eq(value, 1 << 24);
    REFUSED(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxGetLimit(&value, 99), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 19));
    REFUSED(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (1 << 19) + 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    cr_assert_eq(value, 1 << 19);
    REFUSED(cuCtxSetLimit(-1, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    REFUSED(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

Test(api_context, preferences_are_kept) {
    CUfunc_cache cache = -1;
    CUsharedconfig banks = -1;
    api_context(0);
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuCtxGetCacheConfig(&cache));
    cr_assert_eq(cache, CU_FUNC_CACHE_PREFER_L1);
    REFUSED(cuCtxSetCacheConfig(4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxGetCacheConfig(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    REFUSED(cuCtxSetSharedMemConfig(3), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxGetSharedMemConfig(&banks));
    cr_assert_eq(banks, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    OK(cuCtxResetPersistingL2Cache());
}

/* After a fault every later call in the context says so, whatever its arguments; other contexts go
 * on. */
Test(api_context, a_fault_sticks_to_its_context) {
    CUcontext whole = NULL, broken = NULL;
    CUdeviceptr pointer = 0, later = 0;
    size_t bytes = 0;
    void *host = NULL;
    int number = 0;
    CUstream stream = NULL, more = NULL;
    CUevent event = NULL, other = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    float ms = 0;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&whole, 0, 0));
    OK(cuCtxCreate_v2(&broken, 0, 0));
    OK(cuMemAlloc_v2(&pointer, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&function, module, "put"));
    cr_assert_eq(api_fault(), CUDA_ERROR_ILLEGAL_ADDRESS);

    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemAlloc_v2(&later, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemAlloc_v2(NULL, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemFree_v2(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemHostAlloc(&host, 4, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemcpyDtoH_v2(&number, pointer, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemcpyHtoDAsync_v2(pointer, &number, 4, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemsetD32_v2(pointer, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemsetD32Async(pointer, 0, 1, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuStreamCreate(&more, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuEventCreate(&other, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuEventRecord(event, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuModuleLoadData(&module, api_kernels), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
            CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
            CUDA_ERROR_ILLEGAL_ADDRESS);

    OK(cuCtxSetCurrent(whole));
    OK(cuMemAlloc_v2(&later, 4));
    OK(cuCtxSynchronize());
    /* What is of the broken one stays broken, even from here. */
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuStreamDestroy_v2(stream));
    OK(cuEventDestroy_v2(event));
    OK(cuCtxDestroy_v2(broken));
    api_put(later, 5, NULL);
    cr_assert_eq(api_read(later), 5);
}

static void *has_no_context(void *argument) {
    CUdeviceptr pointer = 0;
    *(CUresult *)argument = cuMemAlloc_v2(&pointer, 4);
    return NULL;
}

/* A program that retains the primary context and goes on means that one; in other threads, and once
 * it has said which is current, it must say so as with any driver. */
Test(api_context, a_thread_that_retained_one_may_go_on) {
    CUcontext primary = NULL;
    CUdeviceptr pointer = 0;
    CUresult other = CUDA_SUCCESS;
    pthread_t thread;
    OK(cuInit(0));
    REFUSED(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    cr_assert(current() == NULL);
    OK(cuMemAlloc_v2(&pointer, 4));
    OK(cuMemsetD8_v2(pointer, 1, 4));
    cr_assert_eq(api_read(pointer), 0x01010101u);
    cr_assert_eq(pthread_create(&thread, NULL, has_no_context, &other), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(other, CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(NULL));
    REFUSED(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(primary));
    OK(cuMemFree_v2(pointer));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* Memory is freed in stream order, also after a fault: others may need it. */
Test(api_context, what_is_freed_behind_a_fault_is_freed) {
    CUcontext failed = NULL, other = NULL;
    CUdeviceptr flag_address = 0, pointer = 0;
    CUstream stream = NULL;
    CUmemoryPool pool = NULL;
    cuuint64_t used = 0;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxCreate_v2(&failed, 0, 0));
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&pointer, 4096, stream));
    api_hold(flag_address, stream);
    api_put(16, 1, stream);
    OK(cuMemFreeAsync(pointer, stream));
    *flag = 1;
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxSetCurrent(other));
    for (int i = 0; i < 2000; i++) {
        OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
        if (used == 0) break;
        usleep(1000);
    }
    cr_assert_eq(used, 0);
}
