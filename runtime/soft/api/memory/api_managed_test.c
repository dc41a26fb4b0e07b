/*
 * Managed memory: one address for host and devices, freed like device memory, and stored advice.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CPU = -1, NONE = -2, PAGE = 65536 };

static CUdeviceptr managed(size_t bytes) {
    CUdeviceptr pointer = 0;
    OK(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    return pointer;
}

/* api_kernels has a kernel put(to, value). */
static void put(CUdeviceptr to, unsigned value) {
    CUmodule module = NULL;
    CUfunction kernel = NULL;
    void *arguments[] = {&to, &value};
    OK(cuModuleLoadData(&module, api_kernels));
    OK(cuModuleGetFunction(&kernel, module, "put"));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
}

Test(api_managed, host_and_device_use_one_address) {
    int has = 0, concurrent = 0;
    api_context(0);
    OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
    OK(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    cr_assert(has == 1 && concurrent == 1);
    CUdeviceptr pointer = managed(64);
    uint32_t *words = (uint32_t *)(uintptr_t)pointer, copy[16];
    memset(words, 0, 64);
    put(pointer + 8, 77);
    OK(cuCtxSynchronize());
    cr_assert(words[2] == 77 && words[0] == 0);
    words[3] = 88;
    OK(cuMemcpyDtoH_v2(copy, pointer, sizeof copy));
    cr_assert(copy[2] == 77 && copy[3] == 88);
    OK(cuMemsetD32_v2(pointer, 5, 16));
    OK(cuCtxSynchronize());
    cr_assert(words[0] == 5 && words[15] == 5);
    OK(cuMemFree_v2(pointer));
}

Test(api_managed, accesses_are_checked_as_of_device_memory) {
    api_context(0);
    CUdeviceptr pointer = managed(64);
    put(pointer + 64, 1);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_log(), "0 bytes past the end of allocation") != NULL, "%s", test_log());
}

Test(api_managed, a_pointer_tells_what_it_is) {
    bool is_managed = false;
    unsigned type = 0;
    CUdeviceptr pointer = 0, device = 0, base = 0;
    void *host = NULL;
    size_t size = 0;
    api_context(0);
    pointer = managed(1000);
    OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer + 5));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer));
    OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer));
    OK(cuMemGetAddressRange_v2(&base, &size, pointer + 999));
    cr_assert(is_managed && type == CU_MEMORYTYPE_DEVICE && device == pointer);
    cr_assert(host == (void *)(uintptr_t)pointer && base == pointer && size == 1000);
    OK(cuMemFree_v2(pointer));
    REFUSED(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&pointer, 4));
    OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    cr_assert(!is_managed);
}

static int ask(CUdeviceptr pointer, size_t bytes, CUmem_range_attribute attribute) {
    int answer = 99;
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, attribute, pointer, bytes));
    return answer;
}

