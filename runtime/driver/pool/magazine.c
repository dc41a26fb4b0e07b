/*
 * Magazines: the blocks that a thread has freed, kept for its next allocations of the same size on
 * the same stream. Source: Bonwick and Adams, "Magazines and Vmem", USENIX 2001.
 *
 * A thread finds its magazine through a small table, keyed by the pool's number. When a thread
 * ends, its magazines become orphans, which the next thread takes over; when a pool ends, they are
 * taken from their threads. A pool's list of magazines only grows, so it is read without a lock;
 * additions and the end of a pool take one.
 */
#include "core/deep.h"
#include "pool_state.h"

#include <stdlib.h>
#include <string.h>

_Thread_local struct tol_magazine_table tol_magazine_mine;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER; /* guards all pools' lists */

static void magazine_drop(struct tol_magazine *magazine) {
    tol_times_close(&magazine->times);
    free(magazine);
}

/* The thread no longer uses a magazine: it becomes an orphan, or is freed if the pool has ended. */
static void magazine_let_go(struct tol_magazine *magazine) {
    if (magazine == NULL) return;
    magazine->orphan = true;
    if (magazine->pool == NULL) magazine_drop(magazine);
}

/* The thread ends. */
static void magazine_leave(void *unused) {
    (void)unused;
    pthread_mutex_lock(&registry);
    for (int i = 0; i < TOL_MAGAZINE_TABLE; i++) {
        magazine_let_go(tol_magazine_mine.magazines[i]);
        tol_magazine_mine.ids[i] = 0;
        tol_magazine_mine.magazines[i] = NULL;
    }
    pthread_mutex_unlock(&registry);
}

static void magazine_make_key(void) {
    (void)pthread_key_create(&key, magazine_leave);
    tol_owner_lock_prepare();
}

/* A magazine of the pool that a thread has left, or a new one. */
static struct tol_magazine *magazine_find_or_make(struct tol_pool *pool) {
    struct tol_magazine *first = atomic_load_explicit(&pool->magazines, memory_order_relaxed);
    struct tol_magazine *magazine = first;
    while (magazine != NULL && !magazine->orphan) magazine = magazine->next;
    if (magazine == NULL) {
        magazine = aligned_alloc(_Alignof(struct tol_magazine), sizeof *magazine);
        if (magazine == NULL) return NULL;
        memset((void *)magazine, 0, sizeof *magazine);
        magazine->pool = pool;
        magazine->next = first;
        /* Who keeps events pays for the clock anyway. */
        tol_times_open(&magazine->times,
                       tol_pool_keeps_events(pool) ? 1 : pool->options.time_one_in);
        atomic_store_explicit(&pool->magazines, magazine, memory_order_release);
    }
    magazine->orphan = false;
    return magazine;
}

struct tol_magazine *tol_magazine_get_slow(struct tol_pool *pool) {
    pthread_once(&once, magazine_make_key);
    pthread_setspecific(key, &tol_magazine_mine); /* any value but NULL: the destructor runs */
    pthread_mutex_lock(&registry);
    const uint64_t place = pool->id % TOL_MAGAZINE_TABLE;
    magazine_let_go(tol_magazine_mine.magazines[place]);
    struct tol_magazine *magazine = magazine_find_or_make(pool);
    tol_magazine_mine.magazines[place] = magazine;
    tol_magazine_mine.ids[place] = magazine != NULL ? pool->id : 0;
    pthread_mutex_unlock(&registry);
    return magazine;
}

/* Called with the lock held; other threads only read. */
static void magazine_add_bytes(struct tol_magazine *magazine, uint64_t change) {
    uint64_t bytes = atomic_load_explicit(&magazine->bytes, memory_order_relaxed);
    atomic_store_explicit(&magazine->bytes, bytes + change, memory_order_relaxed);
}

static struct tol_magazine_bin *magazine_bin_of(struct tol_magazine *magazine, uint32_t granules,
                                                const struct tol_stream *stream) {
    /* By the stream's number and not by its address, which differs from run to run. */
    uint64_t number = stream != NULL ? (uint64_t)stream->number << 32 : 0;
    uint64_t hash = (granules ^ number) * 0x9e3779b97f4a7c15u;
    return &magazine->bins[hash >> 58];
}

#ifndef NDEBUG

