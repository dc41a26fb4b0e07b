/*
 * A ring of destroyed handles: each new one replaces the oldest.
 */
#include "retire.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tol_life *ended[TOL_RETIRED_MAX];
static size_t next;

void tol_retire(struct tol_life *life) {
    assert(life->mark == TOL_ALIVE);
    life->mark = TOL_ENDED;
    pthread_mutex_lock(&lock);
    struct tol_life *oldest = ended[next];
    ended[next] = life;
    next = (next + 1) % TOL_RETIRED_MAX;
    pthread_mutex_unlock(&lock);
    free(oldest);
}
