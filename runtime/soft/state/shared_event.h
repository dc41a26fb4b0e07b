/*
 * Shared event: an event that several processes record and wait for.
 *
 * The processes share two counters: requested recordings, and the latest completed one. A recording
 * writes the second counter in its stream's order; a wait blocks until the second reaches the value
 * that the first had.
 *
 * Source: cuIpcGetEventHandle of the CUDA Driver API 13.0.
 */
#ifndef SOFT_SHARED_EVENT_H
#define SOFT_SHARED_EVENT_H

#include "driver_state.h"
#include "memory/shared_bytes.h"

struct soft_shared_event {
    struct soft_backing *backing;
    uint64_t address; /* of the counters, in the space: streams read and write there */
};

/* The offsets of the counters from address. */
enum { SOFT_EVENT_ASKED = 0, SOFT_EVENT_DONE = 8 };

/* A new one, or (name not NULL) that of another process. CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult soft_shared_event_new(const struct soft_shared_name *name,
                               struct soft_shared_event **event);
void soft_shared_event_free(struct soft_shared_event *event);

struct soft_shared_name soft_shared_event_name(const struct soft_shared_event *event);

/* Requests a recording: the number to write when it completes. */
uint64_t soft_shared_event_ask(struct soft_shared_event *event);

/* The latest requested recording, and whether it has completed. */
uint64_t soft_shared_event_latest(const struct soft_shared_event *event);
bool soft_shared_event_has(const struct soft_shared_event *event, uint64_t recording);

#endif
