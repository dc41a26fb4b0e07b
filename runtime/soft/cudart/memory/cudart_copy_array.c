/*
 * Copies of one and two dimensions from and to CUDA arrays. As in "Memory Management" of the CUDA
 * Runtime API 13.0.
 */
#include "cudart_array.h"
#include "cudart_copy.h"
#include "cudart/cudart_export.h"

/* One end of a copy: a place in an array, or in memory. */
struct end {
    CUarray array;   /* NULL: memory */
    uintptr_t start; /* of memory */
    size_t pitch;
    size_t x, y;      /* in an array: bytes and rows */
    size_t row, rows; /* of an array: bytes and rows */
};

struct way {
    cudaMemcpyKind kind;
    bool async;
    cudaStream_t stream;
};

static struct end cudart_copy_array_in_array(cudaArray_const_t array, size_t x, size_t y) {
    return (struct end){.array = (CUarray)(uintptr_t)array, .x = x, .y = y};
}

static struct end cudart_copy_array_in_memory(const void *start, size_t pitch) {
    return (struct end){.start = (uintptr_t)start, .pitch = pitch};
}

static cudaError_t copy_array_check(const struct end *to, const struct end *from,
                                    cudaMemcpyKind kind, struct cudart_sides *sides) {
    return cudart_copy_sides(kind, to->array != NULL, from->array != NULL, sides)
               ? cudart_context()
               : cudaErrorInvalidMemcpyDirection;
}

static cudaError_t copy_box(const struct end *to, const struct end *from, size_t width,
                            size_t height, const struct way *way) {
    struct cudart_sides sides;
    cudaError_t error = copy_array_check(to, from, way->kind, &sides);
    if (error != cudaSuccess) return error;
    if ((to->array == NULL && width > to->pitch) || (from->array == NULL && width > from->pitch)) {
        return cudaErrorInvalidPitchValue;
    }
    if (width == 0 || height == 0) return cudaSuccess;
    const CUDA_MEMCPY2D copy = {.srcXInBytes = from->x,
                                .srcY = from->y,
                                .srcMemoryType = sides.from,
                                .srcHost = (const void *)from->start,
                                .srcDevice = from->start,
                                .srcArray = from->array,
                                .srcPitch = from->pitch,
                                .dstXInBytes = to->x,
                                .dstY = to->y,
                                .dstMemoryType = sides.to,
                                .dstHost = (void *)to->start,
                                .dstDevice = to->start,
                                .dstArray = to->array,
                                .dstPitch = to->pitch,
                                .WidthInBytes = width,
                                .Height = height};
    return (cudaError_t)(way->async ? CU(cuMemcpy2DAsync_v2)(&copy, way->stream)
                                    : CU(cuMemcpy2DUnaligned_v2)(&copy));
}

/* ---- contiguous bytes across the rows of an array ---- */

/* Finds the shape of an end that is an array, which must have bytes from its place on. */
static cudaError_t copy_array_measure(struct end *end, size_t bytes) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    size_t element = 0;
    if (end->array == NULL) return cudaSuccess;
    cudaError_t error = cudart_array_element(end->array, &shape, &element);
    if (error != cudaSuccess) return error;
    end->row = shape.Width * element;
    end->rows = shape.Height == 0 ? 1 : shape.Height;
    if (end->x >= end->row || end->y >= end->rows) return cudaErrorInvalidValue;
    return bytes <= (end->rows - end->y) * end->row - end->x ? cudaSuccess : cudaErrorInvalidValue;
}

/* The bytes up to the end of the row. */
static size_t copy_array_room(const struct end *end, size_t bytes) {
    const size_t left = end->row - end->x;
    return end->array == NULL || bytes < left ? bytes : left;
}

static bool is_whole_row(const struct end *end, size_t width) {
    return end->array == NULL || (end->x == 0 && end->row == width);
}

static void copy_array_advance(struct end *end, size_t width, size_t height) {
    if (end->array == NULL) {
        end->start += width * height;
    } else if (end->x + width == end->row) {
        end->x = 0;
        end->y += height;
    } else {
        end->x += width;
    }
}

/* Splits into boxes: parts of rows, and all whole rows at once if both ends have the same row
 * length. */
