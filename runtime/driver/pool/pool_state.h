/*
 * Pool state: the structures of a pool, and the functions that its files share.
 *
 * Locks: a pool's lock guards all of it except the magazines and the atomic fields. A magazine has
 * its own lock, taken before the pool's; tol_magazine_reclaim, which holds the pool's, takes only
 * magazines that are free.
 * Cache lines: the fields that calls on the path without a lock read are apart from the fields that
 * other calls write.
 * Asserted by the operations: tol_large_is_valid, tol_pool_is_valid, tol_magazine_bin_is_valid and
 * tol_magazine_is_valid (core/deep.h).
 */
#ifndef TOLLENS_POOL_STATE_H
#define TOLLENS_POOL_STATE_H

#include "freed.h"
#include "core/context_state.h"
#include "core/owner_lock.h"
#include "pages.h"
#include "tollens/pool.h"
#include "ring.h"
#include "spans.h"
#include "tickets.h"
#include "times.h"

/* A thread's magazine keeps 1/512 of the bytes in use, and at least 1 MiB. */
enum { TOL_MAGAZINE_SHARE = 512, TOL_MAGAZINE_LEAST = 1 << 20 };
enum { TOL_POOL_TAGS = 256, TOL_MAGAZINE_BINS = 64, TOL_MAGAZINE_ROUNDS = 16, TOL_PARKED = 4 };

/* Two lines of the cache, which processors fetch together. */
#define TOL_POOL_APART _Alignas(128)

struct tol_pool_tag {
    char name[32];
    _Atomic(uint64_t) quota, used;
};

/* A handle of memory. */
struct tol_memory {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
};

/* A block with a mapping of its own: one handle, or several next to each other. */
struct tol_large {
    uint64_t mapped; /* bytes, at the span's begin */
    uint64_t offset; /* of the block in the mapping: a guarded one ends where the memory ends */
    struct tol_span *span;  /* its addresses */
    struct tol_large *next; /* among the kept ones, the one freed before */
    uint64_t streams, ticket;
    bool is_closed; /* kept memory without access, which cannot serve as a block */
    size_t part_count;
    struct tol_memory parts[];
};

/* Handles that are not mapped (stitch.h). */
struct tol_spares {
    struct tol_memory *all;
    size_t count, room;
    uint64_t bytes; /* of these handles, and of those about to be mapped */
    uint64_t calls, releases;
};

struct tol_magazine_bin {
    struct tol_stream *stream; /* holds a reference while the bin has blocks */
    uint32_t granules, count;
    struct tol_span *spans[TOL_MAGAZINE_ROUNDS];
};

/* A freed block above magazine_max_bytes that waits for the thread's next allocation. */
struct tol_parked {
    struct tol_stream *stream; /* holds a reference, without a block too */
    struct tol_span *span;     /* NULL: none */
};

/* The blocks that one thread has freed and can allocate again. Only that thread writes the
 * counters; any thread reads them. */
struct tol_magazine {
    TOL_POOL_APART struct tol_owner_lock lock;
    struct tol_pool *pool;
    struct tol_magazine *next; /* in the pool's list */
    bool orphan;               /* its thread has ended */
    _Atomic(uint64_t) bytes, parked_bytes, allocations, frees, hits;
    _Atomic(int64_t) requested;
    struct tol_times times;
    struct tol_parked parked[TOL_PARKED];
    struct tol_freed_list freed;
    struct tol_magazine_bin bins[TOL_MAGAZINE_BINS];
};

