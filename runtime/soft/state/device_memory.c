/*
 * Allocates, and charges devices.
 */
#include "device_memory.h"

#include "machine/heap.h"

#include "managed.h"
#include "memory_pool.h"

#include <sys/sysinfo.h>

/* A driver maps allocations larger than 2 MiB with pages of that size, so they begin at one; some
 * programs rely on more than the 256 bytes that the manual promises (Taichi on 4096). */
static uint64_t alignment_of(uint64_t bytes) {
    const uint64_t page = UINT64_C(2) << 20;
    return bytes >= page ? page : SOFT_GRANULE_BYTES;
}

static CUresult device_memory_alloc(struct soft_context *context, enum soft_kind kind,
                                    uint64_t bytes, CUdeviceptr *address) {
    struct soft_device *device = context->device;
    if (bytes > device->memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t charged = soft_memory_rounded(bytes);
    if (!soft_device_charge(device, charged)) {
        /* Memory that pools hold in reserve is released first. */
        soft_pools_release(device, true);
        if (!soft_device_charge(device, charged)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const struct soft_allocation wanted = {.bytes = bytes,
                                           .kind = kind,
                                           .device = device->ordinal,
                                           .slot = context->reach.slot,
                                           .charged = charged};
    const struct soft_allocation *allocation = soft_space_alloc(&wanted, alignment_of(bytes));
    if (allocation == NULL) {
        soft_device_refund(device, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = allocation->address;
    return CUDA_SUCCESS;
}

CUresult soft_memory_alloc(struct soft_context *context, uint64_t bytes, CUdeviceptr *address) {
    return device_memory_alloc(context, SOFT_KIND_DEVICE, bytes, address);
}

CUresult soft_memory_alloc_array(struct soft_context *context, uint64_t bytes, uint64_t *address) {
    CUdeviceptr found = 0;
    CUresult result = device_memory_alloc(context, SOFT_KIND_ARRAY, bytes, &found);
    if (result == CUDA_SUCCESS) *address = found;
    return result;
}

CUresult soft_memory_alloc_host(struct soft_context *context, uint64_t bytes, unsigned flags,
                                void **host) {
    /* More than the machine has cannot be pinned. If a container refuses sysinfo, the result of
     * sysconf is undefined. */
    struct sysinfo machine;
    if (sysinfo(&machine) == 0 && bytes / machine.mem_unit >= machine.totalram) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const struct soft_allocation wanted = {.bytes = bytes,
                                           .host = *host,
                                           .kind = *host != NULL ? SOFT_KIND_REGISTERED
                                                                 : SOFT_KIND_PINNED,
                                           .device = context->device->ordinal,
                                           .slot = context->reach.slot,
                                           .flags = flags};
    const struct soft_allocation *allocation = soft_space_alloc(&wanted, SOFT_GRANULE_BYTES);
    if (allocation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *host = allocation->host;
    return CUDA_SUCCESS;
}

void soft_memory_refund(const struct soft_allocation *was) {
    if (was->charged > 0) soft_device_refund(soft_device_of(was->device), was->charged);
}

void soft_memory_free(CUdeviceptr address) {
    struct soft_allocation was;
    if (soft_space_free(address, 1u << SOFT_KIND_DEVICE | 1u << SOFT_KIND_ARRAY, &was)) {
        soft_memory_refund(&was);
    } else {
        soft_pool_free(address);
    }
}

void soft_memory_free_all(unsigned slot) {
    const unsigned kinds = 1u << SOFT_KIND_DEVICE | 1u << SOFT_KIND_PINNED |
                           1u << SOFT_KIND_MANAGED | 1u << SOFT_KIND_REGISTERED |
                           1u << SOFT_KIND_HEAP | 1u << SOFT_KIND_IMPORTED;
    struct soft_allocation was;
    while (soft_space_free_owned(slot, kinds, &was)) {
        soft_memory_refund(&was);
        if (was.kind == SOFT_KIND_MANAGED) soft_managed_forget(was.address);
    }
    soft_heap_forget(slot);
}
