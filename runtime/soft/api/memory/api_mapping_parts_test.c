/*
 * Adjacent mappings of which a call names some, and invalid handles.
 */
#include "test/test_api.h"

enum { GRANULE = 2 << 20 };

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

/* A complete mapping, followed by one of which the range has the first granule. */
Test(api_mapping_parts, an_unmapping_cuts_none) {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    api_context(0);
    OK(cuMemCreate(&handle, 2 * GRANULE, &on_device, 0));
    OK(cuMemAddressReserve(&address, 3 * GRANULE, 0, 0, 0));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    OK(cuMemMap(address + GRANULE, 2 * GRANULE, 0, handle, 0));
    REFUSED(cuMemUnmap(address, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(address, 3 * GRANULE));
    OK(cuMemAddressFree(address, 3 * GRANULE));
    OK(cuMemRelease(handle));
}

Test(api_mapping_parts, a_handle_that_is_none_is_not_exported) {
    int file = 0;
    api_context(0);
    REFUSED(cuMemExportToShareableHandle(&file, 64, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE);
}
