/*
 * Pool: device memory in blocks, without a driver call for each block.
 *
 * A pool reserves one range of addresses and maps memory to it page by page. An allocation is
 * placed where it needs the fewest new pages (best fit), so that whole pages become free again and
 * can go back to the driver. Freed blocks stay with the thread that freed them: small ones for its
 * next allocation of that size, a few larger ones until it allocates another size. Large blocks
 * have a mapping of their own. The pool writes to device memory only when it wipes a block.
 *
 * Stream order: allocating and freeing name the stream that uses the block. A free normally calls
 * no driver function. The same stream can reuse a freed block at once. Another stream gets it when
 * the work queued before the free is done, or is ordered after that work by an event. A NULL
 * stream means the host: a block freed with NULL must not be in use any more, and a block allocated
 * with NULL may be used at once by any stream.
 *
 * Out of memory: before an allocation fails, the pool flushes its caches, remaps idle memory to
 * where the block needs it, waits for queued work, and gives memory back to the driver. A live
 * block never changes its address. driver/pool/README.md lists the steps.
 *
 * Handles: a block is a value. The pool recognises a freed block's handle even after the memory has
 * been allocated again, so a double free is refused and changes nothing; the message names the call
 * sites of the allocation and of the first free. pool_watch.h looks up an address.
 *
 * Threads: all functions may be called from any thread at the same time, except tol_pool_destroy,
 * which must be the last call.
 * Source: spec 004 MEM-001, D-20; POOL design: best fit by pages newly used, tickets, magazines.
 */
#ifndef TOLLENS_POOL_H
#define TOLLENS_POOL_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tol_pool;
struct tol_stream;

/* A handle to one block of a pool. All zero means no block. */
struct tol_block {
    uint64_t name;
};

/* The alignment of every block in bytes. Sizes are rounded up to a multiple of it. */
enum { TOL_POOL_ALIGNMENT = 256 };

/* Where a pool gets its memory from. */
enum tol_pool_source {
    TOL_POOL_MAPPED,  /* reserves addresses once and maps memory to them (cuMemMap) */
    TOL_POOL_DRIVER,  /* the driver's own stream-ordered pool (cuMemAllocFromPoolAsync) */
    TOL_POOL_CHUNKED, /* chunks of cuMemAlloc; replaces TOL_POOL_MAPPED if the device lacks it */
};

/* How a pool takes, keeps and returns memory. Start from a profile below and change fields. */
struct tol_pool_options {
    enum tol_pool_source source;
    size_t address_bytes; /* size of each of the two address ranges to reserve, one for pages
                           * and one for large blocks; halved until the driver grants it */
    size_t page_bytes;    /* granularity in which memory is taken and given back */

    /* Growth: the size of the next handle (cuMemCreate) that the pool takes. */
    size_t first_bytes;   /* size of the first handles */
    unsigned first_count; /* number of handles of that size */
    size_t double_bytes;  /* the next handles double the pool up to this size */
    double grow_share;    /* after that, a handle is this share (0 to 1) of the bytes in use
                           * beyond 5/8 of double_bytes, and at least one step */
    bool joins_pages;     /* the pages that only one block uses share a handle; else each page
                           * that has to be taken for a block has its own */
    size_t join_bytes;    /* most bytes of such a shared handle; 0: large_bytes */

    size_t large_bytes; /* blocks of at least this size have a mapping of their own */

    /* Trimming: if an allocation that no magazine serves finds that the pool holds more than
     * trim_above * used + slack_bytes, and more than the first handles, it returns idle memory to
     * the driver down to trim_to * used + slack_bytes. trim_above 0: never. */
    double trim_above;
    double trim_to;
    size_t slack_bytes;

    bool lowest_first; /* place a block at the lowest address that needs the fewest new pages,
                        * not in the tightest hole: for programs that repeat their steps */

