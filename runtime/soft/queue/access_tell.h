/*
 * Access tell: tells a program which bytes each kernel has read and written (tollens/accesses.h).
 *
 * A kernel's touches are recorded as for the check `stream`. Without a hook that costs a launch one
 * branch.
 */
#ifndef SOFT_ACCESS_TELL_H
#define SOFT_ACCESS_TELL_H

#include "queue_state.h"
#include "tollens/accesses.h"

/* Sets the hook, or none. Not under soft_lock. */
CUresult soft_access_hook(tol_accesses_hook hook, void *user);

/* A launch is about to begin. Under soft_lock. Returns whether its accesses will be passed on. */
bool soft_access_begin(struct soft_launch *launch);

/* It has ended; calls the hook. Not under soft_lock. */
void soft_access_end(const struct soft_operation *operation);

#endif
