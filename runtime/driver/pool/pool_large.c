/*
 * Large and guarded blocks: each has its own address range and one handle, or, if memory was out
 * when it was created, several handles side by side (stitch.h).
 *
 * A freed one stays mapped for a while, because a block of its size may be allocated again soon. It
 * counts as held memory, and is released first if the pool holds too much.
 */
#include "core/deep.h"
#include "core/nvtx_marks.h"
#include "stitch.h"

#include <stdlib.h>

/* A kept block may be reused for one that is smaller by at most this share. */
static const double WASTE_MAX = 0.02;

enum { GUARD_ALIGNMENT = 16 };

/* Finds a kept block for bytes: among those close enough in size, one that needs no wait, or else
 * the first that can be waited for. Returns the link to it, for removal. */
static struct tol_large **find_kept(struct tol_pool *pool, uint64_t bytes,
                                    const struct tol_stream *stream) {
    struct tol_large **found = NULL;
    for (struct tol_large **link = &pool->kept; *link != NULL; link = &(*link)->next) {
        struct tol_large *large = *link;
        if (large->mapped < bytes || large->offset != 0 || large->is_closed) continue;
        if ((double)(large->mapped - bytes) > WASTE_MAX * (double)large->mapped) continue;
        uint64_t open = tol_tickets_open(&pool->tickets, large->streams, large->ticket, false);
        if (open == 0) return link;
        if (found == NULL && tol_tickets_can_wait(&pool->tickets, open, stream)) found = link;
    }
    return found;
}

/* Unmaps it in one call. false: the driver failed, and it is still mapped. */
static bool pool_large_unmap(struct tol_pool *pool, const struct tol_large *large) {
    pool->large_calls++;
    return pool->context->functions->cuMemUnmap(large->span->begin, large->mapped) == CUDA_SUCCESS;
}

/* false: the driver failed, and unless the block must be freed it stays as it is. */
static bool pool_large_release(struct tol_pool *pool, struct tol_large *large, bool must) {
    const struct tol_driver_table *driver = pool->context->functions;
    if (!pool->is_chunked && !pool_large_unmap(pool, large) && !must) return false;
    for (size_t i = 0; i < large->part_count; i++) driver->cuMemRelease(large->parts[i].handle);
    pool->large_releases += pool->is_chunked ? 1 : large->part_count;
    pool->large_calls += pool->is_chunked ? 1 : large->part_count;
    pool->large_held -= large->mapped;
    if (pool->is_chunked) {
        if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_heap_end(large->span->begin);
        driver->cuMemFree_v2(large->span->begin);
        tol_spans_forget(&pool->large_spans, large->span);
    } else {
        tol_spans_give(&pool->large_spans, large->span, 0, 0);
    }
    free(large);
    return true;
}

bool tol_pool_disband_large(struct tol_pool *pool, struct tol_large *large) {
    struct tol_large **link = &pool->kept;
    if (!pool_large_unmap(pool, large)) return false;
    while (*link != large) link = &(*link)->next;
    *link = large->next;
    pool->large_held -= large->mapped;
    pool->large_kept -= large->mapped;
    tol_spans_give(&pool->large_spans, large->span, 0, 0);
    free(large);
    return true;
}

uint64_t tol_pool_release_large(struct tol_pool *pool, uint64_t want) {
    uint64_t released = 0;
    /* The oldest is the last: the list is reversed, and what remains is reversed again. */
    struct tol_large *oldest = NULL;
    while (pool->kept != NULL) {
        struct tol_large *large = pool->kept;
        pool->kept = large->next;
        large->next = oldest;
        oldest = large;
    }
    while (oldest != NULL) {
        struct tol_large *large = oldest;
        oldest = large->next;
        const uint64_t mapped = large->mapped;
        if (released < want &&
            tol_tickets_open(&pool->tickets, large->streams, large->ticket, true) == 0 &&
            pool_large_release(pool, large, false)) {
            released += mapped;
            pool->large_kept -= mapped;
        } else {
            large->next = pool->kept;
            pool->kept = large;
        }
    }
    return released;
}

static void close_span(void *user, struct tol_span *span) {
    (void)pool_large_release(user, span->owner, true);
}

