/*
 * Host functions in stream order. As in "Execution Control" and "Stream Management" of the CUDA
 * Driver API 13.0.
 */
#include "export.h"
#include "queue/queue.h"
#include "graph/submit.h"

EXPORT(cuLaunchHostFunc, (CUstream handle, CUhostFn function, void *data)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_task task = {.kind = SOFT_TASK_HOST,
                             .is.host = {.function = function, .data = data}};
    return soft_submit(stream, &task, false);
}

EXPORT(cuStreamAddCallback,
       (CUstream handle, CUstreamCallback function, void *data, unsigned int flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_task task = {.kind = SOFT_TASK_CALLBACK,
                             .is.callback = {.function = function, .stream = handle, .data = data}};
    return soft_submit(stream, &task, false);
}
