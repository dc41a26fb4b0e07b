/*
 * A pool as JSON: all blocks, holes and pages at one moment. snapshot.schema.json describes it.
 */
#include "core/c_locale.h" /* tol_long_text_add writes numbers so */
#include "long_text.h"
#include "pool_name.h"
#include "core/site.h"

typedef unsigned long long number;

static void pool_snapshot_put(struct tol_long_text *text, const char *name, uint64_t value) {
    tol_long_text_add(text, "\"%s\": %llu, ", name, (number)value);
}

/* Ends a list of names: removes the last comma. */
static void pool_snapshot_end(struct tol_long_text *text, const char *with) {
    if (!text->is_cut && text->length >= 2 && text->at[text->length - 2] == ',') text->length -= 2;
    tol_long_text_add(text, "%s", with);
}

static void put_options(struct tol_long_text *text, const struct tol_pool_options *o) {
    tol_long_text_add(text,
                      "\"options\": {\"grow_share\": %.6g, \"trim_above\": %.6g, "
                      "\"trim_to\": %.6g, \"wipe\": %s, ",
                      o->grow_share, o->trim_above, o->trim_to, o->wipe ? "true" : "false");
    pool_snapshot_put(text, "address_bytes", o->address_bytes);
    pool_snapshot_put(text, "page_bytes", o->page_bytes);
    pool_snapshot_put(text, "first_bytes", o->first_bytes);
    pool_snapshot_put(text, "first_count", o->first_count);
    pool_snapshot_put(text, "large_bytes", o->large_bytes);
    pool_snapshot_put(text, "slack_bytes", o->slack_bytes);
    pool_snapshot_put(text, "keep_bytes", o->keep_bytes);
    pool_snapshot_put(text, "limit_bytes", o->limit_bytes);
    pool_snapshot_put(text, "magazine_max_bytes", o->magazine_max_bytes);
    pool_snapshot_put(text, "magazine_bytes", o->magazine_bytes);
    pool_snapshot_put(text, "park_bytes", o->park_bytes);
    pool_snapshot_put(text, "guard_one_in", o->guard_one_in);
    pool_snapshot_put(text, "time_one_in", o->time_one_in);
    pool_snapshot_put(text, "trace_events", o->trace_events);
    pool_snapshot_end(text, "},\n");
}

static void put_stats(struct tol_long_text *text, const struct tol_pool_stats *s) {
    tol_long_text_add(text, "\"stats\": {");
    pool_snapshot_put(text, "requested", s->requested);
    pool_snapshot_put(text, "requested_peak", s->requested_peak);
    pool_snapshot_put(text, "rounded", s->rounded);
    pool_snapshot_put(text, "used", s->used);
    pool_snapshot_put(text, "cached", s->cached);
    pool_snapshot_put(text, "held", s->held);
    pool_snapshot_put(text, "held_peak", s->held_peak);
    pool_snapshot_put(text, "kept", s->kept);
    pool_snapshot_put(text, "idle", s->idle);
    pool_snapshot_put(text, "page_waste", s->page_waste);
    pool_snapshot_put(text, "pending", s->pending);
    pool_snapshot_put(text, "largest_hole", s->largest_hole);
    pool_snapshot_put(text, "blocks", s->blocks);
    pool_snapshot_put(text, "allocations", s->allocations);
    pool_snapshot_put(text, "frees", s->frees);
    pool_snapshot_put(text, "magazine_hits", s->magazine_hits);
    pool_snapshot_put(text, "driver_allocations", s->driver_allocations);
    pool_snapshot_put(text, "driver_frees", s->driver_frees);
    pool_snapshot_put(text, "driver_calls", s->driver_calls);
    pool_snapshot_put(text, "driver_ns", s->driver_ns);
    pool_snapshot_put(text, "stream_waits", s->stream_waits);
    pool_snapshot_put(text, "guarded", s->guarded);
    pool_snapshot_put(text, "refused", s->refused);
    pool_snapshot_put(text, "stitched", s->stitched);
    pool_snapshot_put(text, "stitched_bytes", s->stitched_bytes);
    pool_snapshot_put(text, "events", s->events);
    pool_snapshot_put(text, "events_lost", s->events_lost);
    pool_snapshot_end(text, "},\n");
}

static void put_times(struct tol_long_text *text, const char *name, const struct tol_hdr *times) {
    tol_long_text_add(text, "\"%s\": {\"mean_ns\": %.6g, ", name, tol_hdr_mean(times));
    pool_snapshot_put(text, "count", (uint64_t)times->total);
    pool_snapshot_put(text, "min_ns", (uint64_t)tol_hdr_min(times));
    pool_snapshot_put(text, "p50_ns", (uint64_t)tol_hdr_percentile(times, 50));
    pool_snapshot_put(text, "p90_ns", (uint64_t)tol_hdr_percentile(times, 90));
    pool_snapshot_put(text, "p99_ns", (uint64_t)tol_hdr_percentile(times, 99));
    pool_snapshot_put(text, "p999_ns", (uint64_t)tol_hdr_percentile(times, 99.9));
    pool_snapshot_put(text, "max_ns", (uint64_t)tol_hdr_max(times));
    pool_snapshot_end(text, "}, ");
}

