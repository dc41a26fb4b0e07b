/*
 * The hook, and the number of its running calls.
 */
#include "access_tell.h"

#include "memory/touch.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    tol_accesses_hook hook;
    void *user;
    unsigned calls;        /* under way */
    atomic_bool is_hooked; /* read without the lock */
} tell = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

CUresult soft_access_hook(tol_accesses_hook hook, void *user) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&tell.lock);
    if (hook != NULL && tell.hook != NULL) {
        result = CUDA_ERROR_ALREADY_MAPPED;
    } else {
        tell.hook = hook;
        tell.user = user;
        atomic_store(&tell.is_hooked, hook != NULL);
        while (tell.calls > 0) pthread_cond_wait(&tell.idle, &tell.lock);
    }
    pthread_mutex_unlock(&tell.lock);
    return result;
}

bool soft_access_begin(struct soft_launch *launch) {
    const bool is_wanted = atomic_load(&tell.is_hooked);
    if (is_wanted && launch->touched == NULL) launch->touched = soft_touched_new();
    return is_wanted;
}

struct list {
    struct tol_access *items;
    size_t count, room;
};

/* Without memory, fewer accesses are passed on. */
static void access_tell_add(uint64_t address, uint64_t bytes, bool is_write, void *data) {
    struct list *list = data;
    if (list->count == list->room) {
        const size_t room = list->room == 0 ? 64 : 2 * list->room;
        struct tol_access *more = realloc(list->items, room * sizeof *more);
        if (more == NULL) return;
        list->items = more;
        list->room = room;
    }
    list->items[list->count++] = (struct tol_access){address, bytes, is_write};
}

void soft_access_end(const struct soft_operation *operation) {
    const struct soft_launch *launch = operation->launch;
    struct soft_function *function = operation->task.is.kernel.function;
    struct list list = {.items = NULL};
    if (launch->touched == NULL) return;
    pthread_mutex_lock(&tell.lock);
    const tol_accesses_hook hook = tell.hook;
    void *user = tell.user;
    if (hook != NULL) tell.calls++;
    pthread_mutex_unlock(&tell.lock);
    if (hook == NULL) return;
    soft_touched_each(launch->touched, access_tell_add, &list);
    hook(&(struct tol_accesses){.function = (CUfunction)function,
                                .kernel = launch->code->name,
                                .accesses = list.items,
                                .count = list.count},
         user);
    free(list.items);
    pthread_mutex_lock(&tell.lock);
    if (--tell.calls == 0) pthread_cond_broadcast(&tell.idle);
    pthread_mutex_unlock(&tell.lock);
}
