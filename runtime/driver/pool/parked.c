/*
 * Parked blocks: the last few blocks above magazine_max_bytes that a thread freed, kept for its
 * next allocations of the same size on the same stream.
 *
 * They waste no memory: an allocation that cannot use one frees those of its thread before it
 * searches for a place, and one that would create memory frees those of all threads.
 */
#include "core/deep.h"
#include "pool_state.h"

enum { MAGAZINES_AT_ONCE = 64 };

static void parked_add_bytes(struct tol_magazine *magazine, uint64_t change) {
    uint64_t bytes = atomic_load_explicit(&magazine->parked_bytes, memory_order_relaxed);
    atomic_store_explicit(&magazine->parked_bytes, bytes + change, memory_order_relaxed);
}

static bool has_parked(const struct tol_magazine *magazine) {
    return atomic_load_explicit(&magazine->parked_bytes, memory_order_relaxed) != 0;
}

struct tol_span *tol_magazine_unpark(struct tol_magazine *magazine, uint64_t bytes,
                                     struct tol_stream *stream) {
    const struct tol_pool *pool = magazine->pool;
    const uint64_t unit = pool->granularity;
    if (!has_parked(magazine)) return NULL;
    /* Those with a mapping of their own fill it. */
    if (bytes >= pool->options.large_bytes) bytes = (bytes + unit - 1) / unit * unit;
    for (int i = 0; i < TOL_PARKED; i++) {
        struct tol_parked *parked = &magazine->parked[i];
        struct tol_span *span = parked->span;
        if (span == NULL || parked->stream != stream || span->bytes != bytes) continue;
        parked->span = NULL;
        parked_add_bytes(magazine, -bytes);
        return span;
    }
    return NULL;
}

/* An empty place: of the stream, or any; changing its stream takes the context's lock. */
static struct tol_parked *parked_find_place(struct tol_magazine *magazine,
                                            struct tol_stream *stream) {
    struct tol_parked *place = NULL;
    for (int i = 0; i < TOL_PARKED; i++) {
        struct tol_parked *parked = &magazine->parked[i];
        if (parked->span != NULL) continue;
        if (parked->stream == stream) return parked;
        if (place == NULL || place->stream != NULL) place = parked;
    }
    if (place == NULL) return NULL;
    if (place->stream != NULL) tol_context_release_stream(place->stream);
    if (stream != NULL) tol_context_retain_stream(stream);
    place->stream = stream;
    return place;
}

bool tol_magazine_park(struct tol_magazine *magazine, struct tol_span *span,
                       struct tol_stream *stream) {
    const struct tol_large *large = span->owner;
    const uint64_t parked = atomic_load_explicit(&magazine->parked_bytes, memory_order_relaxed);
    if (span->bytes > magazine->pool->options.park_bytes ||
        parked > magazine->pool->options.park_bytes - span->bytes) {
        return false;
    }
    if (large != NULL && large->mapped != span->bytes) return false; /* guarded */
    struct tol_parked *place = parked_find_place(magazine, stream);
    if (place == NULL) return false;
    place->span = span;
    parked_add_bytes(magazine, span->bytes);
    TOL_DEEP_ASSERT(tol_magazine_is_parked_valid(magazine));
    return true;
}

/* What cannot be freed, since the stream cannot be marked in a context that is poisoned, stays. */
void tol_magazine_give_parked(struct tol_magazine *magazine) {
    struct tol_pool *pool = magazine->pool;
    for (int i = 0; i < TOL_PARKED; i++) {
        struct tol_parked *parked = &magazine->parked[i];
        struct tol_span *span = parked->span;
        if (span == NULL) continue;
        const uint64_t bytes = span->bytes;
        const tol_status status = span->owner != NULL
                                      ? tol_pool_unplace_large(pool, span, parked->stream)
                                      : tol_pool_unplace(pool, span, parked->stream);
        if (status != TOL_OK) continue;
        parked->span = NULL;
        parked_add_bytes(magazine, -bytes);
    }
}

void tol_magazine_drop_parked(struct tol_magazine *magazine) {
    for (int i = 0; i < TOL_PARKED; i++) {
        struct tol_parked *parked = &magazine->parked[i];
        if (parked->span != NULL || parked->stream == NULL) continue;
        tol_context_release_stream(parked->stream);
        parked->stream = NULL;
    }
}

void tol_magazine_end_parked(struct tol_magazine *magazine) {
    struct tol_pool *pool = magazine->pool;
    for (int i = 0; i < TOL_PARKED; i++) {
        struct tol_span *span = magazine->parked[i].span;
        struct tol_large *large = span != NULL ? span->owner : NULL;
        magazine->parked[i].span = NULL;
        if (large == NULL) continue;
        large->next = pool->kept;
        pool->kept = large;
        pool->large_kept += large->mapped;
    }
    tol_magazine_drop_parked(magazine);
}

/* Frees what some magazines have parked. */
static bool give_all(struct tol_magazine **magazines, size_t count) {
    struct tol_owner_lock *locks[MAGAZINES_AT_ONCE] = {NULL};
    bool is_taken[MAGAZINES_AT_ONCE], any = false;
    for (size_t i = 0; i < count; i++) locks[i] = &magazines[i]->lock;
    tol_owner_lock_enter_free(locks, count, is_taken);
    for (size_t i = 0; i < count; i++) {
        if (!is_taken[i]) continue;
        const bool had = has_parked(magazines[i]);
        tol_magazine_give_parked(magazines[i]);
        any = any || (had && !has_parked(magazines[i]));
        tol_owner_lock_leave(locks[i]);
    }
    return any;
}

bool tol_magazine_reclaim(struct tol_pool *pool) {
    struct tol_magazine *found[MAGAZINES_AT_ONCE];
    size_t count = 0;
    bool any = false;
    for (struct tol_magazine *m = atomic_load_explicit(&pool->magazines, memory_order_acquire);
         m != NULL; m = m->next) {
        if (!has_parked(m)) continue;
        found[count++] = m;
        if (count < MAGAZINES_AT_ONCE) continue;
        any = give_all(found, count) || any;
        count = 0;
    }
    return (count > 0 && give_all(found, count)) || any;
}

#ifndef NDEBUG

bool tol_magazine_is_parked_valid(const struct tol_magazine *magazine) {
    uint64_t bytes = 0;
    for (int i = 0; i < TOL_PARKED; i++) {
        const struct tol_span *span = magazine->parked[i].span;
        if (span == NULL) continue;
        if (tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed)) !=
            TOL_SPAN_CACHED) {
            return false;
        }
        bytes += span->bytes;
    }
    return bytes == atomic_load_explicit(&magazine->parked_bytes, memory_order_relaxed);
}

#endif
