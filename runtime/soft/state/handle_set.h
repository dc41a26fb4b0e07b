/*
 * Handle set: all live handles.
 *
 * Handles are pointers to the driver's structs. The set contains all live ones, so an invalid or
 * destroyed handle is rejected with CUDA's code and never dereferenced.
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
    SOFT_HANDLE_ARRAY,
    SOFT_HANDLE_MIPMAP,
    SOFT_HANDLE_TEXTURE_REFERENCE,
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

/* Whether the counters agree with the table and each handle is found in it. Walks the table; for
 * asserts (base/deep_assert.h): not with NDEBUG. */
bool soft_handles_are_valid(void);

/* Calls visit for each handle, with the call that made it. */
void soft_handle_each(void (*visit)(enum soft_handle_kind kind, const void *handle,
                                    const struct soft_maker *maker, void *data),
                      void *data);

#endif
