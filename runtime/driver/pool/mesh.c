/*
 * Passes: what to mesh, from a plan of all live bytes, and what is blocked afterwards.
 *
 * A pass is planned twice, first without moves: if the goal cannot be reached, nothing is changed.
 */
#include "mesh.h"

#include <stdlib.h>

/* A pass frees at least this share of the held bytes, so that many allocations need few passes. */
enum { LEAST_SHARE = 16 };

static enum tol_span_state mesh_state_of(const struct tol_span *span) {
    return tol_span_state_of(atomic_load_explicit(&span->name, memory_order_relaxed));
}

static bool mesh_is_used(const struct tol_span *span) {
    return mesh_state_of(span) == TOL_SPAN_LIVE || mesh_state_of(span) == TOL_SPAN_CACHED;
}

static uint32_t mesh_page_of(const struct tol_pages *pages, uint64_t address) {
    return (uint32_t)((address - pages->begin) / pages->page_bytes);
}

/* Enters all blocks into a plan. */
static bool mesh_build(struct tol_pool *pool, struct tol_mesh_plan *plan) {
    const struct tol_pages *pages = &pool->pages;
    const uint64_t unit = pages->page_bytes;
    bool done = false;
    struct tol_mesh_frame **frames =
        calloc(pages->handle_count + 1, sizeof(struct tol_mesh_frame *));
    tol_mesh_begin(plan, (uint32_t)(unit / TOL_SPAN_GRANULE));
    if (frames == NULL) return false;
    for (struct tol_span *span = pool->spans.first; span != NULL; span = span->after) {
        if (!mesh_is_used(span)) continue;
        const uint64_t end = span->begin + span->bytes;
        for (uint64_t at = span->begin, next = 0; at < end; at = next) {
            uint32_t page = mesh_page_of(pages, at), place = pages->table[page] - 1;
            const struct tol_page_handle *handle = &pages->handles[place];
            uint64_t page_begin = tol_pages_address(pages, page);
            next = page_begin + unit < end ? page_begin + unit : end;
            if (frames[place] == NULL) {
                frames[place] = tol_mesh_frame(plan, place, handle->pages);
            }
            if (frames[place] == NULL ||
                !tol_mesh_use(plan, frames[place], handle->pages == 1 ? 0 : page - handle->first,
                              (uint32_t)((at - page_begin) / TOL_SPAN_GRANULE),
                              (uint32_t)((next - at) / TOL_SPAN_GRANULE))) {
                goto out;
            }
        }
    }
    done = true;
out:
    free((void *)frames);
    return done;
}

uint64_t tol_mesh_promise(struct tol_pool *pool, uint64_t want, uint64_t room) {
    const uint64_t unit = pool->pages.page_bytes;
    struct tol_mesh_plan plan;
    uint64_t gained = 0;
    if (unit == 0) return 0;
    if (mesh_build(pool, &plan)) {
        gained = tol_mesh_run(&plan, (want + unit - 1) / unit, room / unit, NULL, NULL) * unit;
    }
    tol_mesh_clear(&plan);
    return gained;
}

/* ---- what is blocked ------------------------------------------------------------------------- */

static bool is_shared(const struct tol_pages *pages, uint32_t page) {
    uint32_t place = page < pages->top ? pages->table[page] : 0;
    return place != 0 && pages->handles[place - 1].is_shared;
}

bool tol_mesh_touches(const struct tol_pool *pool, uint64_t begin, uint64_t bytes) {
    const struct tol_pages *pages = &pool->pages;
    if (pages->shared_count == 0) return false;
    for (uint32_t page = mesh_page_of(pages, begin); page <= mesh_page_of(pages, begin + bytes - 1);
         page++) {
        if (is_shared(pages, page)) return true;
    }
    return false;
}

/* Blocks the first part of a hole that is on a shared page; NULL: no part is. */
static struct tol_span *block_first(struct tol_pool *pool, struct tol_span *hole, uint64_t streams,
                                    uint64_t ticket) {
    struct tol_pages *pages = &pool->pages;
    const uint64_t hole_end = hole->begin + hole->bytes;
    uint32_t page = mesh_page_of(pages, hole->begin), end = mesh_page_of(pages, hole_end - 1) + 1;
    if (end > pages->top) end = pages->top;
    while (page < end && !is_shared(pages, page)) page++;
    if (page >= end) return NULL;
    uint64_t begin = tol_pages_address(pages, page), after = begin + pages->page_bytes;
    if (begin < hole->begin) begin = hole->begin;
    if (after > hole_end) after = hole_end;
    struct tol_span *span = tol_spans_block(&pool->spans, hole, begin, after - begin);
    if (span == NULL) return NULL;
    struct tol_page_handle *handle = &pages->handles[pages->table[page] - 1];
    handle->streams |= streams;
    if (ticket > handle->ticket) handle->ticket = ticket;
    span->bin_after = pages->shares[page].blocked;
    pages->shares[page].blocked = span;
    return span;
}

