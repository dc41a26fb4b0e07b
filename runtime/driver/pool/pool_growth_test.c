/*
 * Growth: how many handles an allocation takes from the driver, in a small pool and in a large one.
 */
#include "pool_state.h"
#include "test/test_device.h"

#define MIB ((size_t)1 << 20)
enum { LARGE_MIB = 1088, FILLERS = LARGE_MIB / 8, BLOCKS = 60, ODD_BYTES = (7 << 20) + 12345 };

static struct tol_block blocks[FILLERS + BLOCKS];

/* Whose first handle serves the fillers and no more, and which then takes what blocks need. */
static struct tol_pool *pool_with(size_t first_bytes, double grow_share) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.first_bytes = first_bytes;
    options.first_count = 1;
    options.grow_share = grow_share;
    options.magazine_max_bytes = 0;
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    if (pool->is_chunked || pool->pages.page_bytes != 2 * MIB) cr_skip_test("pages of 2 MiB alone");
    return pool;
}

static uint64_t handles_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats.driver_allocations;
}

/* The most handles that one of the blocks takes. */
static uint64_t most_taken(struct tol_pool *pool, struct tol_block *into) {
    uint64_t most = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const uint64_t before = handles_of(pool);
        MUST(tol_pool_allocate(pool, ODD_BYTES, NULL, &into[i]));
        const uint64_t taken = handles_of(pool) - before;
        if (taken > most) most = taken;
    }
    return most;
}

/* Beyond its first size a pool grows by a share of what is used above five eighths of that. */
Test(pool_growth, a_large_pool_grows_by_a_share_of_what_it_uses) {
    struct tol_pool pool = {.options = {.double_bytes = 8 * MIB, .grow_share = 0.5}};
    pool.pages.creates = 1;
    pool.pages.mapped = 3 * MIB;
    cr_assert_eq(tol_pool_growth(&pool), 3 * MIB);
    pool.pages.mapped = 6 * MIB;
    cr_assert_eq(tol_pool_growth(&pool), 2 * MIB);
    pool.pages.mapped = 16 * MIB;
    for (uint64_t used = 0; used <= 16; used++) {
        pool.arena_used = used * MIB;
        cr_assert_eq(tol_pool_growth(&pool), used > 5 ? (used - 5) * MIB / 2 : 0, "%d", (int)used);
    }
}

/* A handle for the pages that are a block's alone, and one for the page that the next block shares,
 * so that each goes back when its own blocks are free. */
Test(pool_growth, a_small_pool_takes_two_handles_for_a_block, .fini = test_end) {
    struct tol_pool *pool = pool_with(2 * MIB, 0.003);
    cr_assert_eq(most_taken(pool, blocks), 2);
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    tol_pool_destroy(pool);
}

/* It grows by 3.2 MiB at a time, a page: where a block lacks more, it gets that in one handle. */
Test(pool_growth, a_pool_of_a_gib_takes_one_handle_for_a_block, .fini = test_end) {
    struct tol_pool *pool = pool_with(LARGE_MIB * MIB, 0.003);
    for (int i = 0; i < FILLERS; i++) {
        MUST(tol_pool_allocate(pool, 8 * MIB, NULL, &blocks[i]));
    }
    cr_assert_eq(handles_of(pool), 1);
    cr_assert_eq(most_taken(pool, blocks + FILLERS), 1);
    for (int i = 0; i < FILLERS + BLOCKS; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    MUST(tol_pool_trim(pool, 0));
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    cr_assert(stats.held == 0 && stats.driver_allocations == stats.driver_frees);
    tol_pool_destroy(pool);
}
