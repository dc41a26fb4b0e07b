/*
 * Leak: tells of what a program has not given back.
 *
 * When a context ends, of its memory, modules, streams and events; when the last one ends, also of
 * what belongs to none: pools and their memory, physical memory, mappings and reserved addresses,
 * graphs, libraries, linkers and user objects; and at the end of the process of all that is left.
 * Each with the call that made it. Only where TOLLENS_SOFT_CHECK has leak: many programs leave it
 * to the driver to tidy up, which is no mistake.
 */
#ifndef SOFT_LEAK_H
#define SOFT_LEAK_H

#include "base/calls.h"
#include "state/driver_state.h"

/* A call begins. */
void soft_leak_call(enum soft_call call);

/* cuInit has succeeded: the end of the process is to be looked at. The caller does not hold
 * soft_lock. */
void soft_leak_watch_exit(void);

/* A context is about to end, with nothing left to do. The caller does not hold soft_lock. */
void soft_leak_context(const struct soft_context *context);

#endif
