/*
 * The invariants of handles and of the lists that a driver and a context keep, for asserts. With
 * NDEBUG this file is empty.
 */
#include "libcuda_state.h"
#include "module_state.h"
#include "stream_state.h"

#ifndef NDEBUG

bool tol_stream_is_valid(const struct tol_stream *stream) {
    return stream->context != NULL && stream->functions != NULL && stream->number > 0 &&
           stream->number <= stream->context->streams_made && stream->references >= 0;
}

bool tol_module_is_valid(const struct tol_module *module) {
    return module->context != NULL && module->references > 0 && module->image != NULL &&
           module->image[module->image_bytes] == '\0';
}

bool tol_context_is_valid(const struct tol_context *context) {
    /* A blocking stream is counted before it is listed and until after it has left the list. */
    const unsigned blocking_most = atomic_load(&context->blocking_streams);
    unsigned blocking = 0, last = context->streams_made + 1;
    for (const struct tol_stream *s = context->streams; s != NULL; s = s->next) {
        if (!tol_stream_is_valid(s) || s->context != context || s->number >= last) return false;
        last = s->number;
        blocking += s->blocking;
    }
    for (const struct tol_module *m = context->modules; m != NULL; m = m->next) {
        if (!tol_module_is_valid(m) || m->context != context) return false;
    }
    return blocking <= blocking_most;
}

bool tol_driver_is_valid(const struct tol_driver *driver) {
    for (const struct tol_context *c = driver->contexts; c != NULL; c = c->next) {
        if (c->driver != driver || c->references <= 0) return false;
        for (const struct tol_context *other = c->next; other != NULL; other = other->next) {
            if (other->device.ordinal == c->device.ordinal) return false;
        }
    }
    return true;
}

#endif
