/*
 * The counters of shared events.
 */
#include "shared_event.h"

#include <stdlib.h>
#include <unistd.h>

static uint64_t *shared_event_counter(const struct soft_shared_event *event, unsigned offset) {
    return (uint64_t *)(void *)(event->backing->host + offset);
}

static CUresult open_other(const struct soft_shared_name *name, struct soft_backing **backing) {
    struct soft_shared_note note;
    bool is_own = false;
    int file = soft_shared_open(name, SOFT_SHARED_EVENT, &is_own);
    if (file < 0) {
        bool is_name = name->kind == SOFT_SHARED_EVENT && name->process > 0;
        return is_name ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_INVALID_VALUE;
    }
    *backing = soft_shared_map(file, SOFT_SHARED_EVENT, &note);
    close(file);
    return *backing != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult soft_shared_event_new(const struct soft_shared_name *name,
                               struct soft_shared_event **result) {
    enum { BYTES = 16 };
    struct soft_shared_note note = {.kind = SOFT_SHARED_EVENT};
    struct soft_backing *backing = NULL;
    struct soft_shared_event *event = calloc(1, sizeof *event);
    if (event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult opened = CUDA_SUCCESS;
    if (name != NULL) {
        opened = open_other(name, &backing);
    } else {
        backing = soft_shared_new(BYTES, &note);
        if (backing == NULL) opened = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (opened == CUDA_SUCCESS) {
        const struct soft_allocation wanted = {.bytes = BYTES,
                                               .host = backing->host,
                                               .kind = SOFT_KIND_IMPORTED,
                                               .slot = SOFT_SLOT_NONE,
                                               .backing = backing};
        const struct soft_allocation *allocation = soft_space_alloc(&wanted, BYTES);
        if (allocation == NULL) {
            opened = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            event->address = allocation->address;
            event->backing = backing;
        }
    }
    if (opened != CUDA_SUCCESS) {
        free(event);
        return opened;
    }
    *result = event;
    return CUDA_SUCCESS;
}

void soft_shared_event_free(struct soft_shared_event *event) {
    struct soft_allocation was;
    if (event == NULL) return;
    soft_space_free(event->address, 1u << SOFT_KIND_IMPORTED, &was);
    free(event);
}

struct soft_shared_name soft_shared_event_name(const struct soft_shared_event *event) {
    return soft_shared_name(event->backing, SOFT_SHARED_EVENT, 0);
}

uint64_t soft_shared_event_ask(struct soft_shared_event *event) {
    return __atomic_add_fetch(shared_event_counter(event, SOFT_EVENT_ASKED), 1, __ATOMIC_ACQ_REL);
}

uint64_t soft_shared_event_latest(const struct soft_shared_event *event) {
    return __atomic_load_n(shared_event_counter(event, SOFT_EVENT_ASKED), __ATOMIC_ACQUIRE);
}

bool soft_shared_event_has(const struct soft_shared_event *event, uint64_t recording) {
    return __atomic_load_n(shared_event_counter(event, SOFT_EVENT_DONE), __ATOMIC_ACQUIRE) >=
           recording;
}