void tol_pool_close_large(struct tol_pool *pool) {
    while (pool->kept != NULL) {
        struct tol_large *large = pool->kept;
        pool->kept = large->next;
        (void)pool_large_release(pool, large, true);
    }
    tol_spans_each(&pool->large_spans, close_span, pool);
    if (pool->large_reserved > 0) {
        pool->context->functions->cuMemAddressFree(pool->large_begin, pool->large_reserved);
    }
    tol_spans_clear(&pool->large_spans);
}

/* Maps a handle after the mapped ones. */
static tol_status add_part(struct tol_pool *pool, struct tol_large *large,
                           const struct tol_memory *part) {
    tol_status status = TOL_OK;
    pool->large_calls++;
    TOL_CONTEXT_CU(pool->context, cuMemMap,
                   (large->span->begin + large->mapped, part->bytes, 0, part->handle, 0),
                   "mapping %llu bytes", (unsigned long long)part->bytes);
    large->parts[large->part_count++] = *part;
    large->mapped += part->bytes;
out:
    return status;
}

/* Makes what is not stitched, and maps it. */
static tol_status add_rest(struct tol_pool *pool, struct tol_large *large, uint64_t bytes) {
    tol_status status = TOL_OK;
    struct tol_memory part = {.bytes = bytes};
    if (bytes == 0) return TOL_OK;
    TOL_TRY(tol_pool_charge(pool, bytes));
    TOL_CONTEXT_CU(pool->context, cuMemCreate, (&part.handle, bytes, &pool->pages.prop, 0),
                   "creating a handle of %llu bytes", (unsigned long long)bytes);
    status = add_part(pool, large, &part);
    pool->large_calls++;
    pool->large_creates += status == TOL_OK;
    if (status != TOL_OK) pool->context->functions->cuMemRelease(part.handle);
out:
    return status;
}

/* Ends a block that could not be completed. Its stitched memory is kept, as memory without a
 * block. */
static void pool_large_unmake(struct tol_pool *pool, struct tol_large *large, bool is_stitched) {
    pool->large_held += large->mapped;
    if (large->part_count == 0) {
        tol_spans_give(&pool->large_spans, large->span, 0, 0);
        free(large);
        return;
    }
    if (!is_stitched && pool_large_release(pool, large, false)) return;
    uint64_t name = atomic_load_explicit(&large->span->name, memory_order_relaxed);
    atomic_store_explicit(&large->span->name, (name & ~(uint64_t)0xff) | TOL_SPAN_CACHED,
                          memory_order_release);
    large->is_closed = true;
    large->span->owner = large;
    large->next = pool->kept;
    pool->kept = large;
    pool->large_kept += large->mapped;
    pool->is_dense = false;
}

