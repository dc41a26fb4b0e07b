/*
 * Transfer: synchronous copies, fast for pageable host memory, between devices and of rows.
 *
 * A device cannot read pageable memory directly: the driver copies it through a pinned block of its
 * own, one step after the other. Here several threads fill one pinned block together while the
 * device empties another; there are four. The blocks are kept for later copies, and are allocated
 * on the NUMA node nearest to the device. Nothing but these staging blocks is pinned (D-23).
 *
 * Retries: a driver call that fails for a temporary reason (out of memory, device or system not
 * ready) is repeated after a pause that doubles; transfer/retry.h lists the reasons. A copy that
 * finally fails may have copied a part.
 *
 * Order: copies do not wait for work on the program's streams, and that work does not wait for
 * them. A copy is complete when the call returns. Destinations within one call must not overlap.
 *
 * Threads: all functions may be called from any thread at the same time; the helper threads serve
 * one large copy at a time. Offsets and sizes are in bytes. Calls on zero bytes succeed.
 * Errors of all functions: TOL_INVALID_ARGUMENT. TOL_OUT_OF_RANGE: nothing is copied. TOL_TIMEOUT:
 * a part of the copy made no progress for deadline_ms. TOL_NOT_RESIDENT: a place is not the
 * device's own memory, and the context allows no other (struct tol_context_options).
 * TOL_OUT_OF_HOST_MEMORY, TOL_POISONED, TOL_DRIVER_ERROR.
 * Source: spec 002 "Refinement" 1.2, 4.1, 4.3 and 5.1; spec 004 section 3.1; D-23.
 */
#ifndef TOLLENS_TRANSFER_H
#define TOLLENS_TRANSFER_H

#include "memory.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_transfer;

/* How the host's threads copy between the program's memory and the pinned blocks. */
enum tol_transfer_pack {
    TOL_TRANSFER_STREAMED, /* with stores that bypass the caches */
    TOL_TRANSFER_CACHED,   /* with memcpy */
};

struct tol_transfer_options {
    size_t block_bytes; /* size of a pinned block, the largest piece of a copy */
    size_t first_bytes; /* size of the first piece; each further one is twice as large, up to the
                         * usual size, so that the device begins early. 0: no smaller ones */
    enum tol_transfer_pack pack;   /* to the device */
    enum tol_transfer_pack unpack; /* from the device */
    size_t streamed_bytes; /* smaller copies are cached ones */
    unsigned threads;      /* host threads that copy, including the caller */
    unsigned spinners;     /* helper threads that poll for the next copy for spin_us before they
                            * sleep, because waking one takes as long as copying some 256 KiB */
    unsigned spin_us;
    unsigned deadline_ms; /* longest time without progress */
    unsigned attempts;    /* most attempts at a driver call that fails for a temporary reason */
    unsigned pause_us;    /* pause before the second attempt; doubles for each further one */
};

/* Sets the default options, which are also used if options is NULL. */
TOL_API void tol_transfer_default(struct tol_transfer_options *options);

/* Creates a transfer for copies to and from the context's device. options may be NULL. Pins no
 * memory and starts no thread until they are needed. */
TOL_API tol_status tol_transfer_create(struct tol_context *context,
                                       const struct tol_transfer_options *options,
                                       struct tol_transfer **transfer);

/* Ends the threads and frees the blocks. No call may be using it. NULL is a no-op. */
TOL_API void tol_transfer_destroy(struct tol_transfer *transfer);

/* The context that the transfer was created in. Valid while the transfer lives. */
TOL_API struct tol_context *tol_transfer_context(const struct tol_transfer *transfer);

/* A range of device memory. Copies are checked against it, so it must not exceed the allocation,
 * and the memory must live until the copies are done. */
struct tol_place {
    CUdeviceptr address;
    size_t bytes;
};

