/*
 * Memory and events between two processes. A test starts this program again with the test below
 * that plays the other process, and passes handles in the environment.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1000, HANDLE_BYTES = 64 };

extern char **environ;

/* ---- a handle as text, and back ---- */

static void hand_over(const char *name, const void *handle) {
    char text[2 * HANDLE_BYTES + 1];
    for (int i = 0; i < HANDLE_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)handle)[i]);
    }
    setenv(name, text, 1);
}

static bool take_over(const char *name, void *handle) {
    const char *text = getenv(name);
    for (int i = 0; text != NULL && i < HANDLE_BYTES; i++) {
        unsigned byte = 0;
        cr_assert_eq(sscanf(text + 2 * i, "%2x", &byte), 1);
        ((unsigned char *)handle)[i] = (unsigned char)byte;
    }
    return text != NULL;
}

/* Starts the other process's part: without what tells Criterion that this is a worker of it. */
static pid_t start(const char *part) {
    static char *own[1024];
    char filter[100], program[] = "/proc/self/exe", quiet[] = "--quiet";
    pid_t child = 0;
    size_t count = 0;
    snprintf(filter, sizeof filter, "--filter=api_ipc_other/%s", part);
    char *arguments[] = {program, quiet, filter, NULL};
    for (char **name = environ; *name != NULL && count < 1023; name++) {
        if (strncmp(*name, "BXFI_", 5) != 0) own[count++] = *name;
    }
    own[count] = NULL;
    cr_assert_eq(posix_spawn(&child, program, NULL, NULL, arguments, own), 0);
    return child;
}

static void finish(pid_t child) {
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process: %d", status);
}

/* ---- memory ---- */

