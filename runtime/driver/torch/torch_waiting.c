/*
 * A list in the order of the frees, and reused events.
 */
#include "torch_waiting.h"

#include "core/deadline.h"
#include "core/event_state.h"
#include "core/stream_state.h"
#include "torch_arena.h"
#include "torch_report.h"

#include <stdlib.h>

enum { LOOK_AT = 8 }; /* entries per call, so that an allocation does not pay for a long list */

struct torch_event {
    CUevent handle;
    struct torch_event *next;
};

struct torch_waiting {
    struct torch_block block;
    struct torch_event **events; /* one for each use; NULL: done, or not recorded yet */
    size_t open;                 /* uses that are not known to be done */
    struct torch_waiting *next;
};

void torch_block_give(struct torch_device *device, const struct torch_block *block) {
    if (block->arena != NULL) {
        torch_arena_give(device, block);
    } else if (tol_pool_free(device->pool, block->block, block->stream) != TOL_OK) {
        torch_report("a block could not be freed", tol_message());
    }
}

/* ---- events; the caller holds waiting_lock, here and below ---- */

static struct torch_event *torch_waiting_take_event(struct torch_device *device) {
    struct torch_event *event = device->events;
    if (event != NULL) {
        device->events = event->next;
        return event;
    }
    event = calloc(1, sizeof *event);
    if (event != NULL && device->context->functions->cuEventCreate(
                             &event->handle, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        free(event);
        event = NULL;
    }
    return event;
}

static void put_event(struct torch_device *device, struct torch_event *event) {
    event->next = device->events;
    device->events = event;
}

/* Records the event of a use, if it has none and its stream is not being captured. */
static void torch_waiting_record(struct torch_device *device, struct torch_event **event,
                                 const struct tol_stream *stream) {
    if (*event != NULL || tol_stream_is_captured(stream)) return;
    struct torch_event *taken = torch_waiting_take_event(device);
    if (taken == NULL) return;
    if (device->context->functions->cuEventRecord(taken->handle, stream->handle) == CUDA_SUCCESS) {
        *event = taken;
    } else {
        put_event(device, taken);
    }
}

/* ---- entries ---- */

/* Whether all uses of an entry are done. May wait for each until the deadline. */
static bool torch_waiting_is_done(struct torch_device *device, struct torch_waiting *waiting,
                                  struct tol_deadline *deadline) {
    struct torch_uses *uses = waiting->block.uses;
    for (size_t i = 0; i < uses->count; i++) {
        if (uses->streams[i] == NULL) continue;
        torch_waiting_record(device, &waiting->events[i], uses->streams[i]);
        struct torch_event *event = waiting->events[i];
        if (event == NULL) continue;
        struct tol_event asked = {.context = device->context, .handle = event->handle};
        const bool is_reached =
            deadline != NULL
                ? tol_deadline_wait_event(&asked, deadline) == TOL_OK
                : device->context->functions->cuEventQuery(event->handle) == CUDA_SUCCESS;
        if (!is_reached) continue;
        put_event(device, event);
        waiting->events[i] = NULL;
        uses->streams[i] = NULL;
        waiting->open--;
    }
    return waiting->open == 0;
}

/* Takes entries that are done out of the list, of the first most, and frees their blocks. */
static size_t free_done(struct torch_device *device, size_t most, struct tol_deadline *deadline) {
    struct torch_waiting *done = NULL;
    size_t count = 0;
    pthread_mutex_lock(&device->waiting_lock);
    struct torch_waiting **link = &device->waiting;
    for (size_t i = 0; i < most && *link != NULL; i++) {
        struct torch_waiting *waiting = *link;
        if (!torch_waiting_is_done(device, waiting, deadline)) {
            link = &waiting->next;
            continue;
        }
        *link = waiting->next;
        if (*link == NULL) device->waiting_end = link;
        waiting->next = done;
        done = waiting;
        count++;
    }
    atomic_fetch_sub(&device->waiting_count, (unsigned)count);
    pthread_mutex_unlock(&device->waiting_lock);
    while (done != NULL) {
        struct torch_waiting *waiting = done;
        done = waiting->next;
        torch_block_give(device, &waiting->block);
        free(waiting->block.uses);
        free(waiting->events);
        free(waiting);
    }
    return count;
}

void torch_wait_add(struct torch_device *device, const struct torch_block *block) {
    struct torch_waiting *waiting = calloc(1, sizeof *waiting);
    struct torch_event **events = calloc(block->uses->count, sizeof(struct torch_event *));
    if (waiting == NULL || events == NULL) {
        /* It stays allocated in the pool, because work may still use it. */
        torch_report("no host memory to free a block later, so it is never freed", "");
        free(waiting);
        free(events);
        return;
    }
    waiting->block = *block;
    waiting->events = events;
    waiting->open = block->uses->count;
    pthread_mutex_lock(&device->waiting_lock);
    for (size_t i = 0; i < block->uses->count; i++) {
        torch_waiting_record(device, &events[i], block->uses->streams[i]);
    }
    *device->waiting_end = waiting;
    device->waiting_end = &waiting->next;
    atomic_fetch_add(&device->waiting_count, 1);
    atomic_fetch_add_explicit(&device->recorded, 1, memory_order_relaxed);
    pthread_mutex_unlock(&device->waiting_lock);
}

void torch_wait_look(struct torch_device *device) {
    if (atomic_load_explicit(&device->waiting_count, memory_order_relaxed) == 0) return;
    (void)free_done(device, LOOK_AT, NULL);
}

size_t torch_wait_all(struct torch_device *device) {
    struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
    if (atomic_load_explicit(&device->waiting_count, memory_order_relaxed) == 0) return 0;
    return free_done(device, SIZE_MAX, &deadline);
}
