/*
 * Leak: reports objects that a program did not release, with the call that created them.
 *
 * When a context ends: its memory, modules, streams and events. When the last context ends, also
 * objects of no context: pools and their memory, physical memory, mappings and reserved addresses,
 * graphs, libraries, linkers and user objects. When the process exits: all that is left. Active
 * only with leak in TOLLENS_SOFT_CHECK, because many programs leave the cleanup to the driver,
 * which is valid.
 */
#ifndef SOFT_LEAK_H
#define SOFT_LEAK_H

#include "base/calls.h"
#include "state/driver_state.h"

/* A call begins, which returns to site. */
void soft_leak_call(enum soft_call call, const void *site);

/* cuInit has succeeded: the end of the process will be checked. The caller does not hold
 * soft_lock. */
void soft_leak_watch_exit(void);

/* A context is about to be destroyed, and its work is done. The caller does not hold soft_lock. */
void soft_leak_context(const struct soft_context *context);

#endif
