/*
 * Placing: which free span a block is cut from, and when memory is released.
 *
 * Each of the smallest holes that fit is tried at both ends. The best place needs the fewest driver
 * calls, then no waiting, then the fewest pages without a block, then has the tightest hole.
 * Sixteen holes do as well as all of them (POOL design, simulation 3b).
 */
#include "core/deep.h"
#include "mesh.h"
#include "stitch.h"

enum { CANDIDATES = 16, LOWEST_CANDIDATES = 512 };

struct pool_place {
    struct tol_span *hole;
    uint64_t begin;
    uint32_t unmapped, idle;
    bool waits;
};

static bool pool_place_is_better(const struct pool_place *a, const struct pool_place *b) {
    if (b->hole == NULL) return true;
    if (a->unmapped != b->unmapped) return a->unmapped < b->unmapped;
    if (a->waits != b->waits) return b->waits;
    if (a->idle != b->idle) return a->idle < b->idle;
    return a->hole->bytes < b->hole->bytes;
}

/* Whether a block there would have to wait for work of another stream, and whether it can. */
static bool has_to_wait(struct tol_pool *pool, const struct tol_span *hole, uint64_t begin,
                        uint64_t bytes, const struct tol_stream *stream, bool *can_wait) {
    if (hole->wait_streams == 0 || begin >= hole->wait_end || begin + bytes <= hole->wait_begin) {
        return false;
    }
    uint64_t open = tol_tickets_open(&pool->tickets, hole->wait_streams, hole->wait_ticket, false);
    *can_wait = tol_tickets_can_wait(&pool->tickets, open, stream);
    for (; open != 0; open &= open - 1) {
        const unsigned place = (unsigned)__builtin_ctzll(open);
        if (!tol_tickets_is_ordered(&pool->tickets, place, hole->wait_ticket, stream)) return true;
    }
    return false;
}

/* The lowest of the places that need the fewest new pages, at the beginning of a hole. For programs
 * whose steps allocate blocks of varying sizes one after the other, first fit leaves larger holes
 * than the tightest hole does. */
static struct pool_place choose_lowest(struct tol_pool *pool, uint64_t bytes,
                                       const struct tol_stream *stream) {
    struct tol_span_search search = {0};
    struct pool_place best = {0};
    for (int i = 0; i < LOWEST_CANDIDATES; i++) {
        struct tol_span *hole = tol_spans_next(&pool->spans, bytes, &search);
        if (hole == NULL) break;
        struct pool_place place = {.hole = hole, .begin = hole->begin};
        if (best.hole != NULL && best.unmapped == 0 && place.begin > best.begin) continue;
        bool can_wait = true;
        place.unmapped = tol_pages_cost(&pool->pages, place.begin, bytes).unmapped;
        place.waits = has_to_wait(pool, hole, place.begin, bytes, stream, &can_wait);
        if (!can_wait) continue;
        const bool is_lower = best.hole == NULL || place.begin < best.begin;
        if (best.hole == NULL || place.unmapped < best.unmapped ||
            (place.unmapped == best.unmapped &&
             (place.waits < best.waits || (place.waits == best.waits && is_lower)))) {
            best = place;
        }
    }
    return best;
}

static struct pool_place pool_place_choose(struct tol_pool *pool, uint64_t bytes,
                                           const struct tol_stream *stream) {
    if (pool->options.lowest_first) return choose_lowest(pool, bytes, stream);
    struct tol_span_search search = {0};
    struct pool_place best = {0};
    for (int i = 0; i < CANDIDATES; i++) {
        struct tol_span *hole = tol_spans_next(&pool->spans, bytes, &search);
        if (hole == NULL) break;
        const uint64_t begins[2] = {hole->begin, hole->begin + hole->bytes - bytes};
        for (int end = 0; end < (begins[0] == begins[1] ? 1 : 2); end++) {
            struct pool_place place = {.hole = hole, .begin = begins[end]};
            bool can_wait = true;
            struct tol_page_cost cost = tol_pages_cost(&pool->pages, place.begin, bytes);
            place.unmapped = cost.unmapped;
            place.idle = cost.idle;
            place.waits = has_to_wait(pool, hole, place.begin, bytes, stream, &can_wait);
            if (!can_wait) continue;
            /* Holes are in order of size: the first place without cost is the best. */
            if (place.unmapped == 0 && place.idle == 0 && !place.waits) return place;
            if (pool_place_is_better(&place, &best)) best = place;
        }
    }
    return best;
}

