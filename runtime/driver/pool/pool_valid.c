/*
 * The invariants of a pool's pages, its large blocks and the pool as a whole, for asserts.
 *
 * Each function compares the tables with the counters that are kept beside them, and changes
 * nothing. With NDEBUG this file is empty.
 */
#include "pool_state.h"

#include <stdlib.h>

#ifndef NDEBUG

/* ---- pages ---- */

static bool is_in_list(const struct tol_pages *pages, const struct tol_page_handle *handle,
                       uint32_t page) {
    uint32_t at = handle->first + 1;
    for (size_t steps = 0; at != 0 && steps < pages->page_count; steps++) {
        if (at - 1 == page) return true;
        at = pages->shares[at - 1].next;
    }
    return false;
}

bool tol_page_is_valid(const struct tol_pages *pages, uint32_t page) {
    if (page >= pages->page_count) return false;
    const uint32_t place = pages->table[page];
    if (place == 0) return true;
    if (page >= pages->top || place > pages->handle_count) return false;
    const struct tol_page_handle *handle = &pages->handles[place - 1];
    if (handle->is_shared) return handle->pages == 1;
    return page >= handle->first && page - handle->first < handle->pages;
}

/* Whether each page of a handle leads back to it. */
static bool is_handle_valid(const struct tol_pages *pages, uint32_t place) {
    const struct tol_page_handle *handle = &pages->handles[place];
    for (uint32_t i = 0; i < handle->pages; i++) {
        if (handle->first + i >= pages->top) return false;
        if (pages->table[handle->first + i] != place + 1) return false;
    }
    return true;
}

bool tol_pages_is_valid(const struct tol_pages *pages) {
    uint64_t mapped = 0;
    size_t idle = 0, shared = 0, unused = 0, listed = 0;
    for (uint32_t page = 0; page < pages->top; page++) {
        if (!tol_page_is_valid(pages, page)) return false;
        const uint32_t place = pages->table[page];
        if (place != 0 && pages->handles[place - 1].is_shared &&
            !is_in_list(pages, &pages->handles[place - 1], page)) {
            return false;
        }
    }
    for (size_t i = 0; i < pages->handle_count; i++) {
        const struct tol_page_handle *handle = &pages->handles[i];
        unused += handle->pages == 0;
        if (handle->pages == 0) continue;
        if (!is_handle_valid(pages, (uint32_t)i)) return false;
        mapped += handle->pages * pages->page_bytes;
        idle += handle->blocks == 0;
        shared += handle->is_shared;
    }
    for (uint32_t at = pages->unused; at != 0 && listed <= unused;
         at = pages->handles[at - 1].first) {
        listed++;
    }
    return listed == unused && mapped == pages->mapped && idle == pages->idle_count &&
           shared == pages->shared_count;
}

/* ---- large blocks ---- */

static bool pool_valid_is_used(const struct tol_span *span) {
    const enum tol_span_state state =
        tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed));
    return state == TOL_SPAN_LIVE || state == TOL_SPAN_CACHED;
}

bool tol_large_is_valid(const struct tol_pool *pool, const struct tol_large *large) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < large->part_count; i++) bytes += large->parts[i].bytes;
    return large->span->owner == large && pool_valid_is_used(large->span) &&
           large->mapped <= large->span->bytes && large->offset <= large->mapped &&
           (pool->is_chunked ? large->part_count == 0 : bytes == large->mapped);
}

static bool is_large_memory_valid(const struct tol_pool *pool) {
    uint64_t kept = 0, held = 0;
    for (const struct tol_large *large = pool->kept; large != NULL; large = large->next) {
        kept += large->mapped;
        if (kept > pool->large_kept || !tol_large_is_valid(pool, large)) return false;
    }
    for (size_t i = 0; i < pool->large_spans.chunk_count * TOL_SPAN_CHUNK; i++) {
        const struct tol_span *span = tol_spans_at(&pool->large_spans, (uint32_t)i);
        if (!pool_valid_is_used(span)) continue;
        const struct tol_large *large = span->owner;
        if (large == NULL || !tol_large_is_valid(pool, large)) return false;
        held += large->mapped;
    }
    return kept == pool->large_kept && held == pool->large_held;
}

/* ---- the whole ---- */

/* Counts a block at each handle that it touches, once per page; false: a page of it has no
 * memory. */
static bool pool_valid_count_block(const struct tol_pages *pages, const struct tol_span *span,
                                   uint32_t *blocks) {
    const uint64_t last = span->begin + span->bytes - 1;
    if (span->begin < pages->begin || last >= pages->begin + pages->bytes) return false;
    for (uint64_t page = (span->begin - pages->begin) / pages->page_bytes;
         page <= (last - pages->begin) / pages->page_bytes; page++) {
        if (pages->table[page] == 0) return false;
        blocks[pages->table[page] - 1]++;
    }
    return true;
}

static bool are_blocks_valid(const struct tol_pool *pool) {
    const struct tol_pages *pages = &pool->pages;
    const bool is_mapped = pages->context != NULL;
    uint64_t used = 0;
    bool is_valid = true;
    uint32_t *blocks = calloc(pages->handle_count + 1, sizeof *blocks);
    if (blocks == NULL) return true; /* it cannot be said */
    for (size_t i = 0; i < pool->spans.chunk_count * TOL_SPAN_CHUNK && is_valid; i++) {
        const struct tol_span *span = tol_spans_at(&pool->spans, (uint32_t)i);
        if (!pool_valid_is_used(span)) continue;
        used += span->bytes;
        is_valid = !is_mapped || pool_valid_count_block(pages, span, blocks);
    }
    for (size_t i = 0; i < pages->handle_count && is_valid; i++) {
        is_valid = blocks[i] == pages->handles[i].blocks;
    }
    free(blocks);
    return is_valid && used == atomic_load_explicit(&pool->arena_used, memory_order_relaxed);
}

bool tol_pool_is_valid(const struct tol_pool *pool) {
    uint64_t spare = 0;
    for (size_t i = 0; i < pool->spares.count; i++) spare += pool->spares.all[i].bytes;
    return spare == pool->spares.bytes && tol_spans_is_valid(&pool->spans) &&
           tol_spans_is_valid(&pool->large_spans) && tol_pages_is_valid(&pool->pages) &&
           is_large_memory_valid(pool) && are_blocks_valid(pool);
}

#endif
