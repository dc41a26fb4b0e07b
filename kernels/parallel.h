/*
 * Parallel: runs the iterations of a loop, which must not depend on each other, on several
 * processors. For oracles, which are slow. Each iteration is run once, by one thread, and the
 * caller combines results in order, so results do not depend on the number of threads.
 *
 * The threads live as long as the loop. A pool would save some 20 us a thread, and would need an
 * owner.
 */
#ifndef KN_PARALLEL_H
#define KN_PARALLEL_H

#include "tollens.h"

enum { KN_PARALLEL_THREADS_MAX = 32 };

/*
 * Calls turn(user, i) once for each i below count, from several threads at once, and returns when
 * all calls have returned. work_ns estimates the time of all calls on one thread; threads are
 * created only if that outweighs their cost. There are at most as many as processors that the
 * caller may run on (sched_getaffinity), and at most KN_PARALLEL_THREADS_MAX. If a thread cannot be
 * created, the others run its iterations. A loop inside an iteration runs on one thread.
 * Thread-safe.
 */
void kn_parallel_for(size_t count, double work_ns, void (*turn)(void *user, size_t index),
                     void *user);

/* For tests: every loop of the process gets this many threads; 0: as above. */
void kn_parallel_force(unsigned threads);

#endif
