/*
 * Dependence: which launches may begin before others have ended.
 *
 * A kernel launched with programmatic stream serialization may begin before the kernel queued
 * directly before it has ended; a kernel after a wait for a programmatic event, before that event's
 * kernel has. Anything else in between orders them. machine/prior.h has the consequences for their
 * memory.
 *
 * The caller holds soft_lock for all of these.
 */
#ifndef SOFT_DEPENDENCE_H
#define SOFT_DEPENDENCE_H

#include "queue_state.h"

/* Whether the check is on. */
bool soft_dependence_on(void);

/* An operation is queued at the end of a stream. */
void soft_dependence_queue(struct soft_stream *stream, struct soft_operation *operation);

/* The program has waited for a stream; or the stream itself is destroyed. */
void soft_dependence_forget(struct soft_stream *stream);

#endif
