/*
 * Batches of copies: as in "Memory Management" of the CUDA Runtime API 13.0, and of 12.9, which
 * also says which operation failed. The copies of a batch are unordered; here they run one after
 * another. The attributes for access and location are hints.
 */
#include "cudart_copy.h"
#include "cudart/cudart_export.h"

#include <stdint.h>

/* Both null streams are refused, as the manual says. */
static cudaError_t batch_check(cudaStream_t stream) {
    return stream == NULL || stream == CU_STREAM_LEGACY ? cudaErrorInvalidValue : cudart_context();
}

RT(cudaMemcpyBatchAsync_12,
   (void **to, void **from, size_t *bytes, size_t count, cudaMemcpyAttributes *attributes,
    size_t *first, size_t attribute_count, size_t *failed, cudaStream_t stream)) {
    cudaError_t error = batch_check(stream);
    if (failed != NULL) *failed = SIZE_MAX;
    if (error != cudaSuccess) return error;
    if (to == NULL || from == NULL || bytes == NULL || count == 0 || attributes == NULL ||
        first == NULL || attribute_count == 0 || attribute_count > count || first[0] != 0) {
        return cudaErrorInvalidValue;
    }
    for (size_t i = 0; i < count && error == cudaSuccess; i++) {
        error = cudart_cudaMemcpyAsync(to[i], from[i], bytes[i], cudaMemcpyDefault, stream);
        if (error != cudaSuccess && failed != NULL) *failed = i;
    }
    return error;
}

RT(cudaMemcpyBatchAsync,
   (void *const *to, const void *const *from, const size_t *bytes, size_t count,
    cudaMemcpyAttributes *attributes, size_t *first, size_t attribute_count, cudaStream_t stream)) {
    return cudart_cudaMemcpyBatchAsync_12((void **)(uintptr_t)to, (void **)(uintptr_t)from,
                                          (size_t *)(uintptr_t)bytes, count, attributes, first,
                                          attribute_count, NULL, stream);
}

enum { OPERAND_POINTER = 1 };

/* A row length or a layer height of 0 means the extent's. */
static cudaPitchedPtr batch_operand(const cudaMemcpy3DOperand *from, cudaExtent extent) {
    const size_t row = from->op.ptr.rowLength != 0 ? from->op.ptr.rowLength : extent.width;
    const size_t rows = from->op.ptr.layerHeight != 0 ? from->op.ptr.layerHeight : extent.height;
    return (cudaPitchedPtr){from->op.ptr.ptr, row, row, rows};
}

RT(cudaMemcpy3DBatchAsync_12, (size_t count, cudaMemcpy3DBatchOp *list, size_t *failed,
                               unsigned long long flags, cudaStream_t stream)) {
    cudaError_t error = batch_check(stream);
    if (failed != NULL) *failed = SIZE_MAX;
    if (error != cudaSuccess) return error;
    if (count == 0 || list == NULL || flags != 0) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count && error == cudaSuccess; i++) {
        const cudaMemcpy3DBatchOp *one = &list[i];
        const cudaMemcpy3DParms parameters = {.srcPtr = batch_operand(&one->src, one->extent),
                                              .dstPtr = batch_operand(&one->dst, one->extent),
                                              .extent = one->extent,
                                              .kind = cudaMemcpyDefault};
        const bool plain = one->src.type == OPERAND_POINTER && one->dst.type == OPERAND_POINTER;
        error = plain ? cudart_cudaMemcpy3DAsync(&parameters, stream) : cudaErrorNotSupported;
        if (error != cudaSuccess && failed != NULL) *failed = i;
    }
    return error;
}

RT(cudaMemcpy3DBatchAsync,
   (size_t count, cudaMemcpy3DBatchOp *list, unsigned long long flags, cudaStream_t stream)) {
    return cudart_cudaMemcpy3DBatchAsync_12(count, list, NULL, flags, stream);
}
