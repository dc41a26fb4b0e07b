/*
 * Shared by the files of the space: the list of live allocations, and its lock.
 */
#ifndef SOFT_SPACE_LIST_H
#define SOFT_SPACE_LIST_H

#include "space.h"

#include <pthread.h>

enum { SOFT_GRAVES = 1024 };

struct soft_space {
    pthread_rwlock_t lock;
    uint64_t begin, end; /* of the reserved range, windows left out */
    uint64_t cursor;
    struct soft_allocation **live; /* by address */
    size_t count, room;
    struct soft_allocation graves[SOFT_GRAVES]; /* the latest that were freed; a ring */
    size_t buried;
    uint64_t serial;
    _Atomic uint64_t generation;
};
extern struct soft_space soft_space;

/* The first live allocation that ends after an address. The caller holds the lock. */
size_t soft_space_index(uint64_t address);

/* The live allocation around a range, or NULL. The caller holds the lock. */
struct soft_allocation *soft_space_around(uint64_t address, uint64_t bytes);

/* Whether any device may use an allocation with this kind of access. */
bool soft_space_allows(const struct soft_allocation *allocation, enum soft_access_kind kind);

/* The bounds of the first reservation that ends after an address. false: there is none. The caller
 * holds the lock. */
bool soft_space_next_reservation(uint64_t address, uint64_t *begin, uint64_t *end);

/* Finds free addresses; 0: there are none. The caller holds the lock. */
uint64_t soft_space_addresses(uint64_t bytes, uint64_t alignment);

/* What vector code may read past the end of host bytes. */
enum { SOFT_BYTES_SLACK = 64 };

/* shared_bytes.c: unmaps a backing's file and closes it. */
void soft_shared_release(struct soft_backing *backing);

/* Zeroed bytes and their return. */
void *soft_bytes_take(uint64_t bytes);
void soft_bytes_give(void *bytes, uint64_t count);

/* Frees an allocation that is in no list, once no reader that found it can be inside. The caller
 * holds the lock, and has changed the generation. */
void soft_space_retire(struct soft_allocation *allocation);

/* Frees an allocation at once: no reader has ever found it. */
void soft_space_discard(struct soft_allocation *allocation);

#endif
