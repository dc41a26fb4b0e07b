/*
 * Retire: keeps destroyed memory handles for a while and marks them, so that using one is refused
 * with a message instead of being undefined behaviour.
 *
 * The last TOL_RETIRED_MAX handles are kept, without their device memory; older ones are freed. A
 * handle ends once, which is asserted. Thread-safe.
 */
#ifndef TOLLENS_RETIRE_H
#define TOLLENS_RETIRE_H

#include "check.h"

enum { TOL_RETIRED_MAX = 256 };

/* The first field of every handle that can be retired. */
struct tol_life {
    unsigned mark;
};
enum { TOL_ALIVE = 0x746f6c21, TOL_ENDED = 0x656e6421 };

/* Marks a handle from malloc as destroyed and frees it later. life is its first field. */
void tol_retire(struct tol_life *life);

/* TOL_INVALID_ARGUMENT: the handle was destroyed. what is its name in the message: "buffer". */
static inline tol_status tol_check_alive(const char *what, const struct tol_life *life) {
    if (TOL_UNLIKELY(life->mark != TOL_ALIVE)) {
        return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT, "the %s has been destroyed",
                        what);
    }
    return TOL_OK;
}

#endif
