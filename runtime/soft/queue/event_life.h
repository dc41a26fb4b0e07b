/*
 * Events: creation and destruction, and events shared with other processes.
 */
#ifndef SOFT_EVENT_LIFE_H
#define SOFT_EVENT_LIFE_H

#include "queue.h"

/* Creates an event of a context; takes over its shared part (NULL: none), also on failure.
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult soft_event_new(struct soft_context *context, unsigned flags,
                        struct soft_shared_event *shared, CUevent *handle);

/* Ends one whose handle is destroyed. A shared one remains in its context's list, because queued
 * operations may use its counters. The caller holds soft_lock. */
void soft_event_drop(struct soft_event *event);

/* Frees one that is in no list, whose streams are empty. The caller holds soft_lock. */
void soft_event_free(struct soft_event *event);

/* Queues the write of, or the wait for, a recording of a shared event. */
CUresult soft_event_write(struct soft_stream *stream, const struct soft_shared_event *shared,
                          uint64_t recording);
CUresult soft_event_wait(struct soft_stream *stream, const struct soft_shared_event *shared,
                         uint64_t recording);

/* The state of the latest recording: CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the context's error;
 * the other function waits and returns the first or the last. */
CUresult soft_event_query_shared(struct soft_context *context,
                                 const struct soft_shared_event *shared);
CUresult soft_event_wait_shared(struct soft_context *context,
                                const struct soft_shared_event *shared);

#endif