tol_status tol_pool_charge(struct tol_pool *pool, uint64_t more) {
    uint64_t held = tol_pool_held(pool), limit = pool->options.limit_bytes;
    uint64_t soft = pool->may_pass_soft ? 0 : pool->options.soft_limit_bytes;
    if (soft != 0 && (more > soft || held > soft - more)) {
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
                        "%llu more bytes would exceed the pool's soft limit of %llu bytes",
                        (unsigned long long)more, (unsigned long long)soft);
    }
    if (limit == 0 || (more <= limit && held <= limit - more)) return TOL_OK;
    return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
                    "%llu more bytes would exceed the pool's limit of %llu bytes; it holds %llu",
                    (unsigned long long)more, (unsigned long long)limit, (unsigned long long)held);
}

uint64_t tol_pool_room(struct tol_pool *pool) {
    size_t free_bytes = 0, total = 0;
    const uint64_t limit = pool->options.limit_bytes, held = tol_pool_held(pool);
    pool->context->functions->cuMemGetInfo_v2(&free_bytes, &total);
    uint64_t room = limit == 0 ? UINT64_MAX : limit > held ? limit - held : 0;
    return room < free_bytes ? room : free_bytes;
}

uint64_t tol_pool_soft_room(struct tol_pool *pool) {
    const uint64_t soft = pool->options.soft_limit_bytes, held = tol_pool_held(pool);
    const uint64_t room = tol_pool_room(pool), below = soft > held ? soft - held : 0;
    if (soft == 0 || pool->may_pass_soft) return room;
    return room < below ? room : below;
}

uint64_t tol_pool_need(struct tol_pool *pool, uint64_t bytes, bool is_large) {
    const uint64_t unit = pool->granularity;
    uint64_t need = (bytes + unit - 1) / unit * unit;
    if (pool->is_chunked || is_large) return need;
    struct pool_place place = pool_place_choose(pool, bytes, NULL);
    uint64_t idle = place.hole != NULL ? place.idle * unit : need;
    return idle < need ? idle : need;
}

tol_status tol_pool_mark(struct tol_pool *pool, struct tol_stream *stream, uint64_t *streams,
                         uint64_t *ticket) {
    unsigned place = 0;
    *streams = *ticket = 0;
    if (stream == NULL) return TOL_OK;
    tol_status status = tol_tickets_place(&pool->tickets, stream, &place);
    if (status != TOL_OK) return status;
    *streams = (uint64_t)1 << place;
    *ticket = tol_tickets_take(&pool->tickets, place);
    return TOL_OK;
}

tol_status tol_pool_order(struct tol_pool *pool, uint64_t streams, uint64_t ticket,
                          struct tol_stream *stream) {
    if (streams == 0) return TOL_OK;
    uint64_t open = tol_tickets_open(&pool->tickets, streams, ticket, false);
    for (uint64_t rest = open; rest != 0 && stream != NULL; rest &= rest - 1) {
        const unsigned place = (unsigned)__builtin_ctzll(rest);
        if (tol_tickets_is_ordered(&pool->tickets, place, ticket, stream)) open &= ~(rest & -rest);
    }
    if (open == 0) return TOL_OK;
    const uint64_t begin = tol_meter_begin(pool);
    tol_status status = stream == NULL ? tol_tickets_wait(&pool->tickets, open, ticket)
                                       : tol_tickets_order(&pool->tickets, open, ticket, stream,
                                                           &pool->stream_waits);
    tol_meter_end(pool, begin);
    return status;
}

/* Near the limit handles become small, each at most an eighth of the rest: meshing begins with
 * single pages, and continues with larger handles in the memory that this has freed. */
enum { TAIL_SHARE = 8 };

static uint64_t wanted_growth(const struct tol_pool *pool) {
    const struct tol_pool_options *options = &pool->options;
    const uint64_t mapped = pool->pages.mapped, used = pool->arena_used;
    const uint64_t half = options->double_bytes / 2;
    /* Blocks are sparse at first, and some handles are not full yet. */
    const uint64_t loose = options->double_bytes / 8 * 5;
    if (pool->pages.creates < options->first_count) return options->first_bytes;
    if (mapped < options->double_bytes) {
        return mapped < half ? mapped : options->double_bytes - mapped;
    }
    return used > loose ? (uint64_t)(options->grow_share * (double)(used - loose)) : 0;
}

