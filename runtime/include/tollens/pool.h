/*
 * Pool: device memory in blocks, without asking the driver for each.
 *
 * One range of addresses is reserved and given memory page by page as it is needed; a block goes
 * where it makes the fewest pages newly used, so that pages come free whole and can be given back.
 * Small blocks that are freed stay with the thread for its next; large ones have memory of their
 * own. Nothing is written to device memory by the pool but a wipe.
 *
 * Order: allocating and freeing take the stream that uses the block. A free calls no driver
 * function; the block may be handed out again at once to the same stream, and to another one when
 * the work queued before the free is done, or behind it by an event. A NULL stream means the host:
 * what is freed with it must not be in use any more, and what is allocated with it is free to be
 * used by anything.
 *
 * When memory is out, idle memory elsewhere is mapped where a block wants it: a limit, or a device
 * that is full, serves a large block from what is free in pieces. Only addresses that no live block
 * has change their memory. pool/README.md has all that is tried.
 *
 * Handles: a block is a value. It is known for one of the past after it was freed, also when its
 * memory has been handed out again, so freeing twice is refused and harms nothing; the message says
 * who allocated it and who freed it first. Whose an address is, pool_watch.h tells.
 *
 * Threads: all functions may be called from any thread but tol_pool_destroy, which is the last.
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

/* A block of a pool; all zero is none. */
struct tol_block {
    uint64_t name;
};

/* Blocks begin at multiples of this many bytes, and sizes are rounded up to it. */
enum { TOL_POOL_ALIGNMENT = 256 };

/* Where blocks come from. */
enum tol_pool_source {
    TOL_POOL_MAPPED,  /* addresses reserved once, memory mapped behind them */
    TOL_POOL_DRIVER,  /* the driver's own stream-ordered pool (cuMemAllocFromPoolAsync) */
    TOL_POOL_CHUNKED, /* chunks of cuMemAlloc; taken also where the device cannot map memory */
};

struct tol_pool_options {
    enum tol_pool_source source;
    size_t address_bytes;      /* to reserve, for pages and for large blocks each; less is taken
                                * where there is not so much */
    size_t page_bytes;         /* the step in which memory is taken and given back */
    size_t first_bytes;        /* handles of this size at first ... */
    unsigned first_count;      /* ... so many of them */
    size_t double_bytes;       /* then as much as is held already, up to this; and later ... */
    double grow_share;         /* this share of what is used beyond five eighths of that; always a
                                * step at least */
    size_t large_bytes;        /* blocks from this size on have memory of their own */
    double trim_above;         /* memory beyond so many times what is used ... */
    double trim_to;            /* ... is given back until it is so many times */
    size_t slack_bytes;        /* and this much more is kept always */
    size_t keep_bytes;         /* of large blocks that were freed at most so much is kept, not in
                                * chunks; 0: no limit but by trimming */
    size_t limit_bytes;        /* taken from the driver at most; 0: no limit */
    size_t soft_limit_bytes;   /* above it all memory that can be had is used or given back, and
                                * work is waited for, before more is taken; 0: none */
    size_t magazine_max_bytes; /* blocks up to this size stay with their thread */
    size_t magazine_bytes;     /* and so many bytes of them a thread */
    bool wipe;                 /* zero a block when it is freed, on the stream that frees it */
    unsigned guard_one_in;     /* one allocation in so many, of those that no magazine serves, ends
                                * where nothing is mapped; 0: none */
    unsigned time_one_in; /* of calls that do not go to the driver, one in so many is timed, and
                                * all that do (pool_watch.h); 0: none is */
    size_t trace_events;  /* the latest events to keep, 32 bytes each; then every call is timed,
                                * some 80 ns more; 0: none */
    /* When memory is out, blocks may be moved to fewer pages, at the same addresses. All work of
     * the context is waited for first; what other threads, or the driver's own functions, queue
     * meanwhile on blocks of this pool may be lost or fault. So a program sets compact only where
     * nothing is queued while one of its threads allocates, or where hold sees to that: it is
     * called with begin set before, and if it returned true once more after. It must not call the
     * pool. */
    bool compact;
    bool (*hold)(void *user, bool begin);
    /* Called when all else has failed, with the bytes wanted and how often it was asked before for
     * this block, 8 times at most: whether to try again. It may free blocks of the pool. */
    bool (*on_out_of_memory)(void *user, struct tol_pool *pool, size_t bytes, unsigned attempt);
    void *user; /* of both */
};

/* The profiles, for a device: a compromise; little memory held in vain; few driver calls. Held to
 * live bytes on a walk of 1 KiB to 10 MiB blocks to 20 GiB, at the end and at most, and how many
 * allocations in a hundred call the driver, each for some 50 us on an H200:
 * default 1.02, 1.07, 29; tight 1.02, 1.06, 52; latency 1.02 to 1.08, 1.09 to 1.13, 0.94. */
