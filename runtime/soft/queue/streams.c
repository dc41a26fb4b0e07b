/*
 * Streams: resolves a handle, and implements the implicit order of the legacy stream.
 */
#include "queue.h"

#include "state/contexts.h"
#include "dependence.h"
#include "state/handle_set.h"
#include "stream_fault.h"
#include "stream_order.h"
#include "state/thread_state.h"

#include <stdlib.h>

struct soft_stream *soft_stream_new(struct soft_context *context, unsigned flags, int priority) {
    static uint64_t last_id;
    struct soft_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    stream->context = context;
    stream->id = ++last_id;
    stream->flags = flags;
    stream->priority = priority;
    stream->hints.synchronization = CU_SYNC_POLICY_AUTO;
    stream->next = context->streams;
    context->streams = stream;
    context->stream_count++;
    return stream;
}

#ifndef NDEBUG

bool soft_stream_is_valid(const struct soft_stream *stream) {
    const struct soft_operation *first = stream->first, *last = stream->last;
    return stream->context != NULL && stream->context->stream_count > 0 &&
           (first == NULL) == (last == NULL) && (last == NULL || last->next == NULL) &&
           (first == NULL || soft_operation_is_valid(first));
}

#endif

void soft_stream_settle(struct soft_stream *stream) {
    if (!stream->destroyed || stream->first != NULL || stream->waiting > 0) return;
    struct soft_stream **link = &stream->context->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    stream->context->stream_count--;
    soft_order_end_stream(stream);
    soft_dependence_forget(stream);
    free(stream);
}

void soft_stream_drop(struct soft_stream *stream) {
    if (stream->capture != NULL) stream->leave_capture(stream);
    stream->destroyed = true;
    soft_stream_settle(stream);
}

/* Ends the default streams of a thread that ends. */
static void drop_own(const struct soft_thread *thread) {
    pthread_mutex_lock(&soft_lock);
    for (struct soft_context *context = soft_contexts(); context != NULL; context = context->next) {
        for (struct soft_stream *s = context->streams, *next = NULL; s != NULL; s = next) {
            next = s->next;
            if (s->thread != thread) continue;
            s->thread = NULL;
            soft_stream_drop(s);
        }
    }
    pthread_mutex_unlock(&soft_lock);
}

/* The calling thread's own default stream of a context, made with its first use. The caller holds
 * soft_lock. */
static struct soft_stream *own_stream(struct soft_context *context) {
    struct soft_thread *thread = soft_thread();
    for (struct soft_stream *s = context->streams; s != NULL; s = s->next) {
        if (s->thread == thread && !s->destroyed) return s;
    }
    struct soft_stream *stream = soft_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (stream == NULL) return NULL;
    stream->thread = thread;
    thread->end = drop_own;
    return stream;
}

/* Rules about streams may make the call wait. */
static CUresult ask_faults(struct soft_stream *stream) {
    if (soft_fault_now() == NULL) return CUDA_SUCCESS;
    pthread_mutex_unlock(&soft_lock);
    CUresult result = soft_stream_fault_ask(stream);
    pthread_mutex_lock(&soft_lock);
    return result;
}

CUresult soft_stream_find_locked(CUstream handle, struct soft_context **context,
                                 struct soft_stream **stream) {
    CUresult result = soft_context_current_locked(context);
    if (result != CUDA_SUCCESS) return result;
    if (handle == NULL && soft_thread()->own_default) handle = CU_STREAM_PER_THREAD;
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        *stream = (*context)->legacy;
    } else if (handle == CU_STREAM_PER_THREAD) {
        *stream = own_stream(*context);
        if (*stream == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (soft_handle_is(SOFT_HANDLE_STREAM, handle)) {
        *stream = (struct soft_stream *)handle;
        *context = (*stream)->context;
        result = (*context)->error;
    } else {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    return result == CUDA_SUCCESS ? ask_faults(*stream) : result;
}

CUresult soft_stream_find(CUstream handle, struct soft_context **context,
                          struct soft_stream **stream) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_stream_find_locked(handle, context, stream);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* Makes one stream wait for what another has queued so far. */
static CUresult order_after(struct soft_stream *later, struct soft_stream *earlier) {
    /* Finished work needs no wait, unless the order is checked. */
    if (earlier->first == NULL && !soft_order_on()) return CUDA_SUCCESS;
    struct soft_event_point *point = soft_event_point_new(2);
    struct soft_operation *record = soft_operation_point(SOFT_OPERATION_RECORD, point);
    struct soft_operation *wait = soft_operation_point(SOFT_OPERATION_WAIT, point);
    if (point == NULL || record == NULL || wait == NULL) {
        free(point);
        free(record);
        free(wait);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    soft_queue_append(earlier, record);
    soft_queue_append(later, wait);
    return CUDA_SUCCESS;
}

CUresult soft_stream_order(struct soft_stream *stream) {
    struct soft_stream *legacy = stream->context->legacy;
    CUresult result = CUDA_SUCCESS;
    if ((stream->flags & CU_STREAM_NON_BLOCKING) != 0) return CUDA_SUCCESS;
    if (stream != legacy) return order_after(stream, legacy);
    for (struct soft_stream *s = stream->context->streams; s != NULL && result == CUDA_SUCCESS;
         s = s->next) {
        if (s != stream && (s->flags & CU_STREAM_NON_BLOCKING) == 0) {
            result = order_after(stream, s);
        }
    }
    return result;
}
