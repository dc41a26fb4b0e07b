/*
 * Parallel: a loop whose turns do not depend on each other, on the processors that there are. For
 * oracles, which are slow: each turn is made once and by one thread, and what belongs together is
 * put together by the caller, in order. So results do not depend on how many threads there were.
 *
 * Threads live as long as the loop; a pool would save some 20 us for each, and have to be kept by
 * somebody.
 */
#ifndef KN_PARALLEL_H
#define KN_PARALLEL_H

#include "tollens.h"

enum { KN_PARALLEL_THREADS_MAX = 32 };

/*
 * Calls turn(user, i) once for each i below count, from several threads at once, and returns when
 * all calls have. work_ns is about how long one thread would take for all: threads are made only
 * for what outweighs the making of them, and there are no more than processors that the calling
 * thread may run on (sched_getaffinity), nor than KN_PARALLEL_THREADS_MAX. Where one cannot be
 * made, those that are there make its turns, the calling one at least. A loop inside of a turn has
 * one thread. Thread-safe.
 */
void kn_parallel_for(size_t count, double work_ns, void (*turn)(void *user, size_t index),
                     void *user);

/* For tests: loops have so many threads, however small; 0: as above. Of the whole process. */
void kn_parallel_force(unsigned threads);

#endif
