/*
 * Allocating and freeing: the fast path through the thread's magazine, the slow path under the
 * pool's lock, and the steps before an allocation fails.
 */
#include "core/deadline.h"
#include "core/nvtx.h"
#include "core/nvtx_marks.h"
#include "core/residence.h"
#include "pool_name.h"
#include "tollens/stream.h"

/* ---- allocating ---- */

static bool wants_guard(struct tol_pool *pool) {
    unsigned one_in = pool->options.guard_one_in;
    return one_in > 0 && pool->slow % one_in == 0;
}

static tol_status place_driver(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                               struct tol_span **result) {
    tol_status status = TOL_OK;
    CUdeviceptr address = 0;
    struct tol_span *span = tol_spans_note(&pool->spans, 0, tol_pool_rounded(bytes));
    TOL_CHECK(span != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a block");
    const uint64_t begin = tol_meter_begin(pool);
    TOL_CONTEXT_CU(pool->context, cuMemAllocFromPoolAsync,
                   (&address, bytes, pool->driver_pool, stream != NULL ? stream->handle : NULL),
                   "allocating %zu bytes from the driver's pool", bytes);
    /* A block for the host may be used by any stream, including ours, which do not wait for the
     * legacy one. */
    if (stream == NULL) TOL_TRY(tol_deadline_wait_legacy(pool->context));
    span->begin = address;
    tol_meter_end(pool, begin);
    pool->large_calls++;
    pool->large_creates++;
    pool->arena_used += span->bytes;
    *result = span;
    span = NULL;
out:
    if (span != NULL) {
        if (address != 0) pool->context->functions->cuMemFreeAsync(address, NULL);
        tol_spans_forget(&pool->spans, span);
    }
    return status;
}

static void pool_block_put_label(struct tol_span *span, const struct tol_pool_label *label) {
    atomic_store_explicit(&span->requested, label->bytes, memory_order_relaxed);
    atomic_store_explicit(&span->tag, label->tag, memory_order_relaxed);
    atomic_store_explicit(&span->site, label->site, memory_order_relaxed);
}

static void pool_block_count(_Atomic(uint64_t) *counter) {
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

/* The slow path: under the pool's lock, with all steps of the ladder. */
static tol_status pool_block_place(struct tol_pool *pool, const struct tol_pool_label *label,
                                   struct tol_stream *stream, struct tol_span **span,
                                   bool *is_large) {
    const size_t bytes = label->bytes;
    const uint64_t rounded = tol_pool_rounded(bytes);
    tol_status status = TOL_OK;
    bool guard = wants_guard(pool);
    pool->slow++;
    pool_block_count(&pool->epoch);
    *is_large = false;
    if (pool->options.source == TOL_POOL_DRIVER) {
        status = place_driver(pool, bytes, stream, span);
        if (status == TOL_OK) pool_block_put_label(*span, label);
        return status;
    }
    if (rounded < bytes) {
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
                        "%zu bytes are more than any device has", bytes);
    }
    *is_large = guard || rounded >= pool->options.large_bytes;
    struct tol_ladder ladder = {0};
    do {
        status = *is_large
                     ? tol_pool_place_large(pool, guard ? bytes : rounded, guard, stream, span)
                 : pool->is_chunked ? tol_pool_place_chunked(pool, rounded, stream, span)
                                    : tol_pool_place(pool, rounded, stream, span);
    } while (status == TOL_OUT_OF_DEVICE_MEMORY &&
             tol_ladder_step(pool, &ladder, rounded, *is_large));
    if (status == TOL_OK) {
        pool_block_put_label(*span, label);
        pool->guarded += guard;
        pool->soft_passed += pool->may_pass_soft;
        tol_pool_note_held(pool);
        tol_pool_note_peak(pool, bytes);
        tol_pool_tidy(pool);
    }
    tol_pool_note_held(pool);
    pool->is_short = pool->may_pass_soft = pool->may_stitch = false;
    return status;
}

static tol_status charge_tag(struct tol_pool *pool, unsigned tag, size_t bytes) {
    struct tol_pool_tag *account = &pool->tags[tag];
    uint64_t quota = atomic_load_explicit(&account->quota, memory_order_relaxed);
    uint64_t used = atomic_fetch_add_explicit(&account->used, bytes, memory_order_relaxed);
    if (quota == 0 || (used <= quota && bytes <= quota - used)) return TOL_OK;
    atomic_fetch_sub_explicit(&account->used, bytes, memory_order_relaxed);
    return tol_fail(
        __FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
        "%zu more bytes would exceed the quota of %llu bytes of the tag %s, which uses %llu", bytes,
        (unsigned long long)quota, account->name, (unsigned long long)used);
}

static void refund_tag(struct tol_pool *pool, unsigned tag, uint64_t bytes) {
    if (tag != 0) {
        atomic_fetch_sub_explicit(&pool->tags[tag].used, bytes, memory_order_relaxed);
    }
}

static void count_bytes(struct tol_magazine *magazine, int64_t bytes) {
    int64_t value = atomic_load_explicit(&magazine->requested, memory_order_relaxed);
    atomic_store_explicit(&magazine->requested, value + bytes, memory_order_relaxed);
}

static tol_status out_of_memory(struct tol_pool *pool, const struct tol_pool_label *label,
                                const struct tol_stream *stream, uint64_t begin) {
    char diagnosis[2048];
    if (tol_pool_keeps_events(pool)) {
        tol_pool_note_call(pool, TOL_POOL_EVENT_REFUSE, label, (struct tol_block){0}, stream, begin,
                           tol_now_ns() - begin);
    }
    pthread_mutex_lock(&pool->lock);
    pool->refused++;
    pthread_mutex_unlock(&pool->lock);
    tol_pool_diagnose(pool, label->bytes, diagnosis, sizeof diagnosis);
    tol_message_add("; %s", diagnosis);
    return TOL_OUT_OF_DEVICE_MEMORY;
}

/* A block that the thread freed. The caller holds the magazine's lock. */
static struct tol_span *take_own(struct tol_magazine *magazine, size_t bytes,
                                 struct tol_stream *stream) {
    return bytes <= magazine->pool->options.magazine_max_bytes
               ? tol_magazine_take(magazine, tol_pool_rounded(bytes), stream)
               : tol_magazine_unpark(magazine, tol_pool_rounded(bytes), stream);
}

/* Leaves the magazine for the pool, which frees the parked blocks. */
static void lock_for_place(struct tol_pool *pool, struct tol_magazine *magazine) {
    const bool has_parked =
        atomic_load_explicit(&magazine->parked_bytes, memory_order_relaxed) != 0;
    if (!has_parked) tol_magazine_unlock(magazine);
    pthread_mutex_lock(&pool->lock);
    pool->metered_at = 0;
    if (!has_parked) return;
    tol_magazine_give_parked(magazine);
    tol_magazine_unlock(magazine);
}

static tol_status pool_block_allocate(struct tol_pool *pool, size_t bytes,
                                      struct tol_stream *stream, unsigned tag, const void *site,
                                      struct tol_block *block) {
    tol_status status = TOL_OK;
    const struct tol_pool_label label = {bytes, tag, site};
    struct tol_span *span = NULL;
    struct tol_magazine *magazine = NULL;
    bool is_large = false, is_charged = false;
    uint64_t begin = 0, metered_at = 0;
    TOL_CHECK(pool != NULL && block != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_allocate: an argument is NULL");
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "the size of a block is 0");
    TOL_CHECK(stream == NULL || stream->context == pool->context, TOL_WRONG_CONTEXT,
              "the stream and the pool belong to different contexts");
    TOL_CHECK(tag < pool->tag_count, TOL_INVALID_ARGUMENT, "tag %u does not exist", tag);
    TOL_TRY(tol_context_enter(pool->context));
    if (tag != 0) TOL_TRY(charge_tag(pool, tag, bytes));
    is_charged = true;
    magazine = tol_magazine_get(pool);
    TOL_CHECK(magazine != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a thread's cache of blocks");
    begin = tol_times_begin(&magazine->times, TOL_POOL_CALL_ALLOCATE);
    tol_magazine_lock(magazine);
    span = take_own(magazine, bytes, stream);
    is_large = span != NULL && span->owner != NULL;
    if (span != NULL) {
        /* The generation is already that of the next block. */
        pool_block_put_label(span, &label);
        uint64_t name = atomic_load_explicit(&span->name, memory_order_relaxed);
        atomic_store_explicit(&span->name, (name & ~(uint64_t)0xff) | TOL_SPAN_LIVE,
                              memory_order_release);
        pool_block_count(&magazine->hits);
    } else {
        lock_for_place(pool, magazine);
        status = pool_block_place(pool, &label, stream, &span, &is_large);
        metered_at = pool->metered_at;
        pthread_mutex_unlock(&pool->lock);
        if (status == TOL_OUT_OF_DEVICE_MEMORY) status = out_of_memory(pool, &label, stream, begin);
        if (status != TOL_OK) goto out;
        tol_magazine_lock(magazine);
    }
    pool_block_count(&magazine->allocations);
    count_bytes(magazine, (int64_t)bytes);
    *block = tol_block_of(pool, span, is_large);
    if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_region(tol_span_address(span), bytes);
    if (TOL_UNLIKELY((begin | metered_at) != 0)) {
        uint64_t ns = tol_times_end(&magazine->times, TOL_POOL_CALL_ALLOCATE, begin, metered_at);
        tol_pool_note_call(pool, TOL_POOL_EVENT_ALLOCATE, &label, *block, stream, begin, ns);
    }
    tol_magazine_unlock(magazine);
out:
    if (status != TOL_OK && is_charged) refund_tag(pool, tag, bytes);
    return status;
}

/* ---- freeing ---- */

static tol_status unplace_driver(struct tol_pool *pool, struct tol_span *span,
                                 struct tol_stream *stream) {
    tol_status status = TOL_OK;
    const uint64_t begin = tol_meter_begin(pool);
    TOL_CONTEXT_CU(pool->context, cuMemFreeAsync,
                   (span->begin, stream != NULL ? stream->handle : NULL),
                   "freeing %llu bytes to the driver's pool", (unsigned long long)span->bytes);
    /* Then it is free at once, for a trim too. */
    if (stream == NULL) (void)tol_deadline_wait_legacy(pool->context);
    tol_meter_end(pool, begin);
    pool->large_calls++;
    pool->large_releases++;
    pool->arena_used -= span->bytes;
    tol_spans_forget(&pool->spans, span);
out:
    return status;
}

static tol_status pool_block_wipe(struct tol_pool *pool, const struct tol_span *span,
                                  uint64_t address, struct tol_stream *stream) {
    tol_status status = TOL_OK;
    struct tol_context *context = pool->context;
    TOL_CONTEXT_CU(context, cuMemsetD8Async,
                   (address, 0, tol_span_requested(span), stream != NULL ? stream->handle : NULL),
                   "wiping %llu bytes", (unsigned long long)tol_span_requested(span));
    if (stream == NULL) status = tol_deadline_wait_legacy(context);
out:
    return status;
}

/* Whether the thread keeps a freed block for its next allocations. The caller holds the magazine's
 * lock. */
static bool keep_own(struct tol_magazine *magazine, struct tol_span *span,
                     struct tol_stream *stream) {
    const struct tol_pool_options *options = &magazine->pool->options;
    if (options->source == TOL_POOL_DRIVER) return false;
    return span->owner == NULL && span->bytes <= options->magazine_max_bytes
               ? tol_magazine_keep(magazine, span, stream)
               : tol_magazine_park(magazine, span, stream);
}

/* A tool's region ends at once, while the stream's work may still use the block: so that is waited
 * for. A stream that is captured has none. */
static void end_mark(const struct tol_span *span, struct tol_stream *stream) {
    if (stream != NULL && !tol_stream_is_captured(stream)) (void)tol_stream_synchronize(stream);
    tol_marks_region_end(tol_span_address(span));
}

/* is_used: the program has used the block, so there may be something to wipe. */
static tol_status pool_block_free_block(struct tol_pool *pool, struct tol_block block,
                                        struct tol_stream *stream, const void *site, bool is_used) {
    tol_status status = TOL_OK;
    struct tol_magazine *magazine = NULL;
    TOL_CHECK(pool != NULL, TOL_INVALID_ARGUMENT, "tol_pool_free: pool is NULL");
    TOL_CHECK(stream == NULL || stream->context == pool->context, TOL_WRONG_CONTEXT,
              "the stream and the pool belong to different contexts");
    TOL_TRY(tol_context_enter(pool->context));
    struct tol_span *span = tol_block_record(pool, block);
    if (span == NULL || !tol_block_is_live(span, block)) return tol_pool_refuse(pool, block);
    magazine = tol_magazine_get(pool);
    TOL_CHECK(magazine != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a thread's cache of blocks");
    tol_magazine_lock(magazine);
    const uint64_t begin = tol_times_begin(&magazine->times, TOL_POOL_CALL_FREE);
    uint64_t metered_at = 0;
    /* Of two threads that free the same block, one changes the name. */
    uint64_t generation = block.name >> GENERATION_SHIFT;
    uint64_t live = atomic_load_explicit(&span->name, memory_order_relaxed);
    if ((uint32_t)(live >> 8) != (uint32_t)generation || tol_span_state_of(live) != TOL_SPAN_LIVE ||
        !atomic_compare_exchange_strong(&span->name, &live,
                                        ((live >> 8) + 1) << 8 | TOL_SPAN_CACHED)) {
        tol_magazine_unlock(magazine);
        return tol_pool_refuse(pool, block);
    }
    const struct tol_pool_label label = tol_span_label(span);
    uint64_t event = 0;
    if (tol_pool_keeps_events(pool)) {
        event = tol_pool_note_call(pool, TOL_POOL_EVENT_FREE, &label, block, stream, begin, 0);
    }
    const uint64_t address = tol_span_address(span);
    const bool wipes = pool->options.wipe && is_used;
    bool is_large = (block.name & LARGE_BIT) != 0;
    if (wipes) status = pool_block_wipe(pool, span, address, stream);
    if (TOL_UNLIKELY(tol_marks_listen)) end_mark(span, stream);
    if (status == TOL_OK && !keep_own(magazine, span, stream)) {
        pthread_mutex_lock(&pool->lock);
        pool->metered_at = 0;
        status = is_large ? tol_pool_unplace_large(pool, span, stream)
                 : pool->options.source == TOL_POOL_DRIVER ? unplace_driver(pool, span, stream)
                                                           : tol_pool_unplace(pool, span, stream);
        metered_at = pool->metered_at;
        pthread_mutex_unlock(&pool->lock);
    }
    if (status != TOL_OK) {
        /* The block is unchanged. Its next free does not know of a wipe that is in progress on this
         * stream, so wait for it. */
        if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_region(address, label.bytes);
        if (wipes && stream != NULL) (void)tol_stream_synchronize(stream);
        if (wipes && stream == NULL) (void)tol_deadline_wait_legacy(pool->context);
        atomic_store_explicit(&span->name, live, memory_order_release);
        goto out;
    }
    const struct tol_freed freed = {
        block.name, address, label.bytes,
        label.site, site,    atomic_load_explicit(&pool->epoch, memory_order_relaxed),
        label.tag};
    tol_freed_note(&magazine->freed, &freed);
    pool_block_count(&magazine->frees);
    count_bytes(magazine, -(int64_t)label.bytes);
    refund_tag(pool, label.tag, label.bytes);
    if (TOL_UNLIKELY((begin | metered_at) != 0)) {
        uint64_t ns = tol_times_end(&magazine->times, TOL_POOL_CALL_FREE, begin, metered_at);
        if (tol_pool_keeps_events(pool)) tol_ring_took(&pool->ring, event, ns);
    }
out:
    if (magazine != NULL) tol_magazine_unlock(magazine);
    return status;
}

tol_status tol_pool_free(struct tol_pool *pool, struct tol_block block, struct tol_stream *stream) {
    TOL_RANGE("tol_pool_free", 0);
    return pool_block_free_block(pool, block, stream, __builtin_return_address(0), true);
}

/* ---- allocating ---- */

/* Allocates a block, and frees it again if it is in memory that the context does not allow. */
static tol_status allocate_resident(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                                    unsigned tag, const void *site, struct tol_block *result) {
    if (pool == NULL || result == NULL || !pool->context->device_memory_only) {
        return pool_block_allocate(pool, bytes, stream, tag, site, result);
    }
    struct tol_block block = {0};
    tol_status status = pool_block_allocate(pool, bytes, stream, tag, site, &block);
    if (status != TOL_OK) return status;
    status = tol_context_refuse_astray(pool->context, tol_pool_address(pool, block),
                                       "the new block of a pool");
    if (status == TOL_OK) {
        *result = block;
    } else {
        (void)pool_block_free_block(pool, block, stream, NULL, false);
    }
    return status;
}

tol_status tol_pool_allocate(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                             struct tol_block *block) {
    TOL_RANGE("tol_pool_allocate", bytes);
    return allocate_resident(pool, bytes, stream, 0, __builtin_return_address(0), block);
}

tol_status tol_pool_allocate_tagged(struct tol_pool *pool, size_t bytes, struct tol_stream *stream,
                                    unsigned tag, struct tol_block *block) {
    TOL_RANGE("tol_pool_allocate_tagged", bytes);
    return allocate_resident(pool, bytes, stream, tag, __builtin_return_address(0), block);
}

/* ---- batches ---- */

tol_status tol_pool_allocate_batch(struct tol_pool *pool, size_t count_of, const size_t *bytes,
                                   struct tol_stream *stream, struct tol_block *blocks) {
    tol_status status = TOL_OK;
    size_t made = 0;
    TOL_CHECK(count_of == 0 || (bytes != NULL && blocks != NULL), TOL_INVALID_ARGUMENT,
              "tol_pool_allocate_batch: an argument is NULL");
    for (; made < count_of; made++) {
        TOL_TRY(allocate_resident(pool, bytes[made], stream, 0, __builtin_return_address(0),
                                  &blocks[made]));
    }
out:
    while (status != TOL_OK && made > 0) {
        /* They must be freed: a free that fails for a temporary reason is repeated. */
        made--;
        for (int try = 0; try < 2; try++) {
            if (pool_block_free_block(pool, blocks[made], stream, NULL, false) == TOL_OK) break;
        }
    }
    return status;
}

tol_status tol_pool_free_batch(struct tol_pool *pool, size_t count_of,
                               const struct tol_block *blocks, struct tol_stream *stream) {
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL && (count_of == 0 || blocks != NULL), TOL_INVALID_ARGUMENT,
              "tol_pool_free_batch: an argument is NULL");
    for (size_t i = 0; i < count_of; i++) {
        const struct tol_span *span = tol_block_record(pool, blocks[i]);
        if (span == NULL || !tol_block_is_live(span, blocks[i]))
            return tol_pool_refuse(pool, blocks[i]);
    }
    for (size_t i = 0; i < count_of; i++) {
        TOL_TRY(pool_block_free_block(pool, blocks[i], stream, __builtin_return_address(0), true));
    }
out:
    return status;
}
