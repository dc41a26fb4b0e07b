/*
 * The functions that PyTorch calls.
 */
#include "tollens/torch.h"

#include "torch_arena.h"
#include "torch_report.h"
#include "torch_waiting.h"

#include <stdio.h>
#include <stdlib.h>

/* From the arena of a capture, or from the pool. */
static tol_status torch_take(struct torch_device *device, struct torch_block *block) {
    struct torch_arena *arena = torch_arena_for(device, block->stream);
    if (arena != NULL) {
        return torch_arena_take(device, arena, block->bytes, block->stream, block);
    }
    const tol_status status =
        tol_pool_allocate(device->pool, block->bytes, block->stream, &block->block);
    if (status == TOL_OK) block->address = tol_pool_address(device->pool, block->block);
    return status;
}

/* Before memory is said to be out: what waits for other streams, and what graphs have left. */
static bool find_more(struct torch_device *device) {
    const size_t freed = torch_wait_all(device);
    return torch_arena_reap(device) > 0 || freed > 0;
}

static tol_status torch_allocate(struct torch_device *device, size_t bytes, CUstream handle,
                                 CUdeviceptr *address) {
    tol_status status = TOL_OK;
    struct torch_block block = {.bytes = bytes, .device = device};
    block.stream = torch_stream_of(device, handle);
    if (block.stream == NULL) return TOL_DRIVER_ERROR;
    torch_wait_look(device);
    status = torch_take(device, &block);
    if (status == TOL_OUT_OF_DEVICE_MEMORY && find_more(device))
        status = torch_take(device, &block);
    if (status != TOL_OK) return status;
    if (!torch_blocks_add(&block)) {
        torch_block_give(device, &block);
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY,
                        "no host memory for the record of a block");
    }
    *address = block.address;
    return TOL_OK;
}

/* 0 if it fails; the reason is reported. */
static CUdeviceptr allocate_or_report(size_t bytes, int ordinal, CUstream stream,
                                      tol_status *status) {
    char what[96];
    struct torch_visit visit;
    CUdeviceptr address = 0;
    struct torch_device *device = torch_device_get(ordinal);
    *status = TOL_DRIVER_ERROR;
    if (device != NULL) {
        torch_enter(device, &visit);
        *status = torch_allocate(device, bytes, stream, &address);
        torch_leave(device, &visit);
        if (*status == TOL_OK) return address;
        atomic_fetch_add_explicit(&device->refused, 1, memory_order_relaxed);
    }
    snprintf(what, sizeof what, "%s: %zu bytes on device %d",
             *status == TOL_OUT_OF_DEVICE_MEMORY ? "CUDA out of memory" : "cannot allocate", bytes,
             ordinal);
    torch_report(what, tol_message());
    return 0;
}

void *tol_torch_allocate(size_t bytes, int device, void *stream) {
    tol_status status = TOL_OK;
    if (bytes == 0) return NULL;
    return (void *)(uintptr_t)allocate_or_report(bytes, device, stream, &status);
}

void *tol_torch_allocate_or_throw(size_t bytes, int device, void *stream) {
    tol_status status = TOL_OK;
    if (bytes == 0) return NULL;
    const CUdeviceptr address = allocate_or_report(bytes, device, stream, &status);
    if (address == 0) torch_throw(status == TOL_OUT_OF_DEVICE_MEMORY);
    return (void *)(uintptr_t)address;
}

/* The size, the device and the stream that PyTorch says are those of the allocation: the table has
 * them. */
void tol_torch_free(void *address, size_t bytes, int device, void *stream) {
    char what[128];
    struct torch_visit visit;
    struct torch_block block;
    if (address == NULL) return;
    if (!torch_blocks_remove((uintptr_t)address, &block)) {
        snprintf(what, sizeof what,
                 "%p (%zu bytes, device %d, stream %p) is not a block of this library, or was "
                 "freed before",
                 address, bytes, device, stream);
        torch_report(what, "");
        return;
    }
    torch_enter(block.device, &visit);
    if (block.uses != NULL) {
        torch_wait_add(block.device, &block);
    } else {
        torch_block_give(block.device, &block);
    }
    torch_leave(block.device, &visit);
}

static struct tol_stream *torch_find_stream(struct torch_device *device, CUstream handle) {
    struct torch_visit visit;
    torch_enter(device, &visit);
    struct tol_stream *stream = torch_stream_of(device, handle);
    torch_leave(device, &visit);
    return stream;
}

void tol_torch_record_stream(void *address, void *stream) {
    char what[96];
    if (torch_blocks_record((uintptr_t)address, stream, torch_find_stream)) return;
    snprintf(what, sizeof what, "stream %p cannot be recorded for %p", stream, address);
    torch_report(what, tol_message());
}

typedef void arena_call(struct torch_device *device, struct tol_torch_pool_id pool);

static void call_arena(int ordinal, struct tol_torch_pool_id pool, arena_call *call) {
    struct torch_visit visit;
    struct torch_device *device = torch_device_get(ordinal);
    if (device == NULL) {
        torch_report("the memory of a graph", tol_message());
        return;
    }
    torch_enter(device, &visit);
    call(device, pool);
    torch_leave(device, &visit);
}

void tol_torch_begin_pool(int device, struct tol_torch_pool_id pool, void *filter) {
    (void)filter;
    call_arena(device, pool, torch_arena_begin);
}

void tol_torch_end_pool(int device, struct tol_torch_pool_id pool) {
    call_arena(device, pool, torch_arena_end);
}

void tol_torch_release_pool(int device, struct tol_torch_pool_id pool) {
    call_arena(device, pool, torch_arena_release);
}

void tol_torch_empty_cache(void) {
    for (int i = 0; i < TORCH_DEVICES; i++) {
        struct torch_visit visit;
        struct torch_device *device = torch_device_if_open(i);
        if (device == NULL) continue;
        torch_enter(device, &visit);
        (void)find_more(device);
        if (tol_pool_trim(device->pool, 0) != TOL_OK)
            torch_report("emptying the cache", tol_message());
        torch_leave(device, &visit);
    }
}

void tol_torch_set_fraction(double fraction, int device) {
    if (fraction > 0 && fraction <= 1) torch_device_set_fraction(device, fraction);
}

void *tol_torch_base(void *address, size_t *bytes) {
    struct torch_block block;
    const bool found = torch_blocks_find((uintptr_t)address, &block);
    if (bytes != NULL) *bytes = found ? block.bytes : 0;
    return found ? (void *)(uintptr_t)block.address : address;
}

void tol_torch_init(int device_count) {
    torch_device_set_count(device_count);
}
