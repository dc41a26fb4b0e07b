/*
 * Ring: keeps the latest events of a pool, and counts those that were overwritten.
 *
 * An event gets its number when it takes effect: a free before the block can be reused, an
 * allocation after it has its block. So the numbers give an order in which the calls could have
 * happened one after the other. Any thread.
 */
#ifndef TOLLENS_RING_H
#define TOLLENS_RING_H

#include "tollens/pool_watch.h"

#include <pthread.h>
#include <stdbool.h>

struct tol_ring {
    pthread_mutex_t lock;
    struct tol_pool_event *events; /* NULL: keeps no events */
    size_t room;
    uint64_t count; /* events added so far */
};

/* Allocates room for that many events; 0 is allowed. false: no host memory. */
bool tol_ring_open(struct tol_ring *ring, size_t room);
void tol_ring_close(struct tol_ring *ring);

/* Adds an event and returns its number. */
uint64_t tol_ring_add(struct tol_ring *ring, const struct tol_pool_event *event);

/* Sets the duration of the event with that number, if it is still kept. */
void tol_ring_took(struct tol_ring *ring, uint64_t number, uint64_t ns);

/* Gets the number of events added so far, and how many of them were overwritten. */
void tol_ring_count(struct tol_ring *ring, uint64_t *count, uint64_t *lost);

/* Copies up to max events, the oldest first, and returns how many. *lost is set to the number of
 * older events. */
size_t tol_ring_read(struct tol_ring *ring, struct tol_pool_event *events, size_t max,
                     uint64_t *lost);

#endif
