/*
 * That the pool's asserts fire: each structure is broken on purpose. A check of one element must
 * abort the operation; a check of the whole structure must return false, and in a build with deep
 * checks abort as well.
 */
#include "core/deep.h"
#include "pool_state.h"
#include "test/test_death.h"
#include "test/test_device.h"

#include <string.h>

#ifndef NDEBUG

#define MIB ((size_t)1 << 20)
enum { UNIT = 16 * TOL_SPAN_GRANULE, BEGIN = 1 << 20 };

/* ---- spans ---- */

static struct tol_spans spans;

/* Two used spans of a unit with a free one of a unit between them, and the rest free after. */
static struct tol_span *three(void) {
    struct tol_span *whole = tol_spans_add(&spans, BEGIN, (uint64_t)64 * UNIT);
    test_child_needs(whole != NULL);
    struct tol_span *first = tol_spans_take(&spans, whole, BEGIN, UNIT);
    struct tol_span *third = tol_spans_take(&spans, first->after, BEGIN + 2 * UNIT, UNIT);
    test_child_needs(third != NULL && third->before->bytes == UNIT);
    return first;
}

static void grow_over_a_neighbour(void) {
    struct tol_span *first = three();
    first->bytes += TOL_SPAN_GRANULE;
    tol_spans_give(&spans, first->after->after, 0, 0);
}

static void forget_a_bin(void) {
    struct tol_span *whole = tol_spans_add(&spans, BEGIN, UNIT);
    memset(spans.words, 0, sizeof spans.words);
    tol_spans_remove(&spans, whole);
}

static void give_twice(void) {
    struct tol_span *third = three()->after->after;
    tol_spans_give(&spans, third, 0, 0);
    tol_spans_give(&spans, third, 0, 0);
}

static void take_outside_the_hole(void) {
    struct tol_span *hole = three()->after;
    tol_spans_take(&spans, hole, hole->begin, 2 * UNIT);
}

Test(pool_valid, a_broken_span_aborts) {
    test_must_abort(grow_over_a_neighbour, "spans.c", "tol_span_is_valid(spans, span)");
    test_must_abort(forget_a_bin, "spans.c", "tol_span_is_valid(spans, region)");
    test_must_abort(give_twice, "spans.c", "is_used(span)");
    test_must_abort(take_outside_the_hole, "spans.c", "bytes <= hole->bytes");
}

Test(pool_valid, a_walk_over_spans_sees_what_does_not_add_up) {
    struct tol_span *first = three();
    cr_assert(tol_spans_is_valid(&spans));
    spans.free_bytes++;
    cr_assert_not(tol_spans_is_valid(&spans));
    spans.free_bytes--;
    spans.used_count++;
    cr_assert_not(tol_spans_is_valid(&spans));
    spans.used_count--;
    first->index++;
    cr_assert_not(tol_spans_is_valid(&spans));
    first->index--;
    struct tol_span *unused = spans.unused->after;
    spans.unused->after = NULL;
    cr_assert_not(tol_spans_is_valid(&spans));
    spans.unused->after = unused;
    first->wait_streams = 1; /* and nothing to wait for */
    cr_assert_not(tol_spans_is_valid(&spans));
    first->wait_streams = 0;
    cr_assert(tol_spans_is_valid(&spans));
    tol_spans_clear(&spans);
}

/* ---- pages ---- */

enum { PAGES = 8 };
static uint32_t table[PAGES];
static struct tol_page_handle handles[4];

/* Two handles of two pages, the second with a block on its first page. */
static struct tol_pages some_pages(void) {
    memset(table, 0, sizeof table);
    memset(handles, 0, sizeof handles);
    table[0] = table[1] = 1;
    table[4] = table[5] = 2;
    handles[0] = (struct tol_page_handle){.first = 0, .pages = 2};
    handles[1] = (struct tol_page_handle){.first = 4, .pages = 2, .blocks = 1};
    return (struct tol_pages){.begin = BEGIN,
                              .bytes = (uint64_t)PAGES * UNIT,
                              .page_bytes = UNIT,
                              .page_count = PAGES,
                              .table = table,
                              .handles = handles,
                              .handle_count = 2,
                              .handle_room = 4,
                              .idle_count = 1,
                              .top = 6,
                              .mapped = (uint64_t)4 * UNIT};
}

