/*
 * Copies. As in "Memory Management" of the CUDA Runtime API 13.0.
 */
#include "cudart_copy.h"

#include "cudart/cudart_export.h"
#include "cudart/cudart_registry.h"

static CUdeviceptr copy_at(const void *address) {
    return (CUdeviceptr)(uintptr_t)address;
}

static bool copy_is_kind(cudaMemcpyKind kind) {
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

/* ---- one dimension ---- */

/* Unified addressing: both kinds follow from the addresses. */
static CUresult copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CU(cuMemcpyHtoD_v2)(copy_at(to), from, bytes);
    case cudaMemcpyDeviceToHost:
        return CU(cuMemcpyDtoH_v2)(to, copy_at(from), bytes);
    case cudaMemcpyDeviceToDevice:
        return CU(cuMemcpyDtoD_v2)(copy_at(to), copy_at(from), bytes);
    default:
        return CU(cuMemcpy)(copy_at(to), copy_at(from), bytes);
    }
}

static CUresult copy_async(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                           cudaStream_t stream) {
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CU(cuMemcpyHtoDAsync_v2)(copy_at(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return CU(cuMemcpyDtoHAsync_v2)(to, copy_at(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return CU(cuMemcpyDtoDAsync_v2)(copy_at(to), copy_at(from), bytes, stream);
    default:
        return CU(cuMemcpyAsync)(copy_at(to), copy_at(from), bytes, stream);
    }
}

static cudaError_t copy_check(cudaMemcpyKind kind) {
    return copy_is_kind(kind) ? cudart_context() : cudaErrorInvalidMemcpyDirection;
}

RT(cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind)) {
    cudaError_t error = copy_check(kind);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy(to, from, bytes, kind);
}

RT(cudaMemcpyAsync,
   (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)) {
    cudaError_t error = copy_check(kind);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy_async(to, from, bytes, kind, stream);
}

/* ---- symbols ---- */

cudaError_t cudart_copy_symbol(const void *symbol, size_t offset, size_t bytes, void **address) {
    CUdeviceptr start = 0;
    size_t size = 0;
    cudaError_t error = cudart_variable(symbol, &start, &size);
    if (error != cudaSuccess) return error;
    if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
    *address = (void *)(uintptr_t)(start + offset);
    return cudaSuccess;
}

/* wrong: the kind for which a symbol would have to be in host memory. */
static cudaError_t copy_find_symbol(const void *symbol, size_t offset, size_t bytes,
                                    cudaMemcpyKind kind, cudaMemcpyKind wrong, void **address) {
    if (kind == wrong || kind == cudaMemcpyHostToHost) return cudaErrorInvalidMemcpyDirection;
    cudaError_t error = copy_check(kind);
    return error != cudaSuccess ? error : cudart_copy_symbol(symbol, offset, bytes, address);
}

RT(cudaMemcpyToSymbol,
   (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind)) {
    void *to = NULL;
    cudaError_t error = copy_find_symbol(symbol, offset, bytes, kind, cudaMemcpyDeviceToHost, &to);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy(to, from, bytes, kind);
}

RT(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t bytes, size_t offset,
                             cudaMemcpyKind kind, cudaStream_t stream)) {
    void *to = NULL;
    cudaError_t error = copy_find_symbol(symbol, offset, bytes, kind, cudaMemcpyDeviceToHost, &to);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy_async(to, from, bytes, kind, stream);
}

RT(cudaMemcpyFromSymbol,
   (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind)) {
    void *from = NULL;
    cudaError_t error =
        copy_find_symbol(symbol, offset, bytes, kind, cudaMemcpyHostToDevice, &from);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy(to, from, bytes, kind);
}

RT(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t bytes, size_t offset,
                               cudaMemcpyKind kind, cudaStream_t stream)) {
    void *from = NULL;
    cudaError_t error =
        copy_find_symbol(symbol, offset, bytes, kind, cudaMemcpyHostToDevice, &from);
    if (error != cudaSuccess || bytes == 0) return error;
    return (cudaError_t)copy_async(to, from, bytes, kind, stream);
}

/* ---- between devices ---- */

static cudaError_t copy_find_peers(int to, int from, CUcontext *to_context,
                                   CUcontext *from_context) {
    cudaError_t error = cudart_primary(to, to_context);
    if (error == cudaSuccess) error = cudart_primary(from, from_context);
    return error != cudaSuccess ? error : cudart_context();
}

RT(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes)) {
    CUcontext to_context = NULL, from_context = NULL;
    cudaError_t error = copy_find_peers(to_device, from_device, &to_context, &from_context);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuMemcpyPeer)(copy_at(to), to_context, copy_at(from), from_context,
                                         bytes);
}

RT(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes,
                         cudaStream_t stream)) {
    CUcontext to_context = NULL, from_context = NULL;
    cudaError_t error = copy_find_peers(to_device, from_device, &to_context, &from_context);
    if (error != cudaSuccess) return error;
    return (cudaError_t)CU(cuMemcpyPeerAsync)(copy_at(to), to_context, copy_at(from), from_context,
                                              bytes, stream);
}
