/*
 * Pinned: host memory that the device can copy from and to while the host goes on.
 *
 * It exists for transfers, not to hold data the device works on (D-23). Asynchronous copies take
 * only this kind of host memory, and a pinned block knows which copies still use it: asking for
 * access waits for them, and so does destroying it. That makes the usual mistake, touching host
 * memory under a copy in flight, hard to make (D-40).
 *
 * Threads: one thread at a time may hold access; copies may be queued from several.
 */
#ifndef TOLLENS_PINNED_H
#define TOLLENS_PINNED_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_pinned;

/* Allocates page-locked host memory; its content is not defined. TOL_INVALID_ARGUMENT: no bytes.
 * TOL_OUT_OF_HOST_MEMORY. */
TOL_API tol_status tol_pinned_create(struct tol_context *context, size_t bytes,
                                     struct tol_pinned **pinned);

/* Frees it when the context's work is done, which kernels may be that use it: waits as long as the
 * context has patience, and leaves it for later rather than pull it from under them. NULL is a
 * no-op. Using it after is refused as for buffers (memory.h). */
TOL_API void tol_pinned_destroy(struct tol_pinned *pinned);

TOL_API size_t tol_pinned_bytes(const struct tol_pinned *pinned);

/* Waits until no copy uses the memory, TOL_DEADLINE_MS at most, and gives its address, which is
 * good for the host until the next copy is queued. TOL_TIMEOUT, or the error a copy ended with. */
TOL_API tol_status tol_pinned_access(struct tol_pinned *pinned, void **data);

#ifdef __cplusplus
}
#endif
#endif
