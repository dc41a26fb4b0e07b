/*
 * The other process of the attacks on P1: it opens what the attack exports, or exports what the
 * attack opens, by the driver's own functions. It executes the orders of peer_message.h until one
 * of them ends it or the attack closes the socket.
 *
 *     peer-process LIBRARY DEVICE PTX        with a socket as descriptor 3
 *
 * PTX is the file of the kernel peer_move. Each order leaves nothing open, but for exports.
 */
#include "peer_message.h"
#include "peer_pattern.h"

#include "files/packed_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

static struct {
    struct peer_driver driver;
    CUcontext context;
    CUstream stream;
    CUfunction move;
    CUdeviceptr held;
    int device;
} own;

/* Records the first failure, and goes to `out`. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        answer->result = (int)own.driver.call;                                                     \
        if (answer->result != CUDA_SUCCESS) {                                                      \
            snprintf(answer->text, sizeof answer->text, "%.180s", #call);                          \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* ---- bytes ---- */

static bool is_pattern(CUdeviceptr address, uint64_t seed, size_t bytes,
                       struct peer_answer *answer) {
    unsigned char *host = malloc(bytes);
    bool is_same = false;
    if (host == NULL) return false;
    memset(host, ~peer_byte(seed, 0), bytes);
    TRY(cuMemcpyDtoH_v2(host, address, bytes));
    const uint64_t at = peer_pattern_difference(seed, 0, host, bytes);
    is_same = at == bytes;
    if (!is_same) {
        snprintf(answer->text, sizeof answer->text,
                 "in the other process byte %llu of %zu is %#04x, expected %#04x",
                 (unsigned long long)at, bytes, host[at], peer_byte(seed, at));
    }
out:
    free(host);
    return is_same;
}

