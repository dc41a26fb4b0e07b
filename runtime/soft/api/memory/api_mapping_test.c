/*
 * Physical memory and reserved addresses: mappings and access rights.
 */
#include "test/test_api.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 2 << 20 };

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUmemGenericAllocationHandle create(size_t granules) {
    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemCreate(&handle, granules * GRANULE, &on_device, 0));
    return handle;
}

static CUdeviceptr reserve(size_t granules) {
    CUdeviceptr address = 0;
    OK(cuMemAddressReserve(&address, granules * GRANULE, 0, 0, 0));
    return address;
}

static CUresult allow(CUdeviceptr address, size_t granules, CUmemAccess_flags flags) {
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = flags};
    return cuMemSetAccess(address, granules * GRANULE, &access, 1);
}

static size_t free_now(void) {
    size_t bytes = 0;
    OK(cuMemGetInfo_v2(&bytes, NULL));
    return bytes;
}

/* The driver's log since the test began. */
static const char *log_text(void) {
    static char text[8192];
    size_t bytes = sizeof text;
    OK(cuLogsDumpToMemory(NULL, text, &bytes, 0));
    return text;
}

Test(api_mapping, granularity_is_that_of_large_pages) {
    size_t minimum = 0, recommended = 0;
    CUmemAllocationProp bad = on_device;
    OK(cuInit(0));
    OK(cuMemGetAllocationGranularity(&minimum, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemGetAllocationGranularity(&recommended, &on_device,
                                     CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    cr_assert(minimum == GRANULE && recommended % minimum == 0);
    REFUSED(cuMemGetAllocationGranularity(NULL, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemGetAllocationGranularity(&minimum, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemGetAllocationGranularity(&minimum, &on_device, 2), CUDA_ERROR_INVALID_VALUE);
    bad.location.id = 1;
    REFUSED(cuMemGetAllocationGranularity(&minimum, &bad, 0), CUDA_ERROR_INVALID_DEVICE);
}

Test(api_mapping, one_memory_at_two_addresses_has_the_same_bytes) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr one = reserve(1), other = reserve(2);
    OK(cuMemMap(one, GRANULE, 0, handle, 0));
    OK(cuMemMap(other + GRANULE, GRANULE, 0, handle, 0));
    OK(allow(one, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(allow(other + GRANULE, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    api_put(one + 400, 77, NULL);
    cr_assert_eq(api_read(other + GRANULE + 400), 77);
    OK(cuMemsetD32_v2(other + GRANULE, 5, 3));
    cr_assert(api_read(one + 8) == 5 && api_read(one + 400) == 77);
    /* Without the handle the mappings keep the memory. */
    OK(cuMemRelease(handle));
    cr_assert_eq(api_read(one + 8), 5);
    OK(cuMemUnmap(one, GRANULE));
    cr_assert_eq(api_read(other + GRANULE + 8), 5);
    OK(cuMemUnmap(other + GRANULE, GRANULE));
    OK(cuMemAddressFree(one, GRANULE));
    OK(cuMemAddressFree(other, 2 * GRANULE));
}

Test(api_mapping, memory_is_charged_while_anybody_holds_it) {
    api_context(0);
    size_t before = free_now();
    CUdeviceptr address = reserve(3);
    cr_assert_eq(free_now(), before, "addresses cost nothing");
    CUmemGenericAllocationHandle handle = create(2), again = 0;
    cr_assert_eq(before - free_now(), 2 * GRANULE);
    OK(cuMemMap(address, 2 * GRANULE, 0, handle, 0));
    cr_assert_eq(before - free_now(), 2 * GRANULE);
    OK(cuMemRelease(handle));
    cr_assert_eq(before - free_now(), 2 * GRANULE);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + GRANULE + 5)));
    cr_assert(again == handle);
    OK(cuMemUnmap(address, 2 * GRANULE));
    cr_assert_eq(before - free_now(), 2 * GRANULE);
    OK(cuMemRelease(again));
    cr_assert_eq(free_now(), before);
    REFUSED(cuMemRelease(again), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(address, 3 * GRANULE));
}

Test(api_mapping, more_than_the_device_has_is_refused) {
    CUmemGenericAllocationHandle handle = 0;
    setenv("TOLLENS_SOFT_MEMORY", "8M", 1);
    api_context(0);
    REFUSED(cuMemCreate(&handle, 5 * GRANULE, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemCreate(&handle, 4 * GRANULE, &on_device, 0));
    cr_assert_eq(free_now(), 0);
    OK(cuMemRelease(handle));
}

Test(api_mapping, a_handle_says_what_it_was_made_with) {
    CUmemAllocationProp properties;
    memset(&properties, 0xff, sizeof properties);
    OK(cuInit(0));
    CUmemGenericAllocationHandle handle = create(1);
    OK(cuMemGetAllocationPropertiesFromHandle(&properties, handle));
    cr_assert(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && properties.location.id == 0);
    REFUSED(cuMemGetAllocationPropertiesFromHandle(NULL, handle), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemGetAllocationPropertiesFromHandle(&properties, 64), CUDA_ERROR_INVALID_VALUE);
    int shareable = 0;
    REFUSED(cuMemExportToShareableHandle(&shareable, handle,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(handle));
}

/* A range grows by mapping more handles after it: many handles, consecutive addresses. */
Test(api_mapping, handles_side_by_side_are_one_range) {
    enum { PARTS = 4 };
    unsigned char *sent = malloc(PARTS * GRANULE), *back = malloc(PARTS * GRANULE);
    api_context(0);
    CUdeviceptr address = reserve(PARTS);
    for (int i = 0; i < PARTS; i++) {
        CUmemGenericAllocationHandle handle = create(1);
        OK(cuMemMap(address + (CUdeviceptr)i * GRANULE, GRANULE, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    OK(allow(address, PARTS, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    for (int i = 0; i < PARTS * GRANULE; i++) sent[i] = (unsigned char)(i * 13 + i / GRANULE);
    OK(cuMemcpyHtoD_v2(address, sent, PARTS * GRANULE));
    OK(cuMemcpyDtoH_v2(back, address, PARTS * GRANULE));
    cr_assert(memcmp(sent, back, PARTS * GRANULE) == 0);
    api_put(address + 2 * GRANULE - 4, 9, NULL);
    api_put(address + 2 * GRANULE, 10, NULL);
    cr_assert(api_read(address + 2 * GRANULE - 4) == 9 && api_read(address + 2 * GRANULE) == 10);
    OK(cuMemUnmap(address, PARTS * GRANULE));
    OK(cuMemAddressFree(address, PARTS * GRANULE));
    free(sent);
    free(back);
}

Test(api_mapping, the_beginning_of_a_handle_can_be_mapped) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(3);
    CUdeviceptr whole = reserve(3), part = reserve(1);
    OK(cuMemMap(whole, 3 * GRANULE, 0, handle, 0));
    OK(cuMemMap(part, GRANULE, 0, handle, 0));
    OK(allow(whole, 3, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(allow(part, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
    api_put(whole + 12, 3, NULL);
    cr_assert_eq(api_read(part + 12), 3);
}

/* ---- who may ---- */

Test(api_mapping, access_begins_with_none_and_is_told) {
    unsigned long long flags = 9;
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemLocation other = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(1);
    unsigned value = 0;
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemGetAccess(&flags, &location, address + 100));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    REFUSED(cuMemcpyDtoH_v2(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD32_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(allow(address, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
    OK(cuMemGetAccess(&flags, &location, address));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(cuMemcpyDtoH_v2(&value, address, 4));
    REFUSED(cuMemsetD32_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(allow(address, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD32_v2(address, 0, 1));
    OK(cuMemGetAccess(&flags, &location, address));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    REFUSED(cuMemGetAccess(NULL, &location, address), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemGetAccess(&flags, NULL, address), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemGetAccess(&flags, &other, address), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuMemGetAccess(&flags, &location, address + GRANULE), CUDA_ERROR_INVALID_VALUE);
    /* Mapping again begins with none again. */
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemGetAccess(&flags, &location, address));
    cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/* Each is a fault with a report, and no crash. */
static void must_fault(CUdeviceptr address, const char *said) {
    api_put(address, 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(log_text(), said) != NULL, "%s", log_text());
}

Test(api_mapping, a_kernel_where_nothing_is_mapped_faults) {
    api_context(0);
    must_fault(reserve(1) + 64, "where nothing is mapped");
}

Test(api_mapping, a_kernel_without_access_faults) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(1);
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    must_fault(address, "which this device cannot access");
}

Test(api_mapping, a_kernel_that_writes_what_it_may_only_read_faults) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(1);
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(allow(address, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
    must_fault(address, "mapped read-only");
}

Test(api_mapping, a_kernel_in_unmapped_memory_faults) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(2);
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(allow(address, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemUnmap(address, GRANULE));
    must_fault(address, "which was unmapped");
}

/* Unmapping waits for nobody: a kernel that still reads is caught in the act, and does not touch
 * bytes that are gone. */
Test(api_mapping, unmapping_under_a_kernel_is_a_fault_and_no_crash) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(1);
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(allow(address, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    OK(cuMemsetD32_v2(address, 0, 1));
    OK(cuCtxSynchronize());
    api_hold(address, NULL);
    REFUSED(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(handle));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Taking access away from a device while another has it. */
Test(api_mapping, each_device_has_access_of_its_own) {
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    api_context(0);
    CUcontext far = api_context(1);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(1);
    CUmemAccessDesc both[2] = {
        {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemSetAccess(address, GRANULE, both, 2));
    api_put(address, 6, NULL); /* from device 1, without peer access between contexts */
    cr_assert_eq(api_read(address), 6);
    both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemSetAccess(address, GRANULE, &both[1], 1));
    OK(cuCtxSetCurrent(far));
    api_put(address, 7, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    api_context(0);
    cr_assert_eq(api_read(address), 6);
}

/* ---- what is refused ---- */

Test(api_mapping, bad_arguments_are_refused) {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp bad = on_device;
    CUdeviceptr address = 0;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};
    REFUSED(cuMemCreate(&handle, GRANULE, &on_device, 0), CUDA_ERROR_NOT_INITIALIZED);
    REFUSED(cuMemAddressReserve(&address, GRANULE, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    api_context(0);
    REFUSED(cuMemCreate(NULL, GRANULE, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemCreate(&handle, 0, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemCreate(&handle, GRANULE + 4096, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemCreate(&handle, GRANULE, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemCreate(&handle, GRANULE, &on_device, 1), CUDA_ERROR_INVALID_VALUE);
    bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    REFUSED(cuMemCreate(&handle, GRANULE, &bad, 0), CUDA_ERROR_INVALID_VALUE);
    bad = on_device;
    bad.location.id = 5;
    REFUSED(cuMemCreate(&handle, GRANULE, &bad, 0), CUDA_ERROR_INVALID_DEVICE);
    bad.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA; /* and there is one node */
    REFUSED(cuMemCreate(&handle, GRANULE, &bad, 0), CUDA_ERROR_INVALID_VALUE);
    bad.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    REFUSED(cuMemCreate(&handle, GRANULE, &bad, 0), CUDA_ERROR_INVALID_VALUE);
    bad = on_device;
    bad.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    REFUSED(cuMemCreate(&handle, GRANULE, &bad, 0), CUDA_ERROR_NOT_SUPPORTED);

    REFUSED(cuMemAddressReserve(NULL, GRANULE, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, GRANULE, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, GRANULE, 0, 77, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, GRANULE, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressReserve(&address, (size_t)1 << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);

    handle = create(2);
    address = reserve(4);
    CUdeviceptr elsewhere = 0;
    OK(cuMemAlloc_v2(&elsewhere, 4 * GRANULE));
    REFUSED(cuMemMap(address, 0, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address + 4096, GRANULE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address, 4096, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address, GRANULE, 4096, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemMap(address, 3 * GRANULE, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemMap(address, 2 * GRANULE, GRANULE, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemMap(address + 3 * GRANULE, 2 * GRANULE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(elsewhere, GRANULE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address, GRANULE, 0, handle + 16, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address, GRANULE, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(address + GRANULE, 2 * GRANULE, 0, handle, 0));
    REFUSED(cuMemMap(address, 2 * GRANULE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(address + 2 * GRANULE, GRANULE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);

    REFUSED(cuMemSetAccess(address + GRANULE, GRANULE, &access, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemSetAccess(address, 3 * GRANULE, &access, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemSetAccess(address + GRANULE, 2 * GRANULE, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemSetAccess(address + GRANULE, 2 * GRANULE, &access, 0), CUDA_ERROR_INVALID_VALUE);
    access.flags = 2;
    REFUSED(cuMemSetAccess(address + GRANULE, 2 * GRANULE, &access, 1), CUDA_ERROR_INVALID_VALUE);
    access.flags = 3;
    access.location.id = 4;
    REFUSED(cuMemSetAccess(address + GRANULE, 2 * GRANULE, &access, 1), CUDA_ERROR_INVALID_DEVICE);

    REFUSED(cuMemFree_v2(address + GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(address + GRANULE, GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(address + 2 * GRANULE, GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(address, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(address, GRANULE)); /* there is nothing */
    REFUSED(cuMemUnmap(elsewhere, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressFree(address, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(address, 5 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(address, 4 * GRANULE)); /* with a gap on either side */
    OK(cuMemUnmap(address + GRANULE, 2 * GRANULE));
    REFUSED(cuMemAddressFree(address, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressFree(address + GRANULE, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(address, 4 * GRANULE));
    REFUSED(cuMemAddressFree(address, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);
}

/* ---- addresses ---- */

Test(api_mapping, addresses_are_reserved_where_they_are_wanted) {
    CUdeviceptr first = 0, wanted = 0, again = 0, aligned = 0;
    api_context(0);
    first = reserve(4);
    wanted = first + ((CUdeviceptr)1 << 32);
    OK(cuMemAddressReserve(&again, GRANULE, 0, wanted, 0));
    cr_assert_eq(again, wanted);
    /* A request for taken addresses gets others; the addresses after them are free. */
    OK(cuMemAddressReserve(&again, GRANULE, 0, wanted, 0));
    cr_assert_neq(again, wanted);
    OK(cuMemAddressReserve(&again, GRANULE, 0, wanted + GRANULE, 0));
    cr_assert_eq(again, wanted + GRANULE);
    OK(cuMemAddressReserve(&aligned, GRANULE, (size_t)1 << 30, 0, 0));
    cr_assert_eq(aligned % (1u << 30), 0);
}

/* Whatever was wanted where: nothing else comes to lie in it. */
Test(api_mapping, allocations_keep_out_of_reservations) {
    enum { STEPS = 40 };
    CUdeviceptr first = 0, reserved[STEPS], allocated[STEPS];
    api_context(0);
    first = reserve(1);
    for (int i = 0; i < STEPS; i++) {
        CUdeviceptr wanted = first + (CUdeviceptr)(i + 1) * 3 * GRANULE;
        OK(cuMemAddressReserve(&reserved[i], 2 * GRANULE, 0, wanted, 0));
    }
    for (int i = 0; i < STEPS; i++) OK(cuMemAlloc_v2(&allocated[i], GRANULE));
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < STEPS; j++) {
            bool apart =
                allocated[i] + GRANULE <= reserved[j] || allocated[i] >= reserved[j] + 2 * GRANULE;
            cr_assert(apart, "allocation %d lies in reservation %d", i, j);
        }
    }
}

Test(api_mapping, pointers_into_mappings_are_described) {
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    CUdeviceptr address = reserve(3), start = 0;
    size_t size = 0;
    bool mapped = true;
    unsigned type = 0;
    OK(cuMemMap(address + GRANULE, GRANULE, 0, handle, 0));
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + GRANULE + 9));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + GRANULE + 9));
    cr_assert(start == address && size == 3 * GRANULE);
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                             address + GRANULE + 9));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, address + GRANULE + 9));
    cr_assert(start == address + GRANULE && size == GRANULE);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address + 9));
    cr_assert(!mapped);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address + GRANULE));
    cr_assert(mapped);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + GRANULE));
    cr_assert_eq(type, (unsigned)CU_MEMORYTYPE_DEVICE);
    REFUSED(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
            CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetAddressRange_v2(&start, &size, address + GRANULE + 9));
    cr_assert(start == address + GRANULE && size == GRANULE);
}

/* The host reads and writes under the address that kernels use, as far as it was allowed to. */
Test(api_mapping, memory_of_the_host_is_at_one_address) {
    static const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_HOST,
                                              CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                              CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    size_t before = 0, after = 0;
    api_context(0);
    for (int i = 0; i < 3; i++) {
        const CUmemAllocationProp on_host = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location = {types[i], 0}};
        const CUmemAccessDesc all[] = {
            {{types[i], 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
            {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
        const CUmemAccessDesc none = {{types[i], 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr address = 0;
        unsigned long long flags = 0;
        unsigned copied = 0;
        OK(cuMemGetInfo_v2(&before, NULL));
        OK(cuMemCreate(&handle, GRANULE, &on_host, 0));
        OK(cuMemGetInfo_v2(&after, NULL));
        cr_assert_eq(before, after, "the device is charged");
        OK(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
        OK(cuMemMap(address, GRANULE, 0, handle, 0));
        OK(cuMemGetAccess(&flags, &all[0].location, address));
        cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        OK(cuMemSetAccess(address, GRANULE, all, 2));
        OK(cuMemGetAccess(&flags, &all[0].location, address));
        cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        volatile unsigned *words = (volatile unsigned *)(uintptr_t)address;
        words[1] = 41;
        api_put(address, 7, NULL);
        OK(cuCtxSynchronize());
        cr_assert(words[0] == 7 && words[1] == 41);
        OK(cuMemcpyDtoH_v2(&copied, address + 4, 4));
        cr_assert_eq(copied, 41);
        OK(cuMemSetAccess(address, GRANULE, &none, 1));
        OK(cuMemGetAccess(&flags, &all[0].location, address));
        cr_assert_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        cr_assert_eq(api_read(address), 7);
        OK(cuMemUnmap(address, GRANULE));
        OK(cuMemRelease(handle));
        OK(cuMemAddressFree(address, GRANULE));
    }
}

Test(api_mapping, the_host_faults_where_it_may_not, .signal = SIGSEGV) {
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    const CUmemAllocationProp on_host = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = host};
    const CUmemAccessDesc all = {host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    api_context(0);
    OK(cuMemCreate(&handle, GRANULE, &on_host, 0));
    OK(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemSetAccess(address, GRANULE, &all, 1));
    *(volatile unsigned *)(uintptr_t)address = 1;
    OK(cuMemUnmap(address, GRANULE));
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it */
    *(volatile unsigned *)(uintptr_t)address = 2;
}

Test(api_mapping, the_host_gets_no_memory_of_a_device) {
    const CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST, 0},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    api_context(0);
    CUmemGenericAllocationHandle handle = create(1);
    OK(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    REFUSED(cuMemSetAccess(address, GRANULE, &host, 1), CUDA_ERROR_INVALID_VALUE);
}
