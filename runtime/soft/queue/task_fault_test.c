/*
 * Copies, fills and operations on values whose memory is freed while they wait in a stream.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <string.h>

static const size_t bytes = (size_t)2 << 20;

/* Two granules of addresses with memory at each, which can be used. */
static CUdeviceptr map(void) {
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    OK(cuMemAddressReserve(&address, 2 * bytes, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        OK(cuMemCreate(&handle, bytes, &property, 0));
        OK(cuMemMap(address + i * bytes, bytes, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    OK(cuMemSetAccess(address, 2 * bytes, &access, 1));
    return address;
}

static void fill(CUdeviceptr address, CUstream stream) {
    OK(cuMemsetD8Async(address, 1, bytes + 64, stream));
}

static void fill_rows(CUdeviceptr address, CUstream stream) {
    OK(cuMemsetD2D8Async(address + 64, bytes, 1, 32, 2, stream));
}

static void copy_to(CUdeviceptr address, CUstream stream) {
    static unsigned own[4];
    OK(cuMemcpyHtoDAsync_v2(address + bytes, own, sizeof own, stream));
}

static void copy_from(CUdeviceptr address, CUstream stream) {
    OK(cuMemcpyDtoDAsync_v2(address, address + bytes - 8, 16, stream));
}

static void write_value(CUdeviceptr address, CUstream stream) {
    OK(cuStreamWriteValue32_v2(stream, address, 1, 0));
    OK(cuStreamWriteValue32_v2(stream, address + bytes + 4, 1, 0));
}

static void wait_value(CUdeviceptr address, CUstream stream) {
    OK(cuStreamWaitValue64_v2(stream, address + bytes + 8, 1, 0));
}

/* Unmaps the second granule while an operation waits, which then is the trouble at its byte at. */
static void check(void (*submit)(CUdeviceptr address, CUstream stream), const char *says,
                  size_t at) {
    CUdeviceptr flag_address = 0;
    CUstream stream = NULL;
    char place[200];
    api_context(0);
    CUdeviceptr address = map();
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    submit(address, stream);
    OK(cuMemUnmap(address + bytes, bytes));
    test_capture(stderr);
    *flag = 1;
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    const char *told = test_captured(stderr);
    snprintf(place, sizeof place,
             "tollens-soft: illegal address: %s 0x%llx, which was allocated when the operation "
             "was queued: %zu bytes into mapping ",
             says, (unsigned long long)(address + bytes + at), at);
    cr_assert(strncmp(told, place, strlen(place)) == 0, "%s\nand not\n%s", told, place);
    cr_assert(strstr(told, ", which was unmapped\n") != NULL, "%s", told);
}

Test(task_fault, a_fill_is_told_of_by_its_first_byte_that_is_gone) {
    check(fill, "a memset of 2097216 bytes writes at", 0);
}

Test(task_fault, a_fill_of_rows_by_the_row) {
    check(fill_rows, "a memset of 64 bytes writes at", 64);
}

Test(task_fault, a_copy_by_where_it_goes) {
    check(copy_to, "a copy of 16 bytes writes at", 0);
}

Test(task_fault, or_by_where_it_comes_from) {
    check(copy_from, "a copy of 16 bytes reads at", 0);
}

Test(task_fault, the_second_of_two_values_written) {
    check(write_value, "a stream memory operation writes at", 4);
}

Test(task_fault, a_wait_for_a_value) {
    check(wait_value, "a wait for a value reads at", 8);
}