static void leave_what_nobody_entered(void) {
    struct tol_pages pages = some_pages();
    tol_pages_leave(&pages, BEGIN, UNIT);
}

static void enter_pages_without_memory(void) {
    struct tol_pages pages = some_pages();
    tol_pages_enter(&pages, BEGIN + 2 * UNIT, UNIT);
}

Test(pool_valid, a_broken_page_aborts) {
    test_must_abort(leave_what_nobody_entered, "pages.c", "handle->blocks > 0");
    test_must_abort(enter_pages_without_memory, "pages.c", "pages->table[page] != 0");
}

Test(pool_valid, a_walk_over_pages_sees_what_does_not_add_up) {
    struct tol_pages pages = some_pages();
    cr_assert(tol_pages_is_valid(&pages));
    pages.idle_count++;
    cr_assert_not(tol_pages_is_valid(&pages));
    pages = some_pages();
    pages.mapped += UNIT;
    cr_assert_not(tol_pages_is_valid(&pages));
    pages = some_pages();
    table[5] = 0;
    cr_assert_not(tol_pages_is_valid(&pages), "a handle lacks a page");
    pages = some_pages();
    pages.top = 5;
    cr_assert_not(tol_pages_is_valid(&pages), "memory above the top");
    pages = some_pages();
    pages.shared_count = 1;
    cr_assert_not(tol_pages_is_valid(&pages));
}

/* ---- the pool ---- */

static struct tol_context *context;

/* A pool of the soft device's, in a child process that has opened nothing else. */
static struct tol_pool *pool_of_child(void) {
    struct tol_driver *driver = NULL;
    struct tol_pool *pool = NULL;
    test_child_needs(tol_driver_open(test_library(), &driver) == TOL_OK &&
                     tol_context_create(driver, 0, &context) == TOL_OK &&
                     tol_pool_create(context, NULL, &pool) == TOL_OK);
    return pool;
}

static struct tol_block block_of(struct tol_pool *pool, size_t bytes) {
    struct tol_block block = {0};
    test_child_needs(tol_pool_allocate(pool, bytes, NULL, &block) == TOL_OK);
    return block;
}

static void shrink_a_large_block(void) {
    struct tol_pool *pool = pool_of_child();
    const struct tol_block block = block_of(pool, 32 * MIB);
    for (uint32_t i = 0; i < TOL_SPAN_CHUNK; i++) {
        struct tol_large *large = tol_spans_at(&pool->large_spans, i)->owner;
        if (large != NULL) large->parts[0].bytes -= TOL_SPAN_GRANULE;
    }
    (void)tol_pool_free(pool, block, NULL);
    (void)tol_pool_trim(pool, 0); /* the thread gives it up */
}

Test(pool_valid, a_broken_block_aborts) {
    if (test_on_gpu()) cr_skip_test("what is broken is on the host: the soft device shows it");
    test_must_abort(shrink_a_large_block, "pool_large.c", "tol_large_is_valid(pool, large)");
}

/* The bin of a thread's magazine that has a block. */
static struct tol_magazine_bin *full_bin(struct tol_magazine *magazine) {
    for (int i = 0; i < TOL_MAGAZINE_BINS; i++) {
        if (magazine->bins[i].count > 0) return &magazine->bins[i];
    }
    return NULL;
}

static bool is_valid(struct tol_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    const bool is = tol_pool_is_valid(pool);
    pthread_mutex_unlock(&pool->lock);
    return is;
}

