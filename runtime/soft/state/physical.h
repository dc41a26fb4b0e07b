/*
 * Physical memory of cuMemCreate: it has bytes, and no address until it is mapped.
 *
 * It exists, and is charged to its device, as long as its handle or a mapping exists.
 */
#ifndef SOFT_PHYSICAL_H
#define SOFT_PHYSICAL_H

#include "driver_state.h"

struct soft_physical {
    CUmemAllocationProp properties;
    struct soft_device *device;
    uint64_t bytes, charged;    /* to the device: not what was imported */
    unsigned handles, mappings; /* how often it is held */
    struct soft_backing *backing;
};

/* The bit of the host among those of devices, in the readers and writers of a mapping. */
#define SOFT_HOST_BIT (1u << 31)

/* Whether the memory is host memory, by its properties. */
static inline bool soft_physical_on_host(const struct soft_physical *physical) {
    return physical->properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

/* Creates it, with one handle; host memory is charged to no device. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult soft_physical_new(struct soft_device *device, uint64_t bytes,
                           const CUmemAllocationProp *properties, struct soft_physical **physical);

/* The same for a file that this or another process has exported; the file remains the caller's.
 * CUDA_ERROR_INVALID_VALUE: it is no such file. */
CUresult soft_physical_import(int file, struct soft_physical **physical);

/* Whether a handle is one. The caller holds soft_lock. */
bool soft_physical_is(CUmemGenericAllocationHandle handle);

/* Releases a handle. The caller does not hold soft_lock. */
void soft_physical_release(struct soft_physical *physical);

/* Maps its first bytes at an address. false: something is mapped there already, or the host is out
 * of memory. */
bool soft_physical_map(struct soft_physical *physical, uint64_t address, uint64_t bytes);

/* Unmaps what begins at an address. */
void soft_physical_unmap(uint64_t address);

#endif
