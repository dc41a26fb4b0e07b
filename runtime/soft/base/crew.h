/*
 * Crew: independent pieces of work, done by several threads.
 *
 * For work of milliseconds: the threads are created for it and end with it.
 */
#ifndef SOFT_CREW_H
#define SOFT_CREW_H

#include "arena.h"

#include <stddef.h>

/* The distance in bytes between what one thread writes and what another reads. */
enum { SOFT_CREW_MAX = 8, SOFT_CREW_GAP = 128 };

/* A thread's own arena, in an array. */
struct soft_share {
    struct soft_arena arena;
    char gap[SOFT_CREW_GAP];
};

/* The number of threads of a crew, at most TOLLENS_SOFT_WORKERS. */
unsigned soft_crew_threads(void);

/* Calls piece for each index below count, in any order, with the number of the thread that does it;
 * and returns when all are done. The calling thread is number 0. */
void soft_crew_run(unsigned threads, size_t count,
                   void (*piece)(void *context, unsigned thread, size_t index), void *context);

#endif
