/*
 * Transfer: copies of ordinary host memory, host and device at work at once, and everything else
 * that is copied and done when the call returns.
 *
 * Ordinary memory can be paged out, so a device cannot read it: the driver copies it through a
 * pinned block of its own, one after the other. Here several threads fill one block side by side
 * while the device empties another, four in all. The blocks are kept for the next copy, and lie
 * where the device is nearest (NUMA). Nothing but staging is pinned (D-23).
 *
 * A call that fails for a reason that may pass (out of memory, device or system not ready) is made
 * again after a pause that doubles; transfer/retry.h lists the reasons. What has failed for good
 * may have been copied in part.
 *
 * Order: copies do not wait for work on the program's streams, nor that for them, but they are done
 * when the call returns. Items of one call must not overlap where they are written.
 *
 * All functions: TOL_INVALID_ARGUMENT, TOL_OUT_OF_RANGE (nothing is copied then), TOL_TIMEOUT when
 * a part of a copy makes no headway for deadline_ms, TOL_OUT_OF_HOST_MEMORY, TOL_POISONED,
 * TOL_DRIVER_ERROR. Calls on no bytes succeed. Threads: any may use it; one large copy at a time
 * has the helping threads. Source: spec 002 "Refinement" 1.2, 4.1, 4.3 and 5.1; spec 004 section
 * 3.1; D-23.
 */
#ifndef TOLLENS_TRANSFER_H
#define TOLLENS_TRANSFER_H

#include "memory.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_transfer;

struct tol_transfer_options {
    size_t block_bytes;   /* of a pinned block, the most that is copied in one piece */
    unsigned threads;     /* that copy on the host, the calling one included */
    unsigned deadline_ms; /* without headway */
    unsigned attempts;    /* at a call that fails for a reason that may pass */
    unsigned pause_us;    /* before the second of them; doubles */
};

/* What a NULL for options means. */
TOL_API void tol_transfer_default(struct tol_transfer_options *options);

/* Makes one for copies to and from a context's device. Pins nothing yet and starts no thread. */
TOL_API tol_status tol_transfer_create(struct tol_context *context,
                                       const struct tol_transfer_options *options,
                                       struct tol_transfer **transfer);

/* Ends its threads and frees its blocks. No call with it may be in progress. NULL is a no-op. */
TOL_API void tol_transfer_destroy(struct tol_transfer *transfer);

/* A range of device memory. Copies are checked against it, so it must be no more than what is
 * there, and live until they are done. */
struct tol_place {
    CUdeviceptr address;
    size_t bytes;
};

/* A buffer's, or a pool's block's; no bytes at 0 where it is not alive. */
TOL_API struct tol_place tol_place_of_buffer(const struct tol_buffer *buffer);
TOL_API struct tol_place tol_place_of_block(const struct tol_pool *pool, struct tol_block block);

/* Host to device, and back. */
TOL_API tol_status tol_transfer_write(struct tol_transfer *transfer, struct tol_place destination,
                                      size_t offset, const void *source, size_t bytes);
TOL_API tol_status tol_transfer_read(struct tol_transfer *transfer, struct tol_place source,
                                     size_t offset, void *destination, size_t bytes);

/* Many at once: small ones share blocks and are waited for together. */
struct tol_transfer_item {
    struct tol_place place;
    size_t offset;
    void *host; /* not written to by tol_transfer_write_batch */
    size_t bytes;
};
TOL_API tol_status tol_transfer_write_batch(struct tol_transfer *transfer, size_t count,
                                            const struct tol_transfer_item *items);
TOL_API tol_status tol_transfer_read_batch(struct tol_transfer *transfer, size_t count,
                                           const struct tol_transfer_item *items);

/*
 * Rows of width bytes: on the device the first at offset and the next ones device_pitch apart, on
 * the host host_pitch. TOL_INVALID_ARGUMENT: a pitch below the width, or above the device's
 * largest.
 */
struct tol_transfer_rows {
    size_t width, height;
    size_t offset, device_pitch;
    size_t host_pitch;
};
TOL_API tol_status tol_transfer_write_rows(struct tol_transfer *transfer,
                                           struct tol_place destination, const void *source,
                                           const struct tol_transfer_rows *rows);
TOL_API tol_status tol_transfer_read_rows(struct tol_transfer *transfer, struct tol_place source,
                                          void *destination, const struct tol_transfer_rows *rows);

/* On the device. TOL_INVALID_ARGUMENT when the ranges overlap. */
TOL_API tol_status tol_transfer_copy(struct tol_transfer *transfer, struct tol_place destination,
                                     size_t destination_offset, struct tol_place source,
                                     size_t source_offset, size_t bytes);

/* The same for rows: those of the destination are offset and device_pitch of to, those of the
 * source of from; widths and heights must be equal. */
TOL_API tol_status tol_transfer_copy_rows(struct tol_transfer *transfer,
                                          struct tol_place destination,
                                          const struct tol_transfer_rows *to,
                                          struct tol_place source,
                                          const struct tol_transfer_rows *from);

/* From one device to another: directly where they reach each other, through the host where not.
 * Each place belongs to the context of the transfer before it. */
TOL_API tol_status tol_transfer_peer(struct tol_transfer *to, struct tol_place destination,
                                     size_t destination_offset, struct tol_transfer *from,
                                     struct tol_place source, size_t source_offset, size_t bytes);

/* Moves a block from one pool to another, on another device or the same, under a tag of the new
 * pool (0: none). Its bytes come along, its address does not; *block is its new name, and it is the
 * host's: work on it must be done before, and any stream may use it after. Where it fails the block
 * is what it was, but for what tol_pool_free says of wiping, and nothing is left in the new pool.
 * TOL_OUT_OF_DEVICE_MEMORY: it finds no place there. TOL_WRONG_CONTEXT: a pool is not of the
 * context that the transfer before it is of. */
TOL_API tol_status tol_transfer_move(struct tol_transfer *to, struct tol_pool *there, unsigned tag,
                                     struct tol_transfer *from, struct tol_pool *here,
                                     struct tol_block *block);

/* Whether an address is device memory that stays there: not the host's, and not managed. false for
 * an address that the driver does not know. */
TOL_API tol_status tol_transfer_is_resident(struct tol_transfer *transfer, CUdeviceptr address,
                                            bool *resident);

/* What it holds and has done. */
struct tol_transfer_stats {
    uint64_t pinned_bytes;                   /* of staging blocks */
    uint64_t pieces;                         /* that were copied through them */
    uint64_t retries;                        /* of calls that failed for a reason that may pass */
    uint64_t peer_direct, peer_through_host; /* copies between devices */
    int numa_node; /* the device's; -1: not known, or there is one node only */
};
TOL_API tol_status tol_transfer_stats(struct tol_transfer *transfer,
                                      struct tol_transfer_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
