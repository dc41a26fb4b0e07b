/*
 * Selects the handles to map again and unmaps them. Nothing is changed before it is known that the
 * block will fit.
 *
 * A gap is filled with whole handles, because the driver cannot map a part of one: the largest that
 * fits first, and if a rest remains, the sum of sizes that comes nearest. A handle that is larger
 * than a gap helps only if it is released and its replacement created.
 */
#include "mesh.h"
#include "stitch.h"

#include <stdlib.h>

/* The most steps of the search for the best sum: some 30 ms. A remapping takes 55 us on an H200. */
enum { STEPS_MAX = 1 << 24 };

/* ---- what there is --------------------------------------------------------------------------- */

/* What cannot be noted is not used. */
static void pool_stitch_add_piece(struct tol_stitch *stitch, const struct tol_stitch_piece *piece) {
    if (stitch->count == stitch->room) {
        size_t room = stitch->room > 0 ? 2 * stitch->room : 64;
        struct tol_stitch_piece *more = realloc(stitch->pieces, room * sizeof *more);
        if (more == NULL) return;
        stitch->pieces = more;
        stitch->room = room;
    }
    stitch->pieces[stitch->count] = *piece;
    stitch->pieces[stitch->count].order = (uint32_t)stitch->count;
    stitch->count++;
}

/* The idle handles between two addresses that no work uses. */
static bool add_idle(void *user, uint64_t begin, uint64_t end) {
    struct tol_stitch *stitch = user;
    const struct tol_pages *pages = &stitch->pool->pages;
    const struct tol_page_gap range = tol_pages_between(pages, begin, end);
    const uint32_t after = range.first + range.pages;
    const uint32_t skip_end = stitch->skip.first + stitch->skip.pages;
    for (uint32_t page = range.first; page < after; page++) {
        const uint32_t place = pages->table[page];
        if (place == 0 || pages->handles[place - 1].is_shared) continue;
        const struct tol_page_handle *handle = &pages->handles[place - 1];
        const uint32_t handle_end = handle->first + handle->pages;
        const bool is_inside = handle->first >= range.first && handle_end <= after;
        page = handle_end - 1;
        if (handle->blocks > 0 || !is_inside) continue;
        if (handle->first < skip_end && handle_end > stitch->skip.first) continue;
        pool_stitch_add_piece(stitch,
                              &(struct tol_stitch_piece){
                                  .memory = {handle->memory, handle->pages * pages->page_bytes},
                                  .from = TOL_STITCH_PAGES,
                                  .handle = place - 1});
    }
    return true;
}

static void add_kept(struct tol_stitch *stitch) {
    struct tol_pool *pool = stitch->pool;
    for (struct tol_large *large = pool->kept; large != NULL; large = large->next) {
        if (tol_tickets_open(&pool->tickets, large->streams, large->ticket, true) != 0) continue;
        for (size_t i = 0; i < large->part_count; i++) {
            pool_stitch_add_piece(stitch, &(struct tol_stitch_piece){.memory = large->parts[i],
                                                                     .from = TOL_STITCH_KEPT,
                                                                     .large = large});
        }
    }
}

/* The largest first; of the same size unmapped ones, then in the order of finding, so that handles
 * of one kept block are moved together. */
