/*
 * The kept events as text: for replaying, and for viewers of Chrome's trace format.
 */
#include "long_text.h"
#include "pool_state.h"

#include <stdlib.h>

typedef unsigned long long number;

struct kept {
    struct tol_pool_event *events;
    size_t count;
    uint64_t lost;
};

static tol_status read_events(struct tol_pool *pool, struct kept *kept) {
    tol_status status = TOL_OK;
    TOL_CHECK(tol_pool_keeps_events(pool), TOL_UNSUPPORTED,
              "the pool keeps no events: set trace_events of tol_pool_options");
    kept->events = malloc(pool->ring.room * sizeof *kept->events);
    TOL_CHECK(kept->events != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a copy of %zu events", pool->ring.room);
    kept->count = tol_ring_read(&pool->ring, kept->events, pool->ring.room, &kept->lost);
out:
    return status;
}

static void put_tag_lines(struct tol_long_text *text, struct tol_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    for (unsigned i = 1; i < pool->tag_count; i++) {
        tol_long_text_add(text, "#tag %u ", i);
        for (const char *c = pool->tags[i].name; *c != '\0'; c++) {
            tol_long_text_add(text, "%c", (unsigned char)*c < ' ' ? '.' : *c);
        }
        tol_long_text_add(text, "\n");
    }
    pthread_mutex_unlock(&pool->lock);
}

tol_status tol_pool_trace(struct tol_pool *pool, char **result) {
    tol_status status = TOL_OK;
    struct kept kept = {NULL, 0, 0};
    struct tol_long_text text = {0};
    TOL_CHECK(pool != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_trace: an argument is NULL");
    TOL_TRY(read_events(pool, &kept));
    tol_long_text_add(&text, "#tollens pool trace 1\n#lost %llu\n", (number)kept.lost);
    put_tag_lines(&text, pool);
    tol_long_text_add(&text, "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns\n");
    for (size_t i = 0; i < kept.count; i++) {
        const struct tol_pool_event *e = &kept.events[i];
        const number event = kept.lost + i;
        tol_long_text_add(&text, "%llu,%llu,%u,%u,%s,%llu,%llu,%u,%u\n", event, (number)e->begin_ns,
                          (unsigned)e->thread, (unsigned)e->stream, tol_pool_event_name(e->kind),
                          (number)e->block, (number)e->bytes, (unsigned)e->tag,
                          (unsigned)e->took_ns);
    }
    status = tol_long_text_end(&text, result);
out:
    free(kept.events);
    return status;
}

/* ---- Chrome's format: microseconds ---- */

/* Shorter calls are points on the counters, not slices. */
enum { SLICE_NS = 1000 };

static void put_us(struct tol_long_text *text, const char *name, uint64_t ns) {
    const number whole = ns / 1000, rest = ns % 1000;
    tol_long_text_add(text, "\"%s\": %llu.%03llu, ", name, whole, rest);
}

static void put_counter(struct tol_long_text *text, const char *name, uint64_t ns, uint64_t bytes) {
    tol_long_text_add(text, ",\n{\"ph\": \"C\", \"pid\": 1, \"name\": \"%s\", ", name);
    put_us(text, "ts", ns);
    tol_long_text_add(text, "\"args\": {\"bytes\": %llu}}", (number)bytes);
}

static void put_slice(struct tol_long_text *text, struct tol_pool *pool,
                      const struct tol_pool_event *e) {
    tol_long_text_add(text, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %u, \"name\": \"%s\", ",
                      (unsigned)e->thread, tol_pool_event_name(e->kind));
    put_us(text, "ts", e->begin_ns);
    put_us(text, "dur", e->took_ns);
    tol_long_text_add(text,
                      "\"args\": {\"bytes\": %llu, \"stream\": %u, \"block\": \"%#llx\", "
                      "\"tag\": ",
                      (number)e->bytes, (unsigned)e->stream, (number)e->block);
    tol_long_text_quote(text, pool->tags[e->tag < TOL_POOL_TAGS ? e->tag : 0].name);
    tol_long_text_add(text, "}}");
}

static int64_t pool_trace_change_of(const struct tol_pool_event *e) {
    if (e->kind == TOL_POOL_EVENT_ALLOCATE) return (int64_t)e->bytes;
    return e->kind == TOL_POOL_EVENT_FREE ? -(int64_t)e->bytes : 0;
}

tol_status tol_pool_chrome_trace(struct tol_pool *pool, char **result) {
    tol_status status = TOL_OK;
    struct kept kept = {NULL, 0, 0};
    struct tol_long_text text = {0};
    struct tol_pool_stats stats;
    TOL_CHECK(pool != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pool_chrome_trace: an argument is NULL");
    TOL_TRY(tol_pool_stats(pool, &stats));
    TOL_TRY(read_events(pool, &kept));
    /* The bytes that were live before the oldest kept event: counted back from now. */
    int64_t requested = (int64_t)stats.requested;
    for (size_t i = 0; i < kept.count; i++) requested -= pool_trace_change_of(&kept.events[i]);
    tol_long_text_add(&text,
                      "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"lost\": %llu},\n"
                      "\"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, \"name\": "
                      "\"process_name\", \"args\": {\"name\": \"pool\"}}",
                      (number)kept.lost);
    for (size_t i = 0; i < kept.count; i++) {
        const struct tol_pool_event *e = &kept.events[i];
        const uint64_t at =
            (uint64_t)e->begin_ns + (e->kind == TOL_POOL_EVENT_ALLOCATE ? e->took_ns : 0);
        requested += pool_trace_change_of(e);
        if (e->kind == TOL_POOL_EVENT_GROW || e->kind == TOL_POOL_EVENT_SHRINK) {
            put_counter(&text, "held", at, e->bytes);
            continue;
        }
        if (e->took_ns >= SLICE_NS) put_slice(&text, pool, e);
        if (pool_trace_change_of(e) != 0) {
            put_counter(&text, "requested", at, requested > 0 ? (uint64_t)requested : 0);
        }
    }
    tol_long_text_add(&text, "]}\n");
    status = tol_long_text_end(&text, result);
out:
    free(kept.events);
    return status;
}
