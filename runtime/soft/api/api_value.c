/*
 * Waiting for values in memory, and writing them. As in "Stream Memory Operations" of the CUDA
 * Driver API 13.0.
 */
#include "export.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 256 };

static bool is_sound(const struct soft_value *value) {
    uint64_t bytes = value->wide ? 8 : 4;
    const unsigned known = value->write ? (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
                                        : 3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    if (value->nothing) return true;
    return (value->flags & ~known) == 0 && value->address % bytes == 0 &&
           soft_range_is_sound(value->address, bytes,
                               value->write ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ);
}

CUresult soft_values_check(const struct soft_value *items, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (!is_sound(&items[i])) return CUDA_ERROR_INVALID_VALUE;
        /* Nothing of a device's writes to others is ever on its way here. */
        if ((items[i].flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0 && !items[i].write) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

/* Takes over items. */
static CUresult submit(CUstream handle, struct soft_value *items, unsigned count) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_values_check(items, count);
    if (result != CUDA_SUCCESS) {
        free(items);
        return result;
    }
    struct soft_task task = {.kind = SOFT_TASK_VALUES,
                             .is.values = {.items = items, .count = count}};
    return soft_submit(stream, &task, false);
}

static CUresult submit_one(CUstream handle, struct soft_value value) {
    struct soft_value *items = malloc(sizeof *items);
    if (items == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *items = value;
    return submit(handle, items, 1); /* NOLINT(clang-analyzer-unix.Malloc): it takes them */
}

EXPORT(cuStreamWaitValue32_v2,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return submit_one(stream,
                      (struct soft_value){.address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWaitValue64_v2,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return submit_one(
        stream,
        (struct soft_value){.wide = true, .address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWriteValue32_v2,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return submit_one(
        stream,
        (struct soft_value){.write = true, .address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWriteValue64_v2,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return submit_one(
        stream,
        (struct soft_value){
            .write = true, .wide = true, .address = address, .value = value, .flags = flags});
}

/* An item of a batch. false: it is none that is known. */
static bool read_item(const CUstreamBatchMemOpParams *item, struct soft_value *value) {
    const int operation = item->operation;
    switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        value->address = item->waitValue.address;
        value->flags = item->waitValue.flags;
        value->wide = operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        value->value = value->wide ? item->waitValue.value64 : item->waitValue.value;
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        value->address = item->writeValue.address;
        value->flags = item->writeValue.flags;
        value->write = true;
        value->wide = operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        value->value = value->wide ? item->writeValue.value64 : item->writeValue.value;
        return true;
    case CU_STREAM_MEM_OP_BARRIER:
        value->nothing = true;
        return item->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    default:
        return false;
    }
}

CUresult soft_values_of(const CUstreamBatchMemOpParams *params, unsigned count, unsigned flags,
                        struct soft_value **result) {
    if (params == NULL || count == 0 || count > BATCH_MAX || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_value *items = calloc(count, sizeof *items);
    if (items == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        if (!read_item(&params[i], &items[i])) {
            free(items);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    *result = items;
    return CUDA_SUCCESS;
}

EXPORT(cuStreamBatchMemOp_v2, (CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams *params, unsigned int flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *found = NULL;
    struct soft_value *items = NULL;
    CUresult result = soft_stream_find(stream, &context, &found);
    if (result == CUDA_SUCCESS && count == 0 && flags == 0) return CUDA_SUCCESS; /* nothing to do */
    if (result == CUDA_SUCCESS) result = soft_values_of(params, count, flags, &items);
    if (result != CUDA_SUCCESS) return result;
    return submit(stream, items, count); /* NOLINT(clang-analyzer-unix.Malloc): it takes them */
}

/* The first versions take the same, and had to be enabled in a driver. */
EXPORT(cuStreamWaitValue32,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return soft_cuStreamWaitValue32_v2(stream, address, value, flags);
}

EXPORT(cuStreamWaitValue64,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return soft_cuStreamWaitValue64_v2(stream, address, value, flags);
}

EXPORT(cuStreamWriteValue32,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return soft_cuStreamWriteValue32_v2(stream, address, value, flags);
}

EXPORT(cuStreamWriteValue64,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return soft_cuStreamWriteValue64_v2(stream, address, value, flags);
}

EXPORT(cuStreamBatchMemOp, (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params,
                            unsigned int flags)) {
    return soft_cuStreamBatchMemOp_v2(stream, count, params, flags);
}
