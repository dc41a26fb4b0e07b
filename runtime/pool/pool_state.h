/*
 * The inside of a pool, and the steps that its files share. Internal: not installed.
 *
 * Locks: a pool's lock guards all of it but the magazines and what is atomic. A magazine has a lock
 * of its own, taken before the pool's. What is always true is stated by tol_large_is_valid,
 * tol_pool_is_valid, tol_magazine_bin_is_valid and tol_magazine_is_valid, which the operations
 * assert (core/deep.h).
 */
#ifndef TOLLENS_POOL_STATE_H
#define TOLLENS_POOL_STATE_H

#include "freed.h"
#include "core/handles.h"
#include "pages.h"
#include "tollens/pool.h"
#include "ring.h"
#include "spans.h"
#include "tickets.h"
#include "times.h"

/* A thread's magazine keeps a 512th of what is used, but MiB at the least. */
enum { TOL_MAGAZINE_SHARE = 512, TOL_MAGAZINE_LEAST = 1 << 20 };
enum { TOL_POOL_TAGS = 256, TOL_MAGAZINE_BINS = 64, TOL_MAGAZINE_ROUNDS = 16 };

struct tol_pool_tag {
    char name[32];
    _Atomic(uint64_t) quota, used;
};

/* A handle of memory. */
struct tol_memory {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
};

/* A block with memory of its own: one handle, or several side by side. */
struct tol_large {
    uint64_t mapped;        /* bytes, at the span's begin */
    uint64_t offset;        /* of the block in it: a guarded one ends where the memory does */
    struct tol_span *span;  /* its addresses */
    struct tol_large *next; /* of those kept, the one freed before */
    uint64_t streams, ticket;
    bool is_closed; /* of a kept one: it is memory that no kernel may use, and never a block */
    size_t part_count;
    struct tol_memory parts[];
};

/* Handles that are mapped nowhere (stitch.h). */
struct tol_spares {
    struct tol_memory *all;
    size_t count, room;
    uint64_t bytes; /* theirs, and those that are about to be mapped */
    uint64_t calls, releases;
};

struct tol_magazine_bin {
    struct tol_stream *stream; /* held by a reference while the bin has blocks */
    uint32_t granules, count;
    struct tol_span *spans[TOL_MAGAZINE_ROUNDS];
};

/* The blocks that one thread has freed and may have again. Its counters are written by that thread
 * alone and read by any. */
struct tol_magazine {
    atomic_flag busy;
    struct tol_pool *pool;
    struct tol_magazine *next; /* of the pool's */
    bool orphan;               /* its thread has ended */
    _Atomic(uint64_t) bytes, allocations, frees, hits;
    _Atomic(int64_t) requested;
    struct tol_times times;
    struct tol_freed_list freed;
    struct tol_magazine_bin bins[TOL_MAGAZINE_BINS];
};

struct tol_pool {
    struct tol_context *context;
    struct tol_holder holder;
    struct tol_pool_options options;
    uint64_t id;          /* never used twice in a process */
    uint64_t granularity; /* of handles */
    pthread_mutex_t lock;
    struct tol_pages pages;
    struct tol_spans spans; /* of the pages' addresses, and records of the driver's blocks */
    struct tol_tickets tickets;
    CUdeviceptr large_begin; /* addresses of large blocks */
    uint64_t large_reserved;
    struct tol_spans large_spans;           /* of those addresses; free and cached ones only */
    struct tol_large *kept;                 /* freed and still mapped, the latest first */
    uint64_t large_held, large_kept;        /* bytes */
    uint64_t large_creates, large_releases; /* handles */
    uint64_t large_calls;                   /* to the driver, about them */
    struct tol_spares spares;
    bool is_chunked; /* memory is the driver's allocations: no pages */
    struct tol_chunk *chunks;
    uint64_t chunk_held; /* bytes */
    uint64_t chunk_creates, chunk_releases;
    CUmemoryPool driver_pool;
    _Atomic(struct tol_magazine *) magazines;
    _Atomic(uint64_t) arena_used; /* bytes of spans that are live or cached, without large ones */
    uint64_t held_peak;
    bool is_dense;      /* since the last free, giving back gave nothing */
    bool is_short;      /* memory is out: it is taken page by page */
    bool may_pass_soft; /* all was tried below the soft limit */
    bool may_stitch;    /* memory is out: what is idle elsewhere serves */
    uint64_t stream_waits, guarded, refused, slow;
    uint64_t soft_passed, mesh_passes, meshed;
    uint64_t stitched, stitched_bytes; /* handles that were mapped again */
    _Atomic(uint64_t) requested_peak;
    struct tol_pool_tag tags[TOL_POOL_TAGS]; /* the first is that of none */
    unsigned tag_count;
    _Atomic(uint64_t) epoch; /* of freed.h: counted when memory may have passed to another thread */
    uint64_t begin_ns;       /* when it was made */
    struct tol_ring ring;
    uint64_t held_seen;  /* what the latest event of it says */
    uint64_t driver_ns;  /* in and around calls about memory and order */
    uint64_t metered_at; /* when the first of those began since this was made 0 */
};