/* Compaction can cut a handle only if all its pages fit under the limit beside it, because each
 * gets separate memory before the handle is released. So no handle is larger than this share of the
 * limit; 1/64 leaves too little memory for large handles after the comb of H12. */
enum { COMPACT_SHARE = 256 };

static uint64_t largest_to_compact(const struct tol_pool *pool) {
    const uint64_t limit = pool->options.limit_bytes;
    const struct tol_device *device = tol_context_device(pool->context);
    return (limit > 0 ? limit : (uint64_t)device->memory_bytes) / COMPACT_SHARE;
}

uint64_t tol_pool_growth(const struct tol_pool *pool) {
    const uint64_t wanted = wanted_growth(pool);
    if (!pool->options.compact) return wanted;
    const uint64_t largest = largest_to_compact(pool);
    return wanted < largest ? wanted : largest;
}

/* How much memory to create at once. Handles are large at first, so that few driver calls suffice
 * for many blocks. Because a handle has a fixed cost, a block gets everything that it lacks in one
 * handle if handles have several pages, including the last page, which the next block shares. A
 * small pool would hold too much that way, because such a handle is released only when both blocks
 * are free. */
static struct tol_page_growth growth_of(const struct tol_pool *pool, const struct pool_place *place,
                                        uint64_t bytes) {
    const struct tol_pages *pages = &pool->pages;
    const struct tol_pool_options *options = &pool->options;
    const uint64_t limit = options->limit_bytes;
    const uint64_t held = tol_pool_held(pool) + tol_pages_missing(pages, place->begin, bytes, 1);
    uint64_t room = limit == 0 ? UINT64_MAX : limit > held ? (limit - held) / TAIL_SHARE : 0;
    uint64_t run = tol_pool_growth(pool);
    if (run > room) run = room;
    bool is_near = pages->step * pages->page_bytes > room || pool->is_short;
    uint64_t joined = options->joins_pages && !is_near ? options->large_bytes : 0;
    if (options->join_bytes > 0 && joined > options->join_bytes) joined = options->join_bytes;
    if (options->compact && joined > largest_to_compact(pool)) joined = largest_to_compact(pool);
    return (struct tol_page_growth){
        .joined = (uint32_t)(joined / pages->page_bytes),
        .run = pool->is_short ? 1 : (uint32_t)(run / pages->page_bytes),
        .step = is_near ? 1 : pages->step,
        .limit = place->hole->begin + place->hole->bytes,
    };
}

/* The search for idle pages queries the streams, some microseconds per hole. If all pages are still
 * in use, the search is not repeated for this time. */
enum { VAIN_NS = 5000000 };

/* Repeated remapping must not slow a program down: it may take 1/500 of the time since the pool was
 * created, and this amount in addition while the program approaches its peak. */
enum { STITCH_SHARE = 500, STITCH_FIRST_NS = 100000000 };

/* A wait only ends the lead of the host over the device, so it may take more time. */
enum { WAIT_SHARE = 4, WAIT_FIRST_NS = 100000000 };

/* Whether with these additional pages for a block the pool would hold more than this share of the
 * peak of the bytes in use, while idle pages exist. */
static bool is_beyond(const struct tol_pool *pool, double share, uint64_t bytes, uint32_t pages) {
    if (share <= 0 || pool->pages.idle_count == 0) return false;
    const uint64_t now = pool->arena_used + pool->large_held - pool->large_kept + bytes;
    const uint64_t peak = atomic_load_explicit(&pool->requested_peak, memory_order_relaxed);
    const uint64_t held = tol_pool_held(pool) + pages * pool->pages.page_bytes;
    return (double)held > share * (double)(now > peak ? now : peak);
}

/* Whether to remap idle pages first for the pages that a block of bytes lacks. */
static bool may_remap(const struct tol_pool *pool, uint64_t bytes, uint32_t pages) {
    if (!is_beyond(pool, pool->options.stitch_above, bytes, pages)) return false;
    if (pool->options.stitch_always) return true;
    const uint64_t time = tol_now_ns();
    if (pool->vain_at != 0 && time - pool->vain_at < VAIN_NS) return false;
    return pool->stitch_ns <= STITCH_FIRST_NS + (time - pool->begin_ns) / STITCH_SHARE;
}

