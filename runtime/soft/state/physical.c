/*
 * Counts the references to physical memory.
 */
#include "physical.h"

#include "handle_set.h"
#include "memory_pool.h"

#include "memory/shared_bytes.h"

#include <stdlib.h>
#include <string.h>

/* The bytes, exportable if requested. */
static struct soft_backing *new_backing(const struct soft_device *device, uint64_t bytes,
                                        const CUmemAllocationProp *properties) {
    struct soft_shared_note note = {.kind = SOFT_SHARED_PHYSICAL, .device = device->ordinal};
    /* Host memory is a file as well, so that it can be mapped at the device's address. */
    if (properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
        properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        return soft_backing_new(bytes);
    }
    _Static_assert(sizeof *properties <= sizeof note.more, "the note has room for the properties");
    memcpy(note.more, properties, sizeof *properties);
    return soft_shared_new(bytes, &note);
}

/* Makes a handle for bytes, and takes over the bytes and their charge. */
static CUresult physical_enlist(struct soft_physical *physical) {
    physical->handles = 1;
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_PHYSICAL, physical);
    pthread_mutex_unlock(&soft_lock);
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void physical_discard(struct soft_physical *physical) {
    if (physical->charged > 0) soft_device_refund(physical->device, physical->charged);
    soft_backing_release(physical->backing);
    free(physical);
}

CUresult soft_physical_new(struct soft_device *device, uint64_t bytes,
                           const CUmemAllocationProp *properties, struct soft_physical **result) {
    struct soft_physical *physical = calloc(1, sizeof *physical);
    if (physical == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    physical->properties = *properties;
    physical->device = device;
    physical->bytes = bytes;
    bool on_host = soft_physical_on_host(physical);
    bool charged = on_host || soft_device_charge(device, bytes);
    if (!charged) {
        soft_pools_release(device, true);
        charged = soft_device_charge(device, bytes);
    }
    if (charged) {
        physical->charged = on_host ? 0 : bytes;
        physical->backing = new_backing(device, bytes, properties);
    }
    if (physical->backing == NULL || physical_enlist(physical) != CUDA_SUCCESS) {
        physical_discard(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result = physical;
    return CUDA_SUCCESS;
}

CUresult soft_physical_import(int file, struct soft_physical **result) {
    struct soft_shared_note note;
    struct soft_backing *backing = soft_shared_map(file, SOFT_SHARED_PHYSICAL, &note);
    if (backing == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_physical *physical = calloc(1, sizeof *physical);
    struct soft_device *device = soft_device_of(note.device);
    if (physical == NULL || device == NULL) {
        free(physical);
        soft_backing_release(backing);
        return device == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* The memory is charged to the device in the process that created it. */
    memcpy(&physical->properties, note.more, sizeof physical->properties);
    physical->device = device;
    physical->bytes = backing->bytes;
    physical->backing = backing;
    if (physical_enlist(physical) != CUDA_SUCCESS) {
        physical_discard(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result = physical;
    return CUDA_SUCCESS;
}

bool soft_physical_is(CUmemGenericAllocationHandle handle) {
    return soft_handle_is(SOFT_HANDLE_PHYSICAL, (const void *)(uintptr_t)handle);
}

/* Frees it if it has no references. The caller holds soft_lock, which is released. */
static void end_if_unheld(struct soft_physical *physical) {
    bool held = physical->handles > 0 || physical->mappings > 0;
    pthread_mutex_unlock(&soft_lock);
    if (!held) physical_discard(physical);
}

void soft_physical_release(struct soft_physical *physical) {
    pthread_mutex_lock(&soft_lock);
    if (--physical->handles == 0) soft_handle_remove(SOFT_HANDLE_PHYSICAL, physical);
    end_if_unheld(physical);
}

bool soft_physical_map(struct soft_physical *physical, uint64_t address, uint64_t bytes) {
    struct soft_backing *backing = physical->backing;
    const struct soft_allocation wanted = {.address = address,
                                           .bytes = bytes,
                                           .host = backing->host,
                                           .shadow = backing->shadow,
                                           .kind = SOFT_KIND_MAPPED,
                                           .device = physical->device->ordinal,
                                           .slot = SOFT_SLOT_NONE,
                                           .source = physical,
                                           .backing = backing};
    /* The mapping keeps the bytes while a kernel may use them. */
    atomic_fetch_add(&backing->references, 1);
    pthread_mutex_lock(&soft_lock);
    physical->mappings++;
    pthread_mutex_unlock(&soft_lock);
    if (soft_space_alloc(&wanted, 1) != NULL) return true;
    pthread_mutex_lock(&soft_lock);
    physical->mappings--;
    pthread_mutex_unlock(&soft_lock);
    return false;
}

void soft_physical_unmap(uint64_t address) {
    struct soft_allocation was;
    if (!soft_space_free(address, 1u << SOFT_KIND_MAPPED, &was)) return;
    struct soft_physical *physical = was.source;
    if (soft_physical_on_host(physical)) {
        (void)soft_shared_show(physical->backing, was.address, was.bytes, false, false);
    }
    pthread_mutex_lock(&soft_lock);
    physical->mappings--;
    end_if_unheld(physical);
}
