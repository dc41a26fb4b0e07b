/*
 * Waiting that always ends: the driver's synchronising calls have no timeout, so the runtime polls
 * its queries instead, against a deadline (D-18). Internal: not installed.
 */
#ifndef TOLLENS_DEADLINE_H
#define TOLLENS_DEADLINE_H

#include "tollens/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tol_context;
struct tol_event;
struct tol_stream;

/* It begins to count when something has to be waited for: what is done already costs no look at a
 * clock. */
struct tol_deadline {
    uint64_t end_ns;      /* on the monotonic clock; 0 until it counts */
    unsigned deadline_ms; /* as it was asked for, for the message */
};

struct tol_deadline tol_deadline_after(unsigned milliseconds);

/* Waits until the stream has no work left or the event has been reached. TOL_TIMEOUT at the
 * deadline; a deadline that has passed still asks the driver once. The first failure of a host
 * function of the stream. The context must be entered. */
tol_status tol_deadline_wait_stream(struct tol_stream *stream, struct tol_deadline *deadline);
tol_status tol_deadline_wait_event(struct tol_event *event, struct tol_deadline *deadline);

/* Waits for the stream in silence, whatever comes of it. Gives whether it has ended. */
bool tol_deadline_settle(struct tol_stream *stream, struct tol_deadline *deadline);

/* Waits, TOL_DEADLINE_MS at most, for what the driver's synchronous calls may leave behind: a fill,
 * a copy on the device, and a copy from pageable memory return while the legacy stream still
 * works. */
tol_status tol_deadline_wait_legacy(struct tol_context *context);

#endif
