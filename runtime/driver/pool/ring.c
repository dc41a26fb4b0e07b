/*
 * An array, a count and a lock. Only pools with events pay for them.
 */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

bool tol_ring_open(struct tol_ring *ring, size_t room) {
    pthread_mutex_init(&ring->lock, NULL);
    if (room == 0) return true;
    ring->events = calloc(room, sizeof *ring->events);
    if (ring->events != NULL) ring->room = room;
    return ring->events != NULL;
}

void tol_ring_close(struct tol_ring *ring) {
    free(ring->events);
    ring->events = NULL;
    ring->room = 0;
    pthread_mutex_destroy(&ring->lock);
}

uint64_t tol_ring_add(struct tol_ring *ring, const struct tol_pool_event *event) {
    pthread_mutex_lock(&ring->lock);
    uint64_t number = ring->count++;
    ring->events[number % ring->room] = *event;
    pthread_mutex_unlock(&ring->lock);
    return number;
}

void tol_ring_took(struct tol_ring *ring, uint64_t number, uint64_t ns) {
    pthread_mutex_lock(&ring->lock);
    if (number + ring->room >= ring->count) {
        ring->events[number % ring->room].took_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    }
    pthread_mutex_unlock(&ring->lock);
}

void tol_ring_count(struct tol_ring *ring, uint64_t *count, uint64_t *lost) {
    pthread_mutex_lock(&ring->lock);
    *count = ring->count;
    *lost = ring->count > ring->room ? ring->count - ring->room : 0;
    pthread_mutex_unlock(&ring->lock);
}

size_t tol_ring_read(struct tol_ring *ring, struct tol_pool_event *events, size_t max,
                     uint64_t *lost) {
    pthread_mutex_lock(&ring->lock);
    size_t kept = ring->count < ring->room ? (size_t)ring->count : ring->room;
    uint64_t first = ring->count - kept;
    for (size_t i = 0; i < kept && i < max; i++) {
        events[i] = ring->events[(first + i) % ring->room];
    }
    pthread_mutex_unlock(&ring->lock);
    *lost = first;
    return kept < max ? kept : max;
}
