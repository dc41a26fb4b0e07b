/*
 * Streams. As in "Stream Management" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "state/contexts.h"
#include "export.h"
#include "state/handle_set.h"
#include "state/memory_pool.h"
#include "queue/queue.h"

static CUresult stream_create(CUstream *handle, unsigned flags, int priority) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (priority > 0) priority = 0;
    if (priority < SOFT_PRIORITY_GREATEST) priority = SOFT_PRIORITY_GREATEST;
    pthread_mutex_lock(&soft_lock);
    struct soft_stream *stream = soft_stream_new(context, flags, priority);
    if (stream != NULL && !soft_handle_add(SOFT_HANDLE_STREAM, stream)) {
        soft_stream_drop(stream);
        stream = NULL;
    }
    pthread_mutex_unlock(&soft_lock);
    if (stream == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUstream)stream;
    return CUDA_SUCCESS;
}

EXPORT(cuStreamCreate, (CUstream * stream, unsigned int flags)) {
    return stream_create(stream, flags, 0);
}

EXPORT(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority)) {
    return stream_create(stream, flags, priority);
}

EXPORT(cuStreamDestroy_v2, (CUstream handle)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(SOFT_HANDLE_STREAM, handle)) {
        struct soft_stream *stream = (struct soft_stream *)handle;
        soft_handle_remove(SOFT_HANDLE_STREAM, stream);
        soft_stream_drop(stream);
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuStreamDestroy, (CUstream handle)) {
    return soft_cuStreamDestroy_v2(handle);
}

EXPORT(cuStreamQuery, (CUstream handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_capture_allows_stream(stream);
    return result != CUDA_SUCCESS ? result : soft_queue_query_stream(stream);
}

EXPORT(cuStreamSynchronize, (CUstream handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = soft_capture_allows_stream(stream);
    if (result != CUDA_SUCCESS) return result;
    result = soft_queue_wait_stream(stream);
    soft_pools_release(context->device, false);
    return result;
}

/* The checks common to all queries of a stream. */
static CUresult stream_ask(CUstream handle, const void *answer, struct soft_stream **stream) {
    struct soft_context *context = NULL;
    CUresult result = soft_stream_find(handle, &context, stream);
    if (result != CUDA_SUCCESS) return result;
    return answer != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuStreamGetPriority, (CUstream handle, int *priority)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, priority, &stream);
    if (result == CUDA_SUCCESS) *priority = stream->priority;
    return result;
}

EXPORT(cuStreamGetFlags, (CUstream handle, unsigned int *flags)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, flags, &stream);
    /* An H100 (driver 580.159) refused it for a captured stream, and the capture was broken. */
    if (result == CUDA_SUCCESS) result = soft_capture_allows_stream(stream);
    if (result == CUDA_SUCCESS) *flags = stream->flags;
    return result;
}

EXPORT(cuStreamGetId, (CUstream handle, unsigned long long *id)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, id, &stream);
    if (result == CUDA_SUCCESS) *id = stream->id;
    return result;
}

EXPORT(cuStreamGetCtx, (CUstream handle, CUcontext *context)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, context, &stream);
    if (result == CUDA_SUCCESS) *context = (CUcontext)stream->context;
    return result;
}

/* No stream here is a green context's. */
EXPORT(cuStreamGetCtx_v2, (CUstream handle, CUcontext *context, CUgreenCtx *green)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, context, &stream);
    if (result != CUDA_SUCCESS) return result;
    *context = (CUcontext)stream->context;
    if (green != NULL) *green = NULL;
    return CUDA_SUCCESS;
}

EXPORT(cuStreamGetDevice, (CUstream handle, CUdevice *device)) {
    struct soft_stream *stream = NULL;
    CUresult result = stream_ask(handle, device, &stream);
    if (result == CUDA_SUCCESS) *device = stream->context->device->ordinal;
    return result;
}

/* Attaching memory has no effect here: host and devices may use it at any time, as
 * CONCURRENT_MANAGED_ACCESS says. A length of 0 is all of it, and a part cannot be attached. */
EXPORT(cuStreamAttachMemAsync,
       (CUstream handle, CUdeviceptr dptr, size_t length, unsigned int flags)) {
    struct soft_stream *stream = NULL;
    struct soft_allocation found;
    CUresult result = stream_ask(handle, &stream, &stream);
    if (result != CUDA_SUCCESS) return result;
    bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                 flags == CU_MEM_ATTACH_SINGLE;
    if (!known || !soft_space_find(dptr, &found) || found.kind != SOFT_KIND_MANAGED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool whole = found.address == dptr && (length == 0 || length == found.bytes);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
