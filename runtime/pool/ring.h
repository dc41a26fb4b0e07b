/*
 * Ring: the latest events of a pool, so many as it was made for, and how many came before them.
 *
 * An event gets its number when it takes effect: a free before others can have the block, an
 * allocation after it has one. So the order of numbers is one in which they could have happened
 * one by one. Internal: not installed. Any thread.
 */
#ifndef TOLLENS_RING_H
#define TOLLENS_RING_H

#include "tollens/pool_watch.h"

#include <pthread.h>
#include <stdbool.h>

struct tol_ring {
    pthread_mutex_t lock;
    struct tol_pool_event *events; /* NULL: it keeps none */
    size_t room;
    uint64_t count; /* ever added */
};

/* Room for so many events; none is fine. false: no host memory. */
bool tol_ring_open(struct tol_ring *ring, size_t room);
void tol_ring_close(struct tol_ring *ring);

/* Adds an event; its number. */
uint64_t tol_ring_add(struct tol_ring *ring, const struct tol_pool_event *event);

/* Notes how long the event of that number took, where it is still kept. */
void tol_ring_took(struct tol_ring *ring, uint64_t number, uint64_t ns);

/* How many were ever added, and how many of them are kept no more. */
void tol_ring_count(struct tol_ring *ring, uint64_t *count, uint64_t *lost);

/* Copies up to max events, the oldest first; how many. *lost are those that came before. */
size_t tol_ring_read(struct tol_ring *ring, struct tol_pool_event *events, size_t max,
                     uint64_t *lost);

#endif