static bool is_kept(const struct tol_magazine_bin *bin, const struct tol_span *span) {
    return span->bytes / TOL_SPAN_GRANULE == bin->granules &&
           tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed)) ==
               TOL_SPAN_CACHED;
}

bool tol_magazine_bin_is_valid(const struct tol_magazine_bin *bin) {
    return bin->count == 0 ||
           (bin->count <= TOL_MAGAZINE_ROUNDS && is_kept(bin, bin->spans[bin->count - 1]));
}

bool tol_magazine_is_valid(struct tol_magazine *magazine) {
    uint64_t bytes = 0;
    for (int i = 0; i < TOL_MAGAZINE_BINS; i++) {
        const struct tol_magazine_bin *bin = &magazine->bins[i];
        if (bin->count > TOL_MAGAZINE_ROUNDS) return false;
        if (bin->count > 0 && magazine_bin_of(magazine, bin->granules, bin->stream) != bin)
            return false;
        for (uint32_t k = 0; k < bin->count; k++) {
            if (!is_kept(bin, bin->spans[k])) return false;
            bytes += bin->spans[k]->bytes;
        }
    }
    return bytes == atomic_load_explicit(&magazine->bytes, memory_order_relaxed) &&
           tol_magazine_is_parked_valid(magazine);
}

#endif

struct tol_span *tol_magazine_take(struct tol_magazine *magazine, uint64_t bytes,
                                   struct tol_stream *stream) {
    uint32_t granules = (uint32_t)(bytes / TOL_SPAN_GRANULE);
    struct tol_magazine_bin *bin = magazine_bin_of(magazine, granules, stream);
    if (bin->count == 0 || bin->granules != granules || bin->stream != stream) return NULL;
    TOL_QUICK_ASSERT(tol_magazine_bin_is_valid(bin));
    struct tol_span *span = bin->spans[--bin->count];
    magazine_add_bytes(magazine, -bytes);
    TOL_DEEP_ASSERT(tol_magazine_is_valid(magazine));
    return span;
}

/* Frees the oldest blocks of a bin for good, all but keep. What cannot be freed, since the stream
 * cannot be marked in a context that is poisoned, stays where it is. */
static void magazine_flush(struct tol_magazine *magazine, struct tol_magazine_bin *bin,
                           uint32_t keep) {
    struct tol_pool *pool = magazine->pool;
    uint32_t gone = 0;
    pthread_mutex_lock(&pool->lock);
    while (bin->count - gone > keep) {
        uint64_t bytes = bin->spans[gone]->bytes;
        if (tol_pool_unplace(pool, bin->spans[gone], bin->stream) != TOL_OK) break;
        magazine_add_bytes(magazine, -bytes);
        gone++;
    }
    pthread_mutex_unlock(&pool->lock);
    bin->count -= gone;
    for (uint32_t i = 0; i < bin->count; i++) bin->spans[i] = bin->spans[i + gone];
    if (bin->count == 0 && bin->stream != NULL) {
        tol_context_release_stream(bin->stream);
        bin->stream = NULL;
    }
    TOL_DEEP_ASSERT(tol_magazine_is_valid(magazine));
}

/* The bytes that a thread may keep: a small share of the bytes in use, which are read without the
 * lock and may be slightly out of date. */
static uint64_t magazine_room_of(const struct tol_pool *pool) {
    uint64_t share =
        atomic_load_explicit(&pool->arena_used, memory_order_relaxed) / TOL_MAGAZINE_SHARE;
    uint64_t most = pool->options.magazine_bytes;
    if (share < TOL_MAGAZINE_LEAST) share = TOL_MAGAZINE_LEAST;
    return share < most ? share : most;
}

