/*
 * Events. As in "Event Management" of the CUDA Driver API 13.0.
 */
#include "graph/capture.h"
#include "state/contexts.h"
#include "event_record.h"
#include "export.h"
#include "state/handle_set.h"
#include "state/memory_pool.h"
#include "state/shared_event.h"
#include "queue/event_life.h"
#include "machine/prior.h"

#include <stdlib.h>

/* Takes a reference to the event point of an event's latest recording, NULL if it has none, and
 * returns the event's context. CUDA_ERROR_CAPTURED_EVENT: that was in a capture, and has no
 * time. */
static CUresult latest_point(CUevent handle, struct soft_context **context,
                             struct soft_event_point **point) {
    CUresult result = soft_context_current(context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    const struct soft_event *event = (const struct soft_event *)handle;
    if (!soft_handle_is(SOFT_HANDLE_EVENT, handle)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if (event->capture != NULL) {
        result = CUDA_ERROR_CAPTURED_EVENT;
    } else {
        *context = event->context;
        *point = event->point;
        if (*point != NULL) (*point)->references++;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* The shared part of a live event; NULL: it is not shared. */
static const struct soft_shared_event *shared_of(CUevent handle) {
    const struct soft_shared_event *shared = NULL;
    pthread_mutex_lock(&soft_lock);
    const struct soft_event *event = (const struct soft_event *)handle;
    if (soft_handle_is(SOFT_HANDLE_EVENT, handle) && event->capture == NULL) {
        shared = event->shared;
    }
    pthread_mutex_unlock(&soft_lock);
    return shared;
}

static void event_release(struct soft_event_point *point) {
    pthread_mutex_lock(&soft_lock);
    soft_event_point_release(point);
    pthread_mutex_unlock(&soft_lock);
}

/* A wait in a capture, or for an event of one. external: the wait becomes a node. */
static CUresult wait_in_capture(struct soft_stream *stream, CUevent handle, bool external) {
    struct soft_event *event = (struct soft_event *)handle;
    if (!external) return soft_capture_wait(stream, event);
    struct soft_node_content content = {
        .params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait.event = handle}};
    return soft_capture_add(stream, &content);
}

EXPORT(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned int flags)) {
    struct soft_context *context = NULL, *recorded = NULL;
    struct soft_stream *stream = NULL;
    struct soft_event_point *point = NULL;
    bool capturing = false, external = flags == CU_EVENT_WAIT_EXTERNAL;
    CUresult result = soft_stream_find(handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_EVENT, event);
    bool captured = known && ((struct soft_event *)event)->capture != NULL;
    result = known ? soft_capture_check(stream, &capturing) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS && (capturing || captured)) {
        result = !capturing && external ? CUDA_ERROR_INVALID_VALUE
                                        : wait_in_capture(stream, event, external);
        capturing = true;
    }
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS || capturing) return result;
    if (external) return CUDA_ERROR_INVALID_VALUE; /* it is for streams that are captured */
    const struct soft_shared_event *shared = shared_of(event);
    if (shared != NULL) return soft_event_wait(stream, shared, soft_shared_event_latest(shared));
    result = latest_point(event, &recorded, &point);
    if (result != CUDA_SUCCESS || point == NULL) return result;
    struct soft_operation *operation = soft_operation_point(SOFT_OPERATION_WAIT, point);
    if (operation == NULL) {
        event_release(point);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return soft_queue_add(stream, operation);
}

EXPORT(cuEventCreate, (CUevent * handle, unsigned int flags)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (handle == NULL || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    struct soft_shared_event *shared = NULL;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) {
        if ((flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
        result = soft_shared_event_new(NULL, &shared);
        if (result != CUDA_SUCCESS) return result;
    }
    return soft_event_new(context, flags, shared, handle);
}

EXPORT(cuEventDestroy_v2, (CUevent handle)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    if (soft_handle_is(SOFT_HANDLE_EVENT, handle)) {
        struct soft_event *event = (struct soft_event *)handle;
        soft_capture_forget_event(event);
        soft_event_drop(event);
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuEventDestroy, (CUevent handle)) {
    return soft_cuEventDestroy_v2(handle);
}

/* Gives an event the event point of a new recording. */
static void set_moment(struct soft_event *event, struct soft_event_point *point) {
    soft_capture_forget_event(event);
    soft_event_point_release(event->point);
    event->point = point;
}

/* Records in a stream that is being captured. external: the recording becomes a node. */
static CUresult record_in_capture(struct soft_stream *stream, struct soft_event *event,
                                  bool external, bool early) {
    if (!external) return soft_capture_record(stream, event, early);
    struct soft_node_content content = {
        .params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord.event = (CUevent)event}};
    return soft_capture_add(stream, &content);
}

/* early: it is the programmatic event of the kernel that was launched last. */
static CUresult record_event(CUevent handle, CUstream stream_handle, unsigned flags, bool early) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    bool capturing = false, external = flags == CU_EVENT_RECORD_EXTERNAL;
    const struct soft_shared_event *shared = NULL;
    uint64_t recording = 0;
    CUresult result = soft_stream_find(stream_handle, &context, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    struct soft_event_point *point = soft_event_point_new(2);
    struct soft_operation *operation = soft_operation_point(SOFT_OPERATION_RECORD, point);
    if (point == NULL || operation == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (point != NULL) point->of_event = true;
    pthread_mutex_lock(&soft_lock);
    struct soft_event *event = (struct soft_event *)handle;
    /* Both must be of one context. */
    bool known = soft_handle_is(SOFT_HANDLE_EVENT, handle) && event->context == context;
    if (result == CUDA_SUCCESS && !known) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) result = soft_capture_check(stream, &capturing);
    if (result == CUDA_SUCCESS && capturing) {
        result = record_in_capture(stream, event, external, early);
    } else if (result == CUDA_SUCCESS && external) {
        result = CUDA_ERROR_INVALID_VALUE; /* it is for streams that are captured */
    } else if (result == CUDA_SUCCESS) {
        set_moment(event, point);
        if (early) point->prior = soft_prior_hold(stream->dependence.last);
        shared = event->shared;
        if (shared != NULL) recording = soft_shared_event_ask(event->shared);
    }
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS || capturing) {
        free(point);
        free(operation);
        return result;
    }
    result = soft_queue_add(stream, operation);
    if (result != CUDA_SUCCESS || shared == NULL) return result;
    return soft_event_write(stream, shared, recording);
}

CUresult soft_event_record_behind(CUevent event, CUstream stream, bool programmatic) {
    return record_event(event, stream, CU_EVENT_RECORD_DEFAULT, programmatic);
}

EXPORT(cuEventRecordWithFlags, (CUevent handle, CUstream stream, unsigned int flags)) {
    return record_event(handle, stream, flags, false);
}

EXPORT(cuEventRecord, (CUevent handle, CUstream stream)) {
    return soft_cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

EXPORT(cuEventQuery, (CUevent handle)) {
    struct soft_context *context = NULL;
    struct soft_event_point *point = NULL;
    CUresult result = latest_point(handle, &context, &point);
    if (result == CUDA_SUCCESS) result = soft_capture_allows();
    const struct soft_shared_event *shared = shared_of(handle);
    if (result == CUDA_SUCCESS && shared != NULL) {
        if (point != NULL) event_release(point);
        return soft_event_query_shared(context, shared);
    }
    if (result != CUDA_SUCCESS && point != NULL) event_release(point);
    if (result != CUDA_SUCCESS || point == NULL) return result;
    result = soft_queue_query_point(context, point);
    event_release(point);
    return result;
}

EXPORT(cuEventSynchronize, (CUevent handle)) {
    struct soft_context *context = NULL;
    struct soft_event_point *point = NULL;
    CUresult result = latest_point(handle, &context, &point);
    const struct soft_shared_event *shared = shared_of(handle);
    if (result == CUDA_SUCCESS && shared != NULL) {
        if (point != NULL) event_release(point);
        return soft_event_wait_shared(context, shared);
    }
    if (result != CUDA_SUCCESS || point == NULL) return result;
    result = soft_queue_wait_point(context, point);
    event_release(point);
    soft_pools_release(context->device, false);
    return result;
}

/* The state of an event's latest recording. */
struct reading {
    CUresult result; /* CUDA_ERROR_INVALID_HANDLE without one, or without timing; _CAPTURED_EVENT;
                      * _NOT_READY */
    const struct soft_device *device;
    uint64_t time_ns;
};

static struct reading event_read_event(CUevent handle) {
    struct reading reading = {.result = CUDA_SUCCESS};
    const struct soft_event *event = (const struct soft_event *)handle;
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_EVENT, handle);
    if (known && event->capture != NULL) {
        reading.result = CUDA_ERROR_CAPTURED_EVENT;
    } else if (!known || (event->flags & CU_EVENT_DISABLE_TIMING) != 0 || event->point == NULL) {
        reading.result = CUDA_ERROR_INVALID_HANDLE;
    } else {
        reading.device = event->context->device;
        reading.time_ns = event->point->time_ns;
        if (!event->point->reached) reading.result = CUDA_ERROR_NOT_READY;
    }
    pthread_mutex_unlock(&soft_lock);
    return reading;
}

EXPORT(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) {
    struct soft_context *context = NULL;
    CUresult result = soft_context_current(&context);
    if (result != CUDA_SUCCESS) return result;
    if (milliseconds == NULL) return CUDA_ERROR_INVALID_HANDLE; /* as an H200's driver does */
    struct reading from = event_read_event(start), to = event_read_event(end);
    if (from.result != CUDA_SUCCESS && from.result != CUDA_ERROR_NOT_READY) return from.result;
    if (to.result != CUDA_SUCCESS && to.result != CUDA_ERROR_NOT_READY) return to.result;
    /* Each device has its own clock. */
    if (from.device != to.device) return CUDA_ERROR_INVALID_HANDLE;
    if (from.result != CUDA_SUCCESS) return from.result;
    if (to.result != CUDA_SUCCESS) return to.result;
    *milliseconds = (float)((double)(int64_t)(to.time_ns - from.time_ns) * 1e-6);
    return CUDA_SUCCESS;
}

EXPORT(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end)) {
    return soft_cuEventElapsedTime(milliseconds, start, end);
}