struct tol_pool {
    struct tol_context *context;
    struct tol_holder holder;
    struct tol_pool_options options;
    uint64_t id;          /* unique in the process */
    uint64_t granularity; /* of handles */
    bool is_chunked;      /* memory comes from cuMemAlloc: no pages */
    unsigned tag_count;
    uint64_t begin_ns; /* time of creation */
    CUmemoryPool driver_pool;
    _Atomic(struct tol_magazine *) magazines;
    struct tol_ring ring;
    TOL_POOL_APART pthread_mutex_t lock;
    struct tol_pages pages;
    struct tol_spans spans; /* of the pages, and records of the driver's blocks */
    struct tol_tickets tickets;
    CUdeviceptr large_begin; /* addresses of large blocks */
    uint64_t large_reserved;
    struct tol_spans large_spans;           /* of those addresses; only free and cached ones */
    struct tol_large *kept;                 /* freed but still mapped, the latest first */
    uint64_t large_held, large_kept;        /* bytes */
    uint64_t large_creates, large_releases; /* handles */
    uint64_t large_calls;                   /* count of driver calls for large blocks */
    struct tol_spares spares;
    struct tol_chunk *chunks;
    uint64_t chunk_held; /* bytes */
    uint64_t chunk_creates, chunk_releases;
    uint64_t held_peak;
    bool is_dense;      /* nothing was free to release, and nothing was freed since */
    bool is_short;      /* memory is out: take it page by page */
    bool may_pass_soft; /* everything below the soft limit was tried */
    bool may_stitch;    /* memory is out: remap idle memory */
    uint64_t stream_waits, guarded, refused, slow;
    uint64_t soft_passed, mesh_passes, meshed;
    uint64_t stitched, stitched_bytes; /* remapped handles */
    uint64_t stitch_ns;                /* time that remapping above a share has taken */
    uint64_t wait_ns;                  /* time that waits above a share have taken */
    uint64_t vain_at;                  /* of the last vain search for idle pages; 0: not lately */
    _Atomic(uint64_t) requested_peak;
    struct tol_pool_tag tags[TOL_POOL_TAGS]; /* tag 0 means untagged */
    uint64_t held_seen;                      /* held bytes as of the latest event */
    uint64_t driver_ns;  /* time in and around driver calls for memory and order */
    uint64_t metered_at; /* begin of the first such call since this was set to 0 */
    /* Read by all calls, and written by those that take the lock. */
    TOL_POOL_APART _Atomic(uint64_t) epoch; /* counted when memory may pass to another thread
                                             * (freed.h) */
    _Atomic(uint64_t) arena_used; /* bytes of live and cached spans, without large blocks */
};

static inline uint64_t tol_pool_held(const struct tol_pool *pool) {
    return pool->pages.mapped + pool->chunk_held + pool->large_held + pool->spares.bytes;
}

static inline uint64_t tol_pool_rounded(uint64_t bytes) {
    return (bytes + TOL_SPAN_GRANULE - 1) & ~(uint64_t)(TOL_SPAN_GRANULE - 1);
}

/* Bracket driver calls to count their time. */
static inline uint64_t tol_meter_begin(struct tol_pool *pool) {
    const uint64_t now = tol_now_ns();
    if (pool->metered_at == 0) pool->metered_at = now;
    return now;
}
static inline void tol_meter_end(struct tol_pool *pool, uint64_t begin) {
    pool->driver_ns += tol_now_ns() - begin;
}

/* ---- pool_place.c: blocks on pages. The caller holds the pool's lock. ---- */

/* Allocates a block of bytes, a multiple of the granule, ordered for the stream. */
tol_status tol_pool_place(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                          struct tol_span **span);

/* Frees a live or cached block after the stream's work; also a block of a chunk. */
tol_status tol_pool_unplace(struct tol_pool *pool, struct tol_span *span,
                            struct tol_stream *stream);

/* Returns memory to the driver until at most held bytes are left. Returns the bytes given back. */
uint64_t tol_pool_give_back(struct tol_pool *pool, uint64_t held);

/* The size of the next handle that a growing pool takes; 0: one step. */
uint64_t tol_pool_growth(const struct tol_pool *pool);

/* Returns the memory that exceeds the trim options. */
void tol_pool_tidy(struct tol_pool *pool);

/* TOL_OUT_OF_DEVICE_MEMORY: more additional bytes would exceed the limit or the soft limit. */
tol_status tol_pool_charge(struct tol_pool *pool, uint64_t more);

/* The bytes that can be taken from the driver within the limit and the device's free memory; and
 * the same within the soft limit too, unless it may be exceeded. */
uint64_t tol_pool_room(struct tol_pool *pool);
uint64_t tol_pool_soft_room(struct tol_pool *pool);

/* Calls visit for the address range of each hole of at least a page that no work uses, larger ones
 * first, until visit returns false. */
void tol_pool_each_done(struct tol_pool *pool,
                        bool (*visit)(void *user, uint64_t begin, uint64_t end), void *user);

/* The bytes that a block would take from the driver if all unused memory were given back. */
uint64_t tol_pool_need(struct tol_pool *pool, uint64_t bytes, bool is_large);

/* Gets the stream set and the ticket with which a free on the stream is waited for. */
tol_status tol_pool_mark(struct tol_pool *pool, struct tol_stream *stream, uint64_t *streams,
                         uint64_t *ticket);

/* Orders stream, or the host if it is NULL, after work of streams up to ticket. */
tol_status tol_pool_order(struct tol_pool *pool, uint64_t streams, uint64_t ticket,
                          struct tol_stream *stream);

