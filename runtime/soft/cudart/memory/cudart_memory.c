/*
 * Allocation, and attributes of addresses. As in "Memory Management", "Stream Ordered Memory
 * Allocator", "Unified Addressing" and "Device Management" (IPC) of the CUDA Runtime API 13.0.
 *
 * If the driver refuses a size of zero, the runtime returns NULL, and NULL may be freed.
 */
#include "cudart/cudart_export.h"

/* from is read after the call with the error. */
static cudaError_t memory_give(cudaError_t error, const CUdeviceptr *from, void **to) {
    if (error == cudaSuccess) *to = (void *)(uintptr_t)*from;
    return error;
}

static cudaError_t give_nothing(void **to) {
    *to = NULL;
    return cudart_context();
}

RT(cudaMalloc, (void **address, size_t bytes)) {
    CUdeviceptr made = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    if (bytes == 0) return give_nothing(address);
    return memory_give(CU_CALL(cuMemAlloc_v2, (&made, bytes)), &made, address);
}

RT(cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height)) {
    CUdeviceptr made = 0;
    enum { ELEMENT_BYTES = 16 }; /* the largest that a thread loads at once */
    if (address == NULL || pitch == NULL) return cudaErrorInvalidValue;
    if (width == 0 || height == 0) {
        *pitch = 0;
        return give_nothing(address);
    }
    return memory_give(CU_CALL(cuMemAllocPitch_v2, (&made, pitch, width, height, ELEMENT_BYTES)),
                       &made, address);
}

RT(cudaMalloc3D, (cudaPitchedPtr * pitched, cudaExtent extent)) {
    if (pitched == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width,
                                               extent.height * extent.depth);
    if (error != cudaSuccess) return error;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return cudaSuccess;
}

RT(cudaMallocManaged, (void **address, size_t bytes, unsigned int flags)) {
    CUdeviceptr made = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    return memory_give(CU_CALL(cuMemAllocManaged, (&made, bytes, flags)), &made, address);
}

RT(cudaFree, (void *address)) {
    if (address == NULL) return cudart_context();
    return CU_CALL(cuMemFree_v2, ((CUdeviceptr)(uintptr_t)address));
}

RT(cudaMemGetInfo, (size_t * free_bytes, size_t *total)) {
    return CU_CALL(cuMemGetInfo_v2, (free_bytes, total));
}

/* ---- host memory: flags are the driver's ---- */

RT(cudaMallocHost, (void **address, size_t bytes)) {
    if (address == NULL) return cudaErrorInvalidValue;
    if (bytes == 0) return give_nothing(address);
    return CU_CALL(cuMemAllocHost_v2, (address, bytes));
}

RT(cudaHostAlloc, (void **address, size_t bytes, unsigned int flags)) {
    if (address == NULL) return cudaErrorInvalidValue;
    if (bytes == 0) return give_nothing(address);
    return CU_CALL(cuMemHostAlloc, (address, bytes, flags));
}

RT(cudaFreeHost, (void *address)) {
    if (address == NULL) return cudart_context();
    return CU_CALL(cuMemFreeHost, (address));
}

RT(cudaHostRegister, (void *address, size_t bytes, unsigned int flags)) {
    return CU_CALL(cuMemHostRegister_v2, (address, bytes, flags));
}

RT(cudaHostUnregister, (void *address)) {
    return CU_CALL(cuMemHostUnregister, (address));
}

RT(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags)) {
    CUdeviceptr found = 0;
    if (device == NULL) return cudaErrorInvalidValue;
    return memory_give(CU_CALL(cuMemHostGetDevicePointer_v2, (&found, host, flags)), &found,
                       device);
}

RT(cudaHostGetFlags, (unsigned int *flags, void *host)) {
    return CU_CALL(cuMemHostGetFlags, (flags, host));
}

/* ---- in the order of a stream ---- */

RT(cudaMallocAsync, (void **address, size_t bytes, cudaStream_t stream)) {
    CUdeviceptr made = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    if (bytes == 0) return give_nothing(address);
    return memory_give(CU_CALL(cuMemAllocAsync, (&made, bytes, stream)), &made, address);
}

RT(cudaMallocFromPoolAsync,
   (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)) {
    CUdeviceptr made = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    if (bytes == 0) return give_nothing(address);
    return memory_give(CU_CALL(cuMemAllocFromPoolAsync, (&made, bytes, pool, stream)), &made,
                       address);
}

RT(cudaFreeAsync, (void *address, cudaStream_t stream)) {
    if (address == NULL) return cudart_context();
    return CU_CALL(cuMemFreeAsync, ((CUdeviceptr)(uintptr_t)address, stream));
}

/* ---- what an address is ---- */

/* The structure of CUDA 12 ends after hostPointer, so only the first four members are written. */
RT(cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void *address)) {
    int type = 0, managed = 0, device = 0;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *answers[] = {&type, &managed, &device, &on_device, &on_host};
    if (attributes == NULL) return cudaErrorInvalidValue;
    cudaError_t error = CU_CALL(cuPointerGetAttributes, (sizeof asked / sizeof asked[0], asked,
                                                         answers, (CUdeviceptr)(uintptr_t)address));
    if (error != cudaSuccess) return error;
    attributes->type = managed                        ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                      : cudaMemoryTypeUnregistered;
    attributes->device =
        attributes->type == cudaMemoryTypeUnregistered ? cudaInvalidDeviceId : device;
    attributes->devicePointer = (void *)(uintptr_t)on_device;
    attributes->hostPointer =
        attributes->type == cudaMemoryTypeUnregistered ? (void *)(uintptr_t)address : on_host;
    return cudaSuccess;
}

/* ---- other processes ---- */

RT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *address)) {
    return CU_CALL(cuIpcGetMemHandle, (handle, (CUdeviceptr)(uintptr_t)address));
}

RT(cudaIpcOpenMemHandle, (void **address, cudaIpcMemHandle_t handle, unsigned int flags)) {
    CUdeviceptr found = 0;
    if (address == NULL) return cudaErrorInvalidValue;
    return memory_give(CU_CALL(cuIpcOpenMemHandle_v2, (&found, handle, flags)), &found, address);
}

RT(cudaIpcCloseMemHandle, (void *address)) {
    return CU_CALL(cuIpcCloseMemHandle, ((CUdeviceptr)(uintptr_t)address));
}
