/*
 * Counts the references to physical memory.
 */
#include "physical.h"

#include "handle_set.h"
#include "memory_pool.h"

#include <stdlib.h>

static struct soft_physical *all;

CUresult soft_physical_new(struct soft_device *device, uint64_t bytes,
                           const CUmemAllocationProp *properties, struct soft_physical **result) {
    struct soft_physical *physical = calloc(1, sizeof *physical);
    if (physical == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    bool charged = soft_device_charge(device, bytes);
    if (!charged) {
        soft_pools_release(device, true);
        charged = soft_device_charge(device, bytes);
    }
    if (charged) physical->backing = soft_backing_new(bytes);
    if (physical->backing != NULL) {
        physical->properties = *properties;
        physical->device = device;
        physical->bytes = bytes;
        physical->handles = 1;
        pthread_mutex_lock(&soft_lock);
        bool added = soft_handle_add(SOFT_HANDLE_PHYSICAL, physical);
        if (added) {
            physical->next = all;
            physical->link = &all;
            if (all != NULL) all->link = &physical->next;
            all = physical;
        }
        pthread_mutex_unlock(&soft_lock);
        if (added) {
            *result = physical;
            return CUDA_SUCCESS;
        }
    }
    soft_backing_release(physical->backing);
    if (charged) soft_device_refund(device, bytes);
    free(physical);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool soft_physical_is(CUmemGenericAllocationHandle handle) {
    return soft_handle_is(SOFT_HANDLE_PHYSICAL, (const void *)(uintptr_t)handle);
}

/* Ends it if nobody holds it any more. The caller holds soft_lock, which is given back. */
static void end_if_unheld(struct soft_physical *physical) {
    bool held = physical->handles > 0 || physical->mappings > 0;
    if (!held) {
        *physical->link = physical->next;
        if (physical->next != NULL) physical->next->link = physical->link;
    }
    pthread_mutex_unlock(&soft_lock);
    if (held) return;
    soft_device_refund(physical->device, physical->bytes);
    soft_backing_release(physical->backing);
    free(physical);
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
    /* The mapping holds the bytes for as long as a kernel may have found them. */
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
    pthread_mutex_lock(&soft_lock);
    physical->mappings--;
    end_if_unheld(physical);
}
