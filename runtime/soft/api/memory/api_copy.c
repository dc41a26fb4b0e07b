/*
 * Copies of one row of bytes. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "driver/copy_call.h"
#include "queue/copy_rows.h"
#include "api/export.h"

static CUresult copy_submit(CUstream stream, enum soft_place_kind to, uint64_t destination,
                            enum soft_place_kind from, uint64_t source, size_t bytes, bool wait) {
    const struct soft_copy copy = {.to = soft_copy_end(to, destination),
                                   .from = soft_copy_end(from, source),
                                   .width = bytes,
                                   .height = 1,
                                   .depth = 1};
    return soft_copy_submit(stream, &copy, wait);
}

static uint64_t copy_address_of(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static CUresult to_device(CUstream stream, CUdeviceptr dst, const void *src, size_t bytes,
                          bool wait) {
    return copy_submit(stream, SOFT_PLACE_DEVICE, dst, SOFT_PLACE_HOST, copy_address_of(src), bytes,
                       wait);
}

static CUresult copy_to_host(CUstream stream, const void *dst, CUdeviceptr src, size_t bytes,
                             bool wait) {
    return copy_submit(stream, SOFT_PLACE_HOST, copy_address_of(dst), SOFT_PLACE_DEVICE, src, bytes,
                       wait);
}

static CUresult copy_on_device(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    return copy_submit(stream, SOFT_PLACE_DEVICE, dst, SOFT_PLACE_DEVICE, src, bytes, false);
}

static CUresult copy_anywhere(CUstream stream, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                              bool wait) {
    return copy_submit(stream, SOFT_PLACE_UNIFIED, dst, SOFT_PLACE_UNIFIED, src, bytes, wait);
}

/* The contexts are redundant, because the address identifies the memory; but they must be live. */
static CUresult copy_between(CUstream stream, CUdeviceptr dst, CUcontext dst_context,
                             CUdeviceptr src, CUcontext src_context, size_t bytes) {
    struct soft_context *current = NULL, *one = NULL, *other = NULL;
    CUresult result = soft_context_current(&current);
    if (result != CUDA_SUCCESS) return result;
    if (dst_context == NULL || src_context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    result = soft_context_find(dst_context, &one);
    if (result == CUDA_SUCCESS) result = soft_context_find(src_context, &other);
    return result != CUDA_SUCCESS ? result : copy_on_device(stream, dst, src, bytes);
}

EXPORT(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes)) {
    return copy_anywhere(NULL, dst, src, bytes, true);
}

EXPORT(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)) {
    return copy_anywhere(stream, dst, src, bytes, false);
}

EXPORT(cuMemcpyPeer, (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                      CUcontext src_context, size_t bytes)) {
    return copy_between(NULL, dst, dst_context, src, src_context, bytes);
}

EXPORT(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t bytes, CUstream stream)) {
    return copy_between(stream, dst, dst_context, src, src_context, bytes);
}

EXPORT(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes)) {
    return to_device(NULL, dst, src, bytes, true);
}

EXPORT(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes)) {
    return copy_to_host(NULL, dst, src, bytes, true);
}

EXPORT(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes)) {
    return copy_on_device(NULL, dst, src, bytes);
}

EXPORT(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)) {
    return to_device(stream, dst, src, bytes, false);
}

EXPORT(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream)) {
    return copy_to_host(stream, dst, src, bytes, false);
}

EXPORT(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)) {
    return copy_on_device(stream, dst, src, bytes);
}