void tol_mesh_block(struct tol_pool *pool, struct tol_span *from, uint64_t end, uint64_t streams,
                    uint64_t ticket) {
    for (struct tol_span *span = from; span != NULL && span->begin < end; span = span->after) {
        if (mesh_state_of(span) != TOL_SPAN_FREE) continue;
        struct tol_span *blocked = block_first(pool, span, streams, ticket);
        if (blocked != NULL) span = blocked;
    }
}

/* Releases one shared handle, and frees the addresses of its pages. */
static void mesh_release(struct tol_pool *pool, struct tol_page_handle *handle) {
    struct tol_pages *pages = &pool->pages;
    const struct tol_driver_table *driver = pages->context->functions;
    for (uint32_t page = handle->first + 1, next = 0; page != 0; page = next) {
        struct tol_page_share *share = &pages->shares[page - 1];
        next = share->next;
        driver->cuMemUnmap(tol_pages_address(pages, page - 1), pages->page_bytes);
        pages->table[page - 1] = 0;
        for (struct tol_span *span = share->blocked, *after = NULL; span != NULL; span = after) {
            after = span->bin_after;
            tol_spans_give(&pool->spans, span, 0, 0);
            /* It was not a block's, and a give decrements the count. */
        }
        *share = (struct tol_page_share){0};
    }
    driver->cuMemRelease(handle->memory);
    pages->releases++;
    pages->mapped -= pages->page_bytes;
    pages->shared_count--;
    pages->idle_count--;
    tol_pages_drop_handle(pages, handle);
}

uint64_t tol_mesh_release(struct tol_pool *pool, uint64_t want) {
    struct tol_pages *pages = &pool->pages;
    uint64_t released = 0;
    for (size_t i = 0; i < pages->handle_count && pages->shared_count > 0 && released < want; i++) {
        struct tol_page_handle *handle = &pages->handles[i];
        if (!handle->is_shared || handle->blocks > 0) continue;
        if (tol_tickets_open(&pool->tickets, handle->streams, handle->ticket, true) != 0) continue;
        mesh_release(pool, handle);
        released += pages->page_bytes;
    }
    return released;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* Everything that a pass may need, so that nothing is missing once pages share memory. */
static tol_status mesh_prepare(struct tol_pool *pool, struct tol_mesher *m) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &pool->pages;
    uint32_t most = 1, mapped = 0;
    for (size_t i = 0; i < pages->handle_count; i++) {
        if (pages->handles[i].pages > most) most = pages->handles[i].pages;
        mapped += pages->handles[i].pages;
    }
    if (pages->shares == NULL) {
        pages->shares = calloc(pages->page_count, sizeof *pages->shares);
    }
    m->mapped = calloc(pages->top + 1, sizeof *m->mapped);
    TOL_CHECK(pages->shares != NULL && m->mapped != NULL &&
                  tol_spans_reserve(&pool->spans, 2 * (pool->spans.free_count + pages->top + 1)),
              TOL_OUT_OF_HOST_MEMORY, "no host memory for tables of %u pages", mapped);
    m->scratch_bytes = most * pages->page_bytes;
    TOL_CONTEXT_CU(pool->context, cuMemAddressReserve,
                   (&m->scratch, m->scratch_bytes, pages->page_bytes, 0, 0),
                   "%llu bytes of addresses", (unsigned long long)m->scratch_bytes);
out:
    return status;
}

tol_status tol_mesh_pass(struct tol_pool *pool, uint64_t want, uint64_t *gained) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &pool->pages;
    struct tol_mesher m = {.pool = pool};
    struct tol_mesh_plan plan = {0};
    const uint64_t unit = pages->page_bytes, room = tol_pool_room(pool);
    uint64_t most = tol_pool_held(pool) / LEAST_SHARE;
    *gained = 0;
    if (most < want) most = want;
    if (tol_mesh_promise(pool, want, room) < want) goto out;
    TOL_TRY(tol_context_synchronize(pool->context, TOL_DEADLINE_MS));
    TOL_TRY(mesh_prepare(pool, &m));
    TOL_CHECK(mesh_build(pool, &plan), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a plan of %zu handles", pages->handle_count);
    pool->mesh_passes++;
    *gained = tol_mesh_run(&plan, (most + unit - 1) / unit, room / unit, tol_mesh_move, &m) * unit;
    tol_mesh_block(pool, pool->spans.first, UINT64_MAX, 0, 0);
out:
    tol_mesh_clear(&plan);
    free(m.mapped);
    if (m.scratch != 0) {
        pool->context->functions->cuMemAddressFree(m.scratch, m.scratch_bytes);
    }
    return status;
}