/* ---- pool_chunk.c: the same if memory cannot be mapped. The caller holds the lock. ---- */

tol_status tol_pool_place_chunked(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                                  struct tol_span **span);

/* Frees empty chunks, all except but of them, until want bytes are freed. Returns the bytes. */
uint64_t tol_pool_release_chunks(struct tol_pool *pool, uint64_t want, unsigned but);

/* The bytes of chunks without a block. */
uint64_t tol_pool_empty_chunks(const struct tol_pool *pool);

/* Frees all chunks. */
void tol_pool_close_chunks(struct tol_pool *pool);

/* ---- pool_ladder.c ---- */

/* The state of the out-of-memory steps for one block. Starts all zero. */
struct tol_ladder {
    unsigned rung, attempts;
    bool passes_soft;
};

/* Waits for the stream whose frees are the oldest that work may still use. false: there is none, or
 * it does not end. The caller holds the pool's lock. */
bool tol_pool_wait_oldest(struct tol_pool *pool);

/* Takes the next step that may let a block of bytes fit. false: there is no other step. The caller
 * holds the pool's lock, which is released during the step. */
bool tol_ladder_step(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes,
                     bool is_large);

/* ---- pool_large.c: blocks with a mapping of their own. The caller holds the pool's lock. ---- */

tol_status tol_pool_place_large(struct tol_pool *pool, uint64_t bytes, bool guard,
                                struct tol_stream *stream, struct tol_span **span);
tol_status tol_pool_unplace_large(struct tol_pool *pool, struct tol_span *span,
                                  struct tol_stream *stream);

/* Releases kept blocks with no pending work, the oldest first, until want bytes are released. */
uint64_t tol_pool_release_large(struct tol_pool *pool, uint64_t want);

/* Unmaps a kept block and frees its record; the caller then owns its handles. false: the driver
 * call failed, and nothing has changed. */
bool tol_pool_disband_large(struct tol_pool *pool, struct tol_large *large);

/* Releases all large blocks, including live ones. */
void tol_pool_close_large(struct tol_pool *pool);

/* ---- pool_events.c ---- */

/* Records the held bytes: the peak, and an event if they have changed. Under the pool's lock. */
void tol_pool_note_held(struct tol_pool *pool);

/* Size, tag and call site of a block. */
struct tol_pool_label {
    size_t bytes;
    unsigned tag;
    const void *site;
};

/* Records remapped handles: the counts, and one event for the bytes of a block. */
void tol_pool_note_stitched(struct tol_pool *pool, uint64_t handles, uint64_t bytes);

/* Adds the event of a call if events are kept, and returns its number. begin_ns is clock time. */
uint64_t tol_pool_note_call(struct tol_pool *pool, enum tol_pool_event_kind kind,
                            const struct tol_pool_label *label, struct tol_block block,
                            const struct tol_stream *stream, uint64_t begin_ns, uint64_t ns);

/* Adds an event of the calling thread to a ring that keeps events, and returns its number. begin_ns
 * is clock time. */
uint64_t tol_pool_note_event(struct tol_pool *pool, const struct tol_pool_event *event,
                             const struct tol_stream *stream, uint64_t begin_ns);

/* Sets the bytes of an event, limited to what the field can hold. */
void tol_event_set_bytes(struct tol_pool_event *event, uint64_t bytes);

static inline bool tol_pool_keeps_events(const struct tol_pool *pool) {
    return pool->ring.room > 0;
}

/* ---- pool_report.c ---- */

/* The held bytes in pages without a block, kept blocks and empty chunks; queued work may still use
 * them. */
uint64_t tol_pool_idle(const struct tol_pool *pool);

/* The bytes of a range of addresses that have memory. A chunk is memory as a whole, and has no
 * pages. */
uint64_t tol_pool_mapped(const struct tol_pool *pool, uint64_t begin, uint64_t end);

/* Updates the peak of the live bytes, with more bytes about to be live. */
void tol_pool_note_peak(struct tol_pool *pool, uint64_t more);

/* ---- magazine.c ---- */

/* The calling thread's magazine, valid while the pool lives. NULL: no host memory. */
struct tol_magazine *tol_magazine_get_slow(struct tol_pool *pool);

/* A thread finds the magazines of its recently used pools in a thread-local table, keyed by the
 * pool's number. */
enum { TOL_MAGAZINE_TABLE = 8 };
struct tol_magazine_table {
    uint64_t ids[TOL_MAGAZINE_TABLE];
    struct tol_magazine *magazines[TOL_MAGAZINE_TABLE];
};
extern _Thread_local struct tol_magazine_table tol_magazine_mine;

