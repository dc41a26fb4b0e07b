/*
 * Streams and events. As in "Stream Management" and "Event Management" of the
 * CUDA Driver API 13.0. */
#include "driver_state.h"
#include "export.h"
#include "queue.h"

#include <stdlib.h>

static CUresult create_stream(CUstream *handle, unsigned flags, int priority) {
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
    if (stream != NULL) soft_handle_add(SOFT_HANDLE_STREAM, stream);
    pthread_mutex_unlock(&soft_lock);
    if (stream == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUstream)stream;
    return CUDA_SUCCESS;
}

EXPORT(cuStreamCreate, (CUstream * stream, unsigned int flags)) {
    return create_stream(stream, flags, 0);
}

EXPORT(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority)) {
    return create_stream(stream, flags, priority);
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

EXPORT(cuStreamQuery, (CUstream handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    return result != CUDA_SUCCESS ? result : soft_queue_query_stream(stream);
}

EXPORT(cuStreamSynchronize, (CUstream handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    return result != CUDA_SUCCESS ? result : soft_queue_wait_stream(stream);
}

EXPORT(cuStreamGetPriority, (CUstream handle, int *priority)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (priority == NULL) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

EXPORT(cuStreamGetFlags, (CUstream handle, unsigned int *flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (flags == NULL) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

/* Takes a reference to the moment of an event's latest recording; NULL if it has none. */
static CUresult latest_moment(CUevent handle, struct soft_context **context,
                              struct soft_moment **moment) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(SOFT_HANDLE_EVENT, handle)) {
        *moment = ((struct soft_event *)handle)->moment;
        if (*moment != NULL) (*moment)->references++;
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

static void release(struct soft_moment *moment) {
    pthread_mutex_lock(&soft_lock);
    soft_moment_release(moment);
    pthread_mutex_unlock(&soft_lock);
}

EXPORT(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned int flags)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    struct soft_moment *moment = NULL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result == CUDA_SUCCESS && flags > 1) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = latest_moment(event, &context, &moment);
    if (result != CUDA_SUCCESS || moment == NULL) return result;
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) {
        release(moment);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    operation->kind = SOFT_OPERATION_WAIT;
    operation->moment = moment;
    return soft_queue_add(stream, operation);
}

EXPORT(cuEventCreate, (CUevent * handle, unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (handle == NULL || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_event *event = calloc(1, sizeof *event);
    if (event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    event->context = context;
    event->flags = flags;
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_EVENT, event);
    if (added) {
        event->next = context->events;
        context->events = event;
    }
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (CUevent)event;
    return CUDA_SUCCESS;
}

EXPORT(cuEventDestroy_v2, (CUevent handle)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(SOFT_HANDLE_EVENT, handle)) {
        struct soft_event *event = (struct soft_event *)handle;
        struct soft_event **link = &event->context->events;
        while (*link != event) link = &(*link)->next;
        *link = event->next;
        soft_handle_remove(SOFT_HANDLE_EVENT, event);
        soft_moment_release(event->moment);
        free(event);
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuEventRecord, (CUevent handle, CUstream stream_handle)) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    CUresult result = soft_stream_find(stream_handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    struct soft_moment *moment = calloc(1, sizeof *moment);
    struct soft_operation *operation = calloc(1, sizeof *operation);
    if (moment == NULL || operation == NULL) {
        free(moment);
        free(operation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    moment->references = 2;
    *operation = (struct soft_operation){.kind = SOFT_OPERATION_RECORD, .moment = moment};
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_EVENT, handle);
    if (known) {
        struct soft_event *event = (struct soft_event *)handle;
        soft_moment_release(event->moment);
        event->moment = moment;
    }
    pthread_mutex_unlock(&soft_lock);
    if (!known) {
        free(moment);
        free(operation);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return soft_queue_add(stream, operation);
}

EXPORT(cuEventQuery, (CUevent handle)) {
    struct soft_context *context = NULL;
    struct soft_moment *moment = NULL;
    CUresult result = latest_moment(handle, &context, &moment);
    if (result != CUDA_SUCCESS || moment == NULL) return result;
    result = soft_queue_query_moment(context, moment);
    release(moment);
    return result;
}

EXPORT(cuEventSynchronize, (CUevent handle)) {
    struct soft_context *context = NULL;
    struct soft_moment *moment = NULL;
    CUresult result = latest_moment(handle, &context, &moment);
    if (result != CUDA_SUCCESS || moment == NULL) return result;
    result = soft_queue_wait_moment(context, moment);
    release(moment);
    return result;
}

/* The time of an event; CUDA_ERROR_INVALID_HANDLE for one without, CUDA_ERROR_NOT_READY before it
 * is reached. */
static CUresult time_of(CUevent handle, uint64_t *time_ns) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&soft_lock);
    const struct soft_event *event = (const struct soft_event *)handle;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, handle) ||
        (event->flags & CU_EVENT_DISABLE_TIMING) != 0 || event->moment == NULL) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if (!event->moment->reached) {
        result = CUDA_ERROR_NOT_READY;
    } else {
        *time_ns = event->moment->time_ns;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (milliseconds == NULL) return CUDA_ERROR_INVALID_VALUE;
    uint64_t from = 0, to = 0;
    CUresult first = time_of(start, &from), second = time_of(end, &to);
    if (first == CUDA_ERROR_INVALID_HANDLE || second == CUDA_ERROR_INVALID_HANDLE) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (first != CUDA_SUCCESS || second != CUDA_SUCCESS) return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(to - from) * 1e-6);
    return CUDA_SUCCESS;
}
