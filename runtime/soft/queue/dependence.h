/*
 * Dependence: which launches in streams may begin before others have ended.
 *
 * A kernel that is launched with programmatic stream serialization may begin before the kernel that
 * is queued right in front of it has ended; one behind a wait for a programmatic event, before the
 * kernel of that event has. Anything else in between orders them. What follows from that for their
 * memory is in machine/prior.h.
 *
 * The caller holds soft_lock for all of these.
 */
#ifndef SOFT_DEPENDENCE_H
#define SOFT_DEPENDENCE_H

#include "queue_state.h"

/* Whether the check is on. */
bool soft_dependence_on(void);

/* An operation is queued behind what a stream has. */
void soft_dependence_queue(struct soft_stream *stream, struct soft_operation *operation);

/* The program knows that a stream has come to its end; or the stream itself ends. */
void soft_dependence_forget(struct soft_stream *stream);

#endif
