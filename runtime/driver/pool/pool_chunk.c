/*
 * Pools on devices that cannot map memory: chunks of the driver's own allocations.
 *
 * A block is cut from the tightest hole of any chunk. If the pool holds too much, empty chunks are
 * released, except for one that the next block may need. No other memory can be released, so this
 * form holds more for the same blocks than the mapped one (POOL design, simulation 3a).
 */
#include "core/deep.h"
#include "core/nvtx_marks.h"
#include "pool_state.h"

#include <stdlib.h>

enum { CANDIDATES = 16 };

struct tol_chunk {
    struct tol_chunk *next;
    struct tol_span *first; /* its lowest span */
    uint64_t bytes;
};

/* The tightest hole, preferring holes that need no wait. */
static struct tol_span *find_hole(struct tol_pool *pool, uint64_t bytes) {
    struct tol_span *holes[CANDIDATES], *best = NULL;
    size_t count = tol_spans_fitting(&pool->spans, bytes, holes, CANDIDATES);
    bool best_waits = true;
    for (size_t i = 0; i < count; i++) {
        bool waits = tol_tickets_open(&pool->tickets, holes[i]->wait_streams, holes[i]->wait_ticket,
                                      false) != 0;
        if (best != NULL &&
            (waits > best_waits || (waits == best_waits && holes[i]->bytes >= best->bytes))) {
            continue;
        }
        best = holes[i];
        best_waits = waits;
    }
    return best;
}

/* The size of the next chunk: the first ones are larger, and the rest of a limit is used up. */
static uint64_t pool_chunk_chunk_bytes(const struct tol_pool *pool, uint64_t bytes) {
    const struct tol_pool_options *options = &pool->options;
    uint64_t size = 2 * options->large_bytes, held = tol_pool_held(pool);
    if (pool->chunk_creates < options->first_count) size = options->first_bytes;
    if (options->limit_bytes != 0 && held + size > options->limit_bytes) {
        size = options->limit_bytes > held ? options->limit_bytes - held : 0;
        size = size / TOL_SPAN_GRANULE * TOL_SPAN_GRANULE;
    }
    return size > bytes && !pool->is_short ? size : bytes;
}

static tol_status add_chunk(struct tol_pool *pool, uint64_t bytes, struct tol_span **hole) {
    tol_status status = TOL_OK;
    CUdeviceptr at = 0;
    struct tol_chunk *chunk = calloc(1, sizeof *chunk);
    TOL_CHECK(chunk != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a chunk");
    chunk->bytes = bytes;
    TOL_TRY(tol_pool_charge(pool, bytes));
    TOL_CHECK(tol_spans_reserve(&pool->spans, 1), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a record of a chunk");
    TOL_CONTEXT_CU(pool->context, cuMemAlloc_v2, (&at, bytes), "allocating a chunk of %llu bytes",
                   (unsigned long long)bytes);
    if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_heap(at, bytes);
    chunk->first = tol_spans_add(&pool->spans, at, bytes);
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    pool->chunk_creates++;
    pool->chunk_held += bytes;
    *hole = chunk->first;
    return TOL_OK;
out:
    free(chunk);
    return status;
}

tol_status tol_pool_place_chunked(struct tol_pool *pool, uint64_t bytes, struct tol_stream *stream,
                                  struct tol_span **result) {
    tol_status status = TOL_OK;
    struct tol_span *span = NULL, *hole = find_hole(pool, bytes);
    if (hole == NULL && tol_magazine_reclaim(pool)) hole = find_hole(pool, bytes);
    if (hole == NULL) TOL_TRY(add_chunk(pool, pool_chunk_chunk_bytes(pool, bytes), &hole));
    span = tol_spans_take(&pool->spans, hole, hole->begin, bytes);
    TOL_CHECK(span != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a record of a block");
    status = tol_pool_order(pool, span->wait_streams, span->wait_ticket, stream);
    if (status != TOL_OK) {
        tol_spans_give(&pool->spans, span, span->wait_streams, span->wait_ticket);
        span = NULL;
        goto out;
    }
    pool->arena_used += bytes;
out:
    TOL_DEEP_ASSERT(tol_pool_is_valid(pool));
    *result = span;
    return status;
}

static bool has_no_block(const struct tol_chunk *chunk) {
    uint64_t name = atomic_load_explicit(&chunk->first->name, memory_order_relaxed);
    return tol_span_state_of(name) == TOL_SPAN_FREE && chunk->first->bytes == chunk->bytes;
}

uint64_t tol_pool_empty_chunks(const struct tol_pool *pool) {
    uint64_t bytes = 0;
    for (const struct tol_chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next) {
        if (has_no_block(chunk)) bytes += chunk->bytes;
    }
    return bytes;
}

static bool pool_chunk_is_empty(struct tol_pool *pool, const struct tol_chunk *chunk) {
    const struct tol_span *first = chunk->first;
    return has_no_block(chunk) &&
           tol_tickets_open(&pool->tickets, first->wait_streams, first->wait_ticket, true) == 0;
}

static void pool_chunk_drop(struct tol_pool *pool, struct tol_chunk *chunk) {
    if (TOL_UNLIKELY(tol_marks_listen)) tol_marks_heap_end(chunk->first->begin);
    pool->context->functions->cuMemFree_v2(chunk->first->begin);
    pool->chunk_releases++;
    pool->chunk_held -= chunk->bytes;
    free(chunk);
}

uint64_t tol_pool_release_chunks(struct tol_pool *pool, uint64_t want, unsigned but) {
    uint64_t released = 0;
    for (struct tol_chunk **link = &pool->chunks; *link != NULL && released < want;) {
        struct tol_chunk *chunk = *link;
        if (!pool_chunk_is_empty(pool, chunk) || but > 0) {
            if (but > 0 && pool_chunk_is_empty(pool, chunk)) but--;
            link = &chunk->next;
            continue;
        }
        *link = chunk->next;
        released += chunk->bytes;
        struct tol_span *region = chunk->first;
        pool_chunk_drop(pool, chunk);
        tol_spans_remove(&pool->spans, region);
    }
    return released;
}

void tol_pool_close_chunks(struct tol_pool *pool) {
    while (pool->chunks != NULL) {
        struct tol_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        pool_chunk_drop(pool, chunk);
    }
}
