/*
 * CUDA arrays. As in "Memory Management" and "Texture Object Management" of the CUDA Runtime API
 * 13.0. Handles and flags are the driver's.
 */
#include "cudart_array.h"

#include "cudart/cudart_export.h"

static CUarray array_handle(cudaArray_const_t array) {
    return (CUarray)(uintptr_t)array;
}

cudaError_t cudart_array_element(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *shape,
                                 size_t *bytes) {
    CUDA_ARRAY3D_DESCRIPTOR found;
    cudaChannelFormatDesc desc = {.f = cudaChannelFormatKindNone};
    if (array == NULL) return cudaErrorInvalidResourceHandle;
    cudaError_t error = CU_CALL(cuArray3DGetDescriptor_v2, (&found, array_handle(array)));
    if (error == cudaSuccess) error = cudart_channel_of(found.Format, found.NumChannels, &desc);
    if (error != cudaSuccess) return error;
    if (shape != NULL) *shape = found;
    *bytes = (size_t)(desc.x + desc.y + desc.z + desc.w) / 8;
    return cudaSuccess;
}

static cudaError_t array_make(cudaArray_t *array, const cudaChannelFormatDesc *desc,
                              cudaExtent extent, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {extent.width, extent.height, extent.depth, .Flags = flags};
    if (array == NULL || desc == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_channel_format(desc, &shape.Format, &shape.NumChannels);
    return error != cudaSuccess ? error : CU_CALL(cuArray3DCreate_v2, (array, &shape));
}

RT(cudaMallocArray, (cudaArray_t * array, const cudaChannelFormatDesc *desc, size_t width,
                     size_t height, unsigned flags)) {
    /* Those that need three dimensions. */
    const unsigned others = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
    if ((flags & others) != 0) return cudaErrorInvalidValue;
    return array_make(array, desc, (cudaExtent){width, height, 0}, flags);
}

RT(cudaMalloc3DArray,
   (cudaArray_t * array, const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags)) {
    return array_make(array, desc, extent, flags);
}

RT(cudaFreeArray, (cudaArray_t array)) {
    if (array == NULL) return cudart_context();
    return CU_CALL(cuArrayDestroy, (array));
}

RT(cudaArrayGetInfo,
   (cudaChannelFormatDesc * desc, cudaExtent *extent, unsigned *flags, cudaArray_t array)) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    cudaError_t error = CU_CALL(cuArray3DGetDescriptor_v2, (&shape, array));
    if (error == cudaSuccess && desc != NULL) {
        error = cudart_channel_of(shape.Format, shape.NumChannels, desc);
    }
    if (error != cudaSuccess) return error;
    if (extent != NULL) *extent = (cudaExtent){shape.Width, shape.Height, shape.Depth};
    if (flags != NULL) *flags = shape.Flags;
    return cudaSuccess;
}

RT(cudaGetChannelDesc, (cudaChannelFormatDesc * desc, cudaArray_const_t array)) {
    if (desc == NULL) return cudaErrorInvalidValue;
    return cudart_cudaArrayGetInfo(desc, NULL, NULL, array_handle(array));
}

RT(cudaArrayGetMemoryRequirements,
   (cudaArrayMemoryRequirements * requirements, cudaArray_t array, int device)) {
    return CU_CALL(cuArrayGetMemoryRequirements, (requirements, array, device));
}

RT(cudaArrayGetSparseProperties, (cudaArraySparseProperties * properties, cudaArray_t array)) {
    return CU_CALL(cuArrayGetSparseProperties, (properties, array));
}

RT(cudaArrayGetPlane, (cudaArray_t * plane, cudaArray_t array, unsigned which)) {
    return CU_CALL(cuArrayGetPlane, (plane, array, which));
}

/* ---- mipmapped arrays ---- */

RT(cudaMallocMipmappedArray, (cudaMipmappedArray_t * array, const cudaChannelFormatDesc *desc,
                              cudaExtent extent, unsigned levels, unsigned flags)) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {extent.width, extent.height, extent.depth, .Flags = flags};
    if (array == NULL || desc == NULL) return cudaErrorInvalidValue;
    cudaError_t error = cudart_channel_format(desc, &shape.Format, &shape.NumChannels);
    return error != cudaSuccess ? error : CU_CALL(cuMipmappedArrayCreate, (array, &shape, levels));
}

RT(cudaGetMipmappedArrayLevel,
   (cudaArray_t * array, cudaMipmappedArray_const_t mipmap, unsigned level)) {
    return CU_CALL(cuMipmappedArrayGetLevel, (array, (CUmipmappedArray)(uintptr_t)mipmap, level));
}

RT(cudaFreeMipmappedArray, (cudaMipmappedArray_t mipmap)) {
    if (mipmap == NULL) return cudart_context();
    return CU_CALL(cuMipmappedArrayDestroy, (mipmap));
}

RT(cudaMipmappedArrayGetMemoryRequirements,
   (cudaArrayMemoryRequirements * requirements, cudaMipmappedArray_t mipmap, int device)) {
    return CU_CALL(cuMipmappedArrayGetMemoryRequirements, (requirements, mipmap, device));
}

RT(cudaMipmappedArrayGetSparseProperties,
   (cudaArraySparseProperties * properties, cudaMipmappedArray_t mipmap)) {
    return CU_CALL(cuMipmappedArrayGetSparseProperties, (properties, mipmap));
}
