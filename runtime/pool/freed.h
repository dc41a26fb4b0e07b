/*
 * Freed: the latest blocks that a thread freed, beside its magazine: whose an address was.
 *
 * Memory passes from thread to thread only through the pool's lock, under which an epoch is
 * counted, so of two records of one place that with the later epoch is the later, and within a
 * thread their order tells. Internal: not installed. The caller holds the magazine's lock.
 */
#ifndef TOLLENS_FREED_H
#define TOLLENS_FREED_H

#include "tollens/status.h"

#include <stdbool.h>
#include <stdint.h>

/* So many are known of a thread, a power of two. */
enum { TOL_FREED_KNOWN = 128 };

struct tol_freed {
    uint64_t block; /* its name */
    uint64_t address, bytes;
    const void *site, *freed_site; /* who allocated and who freed */
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
