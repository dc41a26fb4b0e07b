/*
 * Statistics of a pool, the account of each tag, and the diagnosis when memory is out.
 */
#include "mesh.h"

#include <stdio.h>
#include <string.h>

static uint64_t pool_report_read_count(const _Atomic(uint64_t) *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The sums over all threads. The list of magazines only grows while the pool lives. */
static void add_magazines(struct tol_pool *pool, struct tol_pool_stats *stats) {
    int64_t requested = 0;
    tol_magazine_sum(pool, stats, &requested);
    stats->requested = requested > 0 ? (uint64_t)requested : 0;
    stats->blocks = stats->allocations - stats->frees;
}

void tol_pool_note_peak(struct tol_pool *pool, uint64_t more) {
    struct tol_pool_stats stats = {0};
    add_magazines(pool, &stats);
    uint64_t now = stats.requested + more;
    if (now > pool_report_read_count(&pool->requested_peak)) {
        atomic_store_explicit(&pool->requested_peak, now, memory_order_relaxed);
    }
}

/* Pages with memory that no block touches, and memory that is not mapped. */
static uint64_t idle_pages(const struct tol_pool *pool) {
    const struct tol_pages *pages = &pool->pages;
    uint64_t idle = pool->spares.bytes;
    for (size_t i = 0; i < pages->handle_count; i++) {
        const struct tol_page_handle *handle = &pages->handles[i];
        if (handle->blocks == 0) idle += handle->pages * pages->page_bytes;
    }
    return idle;
}

uint64_t tol_pool_idle(const struct tol_pool *pool) {
    return pool->large_kept + tol_pool_empty_chunks(pool) + idle_pages(pool);
}

uint64_t tol_pool_mapped(const struct tol_pool *pool, uint64_t begin, uint64_t end) {
    return pool->is_chunked ? end - begin : tol_pages_mapped(&pool->pages, begin, end);
}

/* Free memory that queued work may still use, as far as is known without a query. */
struct pool_pending {
    uint64_t bytes;
    uint64_t by_stream[TOL_TICKET_STREAMS]; /* by the places of the tickets; some of it may count
                                             * under several streams */
};

static void pool_report_pend(struct pool_pending *pending, uint64_t streams, uint64_t bytes) {
    if (streams == 0) return;
    pending->bytes += bytes;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        if (streams >> i & 1) pending->by_stream[i] += bytes;
    }
}

static void pool_report_find_pending(struct tol_pool *pool, struct pool_pending *pending) {
    struct tol_tickets *tickets = &pool->tickets;
    memset(pending, 0, sizeof *pending);
    for (unsigned bin = 0; bin < TOL_SPAN_BINS; bin++) {
        for (const struct tol_span *hole = pool->spans.bins[bin]; hole != NULL;
             hole = hole->bin_after) {
            const uint64_t open =
                tol_tickets_open(tickets, hole->wait_streams, hole->wait_ticket, false);
            if (open == 0) continue;
            pool_report_pend(pending, open,
                             tol_pool_mapped(pool, hole->wait_begin, hole->wait_end));
        }
    }
    for (const struct tol_large *large = pool->kept; large != NULL; large = large->next) {
        pool_report_pend(pending, tol_tickets_open(tickets, large->streams, large->ticket, false),
                         large->mapped);
    }
}

/* The most memory that one hole has. It looks at each page, so statistics do without. */
static uint64_t pool_report_largest_hole(const struct tol_pool *pool) {
    uint64_t largest = 0;
    for (unsigned bin = 0; bin < TOL_SPAN_BINS; bin++) {
        for (const struct tol_span *hole = pool->spans.bins[bin]; hole != NULL;
             hole = hole->bin_after) {
            const uint64_t mapped = tol_pool_mapped(pool, hole->begin, hole->begin + hole->bytes);
            if (mapped > largest) largest = mapped;
        }
    }
    return largest;
}

