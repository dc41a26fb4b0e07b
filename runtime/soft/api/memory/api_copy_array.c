/*
 * Copies to and from CUDA arrays that are described by one offset. As in "Memory Management" of the
 * CUDA Driver API 13.0.
 *
 * The manual has these for arrays of one dimension. Here they take any array whose rows are
 * contiguous, from the offset on.
 */
#include "api/export.h"
#include "driver/copy_call.h"
#include "queue/copy_rows.h"
#include "state/array.h"
#include "state/contexts.h"

/* One end: an array and an offset, or memory. */
struct array_end {
    bool is_array;
    CUarray array;
    size_t offset;
    enum soft_place_kind kind;
    uint64_t address;
};

static struct array_end api_copy_array_in_array(CUarray array, size_t offset) {
    return (struct array_end){.is_array = true, .array = array, .offset = offset};
}

static struct array_end api_copy_array_in_memory(enum soft_place_kind kind, uint64_t address) {
    return (struct array_end){.kind = kind, .address = address};
}

/* The size of an array's elements; of memory, 1. */
static CUresult copy_array_resolve(const struct array_end *place, size_t bytes,
                                   struct soft_copy_end *end, unsigned *element_bytes) {
    struct soft_array array;
    *element_bytes = 1;
    if (!place->is_array) {
        *end = soft_copy_end(place->kind, place->address);
        return CUDA_SUCCESS;
    }
    if (!soft_array_find(place->array, &array)) return CUDA_ERROR_INVALID_HANDLE;
    uint64_t all = array.slice * array.layers;
    if (place->offset > all || bytes > all - place->offset ||
        place->offset % array.element_bytes != 0 || bytes % array.element_bytes != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *end = (struct soft_copy_end){.address = array.address + place->offset, .in_space = true};
    *element_bytes = array.element_bytes;
    return CUDA_SUCCESS;
}

static CUresult copy_array_copy(CUstream stream, const struct array_end *to,
                                const struct array_end *from, size_t bytes, bool wait) {
    struct soft_context *context = NULL;
    struct soft_copy copy = {.width = bytes, .height = 1, .depth = 1};
    unsigned written = 0, read = 0;
    CUresult result = soft_context_current(&context);
    if (result == CUDA_SUCCESS) result = copy_array_resolve(to, bytes, &copy.to, &written);
    if (result == CUDA_SUCCESS) result = copy_array_resolve(from, bytes, &copy.from, &read);
    if (result != CUDA_SUCCESS) return result;
    /* The formats of two arrays may differ, the sizes of their elements may not. */
    if (to->is_array && from->is_array && written != read) return CUDA_ERROR_INVALID_VALUE;
    return soft_copy_submit(stream, &copy, wait);
}

EXPORT(cuMemcpyDtoA_v2, (CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)) {
    const struct array_end to = api_copy_array_in_array(dst, offset),
                           from = api_copy_array_in_memory(SOFT_PLACE_DEVICE, src);
    return copy_array_copy(NULL, &to, &from, bytes, false);
}

EXPORT(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)) {
    const struct array_end to = api_copy_array_in_memory(SOFT_PLACE_DEVICE, dst),
                           from = api_copy_array_in_array(src, offset);
    return copy_array_copy(NULL, &to, &from, bytes, false);
}

EXPORT(cuMemcpyAtoA_v2,
       (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes)) {
    const struct array_end to = api_copy_array_in_array(dst, dst_offset),
                           from = api_copy_array_in_array(src, src_offset);
    return copy_array_copy(NULL, &to, &from, bytes, false);
}

static CUresult from_host(CUstream stream, CUarray dst, size_t offset, const void *src,
                          size_t bytes, bool wait) {
    const struct array_end to = api_copy_array_in_array(dst, offset);
    const struct array_end from =
        api_copy_array_in_memory(SOFT_PLACE_HOST, (uint64_t)(uintptr_t)src);
    return copy_array_copy(stream, &to, &from, bytes, wait);
}

static CUresult copy_array_to_host(CUstream stream, void *dst, CUarray src, size_t offset,
                                   size_t bytes, bool wait) {
    const struct array_end to = api_copy_array_in_memory(SOFT_PLACE_HOST, (uint64_t)(uintptr_t)dst);
    const struct array_end from = api_copy_array_in_array(src, offset);
    return copy_array_copy(stream, &to, &from, bytes, wait);
}

EXPORT(cuMemcpyHtoA_v2, (CUarray dst, size_t offset, const void *src, size_t bytes)) {
    return from_host(NULL, dst, offset, src, bytes, true);
}

EXPORT(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t offset, size_t bytes)) {
    return copy_array_to_host(NULL, dst, src, offset, bytes, true);
}

EXPORT(cuMemcpyHtoAAsync_v2,
       (CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)) {
    return from_host(stream, dst, offset, src, bytes, false);
}

EXPORT(cuMemcpyAtoHAsync_v2,
       (void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)) {
    return copy_array_to_host(stream, dst, src, offset, bytes, false);
}
