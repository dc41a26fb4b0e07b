/*
 * Events: making and ending them, and those that other processes share.
 */
#ifndef SOFT_EVENT_LIFE_H
#define SOFT_EVENT_LIFE_H

#include "queue.h"

/* Makes an event of a context; takes over what it shares with other processes (NULL: nothing), on
 * failure too. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult soft_event_new(struct soft_context *context, unsigned flags,
                        struct soft_shared_event *shared, CUevent *handle);

/* Ends one whose handle is destroyed. A shared one stays in its context's list, because operations
 * may be on their way to its counters. The caller holds soft_lock. */
void soft_event_drop(struct soft_event *event);

/* Frees one that is in no list, whose streams are empty. The caller holds soft_lock. */
void soft_event_free(struct soft_event *event);

/* Has a stream write, or wait for, a recording of a shared event. */
CUresult soft_event_write(struct soft_stream *stream, const struct soft_shared_event *shared,
                          uint64_t recording);
CUresult soft_event_wait(struct soft_stream *stream, const struct soft_shared_event *shared,
                         uint64_t recording);

/* Whether the latest recording has come about: CUDA_SUCCESS, CUDA_ERROR_NOT_READY, or the context's
 * error; waiting for it, the first or the last. */
CUresult soft_event_query_shared(struct soft_context *context,
                                 const struct soft_shared_event *shared);
CUresult soft_event_wait_shared(struct soft_context *context,
                                const struct soft_shared_event *shared);

#endif
