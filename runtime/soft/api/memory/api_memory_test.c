/*
 * Device memory: its accounting, its limit, and what may be freed.
 */
#include "test/test_api.h"

#include <stdlib.h>

static size_t free_now(void) {
    size_t bytes = 0;
    OK(cuMemGetInfo_v2(&bytes, NULL));
    return bytes;
}

Test(api_memory, the_environment_says_how_much_there_is) {
    size_t bytes = 0, total = 0, left = 0;
    setenv("TOLLENS_SOFT_MEMORY", "3M", 1);
    api_context(0);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    OK(cuMemGetInfo_v2(&left, &total));
    cr_assert(bytes == 3 << 20 && total == bytes && left == bytes, "%zu, %zu, %zu", bytes, total,
              left);
    OK(cuMemGetInfo_v2(NULL, NULL));
}

Test(api_memory, sizes_come_with_units) {
    size_t bytes = 0;
    setenv("TOLLENS_SOFT_MEMORY", "2G", 1);
    api_context(0);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    cr_assert_eq(bytes, (size_t)2 << 30);
}

Test(api_memory, a_size_that_makes_no_sense_leaves_the_usual_one) {
    size_t bytes = 0;
    setenv("TOLLENS_SOFT_MEMORY", "8 elephants", 1);
    api_context(0);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    cr_assert_eq(bytes, (size_t)8 << 30);
}