/* Waits for work that uses idle pages, if the missing memory is worth it. */
static bool wait_for_idle(struct tol_pool *pool, const struct pool_place *place, uint64_t bytes) {
    const uint32_t lacks = tol_pages_cost(&pool->pages, place->begin, bytes).unmapped;
    if (lacks == 0 || !is_beyond(pool, pool->options.wait_above, bytes, lacks)) return false;
    const uint64_t begin = tol_now_ns();
    if (pool->wait_ns > WAIT_FIRST_NS + (begin - pool->begin_ns) / WAIT_SHARE) return false;
    const bool has_ended = tol_pool_wait_oldest(pool);
    pool->wait_ns += tol_now_ns() - begin;
    return has_ended;
}

/* Maps idle memory from elsewhere at the pages that a place lacks. */
static tol_status remap_idle(struct tol_pool *pool, const struct pool_place *place,
                             uint64_t bytes) {
    const uint64_t begin = tol_now_ns(), stitched = pool->stitched, waited = pool->wait_ns;
    pool->may_stitch = true;
    tol_status status = tol_stitch_pages(pool, place->begin, bytes);
    while (status == TOL_OK && wait_for_idle(pool, place, bytes)) {
        status = tol_stitch_pages(pool, place->begin, bytes);
    }
    pool->may_stitch = false;
    pool->vain_at = pool->stitched == stitched ? begin : 0;
    pool->stitch_ns += tol_now_ns() - begin - (pool->wait_ns - waited);
    return status;
}

/* The span that an address is in. */
static struct tol_span *span_at(const struct tol_pool *pool, uint64_t address) {
    struct tol_span *span = pool->spans.first;
    while (address >= span->begin + span->bytes) span = span->after;
    return span;
}

/* Maps memory at the pages that a place lacks: idle memory first if needed, and new memory for the
 * rest. */
static tol_status map_place(struct tol_pool *pool, struct pool_place *place, uint64_t bytes) {
    tol_status status = TOL_OK;
    const uint64_t begin = tol_meter_begin(pool);
    const size_t shared = pool->pages.shared_count;
    TOL_TRY(!pool->may_stitch && may_remap(pool, bytes, place->unmapped)
                ? remap_idle(pool, place, bytes)
                : tol_stitch_pages(pool, place->begin, bytes));
    /* Where this released shared pages, their addresses have joined the holes beside them, and the
     * record of the hole may be another's. */
    if (pool->pages.shared_count != shared) place->hole = span_at(pool, place->begin);
    const struct tol_page_growth growth = growth_of(pool, place, bytes);
    TOL_TRY(
        tol_pool_charge(pool, tol_pages_missing(&pool->pages, place->begin, bytes, growth.step)));
    status = tol_pages_map(&pool->pages, place->begin, bytes, &growth);
out:
    tol_meter_end(pool, begin);
    return status;
}

