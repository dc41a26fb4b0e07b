/*
 * Physical memory and reserved addresses. As in "Virtual Memory Management" of the CUDA Driver API
 * 13.0.
 */
#include "api/export.h"
#include "base/options.h"
#include "state/handle_set.h"
#include "state/managed.h"
#include "state/physical.h"
#include "memory/shared_bytes.h"

#include <string.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static bool is_multiple(uint64_t value) {
    return value % soft_options()->granularity == 0;
}

/* ---- physical memory ---- */

/* The device of properties, if they are supported. */
static CUresult check_properties(const CUmemAllocationProp *properties,
                                 struct soft_device **device) {
    if (properties == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUmemLocation *location = &properties->location;
    if (properties->type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    bool on_host = soft_managed_is_place(location) && location->type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (!on_host && location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    *device = soft_device_of(on_host ? 0 : location->id);
    if (*device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    bool shareable = properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
                     properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return shareable ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)) {
    struct soft_device *device = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (granularity == NULL || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_properties(properties, &device);
    if (result == CUDA_SUCCESS) *granularity = soft_options()->granularity;
    return result;
}

EXPORT(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)) {
    struct soft_device *device = NULL;
    struct soft_physical *physical = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || size == 0 || !is_multiple(size) || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = check_properties(properties, &device);
    if (result == CUDA_SUCCESS) result = soft_physical_new(device, size, properties, &physical);
    if (result == CUDA_SUCCESS) *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return result;
}

/* CUDA_ERROR_INVALID_VALUE: it is no handle of physical memory. */
static CUresult mapping_find(CUmemGenericAllocationHandle handle, struct soft_physical **physical) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_physical_is(handle);
    pthread_mutex_unlock(&soft_lock);
    *physical = (struct soft_physical *)(uintptr_t)handle;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuMemRelease, (CUmemGenericAllocationHandle handle)) {
    struct soft_physical *physical = NULL;
    CUresult result = mapping_find(handle, &physical);
    if (result == CUDA_SUCCESS) soft_physical_release(physical);
    return result;
}

EXPORT(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address)) {
    struct soft_allocation found;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || !soft_space_find((uint64_t)(uintptr_t)address, &found) ||
        found.kind != SOFT_KIND_MAPPED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_physical *physical = found.source;
    pthread_mutex_lock(&soft_lock);
    /* The handle may have been released; it still identifies the memory. */
    bool known = physical->handles > 0 || soft_handle_add(SOFT_HANDLE_PHYSICAL, physical);
    if (known) physical->handles++;
    pthread_mutex_unlock(&soft_lock);
    if (!known) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

EXPORT(cuMemGetAllocationPropertiesFromHandle,
       (CUmemAllocationProp * properties, CUmemGenericAllocationHandle handle)) {
    struct soft_physical *physical = NULL;
    CUresult result = mapping_find(handle, &physical);
    if (result != CUDA_SUCCESS) return result;
    if (properties == NULL) return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

/* Nothing is shared with other processes. */
EXPORT(cuMemExportToShareableHandle, (void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)) {
    struct soft_physical *physical = NULL;
    CUresult result = mapping_find(handle, &physical);
    if (result != CUDA_SUCCESS) return result;
    if (shareable == NULL || flags != 0 || type == CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (!physical->backing->is_shared) return CUDA_ERROR_INVALID_VALUE;
    int file = dup(physical->backing->file);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(shareable, &file, sizeof file);
    return CUDA_SUCCESS;
}

EXPORT(cuMemImportFromShareableHandle,
       (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type)) {
    struct soft_physical *physical = NULL;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || type == CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    /* The file descriptor is passed as a pointer, and remains the program's. */
    result = soft_physical_import((int)(intptr_t)shareable, &physical);
    if (result == CUDA_SUCCESS) *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return result;
}

/* ---- addresses ---- */

EXPORT(cuMemAddressReserve, (CUdeviceptr * address, size_t size, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    bool aligned = (alignment & (alignment - 1)) == 0; /* 0 leaves it to the driver */
    if (address == NULL || size == 0 || size % PAGE_BYTES != 0 || wanted % PAGE_BYTES != 0 ||
        !aligned || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (alignment < soft_options()->granularity) alignment = soft_options()->granularity;
    uint64_t reserved = soft_space_reserve(wanted, size, alignment);
    if (reserved == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reserved;
    return CUDA_SUCCESS;
}

EXPORT(cuMemAddressFree, (CUdeviceptr address, size_t size)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (size == 0 || soft_space_is_taken(address, size)) return CUDA_ERROR_INVALID_VALUE;
    return soft_space_unreserve(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether a range lies in one reservation. */
static bool is_reserved(CUdeviceptr address, size_t size) {
    uint64_t begin = 0, bytes = 0;
    return soft_space_reservation(address, &begin, &bytes) && size <= bytes &&
           address - begin <= bytes - size;
}

EXPORT(cuMemMap, (CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)) {
    struct soft_physical *physical = NULL;
    CUresult result = mapping_find(handle, &physical);
    if (result != CUDA_SUCCESS) return result;
    /* No offset but 0 is supported yet; an H200 refuses what lies beyond the handle alike. */
    if (offset != 0 || size > physical->bytes) return CUDA_ERROR_NOT_SUPPORTED;
    if (size == 0 || !is_multiple(address) || !is_multiple(size) || flags != 0 ||
        !is_reserved(address, size) || soft_space_is_taken(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool mapped = soft_physical_map(physical, address, size);
    return mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether a range consists of whole mappings, without gaps. */
static bool is_mapped_whole(CUdeviceptr address, size_t size) {
    struct soft_allocation found;
    if (size == 0 || address + size < address) return false;
    for (uint64_t at = address, left = size; left > 0; at += found.bytes, left -= found.bytes) {
        if (!soft_space_find(at, &found) || found.kind != SOFT_KIND_MAPPED || found.address != at ||
            found.bytes > left) {
            return false;
        }
    }
    return true;
}

/* Whether every mapping that overlaps a range is inside it. Mappings consist of granules. */
static bool has_no_parts(CUdeviceptr address, size_t size) {
    struct soft_allocation found;
    for (uint64_t at = address; at - address < size; at += soft_options()->granularity) {
        if (!soft_space_find(at, &found)) continue;
        if (found.address < address || found.bytes > size - (found.address - address)) return false;
        at = found.address + found.bytes - soft_options()->granularity;
    }
    return true;
}

/* Ends a reserved range's mappings. There may be gaps, and even no mapping at all. */
EXPORT(cuMemUnmap, (CUdeviceptr address, size_t size)) {
    struct soft_allocation found;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (size == 0 || !is_multiple(address) || !is_multiple(size) || !is_reserved(address, size) ||
        !has_no_parts(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* As on a GPU, this waits for nothing. */
    for (uint64_t at = address; at - address < size; at += soft_options()->granularity) {
        if (soft_space_find(at, &found)) soft_physical_unmap(found.address);
    }
    return CUDA_SUCCESS;
}

/* The bit of a device or of the host; 0: it is neither. */
static uint32_t mapping_bit_of(const CUmemLocation *location) {
    if (!soft_managed_is_place(location)) return 0;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << location->id : SOFT_HOST_BIT;
}

/* One description of who may do what. */
static CUresult mapping_check_access(const CUmemAccessDesc *access) {
    if (mapping_bit_of(&access->location) == 0) {
        bool device = access->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    bool known = access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                 access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether the host may access the memory of a mapping: only host memory. */
static bool mapping_suits(const CUmemAccessDesc *access, const struct soft_allocation *mapping) {
    const struct soft_physical *physical = mapping->source;
    return mapping_bit_of(&access->location) != SOFT_HOST_BIT || soft_physical_on_host(physical);
}

static void apply_access(const CUmemAccessDesc *access, uint32_t *readers, uint32_t *writers) {
    uint32_t bit = mapping_bit_of(&access->location);
    *readers &= ~bit;
    *writers &= ~bit;
    if ((access->flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0) *readers |= bit;
    if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) *writers |= bit;
}

EXPORT(cuMemSetAccess,
       (CUdeviceptr address, size_t size, const CUmemAccessDesc *accesses, size_t count)) {
    struct soft_allocation found;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (accesses == NULL || count == 0 || !is_mapped_whole(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = mapping_check_access(&accesses[i]);
    if (result != CUDA_SUCCESS) return result;
    for (uint64_t at = address; at < address + size; at += found.bytes) {
        if (!soft_space_find(at, &found)) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < count; i++) {
            if (!mapping_suits(&accesses[i], &found)) return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (uint64_t at = address; at < address + size; at += found.bytes) {
        if (!soft_space_find(at, &found)) return CUDA_ERROR_INVALID_VALUE;
        uint32_t readers = found.readers, writers = found.writers;
        for (size_t i = 0; i < count; i++) apply_access(&accesses[i], &readers, &writers);
        soft_space_allow(at, readers, writers);
        bool reads = (readers & SOFT_HOST_BIT) != 0, writes = (writers & SOFT_HOST_BIT) != 0;
        if (((readers ^ found.readers) | (writers ^ found.writers)) < SOFT_HOST_BIT) continue;
        if (!soft_shared_show(found.backing, found.address, found.bytes, reads, writes)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

EXPORT(cuMemGetAccess,
       (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)) {
    struct soft_allocation found;
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL || location == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUmemAccessDesc who = {.location = *location};
    result = mapping_check_access(&who);
    if (result != CUDA_SUCCESS) return result;
    uint32_t bit = mapping_bit_of(location);
    if (!soft_space_find(address, &found) || found.kind != SOFT_KIND_MAPPED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool reads = (found.readers & bit) != 0, writes = (found.writers & bit) != 0;
    *flags = writes  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : reads ? CU_MEM_ACCESS_FLAGS_PROT_READ
                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