Test(api_memory, bad_arguments_are_refused) {
    CUdeviceptr pointer = 0;
    size_t pitch = 0;
    api_context(0);
    REFUSED(cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAlloc_v2(&pointer, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemAlloc_v2(&pointer, (size_t)1 << 62), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemAllocPitch_v2(NULL, &pitch, 4, 4, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, NULL, 4, 4, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 0, 4, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 4, 0, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 4, 4, 3), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, SIZE_MAX, 1, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocPitch_v2(&pointer, &pitch, 1000, SIZE_MAX, 4), CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert(pointer == 0 && pitch == 0, "nothing is written on failure");
}

Test(api_memory, what_is_used_up_comes_back_exactly) {
    enum { MOST = 64 };
    CUdeviceptr pointers[MOST];
    size_t all = 0, before = 0;
    setenv("TOLLENS_SOFT_MEMORY", "1M", 1);
    api_context(0);
    OK(cuMemGetInfo_v2(&before, &all));
    int count = 0;
    CUresult result = CUDA_SUCCESS;
    while (count < MOST && result == CUDA_SUCCESS) {
        result = cuMemAlloc_v2(&pointers[count], 100000);
        count += result == CUDA_SUCCESS;
    }
    cr_assert_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert(count > 0);
    size_t each = (before - free_now()) / (size_t)(count > 0 ? count : 1);
    cr_assert(each >= 100000 && each < 100000 + 512 && free_now() < each, "each took %zu", each);
    cr_assert_eq(before - free_now(), each * (size_t)count);
    for (int i = 0; i < count; i += 2) OK(cuMemFree_v2(pointers[i]));
    cr_assert_eq(before - free_now(), each * (size_t)(count / 2));
    for (int i = 1; i < count; i += 2) OK(cuMemFree_v2(pointers[i]));
    cr_assert_eq(free_now(), before);
    OK(cuMemAlloc_v2(&pointers[0], all));
    cr_assert_eq(free_now(), 0);
    REFUSED(cuMemAlloc_v2(&pointers[1], 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(pointers[0]));
}

Test(api_memory, only_what_was_allocated_can_be_freed) {
    CUdeviceptr pointer = 0;
    int host = 0;
    void *pinned = NULL;
    api_context(0);
    OK(cuMemAlloc_v2(&pointer, 4096));
    OK(cuMemHostAlloc(&pinned, 4096, 0));
    REFUSED(cuMemFree_v2(pointer + 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(pointer + 4096), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(0));
    REFUSED(cuMemFree_v2((CUdeviceptr)(uintptr_t)&host), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFreeHost((void *)(uintptr_t)pointer), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(pointer));
    REFUSED(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(pinned));
}

Test(api_memory, freeing_waits_for_what_uses_the_memory) {
    CUdeviceptr flag_address = 0, pointer = 0;
    CUstream stream = NULL, waiter = NULL;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuMemAlloc_v2(&pointer, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    api_put(pointer, 7, stream);
    /* Another stream lets it go on, so that only waiting can end well. */
    OK(cuStreamWriteValue32_v2(waiter, flag_address, 1, 0));
    OK(cuMemFree_v2(pointer));
    OK(cuCtxSynchronize());
    cr_assert_eq(*flag, 1);
}

Test(api_memory, addresses_are_aligned_and_apart) {
    enum { COUNT = 100 };
    CUdeviceptr pointers[COUNT];
    api_context(0);
    for (size_t i = 0; i < COUNT; i++) {
        OK(cuMemAlloc_v2(&pointers[i], i * 37 + 1));
        cr_assert_eq(pointers[i] % 256, 0);
        for (size_t j = 0; j < i; j++) {
            CUdeviceptr low = pointers[j] < pointers[i] ? pointers[j] : pointers[i];
            CUdeviceptr high = pointers[j] < pointers[i] ? pointers[i] : pointers[j];
            cr_assert(high - low >= 4096, "an overrun of one must not hit the other");
        }
    }
}

Test(api_memory, large_ones_begin_at_a_large_page) {
    CUdeviceptr small = 0, large = 0;
    api_context(0);
    for (uint64_t bytes = 2 << 20; bytes < 16 << 20; bytes += (3 << 20) + 1000) {
        OK(cuMemAlloc_v2(&small, 8));
        OK(cuMemAlloc_v2(&large, bytes));
        cr_assert_eq(large % (2 << 20), 0, "%llu bytes at %#llx", (unsigned long long)bytes, large);
    }
}

Test(api_memory, pitched_rows_begin_at_even_distances) {
    CUdeviceptr pointer = 0;
    size_t pitch = 0, size = 0;
    CUdeviceptr base = 0;
    api_context(0);
    OK(cuMemAllocPitch_v2(&pointer, &pitch, 1025, 7, 16));
    cr_assert(pitch >= 1025 && pitch % 512 == 0, "%zu", pitch);
    OK(cuMemGetAddressRange_v2(&base, &size, pointer + 6 * pitch + 1024));
    cr_assert(base == pointer && size == pitch * 7);
}

Test(api_memory, ranges_are_found_by_any_address_in_them) {
    CUdeviceptr pointer = 0, base = 0;
    size_t size = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&pointer, 1000));
    OK(cuMemGetAddressRange_v2(&base, &size, pointer + 999));
    cr_assert(base == pointer && size == 1000);
    OK(cuMemGetAddressRange_v2(NULL, &size, pointer));
    OK(cuMemGetAddressRange_v2(&base, NULL, pointer));
    REFUSED(cuMemGetAddressRange_v2(&base, &size, pointer + 1000), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuMemGetAddressRange_v2(&base, &size, pointer - 1), CUDA_ERROR_NOT_FOUND);
    OK(cuMemFree_v2(pointer));
    REFUSED(cuMemGetAddressRange_v2(&base, &size, pointer), CUDA_ERROR_NOT_FOUND);
}

/* A kernel that uses freed memory is detected; the report differs from that of memory that never
 * existed. */
Test(api_memory, a_kernel_that_uses_freed_memory_fails) {
    CUdeviceptr pointer = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&pointer, 4));
    OK(cuMemFree_v2(pointer));
    api_put(pointer, 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    char text[4096];
    size_t bytes = sizeof text;
    OK(cuLogsDumpToMemory(NULL, text, &bytes, 0));
    cr_assert(strstr(text, "which was freed") != NULL, "%s", text);
}