    /* If the pages that a block lacks would make the pool hold more than stitch_above times the
     * most bytes that were in use, it first remaps idle pages that no work uses, as long as that
     * has taken less than 100 ms and a 500th of the pool's age. 0: only when memory is out. */
    double stitch_above;
    bool stitch_always; /* as long as that takes, so that the result does not depend on the time */

    /* If with such remapping it would still hold more than wait_above times the most bytes that
     * were in use, it waits on the host for work that uses idle pages, the oldest first, and
     * remaps them, as long as such waits have taken less than 100 ms and a quarter of the pool's
     * age. 0: only when memory is out. Needs stitch_above. */
    double wait_above;

    size_t keep_bytes;       /* most bytes of freed large blocks to keep mapped for reuse; 0: no
                              * limit other than trimming; ignored by chunked pools */
    size_t limit_bytes;      /* most bytes to take from the driver; 0: no limit */
    size_t soft_limit_bytes; /* above this the pool first reuses or returns all the memory it can
                              * and waits for work, and only then takes more; 0: none */

    size_t magazine_max_bytes; /* freed blocks up to this size stay with their thread */
    size_t magazine_bytes;     /* most bytes a thread keeps that way */
    size_t park_bytes;         /* most bytes of larger freed blocks, four at most, that a thread
                                * keeps for its next allocations of the same sizes. They are free
                                * for all as soon as the thread allocates another size, or any
                                * thread is about to take memory from the driver. 0, or
                                * magazine_max_bytes 0: none */

    bool wipe;             /* zero a block when it is freed, on the stream that frees it */
    unsigned guard_one_in; /* one in this many of the allocations that no magazine serves ends
                            * right before an unmapped address; 0: none */
    unsigned time_one_in;  /* time one in this many of the calls that need no driver call
                            * (pool_watch.h); calls that do are all timed; 0: time no call */
    size_t trace_events;   /* keep this many of the latest events, 32 bytes each; then every
                            * call is timed, which adds some 80 ns; 0: keep none */

    /* Compaction: allow the pool to move live data to fewer pages when memory is out. Addresses
     * do not change. The pool waits for all work of the context first. Work that other threads,
     * or direct driver calls, queue on blocks of this pool during a pass may be lost or fault. Set
     * compact only if no thread queues work while another one allocates, or if hold ensures it: the
     * pool calls hold with begin = true before a pass, and with begin = false after the pass if the
     * first call returned true. hold must not call the pool.
     * With compact no handle is larger than 1/256 of limit_bytes (of the device's memory without a
     * limit), because a handle is compacted as a whole. Of the profiles only latency takes larger
     * ones: with compact and a limit of 26 GiB, 3 of 100 allocations of the walk below call the
     * driver instead of 0.95, and 1.09 is held at the worst moment instead of 1.10. */
    bool compact;
    bool (*hold)(void *user, bool begin);

    /* Called when everything else has failed, up to 8 times for one block. bytes is the size that
     * is wanted, attempt the number of earlier calls for this block. It may free blocks of the
     * pool. Return true to try the allocation again, false to let it fail. */
    bool (*on_out_of_memory)(void *user, struct tol_pool *pool, size_t bytes, unsigned attempt);

    void *user; /* passed to hold and on_out_of_memory */
};

/*
 * Profiles: each fills *options for a device. default is a compromise, tight holds the least unused
 * memory, latency makes the fewest driver calls. device may be NULL, which leaves address_bytes 0:
 * set it before use.
 *
 * What latency gives up: it takes memory in handles of up to 7.2 % of the bytes in use, each of
 * which goes back only when no block is on any part of it, so it holds more memory than the others.
 * Under a hard limit such handles could not be compacted, because no memory would be left to copy
 * to; with compact set, a handle is therefore at most 1/256 of the limit. `ninja bench-pool`
 * compares the profiles.
 *
 * torch, the default of PyTorch's allocator, and lean are for programs that repeat steps and whose
 * peak is what counts: they return nothing to the driver. lean usually holds less at the peak,
 * because it remaps idle memory before it takes more, whatever time that takes.
 */
