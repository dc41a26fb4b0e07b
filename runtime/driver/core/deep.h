/*
 * Deep checks: asserts that walk a whole structure.
 *
 * Two kinds of functions state what is always true of a structure. One looks at an element and its
 * neighbours, takes a few loads, and is asserted at the end of each operation wherever assert is
 * live. The other walks the whole structure. It is asserted by TOL_DEEP_ASSERT, which runs only
 * where TOL_DEEP_CHECKS is defined (the asan build), and there once in TOL_DEEP_ONE_IN operations
 * of a thread and a file. On the pool's quickest ways even a few loads can be measured: there
 * TOL_QUICK_ASSERT looks at an element each time, where TOL_DEEP_CHECKS is defined alone. With
 * NDEBUG there is none. Any thread.
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
