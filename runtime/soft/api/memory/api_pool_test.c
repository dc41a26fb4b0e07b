/*
 * Stream-ordered memory: what pools hold, and when they release it.
 */
#include "test/test_api.h"

#include <stdlib.h>
#include <string.h>

enum { MEBI = 1 << 20, CHUNK = 2 * MEBI };

static CUmemoryPool usual(void) {
    CUmemoryPool pool = NULL;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static cuuint64_t ask(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static cuuint64_t used(CUmemoryPool pool) {
    return ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

static cuuint64_t reserved(CUmemoryPool pool) {
    return ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static void keep(CUmemoryPool pool, cuuint64_t bytes) {
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static size_t free_now(void) {
    size_t bytes = 0;
    OK(cuMemGetInfo_v2(&bytes, NULL));
    return bytes;
}

static CUmemoryPool new_pool(size_t most) {
    CUmemoryPool pool = NULL;
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                       .maxSize = most};
    OK(cuMemPoolCreate(&pool, &properties));
    return pool;
}

Test(api_pool, memory_is_there_at_once_and_goes_in_order) {
    CUdeviceptr flag_address = 0, pointer = 0;
    CUstream stream = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    OK(cuMemAllocAsync(&pointer, 1000, stream));
    api_put(pointer, 5, stream);
    OK(cuMemFreeAsync(pointer, stream));
    /* The stream has not come to the free: the memory is still used. */
    cr_assert_eq(used(usual()), 1024);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(used(usual()), 0);
    /* Work after the free must not touch it. */
    api_put(pointer, 5, stream);
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(api_pool, synchronizing_gives_back_what_is_above_the_threshold) {
    CUdeviceptr pointer = 0;
    CUevent event = NULL;
    api_context(0);
    CUmemoryPool pool = usual();
    size_t before = free_now();
    OK(cuEventCreate(&event, 0));
    cr_assert_eq(ask(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    for (int way = 0; way < 3; way++) {
        OK(cuMemAllocAsync(&pointer, 5 * MEBI, NULL));
        cr_assert_eq(used(pool), 5 * MEBI);
        cr_assert_eq(reserved(pool), 3 * CHUNK);
        cr_assert_eq(before - free_now(), 3 * CHUNK);
        OK(cuMemFreeAsync(pointer, NULL));
        OK(cuEventRecord(event, NULL));
        if (way == 0) OK(cuStreamSynchronize(NULL));
        if (way == 1) OK(cuCtxSynchronize());
        if (way == 2) OK(cuEventSynchronize(event));
        cr_assert(used(pool) == 0 && reserved(pool) == 0 && free_now() == before, "way %d", way);
    }
    keep(pool, 3 * MEBI);
    OK(cuMemAllocAsync(&pointer, 10 * MEBI, NULL));
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(reserved(pool), 2 * CHUNK);
    cr_assert_eq(before - free_now(), 2 * CHUNK);
    /* What is kept is used again before more is reserved. */
    OK(cuMemAllocAsync(&pointer, 4 * MEBI, NULL));
    cr_assert_eq(reserved(pool), 2 * CHUNK);
    OK(cuMemFreeAsync(pointer, NULL));
    keep(pool, UINT64_MAX);
    OK(cuCtxSynchronize());
    cr_assert_eq(reserved(pool), 2 * CHUNK);
}

Test(api_pool, high_marks_stay_until_they_are_set_back) {
    CUdeviceptr one = 0, other = 0;
    cuuint64_t zero = 0, more = 1;
    api_context(0);
    CUmemoryPool pool = usual();
    OK(cuMemAllocAsync(&one, 3 * MEBI, NULL));
    OK(cuMemAllocAsync(&other, 1, NULL));
    OK(cuMemFreeAsync(one, NULL));
    OK(cuCtxSynchronize());
    cr_assert(used(pool) == 512 && reserved(pool) == CHUNK);
    cr_assert_eq(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * MEBI + 512);
    cr_assert_eq(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 2 * CHUNK);
    REFUSED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &more),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &more),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    cr_assert_eq(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 512);
    cr_assert_eq(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), CHUNK);
    REFUSED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, trimming_gives_back_what_is_not_used) {
    CUdeviceptr pointer = 0;
    api_context(0);
    CUmemoryPool pool = usual();
    keep(pool, UINT64_MAX);
    OK(cuMemAllocAsync(&pointer, 1, NULL));
    CUdeviceptr large = 0;
    OK(cuMemAllocAsync(&large, 20 * MEBI, NULL));
    OK(cuMemFreeAsync(large, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(reserved(pool), 11 * CHUNK);
    OK(cuMemPoolTrimTo(pool, 50 * MEBI));
    cr_assert_eq(reserved(pool), 11 * CHUNK);
    OK(cuMemPoolTrimTo(pool, 8 * MEBI));
    cr_assert_eq(reserved(pool), 4 * CHUNK);
    OK(cuMemPoolTrimTo(pool, 0));
    cr_assert_eq(reserved(pool), CHUNK, "what is used cannot be given back");
}

/* So does an H200 with driver 580. */
Test(api_pool, trimming_does_not_see_what_was_freed_before_somebody_waits) {
    CUdeviceptr pointer = 0;
    CUevent event = NULL;
    CUstream stream = NULL;
    api_context(0);
    CUmemoryPool pool = usual();
    keep(pool, UINT64_MAX);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAllocAsync(&pointer, 20 * MEBI, stream));
    OK(cuMemFreeAsync(pointer, stream));
    OK(cuEventRecord(event, stream));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) continue;
    OK(cuEventQuery(event));
    OK(cuMemPoolTrimTo(pool, 0));
    cr_assert_eq(reserved(pool), 10 * CHUNK, "a query is not a wait");
    OK(cuEventSynchronize(event));
    OK(cuMemPoolTrimTo(pool, 0));
    cr_assert_eq(reserved(pool), 0);
    OK(cuStreamDestroy_v2(stream));
    OK(cuEventDestroy_v2(event));
}

Test(api_pool, memory_is_freed_so_once) {
    CUdeviceptr pointer = 0, plain = 0, flag_address = 0;
    int host = 0;
    CUstream stream = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&plain, 100));
    OK(cuMemAllocAsync(&pointer, 100, stream));
    REFUSED(cuMemFreeAsync(pointer + 1, stream), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFreeAsync(plain + 1, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(0, stream));
    REFUSED(cuMemFreeAsync((CUdeviceptr)(uintptr_t)&host, stream), CUDA_ERROR_INVALID_VALUE);
    api_hold(flag_address, stream);
    OK(cuMemFreeAsync(pointer, stream));
    REFUSED(cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    REFUSED(cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
    /* cuMemFree takes a pool's memory as well. */
    OK(cuMemAllocAsync(&pointer, 100, stream));
    OK(cuMemFree_v2(pointer));
    REFUSED(cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(used(usual()), 0);
}

/* CUDA C++ Programming Guide, stream-ordered memory: what cuMemAlloc gave may be freed in a
 * stream's order as well. */
Test(api_pool, memory_of_a_context_is_freed_in_the_streams_order) {
    CUdeviceptr plain = 0, flag_address = 0;
    size_t before = 0, meanwhile = 0, after = 0;
    CUstream stream = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuMemAlloc_v2(&plain, 100));
    api_hold(flag_address, stream);
    api_put(plain, 6, stream);
    OK(cuMemFreeAsync(plain, stream));
    REFUSED(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(plain), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetInfo_v2(&meanwhile, NULL));
    cr_assert_lt(meanwhile, before);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(after, before);
    REFUSED(cuMemsetD8_v2(plain, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, a_stream_needs_no_current_context) {
    CUdeviceptr pointer = 0, other = 0;
    CUstream stream = NULL;
    CUcontext context = api_context(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(NULL));
    OK(cuMemAllocAsync(&pointer, 100, stream));
    OK(cuMemAllocFromPoolAsync(&other, 100, usual(), stream));
    OK(cuMemFreeAsync(pointer, stream));
    REFUSED(cuMemFreeAsync(other, NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemAllocAsync(&pointer, 100, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemFreeAsync(other, stream));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(used(usual()), 0);
}

Test(api_pool, bad_arguments_are_refused) {
    CUdeviceptr pointer = 0;
    CUmemoryPool pool = NULL;
    cuuint64_t value = 0;
    const CUmemPool_attribute threshold = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    CUmemPoolProps good = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                           .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemPoolProps bad = good;
    REFUSED(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    REFUSED(cuMemAllocAsync(&pointer, 4, NULL), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemFreeAsync(4096, NULL), CUDA_ERROR_INVALID_CONTEXT);
    api_context(0);
    REFUSED(cuMemAllocAsync(NULL, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    pointer = 9;
    OK(cuMemAllocAsync(&pointer, 0, NULL)); /* unlike cuMemAlloc */
    cr_assert_eq(pointer, 0);
    REFUSED(cuMemAllocAsync(&pointer, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemAllocAsync(&pointer, 4, (CUstream)(uintptr_t)64), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMemAllocFromPoolAsync(&pointer, 4, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetDefaultMemPool(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetDefaultMemPool(&pool, 1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceGetMemPool(&pool, -1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuDeviceSetMemPool(0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolCreate(NULL, &good), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
    bad.allocType = 0;
    REFUSED(cuMemPoolCreate(&pool, &bad), CUDA_ERROR_INVALID_VALUE);
    bad = good;
    bad.location.id = 9;
    REFUSED(cuMemPoolCreate(&pool, &bad), CUDA_ERROR_INVALID_DEVICE);
    bad.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA; /* and there is one node */
    REFUSED(cuMemPoolCreate(&pool, &bad), CUDA_ERROR_NOT_SUPPORTED);
    bad = good;
    bad.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    REFUSED(cuMemPoolCreate(&pool, &bad), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemPoolGetAttribute(usual(), 0, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolGetAttribute(usual(), 9, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolGetAttribute(usual(), threshold, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolGetAttribute(NULL, threshold, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolSetAttribute(NULL, threshold, &value), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolDestroy(usual()), CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, reuse_attributes_are_kept) {
    int value = 9, off = 0;
    api_context(0);
    for (int a = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
         a <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; a++) {
        OK(cuMemPoolGetAttribute(usual(), a, &value));
        cr_assert_eq(value, 1);
        OK(cuMemPoolSetAttribute(usual(), a, &off));
        OK(cuMemPoolGetAttribute(usual(), a, &value));
        cr_assert_eq(value, 0);
    }
}

Test(api_pool, a_device_can_be_given_another_pool) {
    CUmemoryPool pool = NULL, current = NULL;
    CUdeviceptr pointer = 0;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    api_context(0);
    pool = new_pool(0);
    OK(cuDeviceGetMemPool(&current, 0));
    cr_assert(current == usual());
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuDeviceGetMemPool(&current, 0));
    cr_assert(current == pool);
    OK(cuMemAllocAsync(&pointer, 100, NULL));
    cr_assert(used(pool) == 512 && used(usual()) == 0);
    OK(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer));
    cr_assert(current == pool);
    /* Destroyed, it lasts until its memory is free; the device has its default pool again. */
    OK(cuMemPoolDestroy(pool));
    REFUSED(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    cr_assert(current == usual());
    api_put(pointer, 4, NULL);
    cr_assert_eq(api_read(pointer), 4);
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    size_t total = 0, left = 0;
    OK(cuMemGetInfo_v2(&left, &total));
    cr_assert_eq(left, total);
    OK(cuMemGetDefaultMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, current));
    REFUSED(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_MANAGED),
            CUDA_ERROR_NOT_SUPPORTED);
    location.type = CU_MEM_LOCATION_TYPE_HOST;
    REFUSED(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
            CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemGetMemPool(&current, NULL, CU_MEM_ALLOCATION_TYPE_PINNED),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, a_pool_may_have_a_most) {
    CUdeviceptr one = 0, other = 0;
    api_context(0);
    CUmemoryPool pool = new_pool(4 * MEBI);
    OK(cuMemAllocFromPoolAsync(&one, 3 * MEBI, pool, NULL));
    REFUSED(cuMemAllocFromPoolAsync(&other, 2 * MEBI, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocFromPoolAsync(&other, MEBI, pool, NULL));
    OK(cuMemFreeAsync(one, NULL));
    OK(cuMemFreeAsync(other, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolDestroy(pool));
}

/* What a pool only holds does not keep another from the device's memory. */
/* Goal: a program that never waits may free and allocate all memory again and again. */
Test(api_pool, what_a_stream_frees_it_may_have_again_at_once) {
    CUdeviceptr pointer = 0;
    CUstream stream = NULL;
    api_context(0);
    CUmemoryPool pool = new_pool(8 * MEBI);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 20; i++) {
        OK(cuMemAllocFromPoolAsync(&pointer, 6 * MEBI, pool, stream));
        OK(cuMemsetD8Async(pointer, 1, 6 * MEBI, stream));
        OK(cuMemFreeAsync(pointer, stream));
    }
    OK(cuMemAllocFromPoolAsync(&pointer, 6 * MEBI, pool, stream));
    REFUSED(cuMemAllocFromPoolAsync(&pointer, 6 * MEBI, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
}

Test(api_pool, pools_give_way_to_each_other) {
    CUdeviceptr pointer = 0, plain = 0;
    setenv("TOLLENS_SOFT_MEMORY", "16M", 1);
    api_context(0);
    CUmemoryPool pool = new_pool(0);
    keep(pool, UINT64_MAX);
    OK(cuMemAllocFromPoolAsync(&pointer, 16 * MEBI, pool, NULL));
    REFUSED(cuMemAllocAsync(&plain, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemAlloc_v2(&plain, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(reserved(pool), 16 * MEBI);
    OK(cuMemAllocAsync(&plain, MEBI, NULL));
    cr_assert_eq(reserved(pool), 0);
    OK(cuMemFreeAsync(plain, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemAllocFromPoolAsync(&pointer, 16 * MEBI, pool, NULL));
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemAlloc_v2(&plain, MEBI));
    OK(cuMemPoolDestroy(pool));
}

/* Pools are in a list, which a device without memory left goes through. */
Test(api_pool, pools_may_go_in_any_order, .timeout = 60) {
    enum { POOLS = 3, BYTES = 64 * MEBI };
    static const int orders[][POOLS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    setenv("TOLLENS_SOFT_MEMORY", "256M", 1);
    api_context(0);
    size_t before = free_now();
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        CUmemoryPool pools[POOLS] = {NULL};
        CUdeviceptr all = 0;
        for (int p = 0; p < POOLS; p++) {
            CUdeviceptr memory = 0;
            pools[p] = new_pool(0);
            keep(pools[p], UINT64_MAX);
            OK(cuMemAllocFromPoolAsync(&memory, BYTES, pools[p], NULL));
            OK(cuMemFreeAsync(memory, NULL));
        }
        OK(cuCtxSynchronize());
        for (int p = 0; p < POOLS - 1; p++) OK(cuMemPoolDestroy(pools[orders[i][p]]));
        cr_assert_eq(free_now(), before - BYTES);
        /* The last one's memory is still found where it is needed. */
        OK(cuMemAlloc_v2(&all, before - MEBI));
        OK(cuMemFree_v2(all));
        OK(cuMemPoolDestroy(pools[orders[i][POOLS - 1]]));
    }
}

Test(api_pool, other_devices_need_access) {
    CUdeviceptr pointer = 0, later = 0;
    CUmemAccess_flags flags = 9;
    CUmemLocation own = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, far = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    api_context(0);
    CUmemoryPool pool = new_pool(0);
    OK(cuMemPoolGetAccess(&flags, pool, &own));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolGetAccess(&flags, pool, &far));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemAllocFromPoolAsync(&pointer, 64, pool, NULL));
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &far));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemAllocFromPoolAsync(&later, 64, pool, NULL));
    api_context(1);
    api_put(pointer, 1, NULL); /* what was there before and what came after */
    api_put(later, 2, NULL);
    OK(cuCtxSynchronize());
    cr_assert(api_read(pointer) == 1 && api_read(later) == 2);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemPoolSetAccess(pool, &access, 1));
    api_put(pointer, 3, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    access.location.id = 0;
    REFUSED(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_VALUE);
    access.location.id = 2;
    REFUSED(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuMemPoolSetAccess(pool, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolGetAccess(NULL, pool, &own), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolGetAccess(&flags, pool, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, what_was_not_made_for_it_is_not_shared) {
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemPoolPtrExportData data = {.reserved = {0}};
    CUdeviceptr pointer = 0;
    int file = 0;
    CUmemoryPool pool = NULL;
    api_context(0);
    REFUSED(cuMemPoolExportToShareableHandle(&file, usual(), type, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)-1, type, 0),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocAsync(&pointer, 4, NULL));
    REFUSED(cuMemPoolExportPointer(&data, pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolImportPointer(&pointer, usual(), &data), CUDA_ERROR_INVALID_VALUE);
}

Test(api_pool, memory_of_the_host_is_at_one_address) {
    const CUmemPoolProps on_host = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = on_host.location;
    CUmemAccess_flags flags = 0;
    CUmemoryPool pool = NULL;
    CUdeviceptr pointer = 0;
    size_t before = 0, after = 0;
    api_context(0);
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuMemPoolCreate(&pool, &on_host));
    OK(cuMemPoolGetAccess(&flags, pool, &device));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemPoolGetAccess(&flags, pool, &host));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemAllocFromPoolAsync(&pointer, 8, pool, NULL));
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after, "the device is charged");
    volatile unsigned *words = (volatile unsigned *)(uintptr_t)pointer;
    words[1] = 5;
    api_put(pointer, 6, NULL);
    OK(cuCtxSynchronize());
    cr_assert(words[0] == 6 && words[1] == 5);
    cr_assert_eq(api_read(pointer + 4), 5);
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    REFUSED(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolDestroy(pool));
}