TOL_API void tol_pool_default(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_tight(const struct tol_device *device, struct tol_pool_options *options);
TOL_API void tol_pool_latency(const struct tol_device *device, struct tol_pool_options *options);

/*
 * Makes a pool on a context. options may be NULL: tol_pool_default. Sizes are rounded up to what
 * the driver can do.
 * TOL_UNSUPPORTED: the driver or the device lacks what the source needs. TOL_INVALID_ARGUMENT.
 */
TOL_API tol_status tol_pool_create(struct tol_context *context,
                                   const struct tol_pool_options *options, struct tol_pool **pool);

/* Gives all memory back, also of blocks that were not freed, whose work must be done; work queued
 * before a free is waited for. NULL is a no-op. */
TOL_API void tol_pool_destroy(struct tol_pool *pool);

/*
 * Allocates bytes, not initialised, for work on stream.
 * TOL_INVALID_ARGUMENT: no bytes. TOL_OUT_OF_DEVICE_MEMORY: there is not so much, or the limit or
 * the tag's quota forbids it; the message has the figures of tol_pool_diagnose.
 */
TOL_API tol_status tol_pool_allocate(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                                     struct tol_block *block);

/* The same under a tag of tol_pool_tag. */
TOL_API tol_status tol_pool_allocate_tagged(struct tol_pool *pool, size_t bytes,
                                            struct tol_stream *stream, unsigned tag,
                                            struct tol_block *block);

/* Frees a block once the work queued on stream so far is done. Where it fails, the block is live
 * still, but a pool that wipes may have wiped it. TOL_INVALID_ARGUMENT: it was freed before, or is
 * no block of this pool. */
TOL_API tol_status tol_pool_free(struct tol_pool *pool, struct tol_block block,
                                 struct tol_stream *stream);

/* All of count blocks or none. Of the sizes given, or freed as above. */
TOL_API tol_status tol_pool_allocate_batch(struct tol_pool *pool, size_t count, const size_t *bytes,
                                           struct tol_stream *stream, struct tol_block *blocks);
TOL_API tol_status tol_pool_free_batch(struct tol_pool *pool, size_t count,
                                       const struct tol_block *blocks, struct tol_stream *stream);

/* The context it was made on. Valid while the pool lives. */
TOL_API struct tol_context *tol_pool_context(const struct tol_pool *pool);

/* The address on the device, to be given to kernels; 0 for a block that is not live. */
TOL_API CUdeviceptr tol_pool_address(const struct tol_pool *pool, struct tol_block block);

/* The bytes that were asked for; 0 for a block that is not live. */
TOL_API size_t tol_pool_bytes(const struct tol_pool *pool, struct tol_block block);

/* A tag for allocations, with at most quota bytes of them live; 0: no quota. The same name gives
 * the same tag and its new quota. TOL_OVER_LIMIT: there are as many tags as can be. */
TOL_API tol_status tol_pool_tag(struct tol_pool *pool, const char *name, size_t quota,
                                unsigned *tag);

/* Gives memory that no block uses back to the driver, until it holds at most keep_bytes or no more
 * can be given. Does not wait for work. */
TOL_API tol_status tol_pool_trim(struct tol_pool *pool, size_t keep_bytes);

/* What it holds and has done. Bytes, but for counts. */
struct tol_pool_stats {
    uint64_t requested, requested_peak; /* by live blocks, as they were asked for */
    uint64_t used;                      /* by live blocks and those kept in magazines, rounded */
    uint64_t cached;                    /* of those, in magazines */
    uint64_t held, held_peak;           /* taken from the driver */
    uint64_t largest_hole;              /* of addresses, below the large blocks' size */
    uint64_t blocks;                    /* live, a count */
    uint64_t allocations, frees;        /* counts, since the pool was made */
    uint64_t magazine_hits;             /* allocations that a magazine served */
    uint64_t driver_allocations;        /* cuMemCreate, or the source's own */
    uint64_t driver_frees;
    uint64_t stream_waits; /* allocations ordered behind another stream by an event */
    uint64_t guarded;      /* allocations with a guard */
    uint64_t refused;      /* allocations that failed */
    uint64_t rounded;      /* of used: the live blocks' */
    uint64_t kept;         /* of held: large blocks that were freed */
    uint64_t idle;         /* of held: pages without a block, which can be given back */
    uint64_t page_waste;   /* of held: holes between blocks on pages that have some */
    uint64_t pending;      /* of holes and kept blocks: those that work queued may still use */
    uint64_t driver_calls; /* about memory and order, not copies and fills; a count */
    uint64_t driver_ns;    /* spent in and around them */
    uint64_t events;       /* of tol_pool_events, kept and lost; a count */
    uint64_t events_lost;
    uint64_t soft_passed; /* allocations that grew above the soft limit */
    uint64_t compactions; /* passes, and the handles that each released */
    uint64_t compacted;
    uint64_t shared;   /* handles that several pages share since */
    uint64_t stitched; /* handles that were mapped elsewhere when memory was out, a count ... */
    uint64_t stitched_bytes;
};
/* held is used, cached ones included, and kept, idle and page_waste. Of the driver's own pool
 * requested, used, held and counts are known. Takes as long as there are holes and pages. */
TOL_API tol_status tol_pool_stats(struct tol_pool *pool, struct tol_pool_stats *stats);

/* Writes the pool's state as one JSON object: stats, limits, pages, tags, and whether a request
 * would fit when all work is done and pages are compacted ("would_fit_after_defragmentation", by
 * the plan that compaction itself follows; "compaction" says whether it is allowed). Gives the
 * text's length, without its NUL; what does not fit is cut. */
TOL_API size_t tol_pool_diagnose(struct tol_pool *pool, size_t request, char *text, size_t bytes);

/* Calls visit for each live block, with its tag's name and where it was allocated (an address in
 * the program: dladdr names it). The pool is locked meanwhile: visit must not call it. */
struct tol_pool_live {
    struct tol_block block;
    CUdeviceptr address;
    size_t bytes;
    const char *tag;
    const void *site;
};
TOL_API void tol_pool_each(struct tol_pool *pool,
                           void (*visit)(void *user, const struct tol_pool_live *live), void *user);

#ifdef __cplusplus
}
#endif
#endif