/* The place of a buffer or of a pool block. Address and size are 0 if it is not live. */
TOL_API struct tol_place tol_place_of_buffer(const struct tol_buffer *buffer);
TOL_API struct tol_place tol_place_of_block(const struct tol_pool *pool, struct tol_block block);

/* Copy from host to device, and from device to host. offset is in the place. */
TOL_API tol_status tol_transfer_write(struct tol_transfer *transfer, struct tol_place destination,
                                      size_t offset, const void *source, size_t bytes);
TOL_API tol_status tol_transfer_read(struct tol_transfer *transfer, struct tol_place source,
                                     size_t offset, void *destination, size_t bytes);

/* Many copies in one call: small ones share staging blocks and one wait. */
struct tol_transfer_item {
    struct tol_place place;
    size_t offset;
    void *host; /* source of tol_transfer_write_batch, destination of _read_batch */
    size_t bytes;
};
TOL_API tol_status tol_transfer_write_batch(struct tol_transfer *transfer, size_t count,
                                            const struct tol_transfer_item *items);
TOL_API tol_status tol_transfer_read_batch(struct tol_transfer *transfer, size_t count,
                                           const struct tol_transfer_item *items);

/*
 * height rows of width bytes. On the device the first row is at offset and rows are device_pitch
 * bytes apart; on the host they are host_pitch bytes apart. TOL_INVALID_ARGUMENT: a pitch is less
 * than width, or above the device's maximum.
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

/* Copies within the device. TOL_INVALID_ARGUMENT: the ranges overlap. */
TOL_API tol_status tol_transfer_copy(struct tol_transfer *transfer, struct tol_place destination,
                                     size_t destination_offset, struct tol_place source,
                                     size_t source_offset, size_t bytes);

/* Copies rows within the device. to gives offset and device_pitch of the destination, from those of
 * the source. Widths and heights must be equal. */
TOL_API tol_status tol_transfer_copy_rows(struct tol_transfer *transfer,
                                          struct tol_place destination,
                                          const struct tol_transfer_rows *to,
                                          struct tol_place source,
                                          const struct tol_transfer_rows *from);

/* Copies from one device to another: directly if the devices have peer access, otherwise through
 * the host. Each place must belong to the context of the transfer before it in the arguments. */
TOL_API tol_status tol_transfer_peer(struct tol_transfer *to, struct tol_place destination,
                                     size_t destination_offset, struct tol_transfer *from,
                                     struct tol_place source, size_t source_offset, size_t bytes);

/* Moves a block to another pool, on another device or the same, under a tag of the new pool (0:
 * none). The content is copied; the address changes. *block is set to the new handle. Work on the
 * block must be done before the call; any stream may use it after. On failure the old block is
 * unchanged, except that tol_pool_free may have wiped it, and the new pool has no block.
 * TOL_OUT_OF_DEVICE_MEMORY: the new pool has no room. TOL_WRONG_CONTEXT: a pool and the transfer
 * that precedes it in the arguments belong to different contexts. */
TOL_API tol_status tol_transfer_move(struct tol_transfer *to, struct tol_pool *there, unsigned tag,
                                     struct tol_transfer *from, struct tol_pool *here,
                                     struct tol_block *block);

/* Sets *resident to whether an address is device memory, neither host memory nor managed memory.
 * false for an address that the driver does not know. */
TOL_API tol_status tol_transfer_is_resident(struct tol_transfer *transfer, CUdeviceptr address,
                                            bool *resident);

/* State and counters. */
struct tol_transfer_stats {
    uint64_t pinned_bytes;                   /* size of all staging blocks */
    uint64_t pieces;                         /* count of pieces copied through them */
    uint64_t retries;                        /* count of repeated driver calls */
    uint64_t peer_direct, peer_through_host; /* counts of copies between devices */
    int numa_node;  /* of the device; -1: unknown, or the machine has only one node */
    int numa_found; /* that pages of staging were seen on; -1: on several, or none was seen */
};
TOL_API tol_status tol_transfer_stats(struct tol_transfer *transfer,
                                      struct tol_transfer_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
