/*
 * Creation and destruction of contexts.
 *
 * A destroyed context is kept: it may still be current to some thread, whose calls must fail, and
 * its address must not be reused. A primary context is created again at its old address, as in
 * CUDA.
 */
#include "context_life.h"

#include "graph/capture.h"
#include "state/mipmap.h"
#include "state/contexts.h"
#include "state/device_memory.h"
#include "state/handle_set.h"
#include "state/kernel_library.h"
#include "leak.h"
#include "queue/event_life.h"
#include "queue/queue.h"
#include "state/thread_state.h"
#include "texture/texture.h"

#include <stdlib.h>
#include <string.h>

static uint64_t last_id;

/* A number that no other live context has; -1: there is none. */
static int free_slot(void) {
    uint64_t taken = 0;
    for (const struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
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
    if (context->id == 0) soft_context_enlist(context);
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
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
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

/* Frees a context's events and unregisters its modules; the caller releases the modules. */
static struct soft_module *take_handles(struct soft_context *context) {
    struct soft_module *modules = context->modules;
    context->modules = NULL;
    while (context->events != NULL) {
        struct soft_event *event = context->events;
        context->events = event->next;
        soft_handle_remove(SOFT_HANDLE_EVENT, event);
        soft_capture_forget_event(event);
        soft_event_free(event);
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
    soft_texture_remove_all(slot);
    soft_mipmap_free_all(context);
    soft_array_free_all(context);
    soft_memory_free_all(slot);
    pthread_mutex_lock(&soft_lock);
    context->alive = false;
    context->error = CUDA_SUCCESS;
    for (struct soft_context *c = soft_contexts(); c != NULL; c = c->next) {
        atomic_fetch_and(&c->reach.contexts, ~(1ull << slot));
    }
    pthread_mutex_unlock(&soft_lock);
}