static inline uint64_t tol_pool_held(const struct tol_pool *pool) {
    return pool->pages.mapped + pool->chunk_held + pool->large_held + pool->spares.bytes;
}

static inline uint64_t tol_pool_rounded(uint64_t bytes) {
    return (bytes + TOL_SPAN_GRANULE - 1) & ~(uint64_t)(TOL_SPAN_GRANULE - 1);
}

/* Around driver calls: counts their time. */
static inline uint64_t tol_meter_begin(struct tol_pool *pool) {
    const uint64_t now = tol_now_ns();
    if (pool->metered_at == 0) pool->metered_at = now;
    return now;
}
static inline void tol_meter_end(struct tol_pool *pool, uint64_t begin) {
    pool->driver_ns += tol_now_ns() - begin;
}

/* ---- pool_place.c: blocks on pages. The caller holds the pool's lock. ---- */

/* A block of bytes, a multiple of the granule, ordered for the stream. */
tol_status tol_pool_place(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                          struct tol_span **span);

/* Frees it, also where it is in a chunk, behind the stream's work; of a live or a cached block. */
tol_status tol_pool_unplace(struct tol_pool *pool, struct tol_span *span,
                            struct tol_stream *stream);

/* Gives memory back until held bytes are left; how many were given. */
uint64_t tol_pool_give_back(struct tol_pool *pool, uint64_t held);

/* Gives back what the profile does not want held. */
void tol_pool_tidy(struct tol_pool *pool);

/* TOL_OUT_OF_DEVICE_MEMORY where more bytes would pass the limit. */
tol_status tol_pool_charge(struct tol_pool *pool, uint64_t more);

/* The bytes that may be taken from the driver, by the limit and by what the device has; and by the
 * soft limit too, unless it may be passed. */
uint64_t tol_pool_room(struct tol_pool *pool);
uint64_t tol_pool_soft_room(struct tol_pool *pool);

/* Visits the addresses of each hole of a page at least, the largest first, that no work uses, until
 * visit says false. */
void tol_pool_each_done(struct tol_pool *pool,
                        bool (*visit)(void *user, uint64_t begin, uint64_t end), void *user);

/* The bytes that a block would take from the driver if all that is not used were given back. */
uint64_t tol_pool_need(struct tol_pool *pool, uint64_t bytes, bool is_large);

/* What a free on the stream has to be waited for by: the set and the number. */
tol_status tol_pool_mark(struct tol_pool *pool, struct tol_stream *stream, uint64_t *streams,
                         uint64_t *ticket);

/* Makes memory that streams may use until ticket fit to be used by stream, or by the host. */
tol_status tol_pool_order(struct tol_pool *pool, uint64_t streams, uint64_t ticket,
                          struct tol_stream *stream);

/* ---- pool_chunk.c: the same where memory cannot be mapped. The caller holds the lock. ---- */

tol_status tol_pool_place_chunked(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                                  struct tol_span **span);

/* Frees chunks that are empty, but for so many, until want bytes were; how many. */
uint64_t tol_pool_release_chunks(struct tol_pool *pool, uint64_t want, unsigned but);

/* Bytes of chunks without a block. */
uint64_t tol_pool_empty_chunks(const struct tol_pool *pool);

/* All of them. */
void tol_pool_close_chunks(struct tol_pool *pool);

/* ---- pool_ladder.c ---- */

/* What is tried when memory is out; all zero at first. */
struct tol_ladder {
    unsigned rung, attempts;
    bool passes_soft;
};

/* The next thing that may help a block of bytes to its place: false, there is no other. The caller
 * holds the pool's lock, which is let go meanwhile. */
