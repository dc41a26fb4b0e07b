/*
 * Counts references to user objects.
 *
 * Destructors are the program's code and must run without a lock: they are queued here, and a
 * thread that exists only while the queue is not empty calls them.
 */
#include "user_object.h"

#include "state/handle_set.h"
#include "state/thread_state.h"

#include <stdlib.h>

static struct soft_held_object *dying; /* count is not used */
static bool has_thread;

static void *user_object_destroy_all(void *argument) {
    soft_thread()->in_host_function = true;
    pthread_mutex_lock(&soft_lock);
    while (dying != NULL) {
        struct soft_held_object *item = dying;
        dying = item->next;
        pthread_mutex_unlock(&soft_lock);
        item->object->destroy(item->object->data);
        free(item->object);
        free(item);
        pthread_mutex_lock(&soft_lock);
    }
    has_thread = false;
    pthread_mutex_unlock(&soft_lock);
    return argument;
}

void soft_object_release(struct soft_user_object *object, unsigned count) {
    pthread_t thread;
    object->references -= count;
    if (object->references > 0) return;
    soft_handle_remove(SOFT_HANDLE_OBJECT, object);
    struct soft_held_object *item = calloc(1, sizeof *item);
    if (item == NULL) return; /* leaks the program's object rather than calling it under the lock */
    item->object = object;
    item->next = dying;
    dying = item;
    if (!has_thread && pthread_create(&thread, NULL, user_object_destroy_all, NULL) == 0) {
        pthread_detach(thread);
        has_thread = true;
    }
}

static struct soft_held_object *user_object_find(struct soft_held_object **objects,
                                                 const struct soft_user_object *object) {
    struct soft_held_object *held = *objects;
    while (held != NULL && held->object != object) held = held->next;
    return held;
}

CUresult soft_object_hold(struct soft_held_object **objects, struct soft_user_object *object,
                          unsigned count) {
    struct soft_held_object *held = user_object_find(objects, object);
    if (held == NULL) {
        held = calloc(1, sizeof *held);
        if (held == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
        held->object = object;
        held->next = *objects;
        *objects = held;
    }
    held->count += count;
    return CUDA_SUCCESS;
}

CUresult soft_object_let_go(struct soft_held_object **objects, struct soft_user_object *object,
                            unsigned count) {
    struct soft_held_object *held = user_object_find(objects, object);
    if (held == NULL || held->count < count) return CUDA_ERROR_INVALID_VALUE;
    held->count -= count;
    if (held->count == 0) {
        struct soft_held_object **link = objects;
        while (*link != held) link = &(*link)->next;
        *link = held->next;
        free(held);
    }
    soft_object_release(object, count);
    return CUDA_SUCCESS;
}

CUresult soft_objects_copy(const struct soft_held_object *from, struct soft_held_object **to) {
    for (const struct soft_held_object *held = from; held != NULL; held = held->next) {
        if (soft_object_hold(to, held->object, 1) != CUDA_SUCCESS) return CUDA_ERROR_OUT_OF_MEMORY;
        held->object->references++;
    }
    return CUDA_SUCCESS;
}

void soft_objects_free(struct soft_held_object **objects) {
    while (*objects != NULL) soft_object_let_go(objects, (*objects)->object, (*objects)->count);
}