/* Under the pool's lock. */
static void fill_stats(struct tol_pool *pool, struct tol_pool_stats *stats,
                       struct pool_pending *pending) {
    memset(stats, 0, sizeof *stats);
    add_magazines(pool, stats);
    const struct tol_span *hole = tol_spans_largest(&pool->spans);
    stats->requested_peak = pool_report_read_count(&pool->requested_peak);
    if (stats->requested > stats->requested_peak) stats->requested_peak = stats->requested;
    stats->used = pool->arena_used + pool->large_held - pool->large_kept;
    stats->held = tol_pool_held(pool);
    stats->held_peak = pool->held_peak;
    stats->largest_hole = hole != NULL ? hole->bytes : 0;
    stats->driver_allocations = pool->pages.creates + pool->large_creates + pool->chunk_creates;
    stats->driver_frees =
        pool->pages.releases + pool->large_releases + pool->chunk_releases + pool->spares.releases;
    stats->stream_waits = pool->stream_waits;
    stats->guarded = pool->guarded;
    stats->refused = pool->refused;
    stats->rounded = stats->used - stats->cached;
    stats->kept = pool->large_kept;
    stats->idle = idle_pages(pool);
    uint64_t others = stats->used + stats->kept + stats->idle;
    stats->page_waste = stats->held > others ? stats->held - others : 0;
    /* A page that is mapped at several addresses counts at each of them. */
    pool_report_find_pending(pool, pending);
    const uint64_t free_bytes = stats->held > stats->used ? stats->held - stats->used : 0;
    stats->pending = pending->bytes < free_bytes ? pending->bytes : free_bytes;
    /* A handle is created and mapped, opened with others or alone, unmapped and released. */
    stats->driver_calls = 2 * (pool->pages.creates + pool->pages.releases) + pool->pages.opens +
                          pool->pages.moves + pool->large_calls + pool->spares.calls +
                          pool->tickets.driver_calls;
    stats->driver_ns = pool->driver_ns;
    stats->soft_passed = pool->soft_passed;
    stats->compactions = pool->mesh_passes;
    stats->compacted = pool->meshed;
    stats->shared = pool->pages.shared_count;
    stats->stitched = pool->stitched;
    stats->stitched_bytes = pool->stitched_bytes;
}

tol_status tol_pool_reset_peaks(struct tol_pool *pool) {
    tol_status status = TOL_OK;
    struct tol_pool_stats stats = {0};
    TOL_CHECK(pool != NULL, TOL_INVALID_ARGUMENT, "tol_pool_reset_peaks: the pool is NULL");
    pthread_mutex_lock(&pool->lock);
    add_magazines(pool, &stats);
    atomic_store_explicit(&pool->requested_peak, stats.requested, memory_order_relaxed);
    pool->held_peak = pool->driver_pool != NULL ? 0 : tol_pool_held(pool);
    pthread_mutex_unlock(&pool->lock);
out:
    return status;
}

