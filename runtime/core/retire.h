/*
 * Retire: memory handles that have ended are kept a while, marked, so that using one is refused
 * with a sentence instead of being undefined.
 *
 * The last TOL_RETIRED_MAX handles are kept, not their device memory; what ended before those is
 * really gone. A handle ends once, which is asserted. Internal: not installed. Thread-safe.
 */
#ifndef TOLLENS_RETIRE_H
#define TOLLENS_RETIRE_H

#include "check.h"

enum { TOL_RETIRED_MAX = 256 };

/* The first field of a handle that is retired. */
struct tol_life {
    unsigned mark;
};
enum { TOL_ALIVE = 0x746f6c21, TOL_ENDED = 0x656e6421 };

/* Marks a handle that malloc gave as ended and frees it later. life is its first field. */
void tol_retire(struct tol_life *life);

/* TOL_INVALID_ARGUMENT for a handle that has ended. what names it: "buffer". */
static inline tol_status tol_check_alive(const char *what, const struct tol_life *life) {
    if (TOL_UNLIKELY(life->mark != TOL_ALIVE)) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT, "the %s has been destroyed",
                        what);
    }
    return TOL_OK;
}

#endif
