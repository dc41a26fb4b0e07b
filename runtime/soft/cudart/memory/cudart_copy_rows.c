/*
 * Copies of two and three dimensions. As in "Memory Management" of the CUDA Runtime API 13.0.
 */
#include "cudart_copy.h"

#include "cudart_array.h"
#include "cudart/cudart_export.h"

static const struct cudart_sides sides_of[] = {
    [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
    [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
    [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
    [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
    [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
};

static CUdeviceptr copy_rows_at(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

bool cudart_copy_sides(cudaMemcpyKind kind, bool to_array, bool from_array,
                       struct cudart_sides *sides) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return false;
    *sides = sides_of[kind];
    if ((to_array && sides->to == CU_MEMORYTYPE_HOST) ||
        (from_array && sides->from == CU_MEMORYTYPE_HOST)) {
        return false;
    }
    if (to_array) sides->to = CU_MEMORYTYPE_ARRAY;
    if (from_array) sides->from = CU_MEMORYTYPE_ARRAY;
    return true;
}

/* ---- two dimensions ---- */

static cudaError_t copy_rows_describe(void *to, size_t to_pitch, const void *from,
                                      size_t from_pitch, size_t width, size_t height,
                                      cudaMemcpyKind kind, CUDA_MEMCPY2D *copy) {
    struct cudart_sides sides;
    if (!cudart_copy_sides(kind, false, false, &sides)) return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    *copy = (CUDA_MEMCPY2D){.srcMemoryType = sides.from,
                            .srcHost = from,
                            .srcDevice = copy_rows_at(from),
                            .srcPitch = from_pitch,
                            .dstMemoryType = sides.to,
                            .dstHost = to,
                            .dstDevice = copy_rows_at(to),
                            .dstPitch = to_pitch,
                            .WidthInBytes = width,
                            .Height = height};
    return cudart_context();
}

RT(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind)) {
    CUDA_MEMCPY2D copy;
    cudaError_t error =
        copy_rows_describe(to, to_pitch, from, from_pitch, width, height, kind, &copy);
    if (error != cudaSuccess || width == 0 || height == 0) return error;
    return (cudaError_t)CU(cuMemcpy2DUnaligned_v2)(&copy);
}

RT(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, cudaMemcpyKind kind, cudaStream_t stream)) {
    CUDA_MEMCPY2D copy;
    cudaError_t error =
        copy_rows_describe(to, to_pitch, from, from_pitch, width, height, kind, &copy);
    if (error != cudaSuccess || width == 0 || height == 0) return error;
    return (cudaError_t)CU(cuMemcpy2DAsync_v2)(&copy, stream);
}

/* ---- three dimensions ---- */

cudaError_t cudart_copy_1d(void *destination, const void *source, size_t bytes, cudaMemcpyKind kind,
                           CUDA_MEMCPY3D *to) {
    const cudaMemcpy3DParms parameters = {
        .srcPtr = {(void *)(uintptr_t)source, bytes, bytes, 1},
        .dstPtr = {destination, bytes, bytes, 1},
        .extent = {bytes, 1, 1},
        .kind = kind,
    };
    return cudart_copy_3d(&parameters, to);
}

/* The bytes of a copy's unit: the elements of its arrays, which must agree, or one. */
static cudaError_t find_unit(cudaArray_const_t to, cudaArray_const_t from, size_t *bytes) {
    size_t other = 0;
    *bytes = 1;
    if (to == NULL && from == NULL) return cudaSuccess;
    cudaError_t error = cudart_array_element(to != NULL ? to : from, NULL, bytes);
    if (error != cudaSuccess || to == NULL || from == NULL) return error;
    error = cudart_array_element(from, NULL, &other);
    return error == cudaSuccess && other != *bytes ? cudaErrorInvalidValue : error;
}

/* An end is an array or memory, of which a row is not longer than its pitch. */
static cudaError_t check_end(CUarray array, const cudaPitchedPtr *memory, size_t width) {
    if (array != NULL) return memory->ptr == NULL ? cudaSuccess : cudaErrorInvalidValue;
    return width > memory->pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
}

cudaError_t cudart_copy_3d(const cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to) {
    if (from == NULL) return cudaErrorInvalidValue;
    struct cudart_sides sides;
    size_t unit = 1;
    if (!cudart_copy_sides(from->kind, from->dstArray != NULL, from->srcArray != NULL, &sides)) {
        return cudaErrorInvalidMemcpyDirection;
    }
    cudaError_t error = find_unit(from->dstArray, from->srcArray, &unit);
    if (error != cudaSuccess) return error;
    const size_t width = from->extent.width * unit;
    error = check_end(from->srcArray, &from->srcPtr, width);
    if (error == cudaSuccess) error = check_end(from->dstArray, &from->dstPtr, width);
    if (error != cudaSuccess) return error;
    *to = (CUDA_MEMCPY3D){
        .srcXInBytes = from->srcPos.x * (from->srcArray != NULL ? unit : 1),
        .srcY = from->srcPos.y,
        .srcZ = from->srcPos.z,
        .srcMemoryType = sides.from,
        .srcHost = from->srcPtr.ptr,
        .srcDevice = copy_rows_at(from->srcPtr.ptr),
        .srcArray = from->srcArray,
        .srcPitch = from->srcPtr.pitch,
        .srcHeight = from->srcPtr.ysize,
        .dstXInBytes = from->dstPos.x * (from->dstArray != NULL ? unit : 1),
        .dstY = from->dstPos.y,
        .dstZ = from->dstPos.z,
        .dstMemoryType = sides.to,
        .dstHost = from->dstPtr.ptr,
        .dstDevice = copy_rows_at(from->dstPtr.ptr),
        .dstArray = from->dstArray,
        .dstPitch = from->dstPtr.pitch,
        .dstHeight = from->dstPtr.ysize,
        .WidthInBytes = width,
        .Height = from->extent.height,
        .Depth = from->extent.depth,
    };
    return cudaSuccess;
}

/* One end of a driver's copy in the runtime's terms. */
static void end_runtime(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array,
                        size_t pitch, size_t height, size_t width, CUarray *to_array,
                        cudaPitchedPtr *to) {
    const bool is_host = type == CU_MEMORYTYPE_HOST;
    if (type == CU_MEMORYTYPE_ARRAY) {
        *to_array = array;
        return;
    }
    *to = (cudaPitchedPtr){is_host ? (void *)(uintptr_t)host : (void *)(uintptr_t)device, pitch,
                           width, height};
}

/* Arrays are memory of the device. */
static CUmemorytype side_runtime(CUmemorytype type) {
    return type == CU_MEMORYTYPE_ARRAY ? CU_MEMORYTYPE_DEVICE : type;
}

cudaError_t cudart_copy_runtime(const CUDA_MEMCPY3D *from, cudaMemcpy3DParms *to) {
    const bool to_array = from->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    const bool from_array = from->srcMemoryType == CU_MEMORYTYPE_ARRAY;
    size_t unit = 1;
    cudaError_t error =
        find_unit(to_array ? from->dstArray : NULL, from_array ? from->srcArray : NULL, &unit);
    if (error != cudaSuccess) return error;
    *to = (cudaMemcpy3DParms){
        .srcPos = {from->srcXInBytes / (from_array ? unit : 1), from->srcY, from->srcZ},
        .dstPos = {from->dstXInBytes / (to_array ? unit : 1), from->dstY, from->dstZ},
        .extent = {from->WidthInBytes / unit, from->Height, from->Depth},
        .kind = cudaMemcpyDefault,
    };
    end_runtime(from->srcMemoryType, from->srcHost, from->srcDevice, from->srcArray, from->srcPitch,
                from->srcHeight, from->WidthInBytes, &to->srcArray, &to->srcPtr);
    end_runtime(from->dstMemoryType, from->dstHost, from->dstDevice, from->dstArray, from->dstPitch,
                from->dstHeight, from->WidthInBytes, &to->dstArray, &to->dstPtr);
    for (int kind = cudaMemcpyHostToHost; kind < cudaMemcpyDefault; kind++) {
        if (sides_of[kind].from == side_runtime(from->srcMemoryType) &&
            sides_of[kind].to == side_runtime(from->dstMemoryType)) {
            to->kind = kind;
        }
    }
    return cudaSuccess;
}

static bool copy_rows_is_empty(cudaExtent extent) {
    return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

RT(cudaMemcpy3D, (const cudaMemcpy3DParms *parameters)) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_copy_3d(parameters, &copy);
    if (error == cudaSuccess) error = cudart_context();
    if (error != cudaSuccess || copy_rows_is_empty(parameters->extent)) return error;
    return (cudaError_t)CU(cuMemcpy3D_v2)(&copy);
}

RT(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *parameters, cudaStream_t stream)) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_copy_3d(parameters, &copy);
    if (error == cudaSuccess) error = cudart_context();
    if (error != cudaSuccess || copy_rows_is_empty(parameters->extent)) return error;
    return (cudaError_t)CU(cuMemcpy3DAsync_v2)(&copy, stream);
}

static cudaError_t describe_peers(const cudaMemcpy3DPeerParms *from, CUDA_MEMCPY3D_PEER *to) {
    if (from == NULL) return cudaErrorInvalidValue;
    CUDA_MEMCPY3D copy;
    const cudaMemcpy3DParms plain = {
        .srcArray = from->srcArray,
        .srcPos = from->srcPos,
        .srcPtr = from->srcPtr,
        .dstArray = from->dstArray,
        .dstPos = from->dstPos,
        .dstPtr = from->dstPtr,
        .extent = from->extent,
        .kind = cudaMemcpyDeviceToDevice,
    };
    cudaError_t error = cudart_copy_3d(&plain, &copy);
    if (error != cudaSuccess) return error;
    *to = (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = copy.srcXInBytes,
        .srcY = copy.srcY,
        .srcZ = copy.srcZ,
        .srcMemoryType = copy.srcMemoryType,
        .srcDevice = copy.srcDevice,
        .srcArray = copy.srcArray,
        .srcPitch = copy.srcPitch,
        .srcHeight = copy.srcHeight,
        .dstXInBytes = copy.dstXInBytes,
        .dstY = copy.dstY,
        .dstZ = copy.dstZ,
        .dstMemoryType = copy.dstMemoryType,
        .dstDevice = copy.dstDevice,
        .dstArray = copy.dstArray,
        .dstPitch = copy.dstPitch,
        .dstHeight = copy.dstHeight,
        .WidthInBytes = copy.WidthInBytes,
        .Height = copy.Height,
        .Depth = copy.Depth,
    };
    error = cudart_primary(from->srcDevice, &to->srcContext);
    if (error == cudaSuccess) error = cudart_primary(from->dstDevice, &to->dstContext);
    return error != cudaSuccess ? error : cudart_context();
}

RT(cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms *parameters)) {
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = describe_peers(parameters, &copy);
    return error != cudaSuccess ? error : (cudaError_t)CU(cuMemcpy3DPeer)(&copy);
}

RT(cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms *parameters, cudaStream_t stream)) {
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = describe_peers(parameters, &copy);
    return error != cudaSuccess ? error : (cudaError_t)CU(cuMemcpy3DPeerAsync)(&copy, stream);
}
