/*
 * The table, and mappings of memory, which take four calls each.
 */
#include "peer_driver.h"

#include <dlfcn.h>
#include <string.h>

int peer_driver_open(const char *path, struct peer_driver *driver) {
    int lacking = 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *driver = (struct peer_driver){.cuInit = NULL};
    if (library == NULL) return -1;
#define PEER_CALL(name, parameters)                                                                \
    {                                                                                              \
        void *found = dlsym(library, #name);                                                       \
        lacking += found == NULL;                                                                  \
        memcpy(&driver->name, &found, sizeof found);                                               \
    }
#include "peer_calls.def"
#undef PEER_CALL
    return lacking;
}

static size_t peer_driver_round_up(size_t bytes, size_t granule) {
    return (bytes + granule - 1) / granule * granule;
}

CUresult peer_mapping_place(const struct peer_driver *driver, struct peer_mapping *mapping) {
    CUdeviceptr address = 0;
    CUresult result = driver->cuMemAddressReserve(&address, mapping->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) return result;
    result = driver->cuMemMap(address, mapping->bytes, 0, mapping->handle, 0);
    if (result == CUDA_SUCCESS) {
        mapping->address = address;
    } else {
        driver->cuMemAddressFree(address, mapping->bytes);
    }
    return result;
}

CUresult peer_mapping_create(const struct peer_driver *driver, int device, size_t bytes,
                             bool is_shared, struct peer_mapping *mapping) {
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = is_shared ? PEER_HANDLE_POSIX_FD : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    size_t granule = 0;
    *mapping = (struct peer_mapping){.bytes = 0};
    if (driver->cuMemCreate == NULL) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = driver->cuMemGetAllocationGranularity(&granule, &properties,
                                                            CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS) return result;
    mapping->bytes = peer_driver_round_up(bytes, granule);
    result = driver->cuMemCreate(&mapping->handle, mapping->bytes, &properties, 0);
    return result == CUDA_SUCCESS ? peer_mapping_place(driver, mapping) : result;
}

CUresult peer_mapping_allow(const struct peer_driver *driver, const struct peer_mapping *mapping,
                            int device, int flags) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = flags};
    return driver->cuMemSetAccess(mapping->address, mapping->bytes, &access, 1);
}

void peer_mapping_end(const struct peer_driver *driver, struct peer_mapping *mapping) {
    if (mapping->address != 0) {
        driver->cuMemUnmap(mapping->address, mapping->bytes);
        driver->cuMemAddressFree(mapping->address, mapping->bytes);
    }
    if (mapping->handle != 0) driver->cuMemRelease(mapping->handle);
    *mapping = (struct peer_mapping){.bytes = 0};
}
