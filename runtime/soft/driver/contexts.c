/*
 * Contexts: their life, and the stack of them that each thread has.
 *
 * A context that has ended is kept, dead: it may still be current to some thread, whose calls must
 * learn that it has ended, and its address must not become another's. A primary context comes back
 * to life under its old address, as in CUDA.
 */
#include "state/driver_state.h"

#include "graph/capture.h"
#include "state/device_memory.h"
#include "state/kernel_library.h"
#include "leak.h"
#include "queue/queue.h"
#include "state/thread_state.h"

#include <stdlib.h>
#include <string.h>

static struct soft_context *all;
static uint64_t last_id;

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

static CUresult state_of(const struct soft_context *context) {
    return context->alive ? context->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult soft_context_current(struct soft_context **context) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    *context = soft_context_top();
    bool implied = *context == NULL && !soft_thread()->has_chosen;
    if (implied) *context = soft_thread()->implied;
    if (*context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&soft_lock);
    result = implied && !(*context)->alive ? CUDA_ERROR_INVALID_CONTEXT : state_of(*context);
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
    result = c != NULL ? state_of(c) : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* ---- life ---- */

/* A number for a context that no other living one has; -1: there is none. */
static int free_slot(void) {
    uint64_t taken = 0;
    for (const struct soft_context *c = all; c != NULL; c = c->next) {
        if (c->alive) taken |= 1ull << c->reach.slot;
    }
    int slot = __builtin_ctzll(~taken | 1ull << SOFT_SLOT_NONE);
    return slot < SOFT_CONTEXTS_MAX ? slot : -1;
}

static const size_t usual_limits[SOFT_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

CUresult soft_context_revive(struct soft_context *context) {
    if (context->alive) return CUDA_SUCCESS;
    if (context->device->lost != CUDA_SUCCESS) return context->device->lost;
    int slot = free_slot();
    if (slot < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    context->legacy = soft_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (context->legacy == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (context->id == 0) {
        context->next = all;
        all = context;
    }
    context->id = ++last_id;
    context->error = CUDA_SUCCESS;
    memcpy(context->limits, usual_limits, sizeof usual_limits);
    context->reach.heap_bytes = usual_limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    context->reach.device = context->device->ordinal;
    context->reach.slot = (unsigned)slot;
    atomic_store(&context->reach.contexts, 1ull << slot);
    context->alive = true;
    /* Contexts of one device share its memory. */
    for (struct soft_context *c = all; c != NULL; c = c->next) {
        if (!c->alive || c->device != context->device) continue;
        atomic_fetch_or(&c->reach.contexts, 1ull << slot);
        atomic_fetch_or(&context->reach.contexts, 1ull << c->reach.slot);
    }
    return CUDA_SUCCESS;
}

CUresult soft_context_begin(struct soft_device *device, struct soft_context **result) {
    struct soft_context *context = calloc(1, sizeof *context);
    if (context == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    context->device = device;
    CUresult revived = soft_context_revive(context);
    if (revived != CUDA_SUCCESS) {
        free(context);
        return revived;
    }
    *result = context;
    return CUDA_SUCCESS;
}

/* Takes a context's events, and its modules off the register; the caller releases the modules. */
static struct soft_module *take_handles(struct soft_context *context) {
    struct soft_module *modules = context->modules;
    context->modules = NULL;
    while (context->events != NULL) {
        struct soft_event *event = context->events;
        context->events = event->next;
        soft_handle_remove(SOFT_HANDLE_EVENT, event);
        soft_capture_forget_event(event);
        soft_moment_release(event->moment);
        free(event);
    }
    for (struct soft_module *m = modules; m != NULL; m = m->next) {
        if (m->library != NULL) soft_library_forget(m->library, m);
        soft_handle_remove(SOFT_HANDLE_MODULE, m);
        for (struct soft_function *f = m->functions; f != NULL; f = f->next) {
            soft_handle_remove(SOFT_HANDLE_FUNCTION, f);
        }
    }
    return modules;
}

void soft_context_end(struct soft_context *context) {
    soft_queue_wait_context(context);
    soft_leak_context(context);
    soft_queue_end_context(context);
    pthread_mutex_lock(&soft_lock);
    struct soft_module *modules = take_handles(context);
    unsigned slot = context->reach.slot;
    pthread_mutex_unlock(&soft_lock);
    while (modules != NULL) {
        struct soft_module *module = modules;
        modules = module->next;
        soft_module_release(module);
    }
    soft_memory_free_all(slot);
    pthread_mutex_lock(&soft_lock);
    context->alive = false;
    context->error = CUDA_SUCCESS;
    for (struct soft_context *c = all; c != NULL; c = c->next) {
        atomic_fetch_and(&c->reach.contexts, ~(1ull << slot));
    }
    pthread_mutex_unlock(&soft_lock);
}
