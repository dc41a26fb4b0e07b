/*
 * Creation and destruction of events.
 */
#include "event_life.h"

#include "state/handle_set.h"
#include "state/shared_event.h"

#include <stdlib.h>
#include <time.h>

CUresult soft_event_new(struct soft_context *context, unsigned flags,
                        struct soft_shared_event *shared, CUevent *handle) {
    struct soft_event *event = calloc(1, sizeof *event);
    if (event == NULL) {
        soft_shared_event_free(shared);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->context = context;
    event->flags = flags;
    event->shared = shared;
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_EVENT, event);
    if (added) {
        event->next = context->events;
        if (event->next != NULL) event->next->previous = event;
        context->events = event;
    }
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        soft_shared_event_free(shared);
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (CUevent)event;
    return CUDA_SUCCESS;
}

void soft_event_drop(struct soft_event *event) {
    soft_handle_remove(SOFT_HANDLE_EVENT, event);
    if (event->shared != NULL) {
        soft_event_point_release(event->point);
        event->point = NULL;
        return;
    }
    if (event->previous != NULL) {
        event->previous->next = event->next;
    } else {
        event->context->events = event->next;
    }
    if (event->next != NULL) event->next->previous = event->previous;
    soft_event_free(event);
}

void soft_event_free(struct soft_event *event) {
    soft_event_point_release(event->point);
    soft_shared_event_free(event->shared);
    free(event);
}

static CUresult event_life_add_value(struct soft_stream *stream, struct soft_stream_value value) {
    struct soft_stream_value *items = malloc(sizeof *items);
    if (items == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *items = value;
    struct soft_task task = {.kind = SOFT_TASK_VALUES, .is.values = {.items = items, .count = 1}};
    struct soft_operation *operation = soft_operation_new(&task);
    if (operation == NULL) {
        free(items);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return soft_queue_add(stream, operation);
}

CUresult soft_event_write(struct soft_stream *stream, const struct soft_shared_event *shared,
                          uint64_t recording) {
    return event_life_add_value(
        stream, (struct soft_stream_value){.write = true,
                                           .raises = true,
                                           .wide = true,
                                           .address = shared->address + SOFT_EVENT_DONE,
                                           .value = recording});
}

CUresult soft_event_wait(struct soft_stream *stream, const struct soft_shared_event *shared,
                         uint64_t recording) {
    return event_life_add_value(
        stream, (struct soft_stream_value){.wide = true,
                                           .flags = CU_STREAM_WAIT_VALUE_GEQ,
                                           .address = shared->address + SOFT_EVENT_DONE,
                                           .value = recording});
}

CUresult soft_event_query_shared(struct soft_context *context,
                                 const struct soft_shared_event *shared) {
    uint64_t latest = soft_shared_event_latest(shared);
    if (soft_shared_event_has(shared, latest)) return CUDA_SUCCESS;
    CUresult result = soft_queue_query_context(context);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
    return soft_shared_event_has(shared, latest) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult soft_event_wait_shared(struct soft_context *context,
                                const struct soft_shared_event *shared) {
    const struct timespec moment = {.tv_nsec = 50000};
    uint64_t latest = soft_shared_event_latest(shared);
    while (!soft_shared_event_has(shared, latest)) {
        CUresult result = soft_queue_query_context(context);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
        /* Another process may complete it, without a notification here. */
        if (!soft_shared_event_has(shared, latest)) nanosleep(&moment, NULL);
    }
    return CUDA_SUCCESS;
}
