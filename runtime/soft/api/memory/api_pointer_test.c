/*
 * What is known of pointers.
 */
#include "test/test_api.h"

#include <stdlib.h>

Test(api_pointer, device_memory_is_described) {
    CUcontext context = api_context(0), owner = NULL;
    CUdeviceptr pointer = 0, answer = 0;
    unsigned type = 0;
    int ordinal = 9, access = 0;
    bool mapped = false, managed = true;
    size_t size = 0;
    unsigned long long id = 0, other = 0;
    void *host = NULL;
    OK(cuMemAlloc_v2(&pointer, 1000));
    CUdeviceptr inside = pointer + 10;
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, inside));
    cr_assert(owner == context);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    cr_assert_eq(type, (unsigned)CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside));
    cr_assert_eq(answer, inside);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
    cr_assert_eq(ordinal, 0);
    OK(cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    cr_assert_eq(answer, pointer);
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    cr_assert_eq(size, 1000);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, inside));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, inside));
    cr_assert(mapped && !managed && access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    REFUSED(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, inside));
    OK(cuMemFree_v2(pointer));
    OK(cuMemAlloc_v2(&pointer, 1000));
    OK(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer));
    cr_assert(id != other, "numbers are not given out again");
}

Test(api_pointer, pinned_memory_is_described) {
    char *host = NULL;
    void *answer = NULL;
    unsigned type = 0;
    api_context(0);
    OK(cuMemHostAlloc((void **)&host, 100, 0));
    CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)(host + 5);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    cr_assert_eq(type, (unsigned)CU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer));
    cr_assert(answer == host + 5);
}

Test(api_pointer, others_pointers_are_refused_one_by_one) {
    int pageable = 0;
    unsigned type = 0;
    CUdeviceptr pointer = 0;
    api_context(0);
    CUdeviceptr foreign = (CUdeviceptr)(uintptr_t)&pageable;
    REFUSED(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, foreign),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&pointer, 8));
    REFUSED(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerGetAttribute(&type, 0, pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerGetAttribute(&type, 99, pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + 8),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerSetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerSetAttribute(&type, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer));
    REFUSED(cuPointerSetAttribute(&type, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, foreign),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_pointer, many_are_asked_at_once_and_unknown_ones_are_zero) {
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_CONTEXT};
    struct {
        unsigned type;
        int ordinal;
        size_t size;
        void *host;
        CUcontext context;
    } got = {9, 9, 9, &got, NULL};
    void *places[] = {&got.type, &got.size, &got.host, &got.ordinal, &got.context};
    CUdeviceptr pointer = 0;
    int pageable = 0;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&pointer, 24));
    OK(cuPointerGetAttributes(5, which, places, pointer));
    cr_assert(got.type == CU_MEMORYTYPE_DEVICE && got.size == 24 && got.host == NULL);
    cr_assert(got.ordinal == 0 && got.context == context);
    OK(cuPointerGetAttributes(5, which, places, (CUdeviceptr)(uintptr_t)&pageable));
    cr_assert(got.type == 0 && got.size == 0 && got.host == NULL && got.context == NULL);
    cr_assert_eq(got.ordinal, -2);
    REFUSED(cuPointerGetAttributes(0, which, places, pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerGetAttributes(5, NULL, places, pointer), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuPointerGetAttributes(5, which, NULL, pointer), CUDA_ERROR_INVALID_VALUE);
    which[1] = 99;
    REFUSED(cuPointerGetAttributes(5, which, places, pointer), CUDA_ERROR_INVALID_VALUE);
}

/* Libraries that are handed a pointer ask in whatever thread they are. */
Test(api_pointer, a_thread_without_a_context_may_ask) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS};
    CUcontext owner = NULL, popped = NULL;
    unsigned type = 0;
    int access = 9;
    void *places[] = {&owner, &access};
    CUdeviceptr pointer = 0;
    CUcontext context = api_context(0);
    OK(cuMemAlloc_v2(&pointer, 8));
    OK(cuCtxPopCurrent_v2(&popped));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    cr_assert_eq(type, CU_MEMORYTYPE_DEVICE);
    REFUSED(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, pointer),
            CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + 8),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttributes(2, which, places, pointer));
    cr_assert(owner == context && access == 0);
}
