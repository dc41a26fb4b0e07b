/*
 * Huge pages: host memory for staging, in pages of 2 MiB if the system has them.
 *
 * Pinning such memory costs a few microseconds per 2 MiB instead of per 4 KiB. If the system gives
 * no huge pages, the memory is in small ones. Thread-safe.
 */
#ifndef TOLLENS_HUGE_PAGES_H
#define TOLLENS_HUGE_PAGES_H

#include <stddef.h>

/* Maps whole pages for a number of bytes. The calling thread touches each page, so that they exist,
 * near the thread. On systems other than Linux: zeroed memory. NULL: there is none. The caller
 * unmaps it. */
void *tol_huge_map(size_t bytes);
void tol_huge_unmap(void *begin, size_t bytes);

#endif
