/*
 * pthread_mutex_unlock for test programs, which are linked with --wrap=pthread_mutex_unlock. POSIX
 * leaves the release of a mutex that is not held undefined and glibc accepts it, so a missing lock
 * would go unnoticed until two threads meet.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex); /* NOLINT(bugprone-reserved-identifier) */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex); /* NOLINT(bugprone-reserved-identifier) */

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) { /* NOLINT(bugprone-reserved-identifier) */
#ifdef __GLIBC__
    /* Of another thread it may be: a child process releases what its parent held at fork. */
    if (mutex->__data.__owner == 0) {
        fprintf(stderr, "pthread_mutex_unlock(%p): nobody holds the mutex\n", (void *)mutex);
        abort();
    }
#endif
    return __real_pthread_mutex_unlock(mutex);
}