Test(api_ipc, memory_of_one_process_is_the_others_too) {
    for (int large = 0; large < 2; large++) {
        CUipcMemHandle handle, again;
        CUdeviceptr memory = 0, opened = 0;
        unsigned words[WORDS];
        api_context(0);
        OK(cuMemAlloc_v2(&memory, large ? 1 << 20 : sizeof words));
        for (unsigned i = 0; i < WORDS; i++) words[i] = i * i;
        OK(cuMemcpyHtoD_v2(memory, words, sizeof words));
        OK(cuIpcGetMemHandle(&handle, memory));
        OK(cuIpcGetMemHandle(&again, memory + 4));
        cr_assert(memcmp(&handle, &again, sizeof handle) == 0);
        REFUSED(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
        hand_over("TOLLENS_TEST_IPC_MEMORY", &handle);
        finish(start("memory"));
        cr_assert_eq(api_read(memory), 4321);
        cr_assert_eq(api_read(memory + 4), 1);
        api_put(memory + 8, 77, NULL); /* a kernel finds the bytes where they are now */
        OK(cuCtxSynchronize());
        cr_assert_eq(api_read(memory + 8), 77);
        OK(cuMemFree_v2(memory));
    }
}

Test(api_ipc_other, memory) {
    CUipcMemHandle handle;
    CUdeviceptr memory = 0, again = 0, base = 0;
    unsigned words[WORDS];
    size_t bytes = 0;
    if (!take_over("TOLLENS_TEST_IPC_MEMORY", &handle)) return;
    api_context(0);
    OK(cuIpcOpenMemHandle_v2(&memory, handle, 1));
    OK(cuIpcOpenMemHandle_v2(&again, handle, 1));
    cr_assert_eq(memory, again);
    OK(cuMemGetAddressRange_v2(&base, &bytes, memory));
    cr_assert(base == memory && bytes >= sizeof words);
    OK(cuMemcpyDtoH_v2(words, memory, sizeof words));
    for (unsigned i = 0; i < WORDS; i++) cr_assert_eq(words[i], i * i);
    api_put(memory, 4321, NULL);
    OK(cuCtxSynchronize());
    REFUSED(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcCloseMemHandle(memory));
    cr_assert_eq(api_read(memory), 4321);
    OK(cuIpcCloseMemHandle(memory));
    REFUSED(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
    api_put(memory, 5, NULL);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(api_ipc, bad_handles_are_refused) {
    CUipcMemHandle handle = {.reserved = {0}};
    CUipcEventHandle event_handle = {.reserved = {0}};
    CUdeviceptr memory = 0, opened = 0;
    CUevent event = NULL, other = NULL;
    void *host = NULL;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuMemAllocHost_v2(&host, 4));
    REFUSED(cuIpcGetMemHandle(NULL, memory), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcGetMemHandle(&handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcGetMemHandle(&handle, memory + 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcGetMemHandle(&handle, memory));
    REFUSED(cuIpcOpenMemHandle_v2(NULL, handle, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcOpenMemHandle_v2(&opened, handle, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(memory));
    REFUSED(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_MAP_FAILED);
    REFUSED(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    REFUSED(cuIpcGetEventHandle(&event_handle, event), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuEventCreate(&other, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&other, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    REFUSED(cuIpcGetEventHandle(NULL, other), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuIpcOpenEventHandle(&event, event_handle), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcGetEventHandle(&event_handle, other));
    REFUSED(cuIpcOpenEventHandle(NULL, event_handle), CUDA_ERROR_INVALID_VALUE);
    memcpy(&handle, &event_handle, sizeof handle);
    REFUSED(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy_v2(other));
    REFUSED(cuIpcGetEventHandle(&event_handle, other), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSetCurrent(NULL)); /* an event is opened for a context */
    REFUSED(cuIpcOpenEventHandle(&event, event_handle), CUDA_ERROR_INVALID_CONTEXT);
}

/* ---- events ---- */

/* One writes while a stream of the other waits: go tells the other to record, and done is what this
 * process waits for. */
Test(api_ipc, an_event_of_one_process_is_waited_for_by_the_other) {
    CUipcMemHandle memory_handle;
    CUipcEventHandle event_handle;
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    unsigned value = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuMemsetD32_v2(memory, 0, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(event)); /* never recorded: as done */
    OK(cuIpcGetMemHandle(&memory_handle, memory));
    OK(cuIpcGetEventHandle(&event_handle, event));
    hand_over("TOLLENS_TEST_IPC_MEMORY", &memory_handle);
    hand_over("TOLLENS_TEST_IPC_EVENT", &event_handle);
    pid_t child = start("event");
    /* The other process has requested its recording, which has happened or not. */
    while (value == 0) OK(cuMemcpyDtoH_v2(&value, memory, 4));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuMemcpyDtoHAsync_v2(&value, memory, 4, stream));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(value, 99);
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    OK(cuEventDestroy_v2(event));
    finish(child);
}

Test(api_ipc_other, event) {
    CUipcMemHandle memory_handle;
    CUipcEventHandle event_handle;
    CUdeviceptr memory = 0, flag_address = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    if (!take_over("TOLLENS_TEST_IPC_MEMORY", &memory_handle)) return;
    if (!take_over("TOLLENS_TEST_IPC_EVENT", &event_handle)) return;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    OK(cuIpcOpenMemHandle_v2(&memory, memory_handle, 1));
    OK(cuIpcOpenEventHandle(&event, event_handle));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    api_put(memory, 99, stream);
    OK(cuEventRecord(event, stream));
    REFUSED(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuMemsetD32_v2(memory, 1, 1)); /* in another stream: the recording is requested */
    OK(cuStreamSynchronize(NULL));
    *flag = 1;
    OK(cuEventSynchronize(event));
    cr_assert_eq(api_read(memory), 99);
    OK(cuEventDestroy_v2(event));
    OK(cuIpcCloseMemHandle(memory));
}

/* ---- shareable handles ---- */

enum { GRANULE = 2 << 20 };

static const CUmemAllocationProp exported = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .requestedHandleTypes =
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUdeviceptr map(CUmemGenericAllocationHandle handle) {
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    OK(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemSetAccess(address, GRANULE, &access, 1));
    return address;
}

Test(api_ipc, physical_memory_goes_to_another_process_as_a_file) {
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUmemAllocationProp told;
    char text[64];
    int file = -1;
    size_t before = 0, after = 0;
    api_context(0);
    OK(cuMemCreate(&handle, GRANULE, &exported, 0));
    CUdeviceptr address = map(handle);
    OK(cuMemsetD32_v2(address, 17, GRANULE / 4));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemExportToShareableHandle(&file, handle, type, 0));
    cr_assert(file >= 0);
    REFUSED(cuMemExportToShareableHandle(&file, handle, type, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemExportToShareableHandle(NULL, handle, type, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
            CUDA_ERROR_NOT_SUPPORTED);
    /* The same process may import it too, and has the same bytes twice. */
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, type));
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after);
    OK(cuMemGetAllocationPropertiesFromHandle(&told, again));
    cr_assert_eq(told.requestedHandleTypes, type);
    CUdeviceptr other = map(again);
    api_put(other, 18, NULL);
    OK(cuCtxSynchronize());
    cr_assert_eq(api_read(address), 18);
    /* A worker of Criterion inherits no files; programs send theirs over a socket. */
    snprintf(text, sizeof text, "/proc/%d/fd/%d", (int)getpid(), file);
    setenv("TOLLENS_TEST_IPC_FILE", text, 1);
    finish(start("physical"));
    cr_assert_eq(api_read(address), 1234);
    close(file);
    REFUSED(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, type),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)STDIN_FILENO, type),
            CUDA_ERROR_INVALID_VALUE);
}

Test(api_ipc_other, physical) {
    CUmemGenericAllocationHandle handle = 0;
    if (getenv("TOLLENS_TEST_IPC_FILE") == NULL) return;
    int file = open(getenv("TOLLENS_TEST_IPC_FILE"), O_RDWR);
    cr_assert(file >= 0);
    api_context(0);
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr address = map(handle);
    cr_assert_eq(api_read(address), 18);
    cr_assert_eq(api_read(address + GRANULE - 4), 17);
    api_put(address, 1234, NULL);
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(address, GRANULE));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(address, GRANULE));
}

/* ---- pools ---- */

Test(api_ipc, memory_of_a_pool_goes_to_another_process_by_name) {
    const CUmemPoolProps shape = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool = NULL;
    CUdeviceptr pointer = 0;
    char text[64];
    int file = -1;
    api_context(0);
    OK(cuMemPoolCreate(&pool, &shape));
    OK(cuMemPoolExportToShareableHandle(&file, pool, shape.handleTypes, 0));
    OK(cuMemAllocFromPoolAsync(&pointer, 4 * WORDS, pool, NULL));
    OK(cuMemsetD32_v2(pointer, 31, WORDS));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemPoolExportPointer(&data, pointer));
    REFUSED(cuMemPoolExportPointer(&data, pointer + 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemPoolImportPointer(&pointer, pool, &data), CUDA_ERROR_INVALID_VALUE);
    hand_over("TOLLENS_TEST_IPC_POINTER", &data);
    snprintf(text, sizeof text, "/proc/%d/fd/%d", (int)getpid(), file);
    setenv("TOLLENS_TEST_IPC_POOL", text, 1);
    finish(start("pool"));
    cr_assert_eq(api_read(pointer), 32);
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuMemPoolDestroy(pool));
    close(file);
}

Test(api_ipc_other, pool) {
    CUmemPoolPtrExportData data;
    CUmemoryPool pool = NULL;
    CUdeviceptr pointer = 0, none = 0;
    if (!take_over("TOLLENS_TEST_IPC_POINTER", &data)) return;
    int file = open(getenv("TOLLENS_TEST_IPC_POOL"), O_RDWR);
    api_context(0);
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolImportPointer(&pointer, pool, &data));
    cr_assert_eq(api_read(pointer + 4 * (WORDS - 1)), 31);
    api_put(pointer, 32, NULL);
    OK(cuCtxSynchronize());
    REFUSED(cuMemAllocFromPoolAsync(&none, 4, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(pointer, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolDestroy(pool));
}
