/*
 * Locked: memory for secrets. It is not written to swap (mlock), not part of a core dump
 * (MADV_DONTDUMP), zero in a child process (MADV_WIPEONFORK) and wiped when it is released.
 *
 * Small pieces share pages, because a process may lock only a limited amount: RLIMIT_MEMLOCK, 8 MiB
 * on most systems. Internal. Thread-safe.
 */
#ifndef TOLLENS_LOCKED_H
#define TOLLENS_LOCKED_H

#include "status.h"

#include <stddef.h>

/* Allocates zeroed memory, aligned to 16. TOL_OUT_OF_HOST_MEMORY: it cannot be allocated or locked;
 * the message has the limit. */
tol_status tol_locked_take(size_t bytes, void **memory);

/* Wipes and frees it. bytes as at its allocation. NULL is a no-op. */
void tol_locked_give(void *memory, size_t bytes);

/* The bytes that the process has locked by this. */
size_t tol_locked_bytes(void);

#endif
