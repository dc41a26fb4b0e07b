/*
 * A capture: what a stream's work becomes instead of running, and what its graph keeps alive.
 */
#ifndef TOLLENS_CAPTURE_STATE_H
#define TOLLENS_CAPTURE_STATE_H

#include "core/stream_state.h"

struct tol_pinned;

struct tol_capture {
    uint64_t id; /* never used twice */
    struct tol_context *context;
    atomic_int references;
    struct tol_outcome *outcome; /* of its host functions */
    pthread_mutex_t lock;        /* guards all below */
    struct tol_pinned **pinned;  /* blocks that its copies use */
    size_t pinned_count, pinned_room;
};

/* Captures: an event that was recorded in one takes a stream that waits for it along; a pinned
 * block that a captured copy uses is noted, to be marked at each launch. */
void tol_capture_join(struct tol_stream *stream, uint64_t id);
tol_status tol_capture_keep(struct tol_capture *capture, struct tol_pinned *pinned);

#endif
