/*
 * Contexts: the list of all, and the context stack of each thread.
 */
#ifndef SOFT_CONTEXTS_H
#define SOFT_CONTEXTS_H

#include "driver_state.h"

/* The calling thread's context. CUDA_ERROR_INVALID_CONTEXT if it has none,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED if it was destroyed, or its sticky error. */
CUresult soft_context_current(struct soft_context **context);

/* The same; the caller holds soft_lock. */
CUresult soft_context_current_locked(struct soft_context **context);

/* The context of a handle, NULL being the thread's current one; the same codes. */
CUresult soft_context_find(CUcontext handle, struct soft_context **context);

/* Whether a pointer is a live context. The caller holds soft_lock. */
bool soft_context_is(const struct soft_context *context);

/* The thread's stack of contexts: the top is current. push: false without memory. pop: NULL when
 * the stack is empty. set replaces the top; NULL removes it. */
struct soft_context *soft_context_top(void);
bool soft_context_push(struct soft_context *context);
struct soft_context *soft_context_pop(void);
bool soft_context_set(struct soft_context *context);

/* The live context of a slot, or NULL. The caller holds soft_lock. */
struct soft_context *soft_context_of(unsigned slot);

/* All contexts ever created. The caller holds soft_lock. */
struct soft_context *soft_contexts(void);

/* Puts a context into that list. The caller holds soft_lock. */
void soft_context_enlist(struct soft_context *context);

#endif
