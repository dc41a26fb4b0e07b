/*
 * Creation and destruction of contexts.
 */
#ifndef SOFT_CONTEXT_LIFE_H
#define SOFT_CONTEXT_LIFE_H

#include "state/driver_state.h"

/* Creates a context, or a primary one again, with its default stream. The caller holds
 * soft_lock. */
CUresult soft_context_begin(struct soft_device *device, struct soft_context **context);
CUresult soft_context_revive(struct soft_context *context);

/* Waits for a context's work and frees everything that was created in it. */
void soft_context_end(struct soft_context *context);

#endif
