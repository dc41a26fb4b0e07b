/*
 * An anonymous mapping from a multiple of 2 MiB on, for which huge pages are requested.
 */
#include "huge_pages.h"

#include <stdint.h>

#if defined __linux__
#include <sys/mman.h>

enum { HUGE = 2 << 20, SMALL = 4096 };

static size_t huge_pages_whole(size_t bytes) {
    return (bytes + HUGE - 1) / HUGE * HUGE;
}

void *tol_huge_map(size_t bytes) {
    const size_t length = huge_pages_whole(bytes);
    if (bytes == 0 || length < bytes) return NULL;
    char *all =
        mmap(NULL, length + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    const size_t before = (HUGE - (uintptr_t)all % HUGE) % HUGE;
    if (before > 0) munmap(all, before);
    char *begin = all + before;
    munmap(begin + length, HUGE - before);       /* of no bytes it does nothing */
    (void)madvise(begin, length, MADV_HUGEPAGE); /* a hint: small pages work as well */
    for (size_t at = 0; at < length; at += SMALL) ((volatile char *)begin)[at] = 0;
    return begin;
}

void tol_huge_unmap(void *begin, size_t bytes) {
    if (begin != NULL) munmap(begin, huge_pages_whole(bytes));
}

#else
#include <stdlib.h>

void *tol_huge_map(size_t bytes) {
    return bytes > 0 ? calloc(1, bytes) : NULL;
}

void tol_huge_unmap(void *begin, size_t bytes) {
    if (bytes > 0) free(begin);
}

#endif
