/*
 * Host memory that devices use: pinned and registered.
 */
#include "test/test_api.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

Test(api_host, bad_arguments_are_refused) {
    void *host = NULL;
    unsigned flags = 0;
    CUdeviceptr pointer = 0;
    int pageable = 0;
    api_context(0);
    REFUSED(cuMemHostAlloc(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostAlloc(&host, 4, 8), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostAlloc(&host, SIZE_MAX, 0), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemFreeHost(&pageable), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&host, 100, 0));
    REFUSED(cuMemFreeHost((char *)host + 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetDevicePointer_v2(NULL, host, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetDevicePointer_v2(&pointer, host, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetDevicePointer_v2(&pointer, &pageable, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetFlags(NULL, host), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetFlags(&flags, &pageable), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(host));
    REFUSED(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostGetDevicePointer_v2(&pointer, host, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_host, pinned_memory_is_the_same_for_both_sides) {
    unsigned *host = NULL, flags = 0;
    CUdeviceptr pointer = 0;
    api_context(0);
    OK(cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostGetFlags(&flags, host + 3));
    cr_assert_eq(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    OK(cuMemHostGetDevicePointer_v2(&pointer, host + 3, 0));
    api_put(pointer, 77, NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(host[3], 77);
}

static void wait_a_little(void *user) {
    (void)user;
    const struct timespec time = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&time, NULL);
}

Test(api_host, a_fill_of_memory_that_the_host_can_read_is_done_on_return) {
    enum { BYTES = 4096 };
    void *host = NULL;
    CUdeviceptr managed = 0, address = 0;
    api_context(0);
    OK(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostGetDevicePointer_v2(&address, host, 0));
    const CUdeviceptr places[] = {address, managed};
    for (unsigned i = 0; i < 2; i++) {
        const unsigned char *bytes = (const unsigned char *)(uintptr_t)places[i];
        OK(cuLaunchHostFunc(NULL, wait_a_little, NULL));
        OK(cuMemsetD8_v2(places[i], 7, BYTES));
        cr_assert(bytes[0] == 7 && bytes[BYTES - 1] == 7, "place %u", i);
        OK(cuLaunchHostFunc(NULL, wait_a_little, NULL));
        OK(cuMemsetD2D32_v2(places[i], 64, 0x01020304, 4, 4));
        cr_assert(bytes[0] == 4 && bytes[3 * 64] == 4 && bytes[16] == 7, "place %u", i);
    }
}

Test(api_host, a_kernel_may_not_run_over_pinned_memory) {
    unsigned *host = NULL;
    api_context(0);
    OK(cuMemHostAlloc((void **)&host, 64, 0));
    api_put((CUdeviceptr)(uintptr_t)(host + 16), 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Not all of it would be in memory at once. It must not be tried: the system ends who does. */
Test(api_host, more_than_the_machine_has_cannot_be_pinned) {
    void *host = NULL;
    api_context(0);
    size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    REFUSED(cuMemHostAlloc(&host, all + 4096, 0), CUDA_ERROR_OUT_OF_MEMORY);
    REFUSED(cuMemHostAlloc(&host, (size_t)1 << 62, 0), CUDA_ERROR_OUT_OF_MEMORY);
    /* What is pinned and not used takes no memory, nor does what is known of it. */
    OK(cuMemHostAlloc(&host, all / 2, 0));
    OK(cuMemFreeHost(host));
}

Test(api_host, memory_that_is_not_there_cannot_be_registered) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(pages != MAP_FAILED && munmap(pages + page, page) == 0);
    api_context(0);
    REFUSED(cuMemHostRegister_v2(pages, 3 * page, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(pages + page - 1, 2, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(pages + page, page, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostRegister_v2(pages, page, 0));
    OK(cuMemHostRegister_v2(pages + 2 * page + 5, page - 5, 0));
    OK(cuMemHostUnregister(pages));
    OK(cuMemHostUnregister(pages + 2 * page + 5));
}

Test(api_host, own_memory_can_be_registered_once) {
    unsigned *own = calloc(1024, sizeof *own), flags = 0;
    CUdeviceptr pointer = 0;
    api_context(0);
    REFUSED(cuMemHostRegister_v2(NULL, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(own, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(own, 4096, 0x10), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(own, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostRegister_v2(own, 4096, CU_MEMHOSTREGISTER_READ_ONLY),
            CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostRegister_v2(own, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    REFUSED(cuMemHostRegister_v2(own, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    REFUSED(cuMemHostRegister_v2(own + 1000, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetDevicePointer_v2(&pointer, own, 0));
    cr_assert_eq(pointer, (CUdeviceptr)(uintptr_t)own);
    REFUSED(cuMemHostGetFlags(&flags, own), CUDA_ERROR_INVALID_VALUE);
    api_put(pointer + 4, 9, NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(own[1], 9);
    REFUSED(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemHostUnregister(own + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostUnregister(own));
    REFUSED(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    cr_assert_eq(own[1], 9, "the memory is still the program's");
    OK(cuMemHostRegister_v2(own, 4096, 0));
    OK(cuMemHostUnregister(own));
    free(own);
}

Test(api_host, no_bytes_are_null_which_is_freed) {
    static char byte;
    void *host = &byte;
    REFUSED(cuMemFreeHost(NULL), CUDA_ERROR_NOT_INITIALIZED);
    api_context(0);
    OK(cuMemHostAlloc(&host, 0, 0));
    cr_assert(host == NULL);
    host = &byte;
    OK(cuMemAllocHost_v2(&host, 0));
    cr_assert(host == NULL);
    OK(cuMemFreeHost(host));
    REFUSED(cuMemHostUnregister(NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(api_host, device_memory_cannot_be_registered) {
    CUdeviceptr pointer = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&pointer, 4096));
    REFUSED(cuMemHostRegister_v2((void *)(uintptr_t)pointer, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_host, unregistering_takes_it_from_kernels) {
    unsigned *own = calloc(16, sizeof *own);
    api_context(0);
    OK(cuMemHostRegister_v2(own, 64, 0));
    OK(cuMemHostUnregister(own));
    api_put((CUdeviceptr)(uintptr_t)own, 1, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(own[0], 0);
    free(own);
}
