/*
 * Managed memory: advice, prefetches, the attributes of ranges. As in "Memory Management" of the
 * CUDA Runtime API 13.0, and of 12.9, where the location is a device.
 */
#include "cudart/cudart_export.h"

static CUdeviceptr managed_at(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

RT(cudaMemAdvise,
   (const void *address, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location)) {
    return CU_CALL(cuMemAdvise_v2, (managed_at(address), bytes, advice, location));
}

RT(cudaMemAdvise_12, (const void *address, size_t bytes, cudaMemoryAdvise advice, int device)) {
    return CU_CALL(cuMemAdvise, (managed_at(address), bytes, advice, device));
}

RT(cudaMemPrefetchAsync, (const void *address, size_t bytes, cudaMemLocation location,
                          unsigned int flags, cudaStream_t stream)) {
    return CU_CALL(cuMemPrefetchAsync_v2, (managed_at(address), bytes, location, flags, stream));
}

RT(cudaMemPrefetchAsync_12, (const void *address, size_t bytes, int device, cudaStream_t stream)) {
    return CU_CALL(cuMemPrefetchAsync, (managed_at(address), bytes, device, stream));
}

RT(cudaMemRangeGetAttribute, (void *data, size_t data_bytes, cudaMemRangeAttribute attribute,
                              const void *address, size_t bytes)) {
    return CU_CALL(cuMemRangeGetAttribute,
                   (data, data_bytes, attribute, managed_at(address), bytes));
}

RT(cudaMemRangeGetAttributes, (void **data, size_t *data_bytes, cudaMemRangeAttribute *attributes,
                               size_t count, const void *address, size_t bytes)) {
    return CU_CALL(cuMemRangeGetAttributes,
                   (data, data_bytes, attributes, count, managed_at(address), bytes));
}