static inline struct tol_magazine *tol_magazine_get(struct tol_pool *pool) {
    const uint64_t place = pool->id % TOL_MAGAZINE_TABLE;
    return tol_magazine_mine.ids[place] == pool->id ? tol_magazine_mine.magazines[place]
                                                    : tol_magazine_get_slow(pool);
}

/* By the magazine's thread. */
static inline void tol_magazine_lock(struct tol_magazine *magazine) {
    tol_owner_lock_take(&magazine->lock);
}
static inline void tol_magazine_unlock(struct tol_magazine *magazine) {
    tol_owner_lock_give(&magazine->lock);
}

/* Takes a block of that size that the same thread freed on the same stream. NULL: there is none. */
struct tol_span *tol_magazine_take(struct tol_magazine *magazine, uint64_t bytes,
                                   struct tol_stream *stream);

/* Keeps a block. false: there is no room for it. */
bool tol_magazine_keep(struct tol_magazine *magazine, struct tol_span *span,
                       struct tol_stream *stream);

/* Takes a larger block of that size that the same thread freed on the same stream. NULL: there is
 * none. Keeps one: false if there is no room for it. The caller holds the magazine's lock, here and
 * in the next. */
struct tol_span *tol_magazine_unpark(struct tol_magazine *magazine, uint64_t bytes,
                                     struct tol_stream *stream);
bool tol_magazine_park(struct tol_magazine *magazine, struct tol_span *span,
                       struct tol_stream *stream);

/* Frees the parked blocks of a magazine. The caller holds the pool's lock too. */
void tol_magazine_give_parked(struct tol_magazine *magazine);

/* Releases the streams of parked blocks that are gone. The caller does not hold the pool's lock. */
void tol_magazine_drop_parked(struct tol_magazine *magazine);

/* Makes the parked blocks of a pool that is being destroyed kept ones, which go with it. */
void tol_magazine_end_parked(struct tol_magazine *magazine);

/* Frees the parked blocks of all threads that are not using their magazine now. false: there is
 * none. The caller holds the pool's lock. */
bool tol_magazine_reclaim(struct tol_pool *pool);

/* Whether the parked blocks are cached ones, and the count of their bytes is right. */
bool tol_magazine_is_parked_valid(const struct tol_magazine *magazine);

/* Frees all blocks of all magazines to the pool. The caller holds no lock. */
void tol_magazine_flush_all(struct tol_pool *pool);

/* Adds the counters of all threads' magazines to *stats. */
void tol_magazine_sum(struct tol_pool *pool, struct tol_pool_stats *stats, int64_t *requested);

/* Calls visit for all magazines, with that magazine locked. The caller holds no lock. */
void tol_magazine_each(struct tol_pool *pool,
                       void (*visit)(void *user, struct tol_magazine *magazine), void *user);

/* Adds the call times of all threads to times. */
tol_status tol_magazine_times(struct tol_pool *pool, enum tol_pool_call call,
                              struct tol_hdr *times);

/* Ends the magazines of a pool that is being destroyed. */
void tol_magazine_drop_all(struct tol_pool *pool);

/* ---- pool_freed.c ---- */

/* Find the block with that name, or the latest block that contains the address, over all threads.
 * false: there is none. The caller holds no lock. */
bool tol_freed_by_name(struct tol_pool *pool, uint64_t block, struct tol_freed *freed);
bool tol_freed_by_address(struct tol_pool *pool, uint64_t address, struct tol_freed *freed);

/* ---- for asserts: not with NDEBUG. In pool_valid.c, those of magazines in magazine.c. ---- */

/* Whether a large block's parts fill its memory, and its span knows it. The caller holds the pool's
 * lock, here and in the next. */
bool tol_large_is_valid(const struct tol_pool *pool, const struct tol_large *large);

/* Whether spans and pages are valid, the counters agree with them, and each handle counts the
 * blocks that touch it. Walks all of the pool but its magazines. */
bool tol_pool_is_valid(const struct tol_pool *pool);

/* Whether a bin has room for what it has, and its latest block is a cached one of its size. The
 * caller holds the magazine's lock, here and in the next. */
bool tol_magazine_bin_is_valid(const struct tol_magazine_bin *bin);

/* Whether all blocks of a magazine are in the bins of their sizes, and its bytes are their sum. */
bool tol_magazine_is_valid(struct tol_magazine *magazine);

#endif
