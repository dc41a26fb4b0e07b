/*
 * The list of contexts, and the stacks.
 */
#include "contexts.h"

#include "thread_state.h"

#include <stdlib.h>

static struct soft_context *all;

void soft_context_enlist(struct soft_context *context) {
    context->next = all;
    all = context;
}

struct soft_context *soft_contexts(void) {
    return all;
}

bool soft_context_is(const struct soft_context *context) {
    for (const struct soft_context *c = all; c != NULL; c = c->next) {
        if (c == context) return c->alive;
    }
    return false;
}

struct soft_context *soft_context_of(unsigned slot) {
    struct soft_context *c = all;
    while (c != NULL && (!c->alive || c->reach.slot != slot)) c = c->next;
    return c;
}

/* ---- the thread's stack ---- */

struct soft_context *soft_context_top(void) {
    const struct soft_thread *thread = soft_thread();
    return thread->depth > 0 ? thread->contexts[thread->depth - 1] : NULL;
}

bool soft_context_push(struct soft_context *context) {
    struct soft_thread *thread = soft_thread();
    thread->has_chosen = true;
    if (thread->depth == thread->room) {
        unsigned room = thread->room * 2 + 4;
        struct soft_context **more = realloc((void *)thread->contexts, room * sizeof *more);
        if (more == NULL) return false;
        thread->contexts = more;
        thread->room = room;
    }
    thread->contexts[thread->depth++] = context;
    return true;
}

struct soft_context *soft_context_pop(void) {
    struct soft_thread *thread = soft_thread();
    return thread->depth > 0 ? thread->contexts[--thread->depth] : NULL;
}

bool soft_context_set(struct soft_context *context) {
    soft_context_pop();
    soft_thread()->has_chosen = true;
    return context == NULL || soft_context_push(context);
}

static CUresult contexts_state_of(const struct soft_context *context) {
    return context->alive ? context->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult soft_context_current_locked(struct soft_context **context) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    *context = soft_context_top();
    bool implied = *context == NULL && !soft_thread()->has_chosen;
    if (implied) *context = soft_thread()->implied;
    if (*context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    return implied && !(*context)->alive ? CUDA_ERROR_INVALID_CONTEXT : contexts_state_of(*context);
}

CUresult soft_context_current(struct soft_context **context) {
    pthread_mutex_lock(&soft_lock);
    CUresult result = soft_context_current_locked(context);
    pthread_mutex_unlock(&soft_lock);
    return result;
}

CUresult soft_context_find(CUcontext handle, struct soft_context **context) {
    if (handle == NULL) return soft_context_current(context);
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    *context = (struct soft_context *)handle;
    pthread_mutex_lock(&soft_lock);
    struct soft_context *c = all;
    while (c != NULL && c != *context) c = c->next;
    result = c != NULL ? contexts_state_of(c) : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(&soft_lock);
    return result;
}
