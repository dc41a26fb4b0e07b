/*
 * Pinned: page-locked host memory that the device copies from and to while the host continues.
 *
 * It is meant for transfers, not for data that kernels work on (D-23). Asynchronous copies accept
 * no other host memory. A pinned block tracks the copies that use it: getting access waits for
 * them, and so does destroying the block. This prevents the common mistake of touching host memory
 * during a copy (D-40).
 *
 * Threads: one thread at a time may have access; several may queue copies.
 */
#ifndef TOLLENS_PINNED_H
#define TOLLENS_PINNED_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_pinned;

/* Allocates bytes of page-locked host memory, asked for on the NUMA node nearest to the device. The
 * content is undefined. The caller destroys it with
 * tol_pinned_destroy. TOL_INVALID_ARGUMENT: bytes is 0. TOL_OUT_OF_HOST_MEMORY. TOL_NOT_RESIDENT:
 * the context has device_memory_only (struct tol_context_options). */
TOL_API tol_status tol_pinned_create(struct tol_context *context, size_t bytes,
                                     struct tol_pinned **pinned);

/* The same for blocks that are filled and copied by turns, such as those of a model's loader: in
 * huge pages where system and driver give them, which are pinned faster. For copies alone:
 * destroying the block waits for its copies, up to tol_context_set_patience, and not for kernels
 * that use it. If they have not ended then, the memory stays as it is. */
TOL_API tol_status tol_pinned_create_huge(struct tol_context *context, size_t bytes,
                                          struct tol_pinned **pinned);

/* Frees the memory once the context's work is done, since kernels may use it too. Waits up to
 * tol_context_set_patience; if work still runs then, the memory is freed later. NULL is a no-op.
 * Later use is refused as for buffers (memory.h). */
TOL_API void tol_pinned_destroy(struct tol_pinned *pinned);

/* The size in bytes. */
TOL_API size_t tol_pinned_bytes(const struct tol_pinned *pinned);

/* The NUMA node of a block, as the kernel reports it page by page. Memory that a driver maps
 * itself, and pages that were not touched, may be missing from the report. */
struct tol_pinned_nodes {
    int wanted;         /* the node nearest to the device; -1: unknown, or there is one node only */
    int found;          /* the node that all pages were seen on; -1: not all were, or on several */
    size_t pages, seen; /* counts of pages: asked for (of a large block a sample), and seen */
};
TOL_API tol_status tol_pinned_nodes(const struct tol_pinned *pinned,
                                    struct tol_pinned_nodes *nodes);

/* Waits up to TOL_DEADLINE_MS until no copy uses the memory, then gets its host address. The host
 * may use the memory until the next copy is queued. TOL_TIMEOUT, or the error that ended a copy. */
TOL_API tol_status tol_pinned_access(struct tol_pinned *pinned, void **data);

/* The same by the driver's own wait, which does not query, so that many threads may wait, and has
 * no deadline: for threads that another thread watches, and can do without. TOL_INVALID_ARGUMENT:
 * an argument is NULL; or the error that ended a copy. */
TOL_API tol_status tol_pinned_await(struct tol_pinned *pinned, void **data);

#ifdef __cplusplus
}
#endif
#endif