static void write_pattern(CUdeviceptr address, uint64_t seed, size_t bytes,
                          struct peer_answer *answer) {
    unsigned char *host = malloc(bytes);
    if (host == NULL) {
        answer->result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    peer_pattern_write(seed, 0, host, bytes);
    TRY(cuMemcpyHtoD_v2(address, host, bytes));
out:
    free(host);
}

/* By a kernel, from its own memory. Returns the result of the wait for it. */
static int store_pattern(CUdeviceptr address, uint64_t seed, size_t bytes,
                         struct peer_answer *answer) {
    CUdeviceptr source = 0;
    unsigned long long count = bytes;
    void *parameters[] = {&address, &source, &count};
    int result = CUDA_ERROR_UNKNOWN;
    TRY(cuMemAlloc_v2(&source, bytes));
    write_pattern(source, seed, bytes, answer);
    if (answer->result != CUDA_SUCCESS) goto out;
    TRY(cuLaunchKernel(own.move, 64, 1, 1, 128, 1, 1, 0, own.stream, parameters, NULL));
    result = (int)own.driver.cuStreamSynchronize(own.stream);
out:
    if (source != 0) own.driver.cuMemFree_v2(source);
    return result;
}

/* Compares, and then overwrites with the next pattern as the order says. */
static void peer_process_use(CUdeviceptr address, const struct peer_order *order,
                             struct peer_answer *answer) {
    address += order->offset;
    answer->is_same = is_pattern(address, order->seed, order->bytes, answer);
    if (answer->result != CUDA_SUCCESS || !order->overwrites) return;
    if (order->has_kernel) {
        answer->write_result = store_pattern(address, order->seed + 1, order->bytes, answer);
        if (!order->is_read_only && answer->result == CUDA_SUCCESS) {
            answer->result = answer->write_result;
        }
    } else {
        write_pattern(address, order->seed + 1, order->bytes, answer);
    }
}

/* ---- orders ---- */

static void peer_process_open_memory(const struct peer_order *order, struct peer_answer *answer) {
    CUdeviceptr address = 0, again = 0;
    const bool is_twice = order->kind == PEER_OPEN_TWICE;
    TRY(cuIpcOpenMemHandle_v2(&address, order->memory, PEER_IPC_LAZY_ENABLE));
    if (is_twice) {
        const CUresult second =
            own.driver.cuIpcOpenMemHandle_v2(&again, order->memory, PEER_IPC_LAZY_ENABLE);
        if (second == CUDA_ERROR_ALREADY_MAPPED) {
            answer->is_unsupported = true;
            snprintf(answer->text, sizeof answer->text,
                     "memory of another process opened twice: the driver refuses the second");
        } else if (second != CUDA_SUCCESS) {
            answer->result = (int)second;
        } else if (!is_pattern(again + order->offset, order->seed, order->bytes, answer)) {
            goto out;
        } else {
            const CUdeviceptr closed = again;
            again = 0;
            TRY(cuIpcCloseMemHandle(closed));
        }
    }
    if (answer->result == CUDA_SUCCESS) peer_process_use(address, order, answer);
out:
    if (again != 0) own.driver.cuIpcCloseMemHandle(again);
    if (address != 0) {
        const CUresult closed = own.driver.cuIpcCloseMemHandle(address);
        if (answer->result == CUDA_SUCCESS) answer->result = (int)closed;
    }
}

static void hold_memory(const struct peer_order *order, struct peer_answer *answer) {
    TRY(cuIpcOpenMemHandle_v2(&own.held, order->memory, PEER_IPC_LAZY_ENABLE));
    answer->is_same = is_pattern(own.held, order->seed, order->bytes, answer);
out:;
}

static void read_held(const struct peer_order *order, struct peer_answer *answer) {
    answer->is_same = is_pattern(own.held, order->seed, order->bytes, answer);
    own.driver.cuIpcCloseMemHandle(own.held);
}

/* The attack's stream writes the memory after a pause; the copy waits for its event. */
static void wait_event(const struct peer_order *order, struct peer_answer *answer) {
    CUdeviceptr address = 0, mine = 0;
    CUevent event = NULL;
    TRY(cuIpcOpenMemHandle_v2(&address, order->memory, PEER_IPC_LAZY_ENABLE));
    TRY(cuIpcOpenEventHandle(&event, order->event));
    TRY(cuMemAlloc_v2(&mine, order->bytes));
    if (!order->forgets_to_wait) TRY(cuStreamWaitEvent(own.stream, event, 0));
    TRY(cuMemcpyDtoDAsync_v2(mine, address + order->offset, order->bytes, own.stream));
    TRY(cuStreamSynchronize(own.stream));
    answer->is_same = is_pattern(mine, order->seed, order->bytes, answer);
out:
    if (event != NULL) own.driver.cuEventDestroy_v2(event);
    if (mine != 0) own.driver.cuMemFree_v2(mine);
    if (address != 0) own.driver.cuIpcCloseMemHandle(address);
}

/* Stays allocated until the process ends, by itself or not. */
static void export_memory(const struct peer_order *order, struct peer_answer *answer) {
    CUdeviceptr address = 0;
    TRY(cuMemAlloc_v2(&address, order->bytes));
    write_pattern(address, order->seed, order->bytes, answer);
    if (answer->result != CUDA_SUCCESS) goto out;
    TRY(cuIpcGetMemHandle(&answer->memory, address));
out:;
}

static void export_file(const struct peer_order *order, struct peer_answer *answer, int *file) {
    struct peer_mapping mapping;
    const CUresult made =
        peer_mapping_create(&own.driver, own.device, order->bytes, true, &mapping);
    answer->is_unsupported = made == CUDA_ERROR_NOT_SUPPORTED || made == CUDA_ERROR_NOT_PERMITTED;
    answer->result = (int)made;
    if (made != CUDA_SUCCESS) {
        snprintf(answer->text, sizeof answer->text, "memory to export as a file descriptor");
        return;
    }
    answer->result = (int)peer_mapping_allow(&own.driver, &mapping, own.device,
                                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (answer->result != CUDA_SUCCESS) return;
    write_pattern(mapping.address, order->seed, order->bytes, answer);
    if (answer->result != CUDA_SUCCESS) return;
    TRY(cuMemExportToShareableHandle(file, mapping.handle, PEER_HANDLE_POSIX_FD, 0));
out:;
}

static void import_file(const struct peer_order *order, struct peer_answer *answer, int file) {
    struct peer_mapping mapping = {.bytes = order->whole};
    const bool may_write = !order->is_read_only || order->ignores_rights;
    TRY(cuMemImportFromShareableHandle(&mapping.handle, (void *)(intptr_t)file,
                                       PEER_HANDLE_POSIX_FD));
    answer->result = (int)peer_mapping_place(&own.driver, &mapping);
    if (answer->result != CUDA_SUCCESS) goto out;
    answer->result =
        (int)peer_mapping_allow(&own.driver, &mapping, own.device,
                                may_write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : PEER_ACCESS_READ);
    if (answer->result != CUDA_SUCCESS) {
        answer->is_unsupported = order->is_read_only;
        snprintf(answer->text, sizeof answer->text,
                 "memory mapped with the right to read only: the driver refuses it with CUDA "
                 "error %d",
                 answer->result);
        goto out;
    }
    peer_process_use(mapping.address, order, answer);
out:
    peer_mapping_end(&own.driver, &mapping);
}

static void import_pool(const struct peer_order *order, struct peer_answer *answer, int file) {
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    struct peer_handle data = order->memory;
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = own.device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    TRY(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, PEER_HANDLE_POSIX_FD, 0));
    TRY(cuMemPoolSetAccess(pool, &access, 1));
    TRY(cuMemPoolImportPointer(&address, pool, &data));
    peer_process_use(address, order, answer);
out:
    if (address != 0) {
        own.driver.cuMemFreeAsync(address, own.stream);
        own.driver.cuStreamSynchronize(own.stream);
    }
    if (pool != NULL) own.driver.cuMemPoolDestroy(pool);
}

/* The last order: its kernel ends the context. */
static void denied_load(const struct peer_order *order, struct peer_answer *answer) {
    CUcontext other = NULL;
    CUdevice device = 0;
    CUdeviceptr theirs = 0, mine = 0;
    unsigned long long bytes = order->bytes;
    void *parameters[] = {&mine, &theirs, &bytes};
    TRY(cuDeviceGet(&device, order->other_device));
    TRY(cuDevicePrimaryCtxRetain(&other, device));
    TRY(cuCtxSetCurrent(other));
    TRY(cuMemAlloc_v2(&theirs, order->bytes));
    write_pattern(theirs, order->seed, order->bytes, answer);
    if (answer->result != CUDA_SUCCESS) goto out;
    TRY(cuCtxSetCurrent(own.context));
    TRY(cuMemAlloc_v2(&mine, order->bytes));
    TRY(cuCtxEnablePeerAccess(other, 0));
    TRY(cuLaunchKernel(own.move, 8, 1, 1, 128, 1, 1, 0, own.stream, parameters, NULL));
    TRY(cuStreamSynchronize(own.stream));
    answer->is_same = is_pattern(mine, order->seed, order->bytes, answer);
    if (answer->result != CUDA_SUCCESS) goto out;
    TRY(cuCtxDisablePeerAccess(other));
    answer->write_result = (int)own.driver.cuLaunchKernel(own.move, 8, 1, 1, 128, 1, 1, 0,
                                                          own.stream, parameters, NULL);
    if (answer->write_result == CUDA_SUCCESS) {
        answer->write_result = (int)own.driver.cuStreamSynchronize(own.stream);
    }
out:;
}

static void peer_process_obey(const struct peer_order *order, struct peer_answer *answer,
                              int *file) {
    const int got = *file;
    *file = -1;
    switch (order->kind) {
    case PEER_OPEN:
    case PEER_OPEN_TWICE:
        peer_process_open_memory(order, answer);
        break;
    case PEER_HOLD:
        hold_memory(order, answer);
        break;
    case PEER_READ_HELD:
        read_held(order, answer);
        break;
    case PEER_WAIT:
        wait_event(order, answer);
        break;
    case PEER_EXPORT:
        export_memory(order, answer);
        break;
    case PEER_EXPORT_FD:
        export_file(order, answer, file);
        break;
    case PEER_IMPORT_FD:
        import_file(order, answer, got);
        break;
    case PEER_IMPORT_POOL:
        import_pool(order, answer, got);
        break;
    case PEER_DENIED_LOAD:
        denied_load(order, answer);
        break;
    default:
        answer->result = CUDA_ERROR_INVALID_VALUE;
        break;
    }
    if (got >= 0) close(got);
}

/* ---- the program ---- */

static void peer_process_begin(int ordinal, const char *ptx, struct peer_answer *answer) {
    CUmodule module = NULL;
    CUdevice device = 0;
    own.device = ordinal;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, ordinal));
    TRY(cuDevicePrimaryCtxRetain(&own.context, device));
    TRY(cuCtxSetCurrent(own.context));
    TRY(cuModuleLoadData(&module, ptx));
    TRY(cuModuleGetFunction(&own.move, module, "peer_move"));
    TRY(cuStreamCreate(&own.stream, 1));
out:;
}

int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive its attack */
    enum { PTX_BYTES_MAX = 1 << 20 };
    size_t bytes = 0;
    char *ptx = count == 4 ? hyp_packed_read(words[3], PTX_BYTES_MAX, &bytes) : NULL;
    if (ptx == NULL || peer_driver_open(words[1], &own.driver) < 0) {
        fprintf(stderr, "usage: peer-process LIBRARY DEVICE PTX, started by an attack on P1\n");
        return 2;
    }
    struct peer_answer ready = {.result = CUDA_SUCCESS};
    peer_process_begin(atoi(words[2]), ptx, &ready);
    if (!peer_send(PEER_SOCKET, &ready, sizeof ready, -1)) return 2;
    for (;;) {
        enum { PATIENCE_S = 600 };
        struct peer_order order;
        struct peer_answer answer = {.result = CUDA_SUCCESS};
        int file = -1;
        if (!peer_receive(PEER_SOCKET, &order, sizeof order, &file, PATIENCE_S)) return 0;
        if (order.kind == PEER_END) return 0;
        peer_process_obey(&order, &answer, &file);
        if (!peer_send(PEER_SOCKET, &answer, sizeof answer, file)) return 2;
    }
}
