/*
 * Handle set: the register of live handles.
 *
 * Handles given out are pointers to the driver's structs. They are kept in a register, so that a
 * handle that was never one, or is no longer, is refused with CUDA's own code instead of followed.
 * The caller holds soft_lock for all of this.
 */
#ifndef SOFT_HANDLE_SET_H
#define SOFT_HANDLE_SET_H

#include "memory/maker.h"

#include <stdbool.h>

enum soft_handle_kind {
    SOFT_HANDLE_STREAM,
    SOFT_HANDLE_EVENT,
    SOFT_HANDLE_MODULE,
    SOFT_HANDLE_FUNCTION,
    SOFT_HANDLE_LIBRARY,
    SOFT_HANDLE_KERNEL,
    SOFT_HANDLE_LINK,
    SOFT_HANDLE_PHYSICAL,
    SOFT_HANDLE_POOL,
    SOFT_HANDLE_GRAPH,
    SOFT_HANDLE_NODE,
    SOFT_HANDLE_EXEC,
    SOFT_HANDLE_OBJECT
};

/* false when the host has no memory. */
bool soft_handle_add(enum soft_handle_kind kind, const void *handle);
void soft_handle_remove(enum soft_handle_kind kind, const void *handle);
bool soft_handle_is(enum soft_handle_kind kind, const void *handle);

/* Calls visit for each handle, with the call that made it. */
void soft_handle_each(void (*visit)(enum soft_handle_kind kind, const void *handle,
                                    const struct soft_maker *maker, void *data),
                      void *data);

#endif
