/*
 * Fills. As in "Memory Management" of the CUDA Runtime API 13.0. Only the low byte of a value is
 * used.
 */
#include "cudart/cudart_export.h"

static CUdeviceptr fill_at(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

RT(cudaMemset, (void *address, int value, size_t bytes)) {
    return CU_CALL(cuMemsetD8_v2, (fill_at(address), (unsigned char)value, bytes));
}

RT(cudaMemsetAsync, (void *address, int value, size_t bytes, cudaStream_t stream)) {
    return CU_CALL(cuMemsetD8Async, (fill_at(address), (unsigned char)value, bytes, stream));
}

RT(cudaMemset2D, (void *address, size_t pitch, int value, size_t width, size_t height)) {
    return CU_CALL(cuMemsetD2D8_v2, (fill_at(address), pitch, (unsigned char)value, width, height));
}

RT(cudaMemset2DAsync,
   (void *address, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)) {
    return CU_CALL(cuMemsetD2D8Async,
                   (fill_at(address), pitch, (unsigned char)value, width, height, stream));
}

/* One slice at a time: rows outside the extent may lie between two slices. */
RT(cudaMemset3DAsync, (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream)) {
    const size_t slice = pitched.pitch * pitched.ysize;
    cudaError_t error = cudart_context();
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++) {
        error = (cudaError_t)CU(cuMemsetD2D8Async)(fill_at(pitched.ptr) + z * slice, pitched.pitch,
                                                   (unsigned char)value, extent.width,
                                                   extent.height, stream);
    }
    return error;
}

RT(cudaMemset3D, (cudaPitchedPtr pitched, int value, cudaExtent extent)) {
    const size_t slice = pitched.pitch * pitched.ysize;
    cudaError_t error = cudart_context();
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++) {
        error = (cudaError_t)CU(cuMemsetD2D8_v2)(fill_at(pitched.ptr) + z * slice, pitched.pitch,
                                                 (unsigned char)value, extent.width, extent.height);
    }
    return error;
}
