/*
 * Memory pools. As in "Stream Ordered Memory Allocator" of the CUDA Runtime API 13.0. Pools, their
 * properties and attributes are the driver's.
 */
#include "cudart/cudart_export.h"

RT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device)) {
    return CU_PLAIN(cuDeviceGetDefaultMemPool, (pool, device));
}

RT(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool)) {
    return CU_PLAIN(cuDeviceSetMemPool, (device, pool));
}

RT(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device)) {
    return CU_PLAIN(cuDeviceGetMemPool, (pool, device));
}

RT(cudaMemGetDefaultMemPool,
   (cudaMemPool_t * pool, cudaMemLocation *location, cudaMemAllocationType type)) {
    return CU_PLAIN(cuMemGetDefaultMemPool, (pool, location, type));
}

RT(cudaMemGetMemPool,
   (cudaMemPool_t * pool, cudaMemLocation *location, cudaMemAllocationType type)) {
    return CU_PLAIN(cuMemGetMemPool, (pool, location, type));
}

RT(cudaMemSetMemPool,
   (cudaMemLocation * location, cudaMemAllocationType type, cudaMemPool_t pool)) {
    return CU_PLAIN(cuMemSetMemPool, (location, type, pool));
}

RT(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *properties)) {
    return CU_CALL(cuMemPoolCreate, (pool, properties));
}

RT(cudaMemPoolDestroy, (cudaMemPool_t pool)) {
    return CU_CALL(cuMemPoolDestroy, (pool));
}

RT(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes)) {
    return CU_CALL(cuMemPoolTrimTo, (pool, bytes));
}

RT(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)) {
    return CU_CALL(cuMemPoolSetAttribute, (pool, attribute, value));
}

RT(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)) {
    return CU_CALL(cuMemPoolGetAttribute, (pool, attribute, value));
}

RT(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count)) {
    return CU_CALL(cuMemPoolSetAccess, (pool, list, count));
}

RT(cudaMemPoolGetAccess,
   (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation *location)) {
    return CU_CALL(cuMemPoolGetAccess, (flags, pool, location));
}

RT(cudaMemPoolExportToShareableHandle,
   (void *handle, cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned int flags)) {
    return CU_CALL(cuMemPoolExportToShareableHandle, (handle, pool, type, flags));
}

RT(cudaMemPoolImportFromShareableHandle,
   (cudaMemPool_t * pool, void *handle, cudaMemAllocationHandleType type, unsigned int flags)) {
    return CU_CALL(cuMemPoolImportFromShareableHandle, (pool, handle, type, flags));
}

RT(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData * data, void *address)) {
    return CU_CALL(cuMemPoolExportPointer, (data, (CUdeviceptr)(uintptr_t)address));
}

RT(cudaMemPoolImportPointer, (void **address, cudaMemPool_t pool, cudaMemPoolPtrExportData *data)) {
    CUdeviceptr found = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuMemPoolImportPointer, (&found, pool, data));
    if (error == cudaSuccess) *address = (void *)(uintptr_t)found;
    return error;
}