tol_status tol_pool_place(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                          struct tol_span **result) {
    tol_status status = TOL_OK;
    struct tol_span *span = NULL;
    struct pool_place place = pool_place_choose(pool, bytes, stream);
    if (place.unmapped > 0 && tol_magazine_reclaim(pool))
        place = pool_place_choose(pool, bytes, stream);
    TOL_CHECK(place.hole != NULL, TOL_OUT_OF_DEVICE_MEMORY,
              "no range of %llu bytes is free in the pool's addresses", (unsigned long long)bytes);
    if (place.unmapped > 0) TOL_TRY(map_place(pool, &place, bytes));
    span = tol_spans_take(&pool->spans, place.hole, place.begin, bytes);
    TOL_CHECK(span != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a block");
    tol_pages_enter(&pool->pages, span->begin, bytes);
    pool->arena_used += bytes;
    status = tol_pool_order(pool, span->wait_streams, span->wait_ticket, stream);
    if (status != TOL_OK) {
        pool->arena_used -= bytes;
        tol_pages_leave(&pool->pages, span->begin, bytes);
        tol_spans_give(&pool->spans, span, span->wait_streams, span->wait_ticket);
        span = NULL;
    }
out:
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    *result = span;
    return status;
}

tol_status tol_pool_unplace(struct tol_pool *pool, struct tol_span *span,
                            struct tol_stream *stream) {
    tol_status status = TOL_OK;
    uint64_t streams = 0, ticket = 0;
    const uint64_t begin = span->begin, bytes = span->bytes;
    const bool is_shared = !pool->is_chunked && tol_mesh_touches(pool, begin, bytes);
    TOL_CHECK(!is_shared ||
                  tol_spans_reserve(&pool->spans, 2 * (bytes / pool->pages.page_bytes + 3)),
              TOL_OUT_OF_HOST_MEMORY, "no host memory for records of free ranges on shared pages");
    TOL_TRY(tol_pool_mark(pool, stream, &streams, &ticket));
    pool->arena_used -= bytes;
    pool->is_dense = false;
    if (!pool->is_chunked) tol_pages_leave(&pool->pages, begin, bytes);
    struct tol_span *hole = tol_spans_give(&pool->spans, span, streams, ticket);
    if (is_shared) tol_mesh_block(pool, hole, begin + bytes, streams, ticket);
out:
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    return status;
}

void tol_pool_each_done(struct tol_pool *pool,
                        bool (*visit)(void *user, uint64_t begin, uint64_t end), void *user) {
    for (unsigned bin = TOL_SPAN_BINS; bin-- > 0;) {
        for (struct tol_span *hole = pool->spans.bins[bin]; hole != NULL; hole = hole->bin_after) {
            const uint64_t begin = hole->begin, end = hole->begin + hole->bytes;
            if (hole->bytes < pool->pages.page_bytes) return;
            if (tol_tickets_open(&pool->tickets, hole->wait_streams, hole->wait_ticket, true) ==
                0) {
                hole->wait_streams = 0;
                if (!visit(user, begin, end)) return;
            } else if (!visit(user, hole->wait_end, end) || !visit(user, begin, hole->wait_begin)) {
                return;
            }
        }
    }
}

struct giver {
    struct tol_pool *pool;
    uint64_t want, given;
};

static bool give_pages(void *user, uint64_t begin, uint64_t end) {
    struct giver *giver = user;
    giver->given += tol_pages_release(&giver->pool->pages, begin, end, giver->want - giver->given);
    return giver->given < giver->want;
}

static uint64_t pool_place_give_back(struct tol_pool *pool, uint64_t keep) {
    uint64_t held = tol_pool_held(pool);
    if (held <= keep) return 0;
    const uint64_t want = held - keep;
    uint64_t given = tol_stitch_release(pool, want);
    if (given < want) given += tol_pool_release_large(pool, want - given);
    if (pool->is_chunked) {
        return given + (given < want ? tol_pool_release_chunks(pool, want - given, keep > 0) : 0);
    }
    if (pool->pages.shared_count > 0 && given < want) given += tol_mesh_release(pool, want - given);
    struct giver giver = {pool, want, given};
    if (given < want) tol_pool_each_done(pool, give_pages, &giver);
    return giver.given;
}

uint64_t tol_pool_give_back(struct tol_pool *pool, uint64_t keep) {
    tol_tickets_begin_pass(&pool->tickets);
    const uint64_t begin = tol_meter_begin(pool), given = pool_place_give_back(pool, keep);
    tol_tickets_end_pass(&pool->tickets);
    tol_meter_end(pool, begin);
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    return given;
}

void tol_pool_tidy(struct tol_pool *pool) {
    const struct tol_pool_options *options = &pool->options;
    double used = (double)(pool->arena_used + pool->large_held - pool->large_kept);
    double held = (double)tol_pool_held(pool), slack = (double)options->slack_bytes;
    /* The first handles hold too little to be worth driver calls. */
    double least = (double)options->first_bytes * options->first_count;
    if (held <= used * options->trim_above + slack || options->trim_above <= 0) return;
    if (held <= least) return;
    /* A search costs a microsecond. It can succeed if a handle has no block; if it fails, it cannot
     * succeed before a block is freed. */
    if (pool->is_dense) return;
    if (!pool->is_chunked && pool->pages.idle_count == 0 && pool->large_kept == 0 &&
        pool->spares.count == 0) {
        return;
    }
    const uint64_t keep = (uint64_t)(used * options->trim_to + slack);
    pool->is_dense = tol_pool_give_back(pool, keep) == 0;
}