bool tol_ladder_step(struct tol_pool *pool, struct tol_ladder *ladder, uint64_t bytes,
                     bool is_large);

/* ---- pool_large.c: blocks with memory of their own. The caller holds the pool's lock. ---- */

tol_status tol_pool_place_large(struct tol_pool *pool, uint64_t bytes, bool guard,
                                struct tol_stream *stream, struct tol_span **span);
tol_status tol_pool_unplace_large(struct tol_pool *pool, struct tol_span *span,
                                  struct tol_stream *stream);

/* Releases kept blocks whose work is done, the oldest first, until want bytes were. */
uint64_t tol_pool_release_large(struct tol_pool *pool, uint64_t want);

/* Unmaps a kept block and ends it; its handles are the caller's then. false: the driver would not,
 * and nothing has changed. */
bool tol_pool_disband_large(struct tol_pool *pool, struct tol_large *large);

/* All of them, live ones too. */
void tol_pool_close_large(struct tol_pool *pool);

/* ---- pool_events.c ---- */

/* Notes what is held now: its peak, and an event where that has changed. Under the pool's lock. */
void tol_pool_note_held(struct tol_pool *pool);

/* What a block is for and whose. */
struct tol_pool_label {
    size_t bytes;
    unsigned tag;
    const void *site;
};

/* Notes that a handle was mapped elsewhere: counts, and an event for the bytes of one block. */
void tol_pool_note_stitched(struct tol_pool *pool, uint64_t handles, uint64_t bytes);

/* Adds an event of a call, where they are kept; its number. begin_ns: by the clock. */
uint64_t tol_pool_note_call(struct tol_pool *pool, enum tol_pool_event_kind kind,
                            const struct tol_pool_label *label, struct tol_block block,
                            const struct tol_stream *stream, uint64_t begin_ns, uint64_t ns);

/* Adds an event of the calling thread to a ring that keeps some; its number. begin_ns: by the
 * clock. */
uint64_t tol_pool_note_event(struct tol_pool *pool, const struct tol_pool_event *event,
                             const struct tol_stream *stream, uint64_t begin_ns);

/* Its bytes, as far as an event can hold them. */
void tol_event_set_bytes(struct tol_pool_event *event, uint64_t bytes);

static inline bool tol_pool_keeps_events(const struct tol_pool *pool) {
    return pool->ring.room > 0;
}

/* ---- pool_report.c ---- */

/* The bytes held that no block uses, as far as pages and kept blocks go; their work may not be done
 * yet. */
uint64_t tol_pool_idle(const struct tol_pool *pool);

/* Notes the bytes of live blocks where they are more than ever, with so many about to be live. */
void tol_pool_note_peak(struct tol_pool *pool, uint64_t more);

/* ---- magazine.c ---- */

/* The calling thread's magazine, which lives as long as the pool; NULL: no host memory. */
struct tol_magazine *tol_magazine_get(struct tol_pool *pool);
void tol_magazine_lock(struct tol_magazine *magazine);
void tol_magazine_unlock(struct tol_magazine *magazine);

/* A block of that size freed by the same thread on the same stream; NULL where there is none. */
struct tol_span *tol_magazine_take(struct tol_magazine *magazine, uint64_t bytes,
                                   struct tol_stream *stream);

/* Keeps a block; false: it has no room for it. */
bool tol_magazine_keep(struct tol_magazine *magazine, struct tol_span *span,
                       struct tol_stream *stream);

/* Frees all blocks of all magazines for good. The caller holds no lock. */
void tol_magazine_flush_all(struct tol_pool *pool);

/* Adds up what all threads did. */
void tol_magazine_sum(struct tol_pool *pool, struct tol_pool_stats *stats, int64_t *requested);

/* Visits all magazines, each locked meanwhile. The caller holds no lock. */
void tol_magazine_each(struct tol_pool *pool,
                       void (*visit)(void *user, struct tol_magazine *magazine), void *user);

/* Adds up how long all threads' calls took. */
tol_status tol_magazine_times(struct tol_pool *pool, enum tol_pool_call call,
                              struct tol_hdr *times);

/* Ends the magazines of a pool that ends. */
void tol_magazine_drop_all(struct tol_pool *pool);

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

/* Whether all blocks of a magazine are where they are looked for, and its bytes are theirs. */
bool tol_magazine_is_valid(struct tol_magazine *magazine);

#endif
