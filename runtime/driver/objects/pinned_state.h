/*
 * The fields of struct tol_pinned, and the copies that use a pinned block.
 */
#ifndef TOLLENS_PINNED_STATE_H
#define TOLLENS_PINNED_STATE_H

#include "core/retire.h"
#include "core/stream_state.h"
#include "core/event_state.h"

/* The latest copy between a pinned block and the device on one stream. */
struct tol_copy_use {
    struct tol_event event;
    unsigned stream_number;
    bool in_flight;
    struct tol_copy_use *next;
};

struct tol_pinned {
    struct tol_life life;
    struct tol_holder holder;
    const void *site; /* the call that created it */
    struct tol_context *context;
    void *data;
    size_t bytes;
    int node;     /* requested; -1: any */
    bool is_huge; /* of tol_huge_map, registered with the driver */
    pthread_mutex_t lock; /* guards uses */
    struct tol_copy_use *uses;
};

/* Around a copy queued on a stream: prepare may fail and has then changed nothing; mark notes that
 * the copy is in flight. */
tol_status tol_pinned_prepare(struct tol_pinned *pinned, struct tol_stream *stream,
                              struct tol_copy_use **use);
tol_status tol_pinned_mark(struct tol_pinned *pinned, struct tol_stream *stream,
                           struct tol_copy_use *use);

#endif