tol_status tol_pool_stats(struct tol_pool *pool, struct tol_pool_stats *stats) {
    tol_status status = TOL_OK;
    struct pool_pending pending;
    TOL_CHECK(pool != NULL && stats != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_stats: an argument is NULL");
    TOL_TRY(tol_context_enter(pool->context));
    pthread_mutex_lock(&pool->lock);
    fill_stats(pool, stats, &pending);
    pthread_mutex_unlock(&pool->lock);
    if (pool->driver_pool != NULL) {
        cuuint64_t reserved = 0;
        TOL_CONTEXT_CU(pool->context, cuMemPoolGetAttribute,
                       (pool->driver_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
                       "getting the size of the driver's pool");
        stats->held = reserved;
        if (reserved > pool->held_peak) pool->held_peak = reserved;
        stats->held_peak = pool->held_peak;
    }
    if (tol_pool_keeps_events(pool)) {
        tol_ring_count(&pool->ring, &stats->events, &stats->events_lost);
    }
out:
    return status;
}

struct tol_context *tol_pool_context(const struct tol_pool *pool) {
    return pool->context;
}

tol_status tol_pool_tag(struct tol_pool *pool, const char *name, size_t quota, unsigned *tag) {
    tol_status status = TOL_OK;
    TOL_CHECK(pool != NULL && name != NULL && tag != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_tag: an argument is NULL");
    size_t length = strlen(name);
    TOL_CHECK(length > 0 && length < sizeof pool->tags[0].name, TOL_INVALID_ARGUMENT,
              "the name of a tag must have 1 to %zu characters; \"%.40s\" has %zu",
              sizeof pool->tags[0].name - 1, name, length);
    pthread_mutex_lock(&pool->lock);
    unsigned found = 1;
    while (found < pool->tag_count && strcmp(pool->tags[found].name, name) != 0) found++;
    if (found < TOL_POOL_TAGS) {
        if (found == pool->tag_count) {
            memcpy(pool->tags[found].name, name, length + 1);
            pool->tag_count++;
        }
        atomic_store_explicit(&pool->tags[found].quota, quota, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pool->lock);
    TOL_CHECK(found < TOL_POOL_TAGS, TOL_OVER_LIMIT, "a pool can have at most %d tags",
              TOL_POOL_TAGS - 1);
    *tag = found;
out:
    return status;
}

/* ---- the diagnosis ---- */

enum { DIAGNOSED_STREAMS = 4 };

struct text {
    char *at;
    size_t room, length;
};

static void pool_report_add(struct text *text, const char *format, ...) TOL_PRINTF(2, 3);
static void pool_report_add(struct text *text, const char *format, ...) {
    va_list arguments;
    size_t rest = text->length < text->room ? text->room - text->length : 0;
    va_start(arguments, format);
    int length = vsnprintf(rest > 0 ? text->at + text->length : NULL, rest, format, arguments);
    va_end(arguments);
    if (length > 0) text->length += (size_t)length;
}

static void pool_report_add_number(struct text *text, const char *name, uint64_t value) {
    pool_report_add(text, "\"%s\": %llu, ", name, (unsigned long long)value);
}

/* Names come from the program: a character that JSON would escape becomes a point. */
static void pool_report_add_name(struct text *text, const char *name) {
    for (; *name != '\0'; name++) {
        bool is_plain = (unsigned char)*name >= ' ' && *name != '"' && *name != '\\';
        pool_report_add(text, "%c", is_plain ? *name : '.');
    }
}

/* The tags by what they use. */
static void add_tags(struct text *text, struct tol_pool *pool) {
    pool_report_add(text, "\"tags\": {");
    for (unsigned i = 1; i < pool->tag_count; i++) {
        pool_report_add(text, "%s\"", i > 1 ? ", " : "");
        pool_report_add_name(text, pool->tags[i].name);
        pool_report_add(text, "\": {\"used\": %llu, \"quota\": %llu}",
                        (unsigned long long)pool_report_read_count(&pool->tags[i].used),
                        (unsigned long long)pool_report_read_count(&pool->tags[i].quota));
    }
    pool_report_add(text, "}");
}

/* The bytes that a block lacks beyond those of idle pages. room may be created by the driver. */
static uint64_t pool_report_lack(struct tol_pool *pool, uint64_t request, uint64_t room) {
    const uint64_t bytes = tol_pool_rounded(request > 0 ? request : 1);
    const uint64_t need = tol_pool_need(pool, bytes, bytes >= pool->options.large_bytes);
    const uint64_t have = room + tol_pool_idle(pool);
    return need > have ? need - have : 0;
}

/* Whether compaction would make a place for a block, or there is one. */
static bool would_fit(struct tol_pool *pool, uint64_t request, uint64_t room, uint64_t unused) {
    if (pool->options.source == TOL_POOL_DRIVER) return request <= unused + room;
    if (request > room + unused) return false;
    const uint64_t lack = pool_report_lack(pool, request, room);
    if (lack == 0) return true;
    return !pool->is_chunked && tol_mesh_promise(pool, lack, room + tol_pool_idle(pool)) >= lack;
}

/* What would serve a request that failed. Idle pages alone do as soon as no work uses them. */
static const char *pool_report_remedy(struct tol_pool *pool, uint64_t request, uint64_t room,
                                      uint64_t device_room, uint64_t unused) {
    if (would_fit(pool, request, room, unused)) {
        const bool moves = pool->options.source != TOL_POOL_DRIVER && !pool->options.compact &&
                           pool_report_lack(pool, request, room) > 0;
        return moves ? "compact" : "synchronize";
    }
    return room < device_room && would_fit(pool, request, device_room, unused) ? "limit_bytes"
                                                                               : "free";
}

/* The streams on which most is pending: few, because a message has an end. */
static void pool_report_add_streams(struct text *text, const struct tol_pool *pool,
                                    struct pool_pending *pending) {
    pool_report_add(text, "\"pending_streams\": {");
    for (int i = 0; i < DIAGNOSED_STREAMS; i++) {
        unsigned most = 0;
        for (unsigned k = 1; k < TOL_TICKET_STREAMS; k++) {
            if (pending->by_stream[k] > pending->by_stream[most]) most = k;
        }
        if (pending->by_stream[most] == 0) break;
        const struct tol_stream *stream = pool->tickets.streams[most].stream;
        pool_report_add(text, "%s\"%u\": %llu", i > 0 ? ", " : "",
                        stream != NULL ? stream->number : 0,
                        (unsigned long long)pending->by_stream[most]);
        pending->by_stream[most] = 0;
    }
    pool_report_add(text, "}, ");
}

size_t tol_pool_diagnose(struct tol_pool *pool, size_t request, char *text_at, size_t bytes) {
    struct text text = {text_at, bytes, 0};
    struct tol_pool_stats stats = {0};
    struct pool_pending pending;
    size_t free_bytes = 0, total_bytes = 0;
    if (bytes > 0) text_at[0] = '\0';
    if (pool == NULL) return 0;
    if (tol_context_enter(pool->context) == TOL_OK) {
        pool->context->functions->cuMemGetInfo_v2(&free_bytes, &total_bytes);
    }
    pthread_mutex_lock(&pool->lock);
    fill_stats(pool, &stats, &pending);
    const uint64_t limit = pool->options.limit_bytes;
    uint64_t room = limit == 0 ? free_bytes : limit > stats.held ? limit - stats.held : 0;
    if (room > free_bytes) room = free_bytes;
    uint64_t unused = stats.held - (stats.used < stats.held ? stats.used : stats.held);
    pool_report_add(&text, "{");
    pool_report_add_number(&text, "request", request);
    pool_report_add_number(&text, "requested", stats.requested);
    pool_report_add_number(&text, "used", stats.used);
    pool_report_add_number(&text, "held", stats.held);
    pool_report_add_number(&text, "held_and_not_used", unused);
    pool_report_add_number(&text, "limit", limit);
    pool_report_add_number(&text, "page", pool->options.page_bytes);
    pool_report_add_number(&text, "large_kept", pool->large_kept);
    pool_report_add_number(&text, "stitched", stats.stitched_bytes);
    pool_report_add_number(&text, "device_free", free_bytes);
    pool_report_add_number(&text, "device_total", total_bytes);
    pool_report_add_number(&text, "blocks", stats.blocks);
    pool_report_add_number(&text, "largest_hole", pool_report_largest_hole(pool));
    pool_report_add_number(&text, "pending", stats.pending);
    pool_report_add_streams(&text, pool, &pending);
    pool_report_add(&text, "\"would_serve\": \"%s\", ",
                    pool_report_remedy(pool, request, room, free_bytes, unused));
    pool_report_add(&text, "\"compaction\": %s, \"would_fit_after_defragmentation\": %s, ",
                    pool->options.compact ? "true" : "false",
                    would_fit(pool, request, room, unused) ? "true" : "false");
    add_tags(&text, pool);
    pool_report_add(&text, "}");
    pthread_mutex_unlock(&pool->lock);
    return text.length;
}
