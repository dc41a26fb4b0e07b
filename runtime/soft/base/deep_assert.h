/*
 * Deep checks: asserts that walk a whole structure.
 *
 * A function that looks at one element takes a few loads and is asserted wherever assert is live. A
 * function that walks the whole structure is asserted by SOFT_DEEP_ASSERT, which runs only where
 * TOL_DEEP_CHECKS is defined (the asan build), and there once in SOFT_DEEP_ONE_IN operations of a
 * thread and a file. With NDEBUG neither exists.
 */
#ifndef SOFT_DEEP_ASSERT_H
#define SOFT_DEEP_ASSERT_H

#include <assert.h>
#include <stdbool.h>

enum { SOFT_DEEP_ONE_IN = 64 };

#if defined(TOL_DEEP_CHECKS) && !defined(NDEBUG)
static inline bool soft_deep_is_due(void) {
    static _Thread_local unsigned calls;
    return ++calls % SOFT_DEEP_ONE_IN == 0;
}
#define SOFT_DEEP_ASSERT(condition)                                                                \
    do {                                                                                           \
        if (soft_deep_is_due()) assert(condition);                                                 \
    } while (0)
#else
#define SOFT_DEEP_ASSERT(condition) ((void)0)
#endif

#endif
