/*
 * Fills. As in "Memory Management" of the CUDA Driver API 13.0.
 */
#include "driver/copy_call.h"
#include "api/export.h"
#include "memory/space.h"

static CUresult fill_submit(CUstream stream, CUdeviceptr address, size_t pitch, uint32_t value,
                            unsigned element_bytes, size_t width, size_t height) {
    const struct soft_fill_rows fill = {.address = address,
                                        .pitch = height > 1 ? pitch : 0,
                                        .value = value,
                                        .element_bytes = element_bytes,
                                        .width = width,
                                        .height = height};
    return soft_fill_submit(stream, &fill);
}

static bool fill_is_of_host(CUdeviceptr address) {
    struct soft_allocation allocation;
    return soft_space_find(address, &allocation) &&
           (allocation.kind == SOFT_KIND_PINNED || allocation.kind == SOFT_KIND_REGISTERED ||
            allocation.kind == SOFT_KIND_MANAGED);
}

/* A fill without a stream waits only for memory that the host can read: "API synchronization
 * behavior" of the CUDA Driver API. */
static CUresult fill(CUdeviceptr address, size_t pitch, uint32_t value, unsigned element_bytes,
                     size_t width, size_t height) {
    CUresult result = fill_submit(NULL, address, pitch, value, element_bytes, width, height);
    if (result != CUDA_SUCCESS || !fill_is_of_host(address)) return result;
    return soft_cuStreamSynchronize(NULL);
}

EXPORT(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t count)) {
    return fill(dst, 0, value, 1, count, 1);
}

EXPORT(cuMemsetD16_v2, (CUdeviceptr dst, unsigned short value, size_t count)) {
    return fill(dst, 0, value, 2, count, 1);
}

EXPORT(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t count)) {
    return fill(dst, 0, value, 4, count, 1);
}

EXPORT(cuMemsetD2D8_v2,
       (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height)) {
    return fill(dst, pitch, value, 1, width, height);
}

EXPORT(cuMemsetD2D16_v2,
       (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height)) {
    return fill(dst, pitch, value, 2, width, height);
}

EXPORT(cuMemsetD2D32_v2,
       (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height)) {
    return fill(dst, pitch, value, 4, width, height);
}

EXPORT(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)) {
    return fill_submit(stream, dst, 0, value, 1, count, 1);
}

EXPORT(cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)) {
    return fill_submit(stream, dst, 0, value, 2, count, 1);
}

EXPORT(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)) {
    return fill_submit(stream, dst, 0, value, 4, count, 1);
}

EXPORT(cuMemsetD2D8Async, (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)) {
    return fill_submit(stream, dst, pitch, value, 1, width, height);
}

EXPORT(cuMemsetD2D16Async, (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)) {
    return fill_submit(stream, dst, pitch, value, 2, width, height);
}

EXPORT(cuMemsetD2D32Async, (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)) {
    return fill_submit(stream, dst, pitch, value, 4, width, height);
}
