/*
 * Guarded: a device buffer between guard zones, for tests and claims about kernels.
 *
 * The middle is for a kernel. It begins as NaN in every type, so memory that was never written
 * cannot pass for a result. No kernel may write the zones on either side. Not thread-safe.
 */
#ifndef KN_GUARDED_H
#define KN_GUARDED_H

#include "tollens.h"

enum { KN_GUARD_BYTES = 4096 };

/* The timeout of a wait for a kernel whose numbers are judged: how long they take on a machine that
 * is busy with other work says nothing about them. */
enum { KN_PATIENCE_MS = 60000 };

struct kn_guarded {
    struct tol_buffer *buffer;
    size_t offset; /* of the middle in the buffer, in bytes */
    size_t bytes;  /* of the middle; may be 0 */
};

/* Creates one, all poisoned. The middle begins skew bytes past a multiple of 256. Fails as
 * tol_buffer_create does. */
TOL_API tol_status kn_guarded_create(struct tol_context *context, size_t bytes, size_t skew,
                                     struct kn_guarded *guarded);

/* Frees it. {0} is a no-op. */
TOL_API void kn_guarded_destroy(struct kn_guarded *guarded);

/* Copies the middle from the host, and to it. */
TOL_API tol_status kn_guarded_write(struct kn_guarded *guarded, const void *bytes);
TOL_API tol_status kn_guarded_read(const struct kn_guarded *guarded, void *bytes);

/* Poisons the middle and the zones again. */
TOL_API tol_status kn_guarded_poison(struct kn_guarded *guarded);

/* Counts the bytes of the zones that have changed. Wait for the work first. */
TOL_API tol_status kn_guarded_check(const struct kn_guarded *guarded, size_t *changed);

#endif