Test(pool_valid, a_walk_over_a_pool_sees_what_does_not_add_up) {
    struct tol_pool *pool = NULL;
    struct tol_block small = {0}, middle = {0}, large = {0};
    struct tol_pool_options options;
    tol_pool_default(tol_context_device(test_context()), &options);
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    cr_assert(status == TOL_OK, "%s", tol_message());
    MUST(tol_pool_allocate(pool, 1024, NULL, &small));
    MUST(tol_pool_allocate(pool, 3 * MIB, NULL, &middle));
    MUST(tol_pool_allocate(pool, 32 * MIB, NULL, &large));
    MUST(tol_pool_free(pool, small, NULL));
    cr_assert(is_valid(pool));
    pool->arena_used += TOL_SPAN_GRANULE;
    cr_assert_not(is_valid(pool));
    pool->arena_used -= TOL_SPAN_GRANULE;
    pool->large_held++;
    cr_assert_not(is_valid(pool));
    pool->large_held--;
    pool->spares.bytes++;
    cr_assert_not(is_valid(pool));
    pool->spares.bytes--;
    if (!pool->is_chunked) {
        pool->pages.handles[0].blocks++;
        cr_assert_not(is_valid(pool), "a handle counts a block that is not there");
        pool->pages.handles[0].blocks--;
    }
    struct tol_magazine *magazine = tol_magazine_get(pool);
    cr_assert(tol_magazine_is_valid(magazine));
    magazine->bytes++;
    cr_assert_not(tol_magazine_is_valid(magazine));
    magazine->bytes--;
    magazine->parked_bytes++;
    cr_assert_not(tol_magazine_is_valid(magazine));
    magazine->parked_bytes--;
    struct tol_magazine_bin *bin = full_bin(magazine);
    cr_assert(bin != NULL && tol_magazine_bin_is_valid(bin));
    bin->granules++;
    cr_assert_not(tol_magazine_bin_is_valid(bin), "a block of another size");
    bin->granules--;
    cr_assert(is_valid(pool) && tol_magazine_is_valid(magazine));
    MUST(tol_pool_free(pool, middle, NULL));
    MUST(tol_pool_free(pool, large, NULL));
    tol_pool_destroy(pool);
    test_end();
}

#ifdef TOL_DEEP_CHECKS

static void enter_a_page_of_another_handle(void) {
    struct tol_pages pages = some_pages();
    table[1] = 2;
    tol_pages_enter(&pages, BEGIN + UNIT, UNIT);
}

static void move_a_neighbour(void) {
    struct tol_span *first = three();
    first->after->begin += TOL_SPAN_GRANULE;
    tol_spans_give(&spans, first, 0, 0);
}

static void use_a_kept_block(void) {
    struct tol_pool *pool = pool_of_child();
    test_child_needs(tol_pool_free(pool, block_of(pool, 1024), NULL) == TOL_OK);
    struct tol_magazine_bin *bin = full_bin(tol_magazine_get(pool));
    test_child_needs(bin != NULL);
    atomic_store(&bin->spans[0]->name, (uint64_t)TOL_SPAN_LIVE);
    block_of(pool, 1024);
}

static void lose_bytes(void) {
    struct tol_span *third = three()->after->after;
    spans.free_bytes -= TOL_SPAN_GRANULE;
    for (int i = 0; i < TOL_DEEP_ONE_IN; i++) {
        struct tol_span *hole = tol_spans_give(&spans, third, 0, 0);
        third = tol_spans_take(&spans, hole, hole->begin, UNIT);
    }
}

static void lose_a_block(void) {
    struct tol_pool *pool = pool_of_child();
    pool->arena_used += TOL_SPAN_GRANULE;
    for (int i = 0; i < TOL_DEEP_ONE_IN; i++) block_of(pool, 2 * MIB);
}

Test(pool_valid, deep_checks_abort) {
    if (test_on_gpu()) cr_skip_test("what is broken is on the host: the soft device shows it");
    test_must_abort(enter_a_page_of_another_handle, "pages.c", "tol_page_is_valid(pages, page)");
    test_must_abort(move_a_neighbour, "spans.c", "tol_span_is_valid(spans, span)");
    test_must_abort(use_a_kept_block, "magazine.c", "tol_magazine_bin_is_valid(bin)");
    test_must_abort(lose_bytes, "spans.c", "tol_spans_is_valid(spans)");
    test_must_abort(lose_a_block, "pool_place.c", "tol_pool_is_valid(pool)");
}

#endif
#endif