/* Addresses and memory for a block. A guarded block is followed by a gap. */
static tol_status pool_large_make(struct tol_pool *pool, uint64_t bytes, uint64_t gap,
                                  struct tol_large **result) {
    tol_status status = TOL_OK;
    struct tol_span *hole = NULL;
    struct tol_large *large = NULL;
    struct tol_stitch stitch = {0};
    const struct tol_page_gap all = {0, (uint32_t)(bytes / pool->granularity)};
    TOL_CHECK(bytes / pool->granularity < UINT32_MAX, TOL_OUT_OF_DEVICE_MEMORY,
              "%llu bytes are more than any device has", (unsigned long long)bytes);
    TOL_TRY(tol_stitch_begin(&stitch, pool, &all, 1, (struct tol_page_gap){0}));
    /* A block beyond the limit is rejected before anything is mapped. */
    TOL_TRY(tol_pool_charge(pool, bytes - stitch.bytes));
    large = calloc(1, sizeof *large + (stitch.chosen + 1) * sizeof large->parts[0]);
    TOL_CHECK(large != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a block");
    TOL_CHECK(tol_spans_fitting(&pool->large_spans, bytes + gap, &hole, 1) == 1,
              TOL_OUT_OF_DEVICE_MEMORY, "no range of %llu bytes is left in the reserved addresses",
              (unsigned long long)(bytes + gap));
    large->span = tol_spans_take(&pool->large_spans, hole, hole->begin, bytes + gap);
    TOL_CHECK(large->span != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a record of addresses");
    for (size_t i = 0; i < stitch.count; i++) {
        if (stitch.pieces[i].gap == 0) continue;
        TOL_TRY(add_part(pool, large, &stitch.pieces[i].memory));
        tol_stitch_placed(&stitch, &stitch.pieces[i]);
    }
    TOL_TRY(add_rest(pool, large, bytes - stitch.bytes));
    pool->large_calls++;
    TOL_CONTEXT_CU(pool->context, cuMemSetAccess,
                   (large->span->begin, bytes, &pool->pages.access, 1),
                   "allowing access to %llu bytes", (unsigned long long)bytes);
    pool->large_held += bytes;
    *result = large;
    large = NULL;
out:
    if (large != NULL && large->span != NULL) {
        pool_large_unmake(pool, large, stitch.chosen > 0);
    } else {
        free(large);
    }
    tol_stitch_end(&stitch);
    return status;
}

/* The same of the driver's own allocations. */
static tol_status make_direct(struct tol_pool *pool, uint64_t bytes, struct tol_large **result) {
    tol_status status = TOL_OK;
    CUdeviceptr at = 0;
    struct tol_large *large = calloc(1, sizeof *large);
    TOL_CHECK(large != NULL && tol_spans_reserve(&pool->large_spans, 2), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a record of a block");
    TOL_TRY(tol_pool_charge(pool, bytes));
    TOL_CONTEXT_CU(pool->context, cuMemAlloc_v2, (&at, bytes), "allocating %llu bytes",
                   (unsigned long long)bytes);
    if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_heap(at, bytes);
    large->mapped = bytes;
    large->span = tol_spans_note(&pool->large_spans, at, bytes);
    pool->large_calls++;
    pool->large_creates++;
    pool->large_held += bytes;
    *result = large;
    return TOL_OK;
out:
    free(large);
    return status;
}

static uint64_t up_to(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

tol_status tol_pool_place_large(struct tol_pool *pool, uint64_t bytes, bool guard,
                                struct tol_stream *stream, struct tol_span **result) {
    tol_status status = TOL_OK;
    struct tol_large *large = NULL;
    const uint64_t mapped = up_to(bytes, pool->granularity);
    struct tol_large **kept = guard ? NULL : find_kept(pool, mapped, stream);
    if (kept == NULL && tol_magazine_reclaim(pool) && !guard) {
        kept = find_kept(pool, mapped, stream);
    }
    TOL_CHECK(mapped >= bytes, TOL_OUT_OF_DEVICE_MEMORY, "%llu bytes are more than any device has",
              (unsigned long long)bytes);
    if (kept != NULL) {
        large = *kept;
        TOL_TRY(tol_pool_order(pool, large->streams, large->ticket, stream));
        *kept = large->next;
        pool->large_kept -= large->mapped;
        uint64_t name = atomic_load_explicit(&large->span->name, memory_order_relaxed);
        atomic_store_explicit(&large->span->name, (name & ~(uint64_t)0xff) | TOL_SPAN_LIVE,
                              memory_order_release);
    } else if (pool->is_chunked) {
        TOL_TRY(make_direct(pool, mapped, &large));
    } else {
        const uint64_t begin = tol_meter_begin(pool);
        status = pool_large_make(pool, mapped, guard ? pool->granularity : 0, &large);
        tol_meter_end(pool, begin);
        if (status != TOL_OK) goto out;
        if (guard) large->offset = mapped - up_to(bytes, GUARD_ALIGNMENT);
    }
    large->streams = large->ticket = 0;
    large->span->owner = large;
    *result = large->span;
    assert(tol_large_is_valid(pool, large));
out:
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    return status;
}

tol_status tol_pool_unplace_large(struct tol_pool *pool, struct tol_span *span,
                                  struct tol_stream *stream) {
    struct tol_large *large = span->owner;
    tol_status status = tol_pool_mark(pool, stream, &large->streams, &large->ticket);
    if (status != TOL_OK) return status;
    assert(tol_large_is_valid(pool, large));
    large->next = pool->kept;
    pool->kept = large;
    pool->large_kept += large->mapped;
    pool->is_dense = false;
    /* One block may be some hundredths of the held bytes, so it is released without waiting for a
     * trim. */
    const uint64_t keep = pool->options.keep_bytes;
    if (keep > 0 && pool->large_kept > keep && !pool->is_chunked) {
        const uint64_t begin = tol_meter_begin(pool);
        (void)tol_pool_release_large(pool, pool->large_kept - keep);
        tol_meter_end(pool, begin);
        tol_pool_note_held(pool);
    }
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    return TOL_OK;
}