Test(api_managed, advice_is_remembered_page_by_page) {
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    int accessors[4];
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    api_context(0);
    CUdeviceptr pointer = managed(4 * PAGE);
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), NONE);
    OK(cuMemAdvise(pointer, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    cr_assert_eq(ask(pointer, 1, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    OK(cuMemAdvise(pointer, 4 * PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1));
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 1);
    OK(cuMemAdvise_v2(pointer + 2 * PAGE, 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), NONE);
    cr_assert_eq(ask(pointer + 2 * PAGE, 1, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CPU);
    cr_assert_eq(ask(pointer + 2 * PAGE, 1, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE),
                 CU_MEM_LOCATION_TYPE_HOST);
    OK(cuMemAdvise(pointer, 4 * PAGE, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, CPU));
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), NONE);
    OK(cuMemAdvise(pointer, 4 * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
    OK(cuMemAdvise(pointer, 4 * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, CPU));
    OK(cuMemAdvise(pointer, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    OK(cuMemRangeGetAttribute(accessors, sizeof accessors, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                              pointer, 4 * PAGE));
    cr_assert(accessors[0] == 1 && accessors[1] == CPU && accessors[2] == NONE);
    OK(cuMemAdvise(pointer, 4 * PAGE, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 1));
    OK(cuMemRangeGetAttribute(accessors, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer, PAGE));
    cr_assert_eq(accessors[0], 0);
    OK(cuMemPrefetchAsync(pointer, 4 * PAGE, 1, NULL));
    cr_assert_eq(ask(pointer, 4 * PAGE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), 1);
    OK(cuMemPrefetchAsync_v2(pointer, PAGE, host, 0, NULL));
    cr_assert_eq(ask(pointer, PAGE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CPU);
    cr_assert_eq(ask(pointer, 2 * PAGE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), NONE);
    /* Several at once. */
    int mostly = 9, place = 9;
    void *answers[] = {&mostly, &place};
    size_t sizes[] = {4, 4};
    CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                          CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID};
    OK(cuMemRangeGetAttributes(answers, sizes, attributes, 2, pointer + 3 * PAGE, PAGE));
    cr_assert(mostly == 0 && place == 1);
    /* What is freed is forgotten. */
    OK(cuMemFree_v2(pointer));
    REFUSED(cuMemAdvise(pointer, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_managed, what_makes_no_sense_is_refused) {
    CUdeviceptr pointer = 0, device = 0;
    const CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 3};
    int answer = 0;
    api_context(0);
    REFUSED(cuMemAllocManaged(&pointer, 4, 7), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocManaged(&pointer, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAllocManaged(NULL, 4, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    pointer = managed(1000);
    OK(cuMemAlloc_v2(&device, 1000));
    REFUSED(cuMemAdvise(pointer, 1001, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAdvise(pointer, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAdvise(device, 8, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAdvise(pointer, 8, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAdvise(pointer, 8, 7, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAdvise(pointer, 8, CU_MEM_ADVISE_SET_ACCESSED_BY, 5), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuMemAdvise_v2(pointer, 8, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPrefetchAsync(pointer, 8, 5, NULL), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuMemPrefetchAsync(device, 8, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPrefetchAsync(pointer, 8, 0, (CUstream)&answer), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMemPrefetchAsync_v2(pointer, 8, node, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemRangeGetAttribute(&answer, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, 8),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemRangeGetAttribute(&answer, 4, 77, pointer, 8), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, pointer, 8),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamAttachMemAsync(NULL, pointer, 0, CU_MEM_ATTACH_SINGLE));
    OK(cuStreamAttachMemAsync(NULL, pointer, 1000, CU_MEM_ATTACH_HOST));
    REFUSED(cuStreamAttachMemAsync(NULL, pointer, 10, CU_MEM_ATTACH_HOST),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamAttachMemAsync(NULL, device, 0, CU_MEM_ATTACH_HOST), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamAttachMemAsync(NULL, pointer, 0, 9), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(pointer + 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFreeHost((void *)(uintptr_t)pointer), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(pointer));
    REFUSED(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
}

/* More than the device has can be managed; the end of a context frees it. */
Test(api_managed, it_is_not_charged_and_ends_with_its_context) {
    size_t before = 0, after = 0;
    CUdeviceptr pointer = 0;
    CUcontext context = NULL;
    setenv("TOLLENS_SOFT_MEMORY", "1M", 1);
    api_context(0);
    OK(cuMemGetInfo_v2(&before, NULL));
    pointer = managed(3 << 20);
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after);
    OK(cuMemFree_v2(pointer));
    OK(cuCtxCreate_v2(&context, 0, 0));
    pointer = managed(64);
    OK(cuCtxDestroy_v2(context));
    api_context(0);
    REFUSED(cuMemAdvise(pointer, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
}

/* What nvcc makes of "__managed__ int counter = 5; __managed__ float table[10];". */
static const char managed_variables[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .attribute(.managed) .align 4 .u32 counter = 5;\n"
    ".global .attribute(.managed) .align 4 .b8 table[40];\n"
    ".visible .entry bump()\n{\n"
    ".reg .b32 %r<4>;\n"
    "ld.global.u32 %r1, [counter];\nadd.s32 %r2, %r1, 1;\nst.global.u32 [counter], %r2;\n"
    "mov.u32 %r3, 1073741824;\nst.global.u32 [table+12], %r3;\nret;\n}\n";

Test(api_managed, a_managed_variable_has_one_address_for_host_and_device) {
    CUdeviceptr counter_address = 0, table_address = 0, host_address = 0;
    size_t bytes = 0;
    unsigned is_managed = 0;
    int preferred = 0;
    CUmodule module = NULL;
    CUfunction bump = NULL;
    api_context(0);
    OK(cuModuleLoadData(&module, managed_variables));
    OK(cuModuleGetFunction(&bump, module, "bump"));
    OK(cuModuleGetGlobal_v2(&counter_address, &bytes, module, "counter"));
    cr_assert_eq(bytes, 4);
    OK(cuModuleGetGlobal_v2(&table_address, &bytes, module, "table"));
    cr_assert_eq(bytes, 40);
    volatile int *counter = (volatile int *)(uintptr_t)counter_address;
    volatile float *table = (volatile float *)(uintptr_t)table_address;
    cr_assert(*counter == 5 && table[3] == 0);
    *counter = 41;
    OK(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    cr_assert(*counter == 42 && table[3] == 2.0f && table[4] == 0);
    OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, counter_address));
    cr_assert(is_managed != 0);
    OK(cuPointerGetAttribute(&host_address, CU_POINTER_ATTRIBUTE_HOST_POINTER, counter_address));
    cr_assert_eq(host_address, counter_address);
    OK(cuMemAdvise(table_address, 40, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
    OK(cuMemRangeGetAttribute(&preferred, sizeof preferred,
                              CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, table_address, 40));
    cr_assert_eq(preferred, 0);
    REFUSED(cuMemAdvise(table_address, 41, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2(counter_address), CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleUnload(module));
    REFUSED(cuMemAdvise(table_address, 40, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleLoadData(&module, managed_variables));
    OK(cuModuleGetGlobal_v2(&table_address, NULL, module, "table"));
    OK(cuMemRangeGetAttribute(&preferred, sizeof preferred,
                              CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, table_address, 40));
    cr_assert_eq(preferred, -2); /* CU_DEVICE_INVALID */
}

Test(api_managed, a_library_tells_of_its_managed_variables) {
    CUdeviceptr address = 0;
    CUlibrary library = NULL;
    size_t bytes = 0;
    api_context(0);
    OK(cuLibraryLoadData(&library, managed_variables, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetManaged(&address, &bytes, library, "counter"));
    cr_assert_eq(bytes, 4);
    cr_assert_eq(*(const int *)(uintptr_t)address, 5);
    REFUSED(cuLibraryGetManaged(&address, &bytes, library, "none"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuLibraryGetManaged(NULL, NULL, library, "counter"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuLibraryGetGlobal(&address, &bytes, library, "counter"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryUnload(library));
}
