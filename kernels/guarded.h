/*
 * Guarded: a device buffer whose surroundings are watched, for tests and claims about kernels.
 *
 * The middle is for a kernel; it begins as NaN in every type, so that what was never written cannot
 * pass for a result. On either side lies a zone that nobody may touch.
 * Not to be used from several threads at once.
 */
#ifndef KN_GUARDED_H
#define KN_GUARDED_H

#include "tollens.h"

enum { KN_GUARD_BYTES = 4096 };

struct kn_guarded {
    struct tol_buffer *buffer;
    size_t offset; /* of the middle in the buffer, in bytes */
    size_t bytes;  /* of the middle; may be 0 */
};

/* Makes one, the middle skew bytes past an address that is a multiple of 256. All poisoned.
 * As tol_buffer_create. */
TOL_API tol_status kn_guarded_create(struct tol_context *context, size_t bytes, size_t skew,
                                     struct kn_guarded *guarded);

/* Frees it; one that was not made is {0}. */
TOL_API void kn_guarded_destroy(struct kn_guarded *guarded);

/* The middle from the host and to it. */
TOL_API tol_status kn_guarded_write(struct kn_guarded *guarded, const void *bytes);
TOL_API tol_status kn_guarded_read(const struct kn_guarded *guarded, void *bytes);

/* Poisons everything anew. */
TOL_API tol_status kn_guarded_poison(struct kn_guarded *guarded);

/* How many bytes of the zones have changed. Work that writes must have been waited for. */
TOL_API tol_status kn_guarded_check(const struct kn_guarded *guarded, size_t *changed);

#endif
