/*
 * Deep checks: asserts that examine a whole structure.
 *
 * Two kinds of functions state a structure's invariants. One examines an element and its neighbours
 * with a few loads, and is asserted at the end of each operation wherever assert is enabled. The
 * other examines the whole structure. TOL_DEEP_ASSERT asserts it only if TOL_DEEP_CHECKS is defined
 * (the asan build), once per TOL_DEEP_ONE_IN operations of a thread and a file. On the pool's
 * fastest paths even a few loads are measurable; there TOL_QUICK_ASSERT examines one element, only
 * if TOL_DEEP_CHECKS is defined. With NDEBUG there are no checks. Any thread.
 */
#ifndef TOLLENS_DEEP_H
#define TOLLENS_DEEP_H

#include <assert.h>
#include <stdbool.h>

enum { TOL_DEEP_ONE_IN = 64 };

#if defined(TOL_DEEP_CHECKS) && !defined(NDEBUG)
static inline bool tol_deep_is_due(void) {
    static _Thread_local unsigned calls;
    return ++calls % TOL_DEEP_ONE_IN == 0;
}
#define TOL_DEEP_ASSERT(condition)                                                                 \
    do {                                                                                           \
        if (tol_deep_is_due()) assert(condition);                                                  \
    } while (0)
#define TOL_QUICK_ASSERT(condition) assert(condition)
#else
#define TOL_DEEP_ASSERT(condition) ((void)0)
#define TOL_QUICK_ASSERT(condition) ((void)0)
#endif

#endif
