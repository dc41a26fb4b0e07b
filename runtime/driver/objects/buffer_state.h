/*
 * The fields of struct tol_buffer.
 */
#ifndef TOLLENS_BUFFER_STATE_H
#define TOLLENS_BUFFER_STATE_H

#include "core/context_state.h"
#include "core/retire.h"

/* Device memory, owned or a view of a module's variable. */
struct tol_buffer {
    struct tol_life life;
    struct tol_holder holder;
    const void *site; /* the call that created it */
    struct tol_context *context;
    CUdeviceptr address;
    size_t bytes;
    struct tol_module *module; /* of a view; NULL when the memory is the buffer's own */
};

#endif