bool tol_magazine_keep(struct tol_magazine *magazine, struct tol_span *span,
                       struct tol_stream *stream) {
    uint32_t granules = (uint32_t)(span->bytes / TOL_SPAN_GRANULE);
    uint64_t kept = atomic_load_explicit(&magazine->bytes, memory_order_relaxed);
    if (kept + span->bytes > magazine_room_of(magazine->pool)) return false;
    struct tol_magazine_bin *bin = magazine_bin_of(magazine, granules, stream);
    if (bin->granules != granules || bin->stream != stream) {
        if (bin->count > 0) magazine_flush(magazine, bin, 0);
        if (bin->count > 0) return false;
        if (bin->stream != NULL) tol_context_release_stream(bin->stream);
        if (stream != NULL) tol_context_retain_stream(stream);
        bin->stream = stream;
        bin->granules = granules;
    } else if (bin->count == TOL_MAGAZINE_ROUNDS) {
        magazine_flush(magazine, bin, TOL_MAGAZINE_ROUNDS / 2);
        if (bin->count == TOL_MAGAZINE_ROUNDS) return false;
    }
    bin->spans[bin->count++] = span;
    magazine_add_bytes(magazine, span->bytes);
    TOL_QUICK_ASSERT(tol_magazine_bin_is_valid(bin));
    TOL_DEEP_ASSERT(tol_magazine_is_valid(magazine));
    return true;
}

static struct tol_magazine *first_of(const struct tol_pool *pool) {
    return atomic_load_explicit(&pool->magazines, memory_order_acquire);
}

void tol_magazine_flush_all(struct tol_pool *pool) {
    for (struct tol_magazine *m = first_of(pool); m != NULL; m = m->next) {
        if (!tol_owner_lock_enter(&m->lock)) continue;
        for (int i = 0; i < TOL_MAGAZINE_BINS; i++) magazine_flush(m, &m->bins[i], 0);
        pthread_mutex_lock(&pool->lock);
        tol_magazine_give_parked(m);
        pthread_mutex_unlock(&pool->lock);
        tol_magazine_drop_parked(m);
        tol_owner_lock_leave(&m->lock);
    }
}

void tol_magazine_sum(struct tol_pool *pool, struct tol_pool_stats *stats, int64_t *requested) {
    for (struct tol_magazine *m = first_of(pool); m != NULL; m = m->next) {
        stats->allocations += atomic_load_explicit(&m->allocations, memory_order_relaxed);
        stats->frees += atomic_load_explicit(&m->frees, memory_order_relaxed);
        stats->magazine_hits += atomic_load_explicit(&m->hits, memory_order_relaxed);
        stats->cached += atomic_load_explicit(&m->bytes, memory_order_relaxed) +
                         atomic_load_explicit(&m->parked_bytes, memory_order_relaxed);
        *requested += atomic_load_explicit(&m->requested, memory_order_relaxed);
    }
}

void tol_magazine_each(struct tol_pool *pool,
                       void (*visit)(void *user, struct tol_magazine *magazine), void *user) {
    for (struct tol_magazine *m = first_of(pool); m != NULL; m = m->next) {
        if (!tol_owner_lock_enter(&m->lock)) continue;
        visit(user, m);
        tol_owner_lock_leave(&m->lock);
    }
}

tol_status tol_magazine_times(struct tol_pool *pool, enum tol_pool_call call,
                              struct tol_hdr *times) {
    tol_hdr_error error = TOL_HDR_OK;
    for (struct tol_magazine *m = first_of(pool); m != NULL && error == TOL_HDR_OK; m = m->next) {
        if (!tol_owner_lock_enter(&m->lock)) continue;
        const struct tol_hdr *own = m->times.calls[call].hdr;
        if (own != NULL) error = tol_hdr_add(times, own);
        tol_owner_lock_leave(&m->lock);
    }
    return error == TOL_HDR_OK ? TOL_OK
                               : tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY, "%s",
                                          tol_hdr_sentence(error));
}

void tol_magazine_drop_all(struct tol_pool *pool) {
    int place = (int)(pool->id % TOL_MAGAZINE_TABLE);
    pthread_mutex_lock(&registry);
    for (struct tol_magazine *magazine = first_of(pool), *next = NULL; magazine != NULL;
         magazine = next) {
        next = magazine->next;
        for (int i = 0; i < TOL_MAGAZINE_BINS; i++) {
            struct tol_stream *stream = magazine->bins[i].stream;
            if (stream != NULL) tol_context_release_stream(stream);
        }
        tol_magazine_end_parked(magazine);
        magazine->pool = NULL;
        if (magazine == tol_magazine_mine.magazines[place]) {
            tol_magazine_mine.magazines[place] = NULL;
            tol_magazine_mine.ids[place] = 0;
            magazine->orphan = true;
        }
        if (magazine->orphan) magazine_drop(magazine);
    }
    pthread_mutex_unlock(&registry);
}
