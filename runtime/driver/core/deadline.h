/*
 * Deadline: waits that always end. The driver's synchronizing calls have no timeout, so the runtime
 * polls the driver's queries until a deadline instead (D-18).
 */
#ifndef TOLLENS_DEADLINE_H
#define TOLLENS_DEADLINE_H

#include "tollens/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tol_context;
struct tol_event;
struct tol_stream;

/* A timeout. It starts at the first actual wait, so completed work costs no clock reading. */
struct tol_deadline {
    uint64_t end_ns;      /* on the monotonic clock; 0 until it has started */
    unsigned deadline_ms; /* the timeout as given, for the message */
};

struct tol_deadline tol_deadline_after(unsigned milliseconds);

/* Wait until the stream is idle, or the event has been reached. TOL_TIMEOUT: the deadline has
 * passed; the driver is queried at least once. Otherwise returns the error of the work, or the
 * first failure of a host function of the stream. The context must be entered. */
tol_status tol_deadline_wait_stream(struct tol_stream *stream, struct tol_deadline *deadline);
tol_status tol_deadline_wait_event(struct tol_event *event, struct tol_deadline *deadline);

/* Waits for the stream without a message or a status. Returns whether it is idle. */
bool tol_deadline_settle(struct tol_stream *stream, struct tol_deadline *deadline);

/* Waits up to TOL_DEADLINE_MS for work of the driver's synchronous calls: a fill, a copy on the
 * device and a copy from pageable memory return while the legacy stream still runs them. */
tol_status tol_deadline_wait_legacy(struct tol_context *context);

#endif
