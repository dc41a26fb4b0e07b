/*
 * Waiting for values in memory, and writing them. As in "Stream Memory Operations" of the CUDA
 * Driver API 13.0.
 */
#include "export.h"
#include "queue/queue.h"
#include "queue/stream_value.h"
#include "graph/submit.h"

#include <stdlib.h>

/* Takes over items. */
static CUresult value_submit(CUstream handle, struct soft_stream_value *items, unsigned count) {
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

static CUresult submit_one(CUstream handle, struct soft_stream_value value) {
    struct soft_stream_value *items = malloc(sizeof *items);
    if (items == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *items = value;
    return value_submit(handle, items, 1); /* NOLINT(clang-analyzer-unix.Malloc): it takes them */
}

EXPORT(cuStreamWaitValue32_v2,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return submit_one(
        stream, (struct soft_stream_value){.address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWaitValue64_v2,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return submit_one(stream,
                      (struct soft_stream_value){
                          .wide = true, .address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWriteValue32_v2,
       (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)) {
    return submit_one(stream,
                      (struct soft_stream_value){
                          .write = true, .address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamWriteValue64_v2,
       (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)) {
    return submit_one(
        stream,
        (struct soft_stream_value){
            .write = true, .wide = true, .address = address, .value = value, .flags = flags});
}

EXPORT(cuStreamBatchMemOp_v2, (CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams *params, unsigned int flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *found = NULL;
    struct soft_stream_value *items = NULL;
    CUresult result = soft_stream_find(stream, &context, &found);
    if (result == CUDA_SUCCESS && count == 0 && flags == 0) return CUDA_SUCCESS; /* nothing to do */
    if (result == CUDA_SUCCESS) result = soft_values_of(params, count, flags, &items);
    if (result != CUDA_SUCCESS) return result;
    return value_submit(stream, items,
                        count); /* NOLINT(clang-analyzer-unix.Malloc): it takes them */
}

/* The first versions have the same arguments, and had to be enabled in a driver. */
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