static cudaError_t copy_array_copy_bytes(struct end to, struct end from, size_t bytes,
                                         const struct way *way) {
    struct cudart_sides sides;
    cudaError_t error = copy_array_check(&to, &from, way->kind, &sides);
    if (error != cudaSuccess || bytes == 0) return error;
    error = copy_array_measure(&to, bytes);
    if (error == cudaSuccess) error = copy_array_measure(&from, bytes);
    while (error == cudaSuccess && bytes > 0) {
        const size_t width = copy_array_room(&to, copy_array_room(&from, bytes));
        const bool whole = is_whole_row(&to, width) && is_whole_row(&from, width);
        const size_t height = whole ? bytes / width : 1;
        to.pitch = from.pitch = width;
        error = copy_box(&to, &from, width, height, way);
        copy_array_advance(&to, width, height);
        copy_array_advance(&from, width, height);
        bytes -= width * height;
    }
    return error;
}

/* ---- two dimensions ---- */

RT(cudaMemcpy2DToArray, (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                         size_t width, size_t height, cudaMemcpyKind kind)) {
    if (to == NULL) return cudaErrorInvalidResourceHandle;
    const struct end array = cudart_copy_array_in_array(to, x, y),
                     memory = cudart_copy_array_in_memory(from, pitch);
    return copy_box(&array, &memory, width, height, &(struct way){.kind = kind});
}

RT(cudaMemcpy2DToArrayAsync,
   (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
    cudaMemcpyKind kind, cudaStream_t stream)) {
    if (to == NULL) return cudaErrorInvalidResourceHandle;
    const struct end array = cudart_copy_array_in_array(to, x, y),
                     memory = cudart_copy_array_in_memory(from, pitch);
    return copy_box(&array, &memory, width, height, &(struct way){kind, true, stream});
}

RT(cudaMemcpy2DFromArray, (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                           size_t width, size_t height, cudaMemcpyKind kind)) {
    if (from == NULL) return cudaErrorInvalidResourceHandle;
    const struct end array = cudart_copy_array_in_array(from, x, y),
                     memory = cudart_copy_array_in_memory(to, pitch);
    return copy_box(&memory, &array, width, height, &(struct way){.kind = kind});
}

RT(cudaMemcpy2DFromArrayAsync,
   (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
    cudaMemcpyKind kind, cudaStream_t stream)) {
    if (from == NULL) return cudaErrorInvalidResourceHandle;
    const struct end array = cudart_copy_array_in_array(from, x, y),
                     memory = cudart_copy_array_in_memory(to, pitch);
    return copy_box(&memory, &array, width, height, &(struct way){kind, true, stream});
}

RT(cudaMemcpy2DArrayToArray,
   (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t x, size_t y,
    size_t width, size_t height, cudaMemcpyKind kind)) {
    if (to == NULL || from == NULL) return cudaErrorInvalidResourceHandle;
    const struct end target = cudart_copy_array_in_array(to, to_x, to_y),
                     source = cudart_copy_array_in_array(from, x, y);
    return copy_box(&target, &source, width, height, &(struct way){.kind = kind});
}

/* ---- one dimension ---- */

RT(cudaMemcpyToArray,
   (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind)) {
    if (to == NULL) return cudaErrorInvalidResourceHandle;
    return copy_array_copy_bytes(cudart_copy_array_in_array(to, x, y),
                                 cudart_copy_array_in_memory(from, 0), bytes,
                                 &(struct way){.kind = kind});
}

RT(cudaMemcpyToArrayAsync, (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)) {
    if (to == NULL) return cudaErrorInvalidResourceHandle;
    return copy_array_copy_bytes(cudart_copy_array_in_array(to, x, y),
                                 cudart_copy_array_in_memory(from, 0), bytes,
                                 &(struct way){kind, true, stream});
}

RT(cudaMemcpyFromArray,
   (void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind)) {
    if (from == NULL) return cudaErrorInvalidResourceHandle;
    return copy_array_copy_bytes(cudart_copy_array_in_memory(to, 0),
                                 cudart_copy_array_in_array(from, x, y), bytes,
                                 &(struct way){.kind = kind});
}

RT(cudaMemcpyFromArrayAsync, (void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                              cudaMemcpyKind kind, cudaStream_t stream)) {
    if (from == NULL) return cudaErrorInvalidResourceHandle;
    return copy_array_copy_bytes(cudart_copy_array_in_memory(to, 0),
                                 cudart_copy_array_in_array(from, x, y), bytes,
                                 &(struct way){kind, true, stream});
}

RT(cudaMemcpyArrayToArray, (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                            size_t x, size_t y, size_t bytes, cudaMemcpyKind kind)) {
    if (to == NULL || from == NULL) return cudaErrorInvalidResourceHandle;
    return copy_array_copy_bytes(cudart_copy_array_in_array(to, to_x, to_y),
                                 cudart_copy_array_in_array(from, x, y), bytes,
                                 &(struct way){.kind = kind});
}
