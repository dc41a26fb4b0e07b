/*
 * Freed: the latest blocks that a thread freed, kept with its magazine, for looking up addresses.
 *
 * Memory passes from one thread to another only under the pool's lock, where an epoch is counted.
 * Of two records for one address, the one with the later epoch is the later; within a thread their
 * order decides. The caller holds the magazine's lock.
 */
#ifndef TOLLENS_FREED_H
#define TOLLENS_FREED_H

#include "tollens/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The number of blocks kept per thread, a power of two. */
enum { TOL_FREED_KNOWN = 128 };

struct tol_freed {
    uint64_t block; /* its name */
    uint64_t address, bytes;
    const void *site, *freed_site; /* the code addresses that allocated and freed it */
    uint64_t epoch;
    uint32_t tag;
};

struct tol_freed_list {
    uint64_t count;
    struct tol_freed blocks[TOL_FREED_KNOWN];
};

static inline void tol_freed_note(struct tol_freed_list *list, const struct tol_freed *freed) {
    list->blocks[list->count++ % TOL_FREED_KNOWN] = *freed;
}

#endif
