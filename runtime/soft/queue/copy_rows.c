/*
 * From a program's description of two ends to a copy.
 */
#include "copy_rows.h"

#include "state/array.h"

struct soft_copy_end soft_copy_end(enum soft_place_kind kind, uint64_t address) {
    /* Host memory that devices may use is still host memory. */
    bool device = kind == SOFT_PLACE_DEVICE || soft_space_holds(address, 1);
    return (struct soft_copy_end){.address = address, .in_space = device};
}

/* One end in CUDA_MEMCPY2D and CUDA_MEMCPY3D. */
struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, rows;
};

/* Whether count items from first on exist. */
static bool copy_rows_is_inside(uint64_t first, uint64_t count, uint64_t all) {
    return first <= all && count <= all - first;
}

bool soft_copy_end_of_array(CUarray handle, const uint64_t at[3], const uint64_t sizes[3],
                            struct soft_copy_end *end) {
    struct soft_array array;
    if (!soft_array_find(handle, &array)) return false;
    if (!copy_rows_is_inside(at[0], sizes[0], array.pitch) ||
        !copy_rows_is_inside(at[1], sizes[1], array.rows) ||
        !copy_rows_is_inside(at[2], sizes[2], array.layers) || at[0] % array.element_bytes != 0 ||
        sizes[0] % array.element_bytes != 0) {
        return false;
    }
    *end = (struct soft_copy_end){.address = array.address + at[2] * array.slice +
                                             at[1] * array.pitch + at[0],
                                  .pitch = array.pitch,
                                  .slice = array.slice,
                                  .in_space = true};
    return true;
}

/* The end's first byte, pitch and slice. false: they are invalid. */
static bool copy_rows_place(const struct end *end, const struct soft_copy *copy,
                            struct soft_copy_end *result) {
    enum { PITCH_MAX = INT32_MAX };
    if (end->type == CU_MEMORYTYPE_ARRAY) {
        const uint64_t at[3] = {end->x, end->y, end->z};
        const uint64_t sizes[3] = {copy->width, copy->height, copy->depth};
        return soft_copy_end_of_array(end->array, at, sizes, result);
    }
    enum soft_place_kind kind = end->type == CU_MEMORYTYPE_HOST     ? SOFT_PLACE_HOST
                                : end->type == CU_MEMORYTYPE_DEVICE ? SOFT_PLACE_DEVICE
                                                                    : SOFT_PLACE_UNIFIED;
    if (kind == SOFT_PLACE_UNIFIED && end->type != CU_MEMORYTYPE_UNIFIED) return false;
    uint64_t base = kind == SOFT_PLACE_HOST ? (uint64_t)(uintptr_t)end->host : end->device;
    uint64_t slice = 0, across = 0, down = 0, address = 0;
    bool flat = copy->depth == 1 && end->z == 0, one_row = flat && copy->height == 1 && end->y == 0;
    if (end->pitch > PITCH_MAX || base == 0) return false;
    /* A pitch of 0 means none, and must not be needed. The same holds for the rows of a layer. */
    if (end->x > UINT64_MAX - copy->width || end->y > UINT64_MAX - copy->height) return false;
    if (end->pitch == 0 ? !one_row : end->pitch < end->x + copy->width) return false;
    if (end->rows == 0 ? !flat : end->rows < end->y + copy->height) return false;
    if (__builtin_mul_overflow(end->pitch, end->rows, &slice) ||
        __builtin_mul_overflow(slice, end->z, &across) ||
        __builtin_mul_overflow(end->pitch, end->y, &down) ||
        __builtin_add_overflow(base, across, &address) ||
        __builtin_add_overflow(address, down, &address) ||
        __builtin_add_overflow(address, end->x, &address)) {
        return false;
    }
    *result = soft_copy_end(kind, address);
    result->pitch = end->pitch;
    result->slice = slice;
    return true;
}

static bool place_both(const struct end *to, const struct end *from, struct soft_copy *copy) {
    bool empty = copy->width == 0 || copy->height == 0 || copy->depth == 0;
    return empty ||
           (copy_rows_place(to, copy, &copy->to) && copy_rows_place(from, copy, &copy->from));
}

bool soft_copy_of_3d(const CUDA_MEMCPY3D *call, struct soft_copy *copy) {
    *copy = (struct soft_copy){
        .width = call->WidthInBytes, .height = call->Height, .depth = call->Depth};
    const struct end to = {call->dstMemoryType, call->dstHost,     call->dstDevice,
                           call->dstArray,      call->dstXInBytes, call->dstY,
                           call->dstZ,          call->dstPitch,    call->dstHeight};
    const struct end from = {call->srcMemoryType, call->srcHost,     call->srcDevice,
                             call->srcArray,      call->srcXInBytes, call->srcY,
                             call->srcZ,          call->srcPitch,    call->srcHeight};
    return call->srcLOD == 0 && call->dstLOD == 0 && place_both(&to, &from, copy);
}

/* The same for two dimensions: one layer. */
bool soft_copy_of_2d(const CUDA_MEMCPY2D *call, struct soft_copy *copy) {
    *copy = (struct soft_copy){.width = call->WidthInBytes, .height = call->Height, .depth = 1};
    const struct end to = {call->dstMemoryType,
                           call->dstHost,
                           call->dstDevice,
                           call->dstArray,
                           call->dstXInBytes,
                           call->dstY,
                           0,
                           call->dstPitch,
                           0};
    const struct end from = {call->srcMemoryType,
                             call->srcHost,
                             call->srcDevice,
                             call->srcArray,
                             call->srcXInBytes,
                             call->srcY,
                             0,
                             call->srcPitch,
                             0};
    return place_both(&to, &from, copy);
}