TOL_API void tol_pool_default(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_tight(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_latency(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_lean(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_torch(const struct tol_device *device, struct tol_pool_options *options);

/*
 * Creates a pool on a context and keeps a reference to the context. options may be NULL, which
 * means tol_pool_default; they are copied. Sizes are rounded up to what the driver supports.
 *
 * TOL_UNSUPPORTED: the driver or the device lacks what the source needs. TOL_INVALID_ARGUMENT: an
 * option is out of its range. TOL_OUT_OF_HOST_MEMORY, TOL_OUT_OF_DEVICE_MEMORY, TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_pool_create(struct tol_context *context,
                                   const struct tol_pool_options *options, struct tol_pool **pool);

/* Returns all memory to the driver, including blocks that were not freed. Waits for work queued
 * before a free; the caller makes sure that no work uses a block that was not freed. NULL is a
 * no-op. */
TOL_API void tol_pool_destroy(struct tol_pool *pool);

/*
 * Allocates a block of bytes for work on stream. The content is undefined. The block belongs to
 * the caller until tol_pool_free or the end of the pool.
 *
 * TOL_INVALID_ARGUMENT: bytes is 0. TOL_OUT_OF_DEVICE_MEMORY: the device has no memory left, or
 * the pool's limit or the tag's quota forbids more; unless it was the quota, the message includes
 * the JSON of tol_pool_diagnose. TOL_OUT_OF_HOST_MEMORY, TOL_WRONG_CONTEXT, TOL_POISONED,
 * TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_pool_allocate(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                                     struct tol_block *block);

/* The same, counted under a tag from tol_pool_tag. Tag 0 means untagged. */
TOL_API tol_status tol_pool_allocate_tagged(struct tol_pool *pool, size_t bytes,
                                            struct tol_stream *stream, unsigned tag,
                                            struct tol_block *block);

/*
 * Frees a block in the order of stream: work queued on stream before this call may still use it.
 * If it fails, the block is still live, but a pool with wipe set may have zeroed it.
 *
 * TOL_INVALID_ARGUMENT: the block was freed before, or does not belong to this pool.
 */
TOL_API tol_status tol_pool_free(struct tol_pool *pool, struct tol_block block,
                                 struct tol_stream *stream);

/* Allocate count blocks, block i of bytes[i], or free count blocks. Allocating gives all blocks or
 * none. Freeing checks all handles before it frees the first block. Errors as above. */
TOL_API tol_status tol_pool_allocate_batch(struct tol_pool *pool, size_t count, const size_t *bytes,
                                           struct tol_stream *stream, struct tol_block *blocks);
TOL_API tol_status tol_pool_free_batch(struct tol_pool *pool, size_t count,
                                       const struct tol_block *blocks, struct tol_stream *stream);

/* The context of the pool. Valid while the pool lives. */
TOL_API struct tol_context *tol_pool_context(const struct tol_pool *pool);

/* The device address, for kernel arguments. 0 if the block is not live. */
TOL_API CUdeviceptr tol_pool_address(const struct tol_pool *pool, struct tol_block block);

/* The size in bytes that was requested. 0 if the block is not live. */
TOL_API size_t tol_pool_bytes(const struct tol_pool *pool, struct tol_block block);

/* Creates a tag that groups allocations. At most quota bytes under it may be live; 0: no quota.
 * The same name gives the same tag and sets its new quota. The name is copied and has 1 to 31
 * characters. TOL_OVER_LIMIT: the pool has no tag left. TOL_INVALID_ARGUMENT. */
TOL_API tol_status tol_pool_tag(struct tol_pool *pool, const char *name, size_t quota,
                                unsigned *tag);

/* Returns memory that no block uses to the driver, until the pool holds at most keep_bytes or has
 * nothing more to return. Does not wait for work. */
TOL_API tol_status tol_pool_trim(struct tol_pool *pool, size_t keep_bytes);

/* The state and the counters of a pool. Values are in bytes unless they say count or ns. */
struct tol_pool_stats {
    uint64_t requested, requested_peak; /* sizes of live blocks as requested; now and at most */
    uint64_t used;                      /* live and cached blocks, with rounding */
    uint64_t cached;                    /* the part of used that magazines hold */
    uint64_t held, held_peak;           /* taken from the driver; now and at most */
    uint64_t largest_hole;              /* largest free address range, without large blocks */
    uint64_t blocks;                    /* count of live blocks */
    uint64_t allocations, frees;        /* counts since the pool was created */
    uint64_t magazine_hits;             /* count of allocations that a magazine served */
    uint64_t driver_allocations;        /* count of cuMemCreate, or of what the source calls */
    uint64_t driver_frees;              /* count of cuMemRelease, or of what the source calls */
    uint64_t stream_waits;   /* count of allocations ordered after another stream by an event */
    uint64_t guarded;        /* count of guarded allocations */
    uint64_t refused;        /* count of allocations that failed */
    uint64_t rounded;        /* the part of used that live blocks take, with rounding */
    uint64_t kept;           /* the part of held in freed large blocks */
    uint64_t idle;           /* the part of held in pages without a block, which can be returned */
    uint64_t page_waste;     /* the part of held in holes on pages that have blocks */
    uint64_t pending;        /* the part of holes and kept blocks that queued work may still use */
    uint64_t driver_calls;   /* count of driver calls for memory and order, without copies, fills */
    uint64_t driver_ns;      /* ns spent in and around those calls */
    uint64_t events;         /* count of tol_pool_events so far, including lost ones */
    uint64_t events_lost;    /* count of events that were overwritten */
    uint64_t soft_passed;    /* count of allocations that grew above the soft limit */
    uint64_t compactions;    /* count of compaction passes */
    uint64_t compacted;      /* count of handles that those passes released */
    uint64_t shared;         /* count of handles that several pages share since */
    uint64_t stitched;       /* count of handles remapped because memory was out */
    uint64_t stitched_bytes;
};

/* Reads the statistics. held = used + kept + idle + page_waste. With TOL_POOL_DRIVER only
 * requested, used, held and the counts are known. Takes time in proportion to the number of holes
 * and pages. TOL_INVALID_ARGUMENT: NULL. */
TOL_API tol_status tol_pool_stats(struct tol_pool *pool, struct tol_pool_stats *stats);

/* Sets requested_peak and held_peak to what is requested and held now. "The most bytes that were in
 * use", which stitch_above and wait_above refer to, begin again there too. */
TOL_API tol_status tol_pool_reset_peaks(struct tol_pool *pool);

/*
 * Writes the state of the pool to text as one JSON object: statistics, limits, page size, tags, and
 * whether a block of request bytes would fit once all work is done and pages are compacted
 * ("would_fit_after_defragmentation", computed with the plan that compaction follows;
 * "compaction" says whether options.compact is set). "largest_hole" is the most memory that one
 * hole has; "pending_streams" has the streams, by number, that free memory waits for, at most four
 * with the most bytes; "would_serve" says what would serve the request: "compact" or "limit_bytes",
 * which are options, "synchronize", after which it should fit, or "free". bytes is the size of
 * text; longer output is cut and ends in a NUL. Returns the length of the full text without the
 * NUL.
 */
TOL_API size_t tol_pool_diagnose(struct tol_pool *pool, size_t request, char *text, size_t bytes);

/* One live block, as tol_pool_each and tol_pool_find report it. */
struct tol_pool_live {
    struct tol_block block;
    CUdeviceptr address;
    size_t bytes;     /* as requested */
    const char *tag;  /* name of its tag; "" if it has none; valid while the pool lives */
    const void *site; /* the code address that allocated it, for dladdr */
};

/* Calls visit for each live block. The pool is locked during the calls: visit must not call it.
 * *live is valid only during the call. */
TOL_API void tol_pool_each(struct tol_pool *pool,
                           void (*visit)(void *user, const struct tol_pool_live *live), void *user);

#ifdef __cplusplus
}
#endif
#endif
