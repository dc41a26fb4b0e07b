/*
 * Physical memory, its export, and mappings.
 */
#include "collective/collective_window.h"

#include "core/check.h"

enum { POSIX_FILE_DESCRIPTOR = 1 }; /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR of cuda.h */

/* Maps window->handle, with access for the device of the context. */
static tol_status collective_window_place(struct tol_context *context, struct kn_window *window) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = tol_context_functions(context);
    const int device = tol_context_device(context)->ordinal;
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    TOL_CU(driver, cuMemAddressReserve, (&address, window->bytes, 0, 0, 0),
           "addresses for %zu bytes of a collective", window->bytes);
    const CUresult result = driver->cuMemMap(address, window->bytes, 0, window->handle, 0);
    if (result != CUDA_SUCCESS) {
        (void)driver->cuMemAddressFree(address, window->bytes);
        status = tol_fail_cuda(__FILE__, __LINE__, "cuMemMap", (int)result,
                               "%zu bytes of a collective", window->bytes);
        goto out;
    }
    window->address = address;
    TOL_CU(driver, cuMemSetAccess, (address, window->bytes, &access, 1),
           "access of device %d to %zu bytes of a collective", device, window->bytes);
out:
    return status;
}

tol_status kn_window_create(struct tol_context *context, size_t bytes, struct kn_window *window,
                            int *file) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = tol_context_functions(context);
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = tol_context_device(context)->ordinal}};
    size_t granule = 0;
    TOL_TRY(tol_context_bind(context));
    TOL_CU(driver, cuMemGetAllocationGranularity,
           (&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "memory of a collective");
    TOL_CHECK(bytes <= SIZE_MAX - granule, TOL_OUT_OF_RANGE, "%zu bytes are no size", bytes);
    window->bytes = (bytes + granule - 1) / granule * granule;
    TOL_CU(driver, cuMemCreate, (&window->handle, window->bytes, &properties, 0),
           "%zu bytes for a collective", window->bytes);
    TOL_CU(driver, cuMemExportToShareableHandle,
           (file, window->handle, (CUmemAllocationHandleType)POSIX_FILE_DESCRIPTOR, 0),
           "%zu bytes for other processes", window->bytes);
    TOL_TRY(collective_window_place(context, window));
out:
    return status;
}

tol_status kn_window_open(struct tol_context *context, int file, size_t bytes,
                          struct kn_window *window) {
    tol_status status = TOL_OK;
    const struct tol_driver_table *driver = tol_context_functions(context);
    window->bytes = bytes;
    TOL_TRY(tol_context_bind(context));
    TOL_CU(
        driver, cuMemImportFromShareableHandle,
        (&window->handle, (void *)(intptr_t)file, (CUmemAllocationHandleType)POSIX_FILE_DESCRIPTOR),
        "%zu bytes of another process", bytes);
    TOL_TRY(collective_window_place(context, window));
out:
    return status;
}

void kn_window_close(struct tol_context *context, struct kn_window *window) {
    const struct tol_driver_table *driver = tol_context_functions(context);
    if (window->address != 0) {
        (void)driver->cuMemUnmap(window->address, window->bytes);
        (void)driver->cuMemAddressFree(window->address, window->bytes);
    }
    if (window->handle != 0) (void)driver->cuMemRelease(window->handle);
    *window = (struct kn_window){.bytes = 0};
}