static int pool_stitch_compare(const void *a, const void *b) {
    const struct tol_stitch_piece *x = a, *y = b;
    if (x->memory.bytes != y->memory.bytes) return x->memory.bytes < y->memory.bytes ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static void pool_stitch_find(struct tol_stitch *stitch) {
    const struct tol_spares *spares = &stitch->pool->spares;
    for (size_t i = 0; i < spares->count; i++) {
        pool_stitch_add_piece(stitch, &(struct tol_stitch_piece){.memory = spares->all[i]});
    }
    if (stitch->pool->may_stitch) {
        tol_pool_each_done(stitch->pool, add_idle, stitch);
        add_kept(stitch);
    }
    if (stitch->count > 0)
        qsort(stitch->pieces, stitch->count, sizeof *stitch->pieces, pool_stitch_compare);
}

/* ---- what is chosen -------------------------------------------------------------------------- */

/* Chooses the sizes with the largest sum up to want, in units, if it exceeds a minimum. */
static void choose_best(struct tol_stitch *stitch, size_t gap, uint64_t want, uint64_t least) {
    const uint64_t unit = stitch->pool->granularity;
    /* For each sum, 1 + the last piece of those that make it: each piece is added to the sums of
     * the earlier ones. */
    uint32_t *last = calloc(want + 1, sizeof *last);
    if (last == NULL) return;
    for (size_t i = 0; i < stitch->count && last[want] == 0; i++) {
        const struct tol_stitch_piece *piece = &stitch->pieces[i];
        const uint64_t size = piece->memory.bytes / unit;
        if ((piece->gap != 0 && piece->gap != gap) || size > want) continue;
        for (uint64_t sum = want; sum >= size; sum--) {
            bool can = sum == size || last[sum - size] != 0;
            if (last[sum] == 0 && can) last[sum] = (uint32_t)i + 1;
        }
    }
    uint64_t best = want;
    while (best > 0 && last[best] == 0) best--;
    if (best > least) {
        for (size_t i = 0; i < stitch->count; i++) {
            if (stitch->pieces[i].gap == gap) stitch->pieces[i].gap = 0;
        }
        for (uint64_t sum = best; sum > 0;) {
            struct tol_stitch_piece *piece = &stitch->pieces[last[sum] - 1];
            piece->gap = gap;
            sum -= piece->memory.bytes / unit;
        }
    }
    free(last);
}

static void choose_for(struct tol_stitch *stitch, size_t gap, uint64_t want) {
    const uint64_t unit = stitch->pool->granularity;
    uint64_t left = want;
    size_t others = 0; /* that would have fitted before */
    for (size_t i = 0; i < stitch->count && left > 0; i++) {
        struct tol_stitch_piece *piece = &stitch->pieces[i];
        const uint64_t size = piece->memory.bytes / unit;
        if (piece->gap != 0 || size > want) continue;
        others += size > left;
        if (size > left) continue;
        piece->gap = gap;
        left -= size;
    }
    if (left > 0 && others > 0 && stitch->count * want <= STEPS_MAX) {
        choose_best(stitch, gap, want, want - left);
    }
}

static uint64_t pool_stitch_choose(struct tol_stitch *stitch, const struct tol_page_gap *gaps,
                                   size_t gap_count) {
    uint64_t want = 0;
    for (size_t i = 0; i < gap_count; i++) {
        choose_for(stitch, i + 1, gaps[i].pages);
        want += gaps[i].pages * stitch->pool->granularity;
    }
    for (size_t i = 0; i < stitch->count; i++) {
        if (stitch->pieces[i].gap == 0) continue;
        stitch->chosen++;
        stitch->bytes += stitch->pieces[i].memory.bytes;
    }
    return want - stitch->bytes;
}

/* ---- unmapping ------------------------------------------------------------------------------- */

static bool reserve_spares(struct tol_spares *spares, size_t more) {
    if (spares->count + more <= spares->room) return true;
    const size_t room = spares->count + more + 64;
    struct tol_memory *all = realloc(spares->all, room * sizeof *all);
    if (all == NULL) return false;
    spares->all = all;
    spares->room = room;
    return true;
}

static void pool_stitch_take_spare(struct tol_spares *spares, const struct tol_memory *memory) {
    size_t i = 0;
    while (spares->all[i].handle != memory->handle) i++;
    spares->all[i] = spares->all[--spares->count];
}

static bool pool_stitch_take_kept(struct tol_stitch *stitch, struct tol_large *large) {
    const uint64_t bytes = large->mapped;
    if (!tol_pool_disband_large(stitch->pool, large)) return false;
    stitch->pool->spares.bytes += bytes;
    for (size_t i = 0; i < stitch->count; i++) {
        struct tol_stitch_piece *piece = &stitch->pieces[i];
        if (piece->large == large) piece->from = TOL_STITCH_IN_HAND;
    }
    return true;
}

/* Makes sure that a piece is not mapped; false: the driver failed. */
static bool pool_stitch_take(struct tol_stitch *stitch, struct tol_stitch_piece *piece) {
    struct tol_pool *pool = stitch->pool;
    if (piece->from == TOL_STITCH_KEPT) return pool_stitch_take_kept(stitch, piece->large);
    if (piece->from == TOL_STITCH_SPARE) pool_stitch_take_spare(&pool->spares, &piece->memory);
    if (piece->from == TOL_STITCH_PAGES) {
        if (!tol_pages_take(&pool->pages, &pool->pages.handles[piece->handle])) return false;
        pool->spares.bytes += piece->memory.bytes;
    }
    piece->from = TOL_STITCH_IN_HAND;
    return true;
}

static void pool_stitch_release(struct tol_pool *pool, const struct tol_memory *memory) {
    pool->context->functions->cuMemRelease(memory->handle);
    pool->spares.calls++;
    pool->spares.releases++;
    pool->spares.bytes -= memory->bytes;
}

uint64_t tol_stitch_release(struct tol_pool *pool, uint64_t want) {
    struct tol_spares *spares = &pool->spares;
    uint64_t released = 0;
    while (spares->count > 0 && released < want) {
        const struct tol_memory memory = spares->all[--spares->count];
        pool_stitch_release(pool, &memory);
        released += memory.bytes;
    }
    return released;
}

/* Of the handles that fit no gap, the smallest that suffices, or else the largest. */
static struct tol_stitch_piece *find_to_release(struct tol_stitch *stitch, uint64_t enough) {
    struct tol_stitch_piece *found = NULL;
    for (size_t i = 0; i < stitch->count; i++) {
        struct tol_stitch_piece *piece = &stitch->pieces[i];
        if (piece->gap != 0 || piece->from == TOL_STITCH_GONE) continue;
        if (found == NULL || piece->memory.bytes >= enough) found = piece;
    }
    return found;
}

/* Releases handles that do not fit, until this many bytes can be created instead. */
static tol_status pool_stitch_make_room(struct tol_stitch *stitch, uint64_t want) {
    tol_status status = TOL_OK;
    struct tol_stitch_piece *piece = NULL;
    while (want > 0 && (piece = find_to_release(stitch, want)) != NULL) {
        TOL_CHECK(pool_stitch_take(stitch, piece), TOL_OUT_OF_DEVICE_MEMORY,
                  "the driver failed to unmap idle memory");
        pool_stitch_release(stitch->pool, &piece->memory);
        piece->from = TOL_STITCH_GONE;
        want -= piece->memory.bytes < want ? piece->memory.bytes : want;
    }
out:
    return status;
}

/* The bytes to release, so that the rest can be created. */
static tol_status needed_room(struct tol_stitch *stitch, uint64_t rest, uint64_t *needed) {
    tol_status status = TOL_OK;
    struct tol_pool *pool = stitch->pool;
    uint64_t room = tol_pool_soft_room(pool), others = 0;
    uint64_t missing = rest > room ? rest - room : 0;
    for (size_t i = 0; i < stitch->count; i++) {
        if (stitch->pieces[i].gap == 0) others += stitch->pieces[i].memory.bytes;
    }
    if (missing > others && pool->pages.shared_count > 0) {
        /* None of these pages may belong to another block; pages without a live block can be
         * unmapped. */
        (void)tol_mesh_release(pool, missing - others);
        room = tol_pool_soft_room(pool);
        missing = rest > room ? rest - room : 0;
    }
    if (missing > others) {
        TOL_TRY(tol_pool_charge(pool, rest));
        TOL_CHECK(false, TOL_OUT_OF_DEVICE_MEMORY,
                  "%llu more bytes are needed: %llu are available, and the pool can return %llu",
                  (unsigned long long)rest, (unsigned long long)room, (unsigned long long)others);
    }
    /* Above the soft limit no unused memory is held. */
    *needed = pool->may_pass_soft ? others : missing;
out:
    return status;
}

tol_status tol_stitch_begin(struct tol_stitch *stitch, struct tol_pool *pool,
                            const struct tol_page_gap *gaps, size_t gap_count,
                            struct tol_page_gap skip) {
    tol_status status = TOL_OK;
    uint64_t needed = 0;
    *stitch = (struct tol_stitch){.pool = pool, .skip = skip};
    if (!pool->may_stitch && pool->spares.count == 0) return TOL_OK;
    pool_stitch_find(stitch);
    const uint64_t rest = pool_stitch_choose(stitch, gaps, gap_count);
    if (pool->may_stitch) TOL_TRY(needed_room(stitch, rest, &needed));
    TOL_CHECK(reserve_spares(&pool->spares, stitch->count), TOL_OUT_OF_HOST_MEMORY,
              "no host memory for a list of %zu handles", stitch->count);
    for (size_t i = 0; i < stitch->count; i++) {
        if (stitch->pieces[i].gap == 0) continue;
        TOL_CHECK(pool_stitch_take(stitch, &stitch->pieces[i]), TOL_OUT_OF_DEVICE_MEMORY,
                  "the driver failed to unmap idle memory");
    }
    TOL_TRY(pool_stitch_make_room(stitch, needed));
out:
    return status;
}

void tol_stitch_placed(struct tol_stitch *stitch, struct tol_stitch_piece *piece) {
    piece->from = TOL_STITCH_GONE;
    stitch->pool->spares.bytes -= piece->memory.bytes;
    stitch->placed++;
    stitch->placed_bytes += piece->memory.bytes;
}

void tol_stitch_end(struct tol_stitch *stitch) {
    for (size_t i = 0; i < stitch->count; i++) {
        if (stitch->pieces[i].from != TOL_STITCH_IN_HAND) continue;
        struct tol_spares *spares = &stitch->pool->spares;
        spares->all[spares->count++] = stitch->pieces[i].memory;
        stitch->pool->is_dense = false;
    }
    if (stitch->placed > 0) {
        tol_pool_note_stitched(stitch->pool, stitch->placed, stitch->placed_bytes);
    }
    free(stitch->pieces);
    *stitch = (struct tol_stitch){0};
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Maps the pieces of a gap, from its beginning on. What is mapped stays, as idle pages. */
static tol_status pool_stitch_fill(struct tol_stitch *stitch, const struct tol_page_gap *gap,
                                   size_t number) {
    tol_status status = TOL_OK;
    struct tol_pages *pages = &stitch->pool->pages;
    uint32_t page = gap->first;
    for (size_t i = 0; i < stitch->count; i++) {
        struct tol_stitch_piece *piece = &stitch->pieces[i];
        if (piece->gap != number) continue;
        const uint32_t count = (uint32_t)(piece->memory.bytes / pages->page_bytes);
        TOL_TRY(tol_pages_put(pages, page, count, piece->memory.handle));
        tol_stitch_placed(stitch, piece);
        page += count;
    }
out:
    if (page > gap->first) {
        tol_status allowed = tol_pages_allow(pages, gap->first, page);
        if (status == TOL_OK) status = allowed;
    }
    return status;
}

tol_status tol_stitch_pages(struct tol_pool *pool, uint64_t begin, uint64_t bytes) {
    tol_status status = TOL_OK;
    const struct tol_pages *pages = &pool->pages;
    struct tol_stitch stitch = {0};
    struct tol_page_gap *gaps = NULL;
    const size_t count = tol_pages_gaps(pages, begin, bytes, NULL, 0);
    if (count == 0 || (!pool->may_stitch && pool->spares.count == 0)) return TOL_OK;
    gaps = calloc(count, sizeof *gaps);
    TOL_CHECK(gaps != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a list of %zu gaps", count);
    (void)tol_pages_gaps(pages, begin, bytes, gaps, count);
    const uint32_t first = (uint32_t)((begin - pages->begin) / pages->page_bytes);
    const uint32_t last = (uint32_t)((begin + bytes - 1 - pages->begin) / pages->page_bytes);
    TOL_TRY(tol_stitch_begin(&stitch, pool, gaps, count,
                             (struct tol_page_gap){first, last + 1 - first}));
    for (size_t i = 0; i < count; i++) TOL_TRY(pool_stitch_fill(&stitch, &gaps[i], i + 1));
out:
    tol_stitch_end(&stitch);
    free(gaps);
    return status;
}
