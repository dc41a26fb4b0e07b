/*
 * Copies of two and three dimensions. As in "Memory Management" of the CUDA Runtime API 13.0.
 */
#include "cudart_copy.h"
#include "cudart_export.h"

static const struct sides {
    CUmemorytype from, to;
} sides[] = {
    [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
    [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
    [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
    [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
    [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
};

static CUdeviceptr at(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

static bool is_kind(cudaMemcpyKind kind) {
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

/* ---- two dimensions ---- */

static cudaError_t describe(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                            size_t width, size_t height, cudaMemcpyKind kind, CUDA_MEMCPY2D *copy) {
    if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    *copy = (CUDA_MEMCPY2D){.srcMemoryType = sides[kind].from,
                            .srcHost = from,
                            .srcDevice = at(from),
                            .srcPitch = from_pitch,
                            .dstMemoryType = sides[kind].to,
                            .dstHost = to,
                            .dstDevice = at(to),
                            .dstPitch = to_pitch,
                            .WidthInBytes = width,
                            .Height = height};
    return cudart_context();
}

RT(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                  size_t height, cudaMemcpyKind kind)) {
    CUDA_MEMCPY2D copy;
    cudaError_t error = describe(to, to_pitch, from, from_pitch, width, height, kind, &copy);
    if (error != cudaSuccess || width == 0 || height == 0) return error;
    return (cudaError_t)CU(cuMemcpy2DUnaligned_v2)(&copy);
}

RT(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, cudaMemcpyKind kind, cudaStream_t stream)) {
    CUDA_MEMCPY2D copy;
    cudaError_t error = describe(to, to_pitch, from, from_pitch, width, height, kind, &copy);
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

cudaError_t cudart_copy_3d(const cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to) {
    if (from == NULL) return cudaErrorInvalidValue;
    if (!is_kind(from->kind)) return cudaErrorInvalidMemcpyDirection;
    if (from->srcArray != NULL || from->dstArray != NULL) return cudaErrorNotSupported;
    if (from->extent.width > from->srcPtr.pitch || from->extent.width > from->dstPtr.pitch) {
        return cudaErrorInvalidPitchValue;
    }
    *to = (CUDA_MEMCPY3D){
        .srcXInBytes = from->srcPos.x,
        .srcY = from->srcPos.y,
        .srcZ = from->srcPos.z,
        .srcMemoryType = sides[from->kind].from,
        .srcHost = from->srcPtr.ptr,
        .srcDevice = at(from->srcPtr.ptr),
        .srcPitch = from->srcPtr.pitch,
        .srcHeight = from->srcPtr.ysize,
        .dstXInBytes = from->dstPos.x,
        .dstY = from->dstPos.y,
        .dstZ = from->dstPos.z,
        .dstMemoryType = sides[from->kind].to,
        .dstHost = from->dstPtr.ptr,
        .dstDevice = at(from->dstPtr.ptr),
        .dstPitch = from->dstPtr.pitch,
        .dstHeight = from->dstPtr.ysize,
        .WidthInBytes = from->extent.width,
        .Height = from->extent.height,
        .Depth = from->extent.depth,
    };
    return cudaSuccess;
}

void cudart_copy_runtime(const CUDA_MEMCPY3D *from, cudaMemcpy3DParms *to) {
    void *source = from->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)from->srcHost
                                                             : (void *)(uintptr_t)from->srcDevice;
    void *destination = from->dstMemoryType == CU_MEMORYTYPE_HOST
                            ? from->dstHost
                            : (void *)(uintptr_t)from->dstDevice;
    *to = (cudaMemcpy3DParms){
        .srcPos = {from->srcXInBytes, from->srcY, from->srcZ},
        .srcPtr = {source, from->srcPitch, from->WidthInBytes, from->srcHeight},
        .dstPos = {from->dstXInBytes, from->dstY, from->dstZ},
        .dstPtr = {destination, from->dstPitch, from->WidthInBytes, from->dstHeight},
        .extent = {from->WidthInBytes, from->Height, from->Depth},
        .kind = cudaMemcpyDefault,
    };
    for (int kind = cudaMemcpyHostToHost; kind < cudaMemcpyDefault; kind++) {
        if (sides[kind].from == from->srcMemoryType && sides[kind].to == from->dstMemoryType) {
            to->kind = kind;
        }
    }
}

static bool is_empty(cudaExtent extent) {
    return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

RT(cudaMemcpy3D, (const cudaMemcpy3DParms *parameters)) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_copy_3d(parameters, &copy);
    if (error == cudaSuccess) error = cudart_context();
    if (error != cudaSuccess || is_empty(parameters->extent)) return error;
    return (cudaError_t)CU(cuMemcpy3D_v2)(&copy);
}

RT(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *parameters, cudaStream_t stream)) {
    CUDA_MEMCPY3D copy;
    cudaError_t error = cudart_copy_3d(parameters, &copy);
    if (error == cudaSuccess) error = cudart_context();
    if (error != cudaSuccess || is_empty(parameters->extent)) return error;
    return (cudaError_t)CU(cuMemcpy3DAsync_v2)(&copy, stream);
}

static cudaError_t describe_peers(const cudaMemcpy3DPeerParms *from, CUDA_MEMCPY3D_PEER *to) {
    if (from == NULL) return cudaErrorInvalidValue;
    if (from->srcArray != NULL || from->dstArray != NULL) return cudaErrorNotSupported;
    *to = (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = from->srcPos.x,
        .srcY = from->srcPos.y,
        .srcZ = from->srcPos.z,
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = at(from->srcPtr.ptr),
        .srcPitch = from->srcPtr.pitch,
        .srcHeight = from->srcPtr.ysize,
        .dstXInBytes = from->dstPos.x,
        .dstY = from->dstPos.y,
        .dstZ = from->dstPos.z,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = at(from->dstPtr.ptr),
        .dstPitch = from->dstPtr.pitch,
        .dstHeight = from->dstPtr.ysize,
        .WidthInBytes = from->extent.width,
        .Height = from->extent.height,
        .Depth = from->extent.depth,
    };
    cudaError_t error = cudart_primary(from->srcDevice, &to->srcContext);
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