static void put_tags(struct tol_long_text *text, const struct tol_pool *pool) {
    tol_long_text_add(text, "\"tags\": [");
    for (unsigned i = 1; i < pool->tag_count; i++) {
        const struct tol_pool_tag *tag = &pool->tags[i];
        tol_long_text_add(text, "\n{\"name\": ");
        tol_long_text_quote(text, tag->name);
        tol_long_text_add(text, ", ");
        pool_snapshot_put(text, "used", atomic_load_explicit(&tag->used, memory_order_relaxed));
        pool_snapshot_put(text, "quota", atomic_load_explicit(&tag->quota, memory_order_relaxed));
        pool_snapshot_end(text, "}, ");
    }
    pool_snapshot_end(text, "],\n");
}

static void put_pages(struct tol_long_text *text, const struct tol_pages *pages) {
    tol_long_text_add(text, "\"pages\": [");
    for (size_t i = 0; i < pages->handle_count; i++) {
        const struct tol_page_handle *handle = &pages->handles[i];
        if (handle->pages == 0) continue;
        tol_long_text_add(text, "\n{");
        pool_snapshot_put(text, "address", pages->begin + handle->first * pages->page_bytes);
        pool_snapshot_put(text, "bytes", handle->pages * pages->page_bytes);
        pool_snapshot_put(text, "blocks", handle->blocks);
        pool_snapshot_end(text, "}, ");
    }
    pool_snapshot_end(text, "],\n");
}

static void put_hole(struct tol_long_text *text, struct tol_pool *pool,
                     const struct tol_span *hole) {
    uint64_t open = tol_tickets_open(&pool->tickets, hole->wait_streams, hole->wait_ticket, false);
    tol_long_text_add(text, "\n{");
    pool_snapshot_put(text, "address", hole->begin);
    pool_snapshot_put(text, "bytes", hole->bytes);
    pool_snapshot_put(text, "mapped",
                      tol_pool_mapped(pool, hole->begin, hole->begin + hole->bytes));
    pool_snapshot_put(text, "pending",
                      open != 0 ? tol_pool_mapped(pool, hole->wait_begin, hole->wait_end) : 0);
    pool_snapshot_end(text, "}, ");
}

static void put_block(struct tol_long_text *text, const struct tol_pool *pool,
                      const struct tol_span *span, bool is_large, bool is_cached) {
    const struct tol_pool_label label = tol_span_label(span);
    const struct tol_large *large = span->owner;
    char site[TOL_SITE_BYTES];
    tol_long_text_add(text, "\n{\"block\": \"%#llx\", ",
                      (number)tol_block_of(pool, span, is_large).name);
    pool_snapshot_put(text, "address", tol_span_address(span));
    pool_snapshot_put(text, "bytes", is_cached ? 0 : label.bytes);
    pool_snapshot_put(text, "rounded", is_large ? large->mapped : span->bytes);
    tol_long_text_add(text, "\"large\": %s, \"cached\": %s, \"tag\": ", is_large ? "true" : "false",
                      is_cached ? "true" : "false");
    tol_long_text_quote(text, pool->tags[label.tag].name);
    tol_long_text_add(text, ", \"site\": ");
    tol_long_text_quote(text, tol_site_text(label.site, site));
    tol_long_text_add(text, "}, ");
}

/* Those of one list that are used, or the free ones. */
static void put_spans(struct tol_long_text *text, struct tol_pool *pool, bool is_large,
                      bool is_free) {
    const struct tol_spans *spans = is_large ? &pool->large_spans : &pool->spans;
    const struct tol_span *span = NULL;
    for (uint32_t i = 0; (span = tol_spans_at(spans, i)) != NULL; i++) {
        uint64_t name = atomic_load_explicit(&span->name, memory_order_acquire);
        enum tol_span_state state = tol_span_state_of(name);
        if (is_free && state == TOL_SPAN_FREE) put_hole(text, pool, span);
        if (is_free || (state != TOL_SPAN_LIVE && state != TOL_SPAN_CACHED)) continue;
        put_block(text, pool, span, is_large, state == TOL_SPAN_CACHED);
    }
}

tol_status tol_pool_snapshot(struct tol_pool *pool, char **result) {
    tol_status status = TOL_OK;
    struct tol_long_text text = {0};
    struct tol_hdr *times[TOL_POOL_CALLS] = {NULL};
    struct tol_pool_stats stats;
    TOL_CHECK(pool != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_snapshot: an argument is NULL");
    for (int call = 0; call < TOL_POOL_CALLS; call++) {
        TOL_TRY(tol_pool_times(pool, (enum tol_pool_call)call, &times[call]));
    }
    TOL_TRY(tol_pool_stats(pool, &stats));
    pthread_mutex_lock(&pool->lock);
    tol_long_text_add(&text, "{\"schema\": 1, \"source\": \"%s\",\n",
                      pool->driver_pool == NULL ? "mapped" : "driver");
    put_options(&text, &pool->options);
    put_stats(&text, &stats);
    tol_long_text_add(&text, "\"times\": {");
    put_times(&text, "allocate", times[TOL_POOL_CALL_ALLOCATE]);
    put_times(&text, "free", times[TOL_POOL_CALL_FREE]);
    pool_snapshot_end(&text, "},\n");
    put_tags(&text, pool);
    put_pages(&text, &pool->pages);
    tol_long_text_add(&text, "\"holes\": [");
    put_spans(&text, pool, false, true);
    pool_snapshot_end(&text, "],\n\"blocks\": [");
    put_spans(&text, pool, false, false);
    put_spans(&text, pool, true, false);
    pool_snapshot_end(&text, "]}\n");
    pthread_mutex_unlock(&pool->lock);
    status = tol_long_text_end(&text, result);
out:
    for (int call = 0; call < TOL_POOL_CALLS; call++) tol_hdr_free(times[call]);
    return status;
}
