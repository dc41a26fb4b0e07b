/*
 * A thread's state, and its destruction: the context stack, the thread's default streams, and its
 * state as a worker are freed with it.
 */
#include "thread_state.h"

#include "grid/grid.h"

#include <pthread.h>
#include <stdlib.h>

/* Leak checkers do not search memory that the loader allocates for a library's thread variables,
 * and are slow to identify it. This library's few variables fit into the static block; one variable
 * with that model brings all. */
#ifdef __SANITIZE_ADDRESS__
#define AT_START __attribute__((tls_model("initial-exec")))
#else
#define AT_START
#endif

static _Thread_local struct soft_thread *mine AT_START;
static struct soft_thread shared;
static struct soft_thread *all; /* so that objects that main leaves at its end are still
                                 * reachable */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *argument) {
    struct soft_thread *thread = argument;
    if (thread->end != NULL) thread->end(thread);
    soft_worker_end(&thread->worker);
    pthread_mutex_lock(&lock);
    *thread->link = thread->next;
    if (thread->next != NULL) thread->next->link = thread->link;
    pthread_mutex_unlock(&lock);
    mine = NULL;
    free((void *)thread->contexts);
    free(thread);
}

static void thread_state_make_key(void) {
    pthread_key_create(&key, end_thread);
}

struct soft_thread *soft_thread(void) {
    if (mine != NULL) return mine;
    struct soft_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) return &shared;
    pthread_once(&once, thread_state_make_key);
    pthread_setspecific(key, thread);
    pthread_mutex_lock(&lock);
    thread->next = all;
    thread->link = &all;
    if (all != NULL) all->link = &thread->next;
    all = thread;
    pthread_mutex_unlock(&lock);
    return mine = thread;
}
