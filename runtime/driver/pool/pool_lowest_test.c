/*
 * Placing at the lowest address, and remapping idle pages before more are taken.
 */
#include "test/test_device.h"

#include <stdatomic.h>
#include <time.h>

TestSuite(pool_lowest, .timeout = 60, .fini = test_end);

enum { MIB = 1 << 20 };

static struct tol_pool_options options_of(bool lowest_first, double stitch_above) {
    struct tol_pool_options options;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.first_bytes = options.page_bytes;
    options.grow_share = 0;
    options.large_bytes = 1024u * MIB;
    options.trim_above = options.trim_to = 0;
    options.magazine_max_bytes = 0;
    options.lowest_first = lowest_first;
    options.stitch_above = stitch_above;
    return options;
}

static struct tol_pool *new_pool(bool lowest_first, double stitch_above) {
    const struct tol_pool_options options = options_of(lowest_first, stitch_above);
    struct tol_pool *pool = NULL;
    MUST(tol_pool_create(test_context(), &options, &pool));
    return pool;
}

static struct tol_block allocate(struct tol_pool *pool, size_t bytes) {
    struct tol_block block;
    MUST(tol_pool_allocate(pool, bytes, NULL, &block));
    return block;
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats;
}

/* Two holes: a low one of 8 MiB and a high one of 6. */
static CUdeviceptr place_of_six(bool lowest_first, CUdeviceptr *low, CUdeviceptr *high) {
    struct tol_pool *pool = new_pool(lowest_first, 0);
    struct tol_block first = allocate(pool, 8 * MIB), between = allocate(pool, 2 * MIB),
                     second = allocate(pool, 6 * MIB), last = allocate(pool, 2 * MIB);
    *low = tol_pool_address(pool, first);
    *high = tol_pool_address(pool, second);
    MUST(tol_pool_free(pool, first, NULL));
    MUST(tol_pool_free(pool, second, NULL));
    const CUdeviceptr at = tol_pool_address(pool, allocate(pool, 6 * MIB));
    cr_assert(tol_pool_address(pool, between) != 0 && tol_pool_address(pool, last) != 0);
    tol_pool_destroy(pool);
    return at;
}

Test(pool_lowest, a_block_goes_to_the_lowest_hole_or_to_the_tightest_one) {
    CUdeviceptr low = 0, high = 0;
    cr_assert_eq(place_of_six(true, &low, &high), low);
    cr_assert_eq(place_of_six(false, &low, &high), high);
}

/* Holes that no large block fits in: with remapping they become one, and nothing is taken. */
static uint64_t held_after(double stitch_above, uint64_t *stitched) {
    enum { COUNT = 20 };
    struct tol_block blocks[COUNT];
    struct tol_pool *pool = new_pool(true, stitch_above);
    for (int i = 0; i < COUNT; i++) blocks[i] = allocate(pool, 4 * MIB);
    for (int i = 0; i < COUNT; i += 2) MUST(tol_pool_free(pool, blocks[i], NULL));
    struct tol_block large = allocate(pool, 40 * MIB);
    const CUdeviceptr at = tol_pool_address(pool, large);
    cr_assert_eq(tol_context_functions(test_context())->cuMemsetD8_v2(at, 1, 40 * MIB),
                 CUDA_SUCCESS);
    for (int i = 1; i < COUNT; i += 2) {
        cr_assert_eq(tol_context_functions(test_context())
                         ->cuMemsetD8_v2(tol_pool_address(pool, blocks[i]), 2, 4 * MIB),
                     CUDA_SUCCESS);
    }
    cr_assert_eq(tol_context_functions(test_context())->cuCtxSynchronize(), CUDA_SUCCESS);
    const struct tol_pool_stats stats = stats_of(pool);
    *stitched = stats.stitched_bytes;
    tol_pool_destroy(pool);
    return stats.held;
}

Test(pool_lowest, idle_pages_are_remapped_before_more_is_held_than_the_share) {
    uint64_t stitched = 0;
    cr_assert_eq(held_after(1.02, &stitched), 80 * MIB);
    cr_assert_eq(stitched, 40 * MIB);
    cr_assert_eq(held_after(0, &stitched), 120 * MIB);
    cr_assert_eq(stitched, 0);
    cr_assert_eq(held_after(1.6, &stitched), 120 * MIB, "it is allowed");
}

static tol_status sleep_a_while(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 50000000};
    (void)user, (void)reason, (void)bytes;
    nanosleep(&pause, NULL);
    return TOL_OK;
}

/* The holes are freed after work that has not ended. */
static uint64_t held_after_work(double wait_above, uint64_t *stitched) {
    enum { COUNT = 20 };
    struct tol_block blocks[COUNT], large;
    struct tol_stream *stream = NULL;
    struct tol_pool_options options = options_of(true, 1.005);
    struct tol_pool *pool = NULL;
    options.wait_above = wait_above;
    MUST(tol_pool_create(test_context(), &options, &pool));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (int i = 0; i < COUNT; i++) MUST(tol_pool_allocate(pool, 4 * MIB, stream, &blocks[i]));
    MUST(tol_stream_call(stream, sleep_a_while, NULL));
    for (int i = 0; i < COUNT; i += 2) MUST(tol_pool_free(pool, blocks[i], stream));
    MUST(tol_pool_allocate(pool, 40 * MIB, stream, &large));
    const struct tol_pool_stats stats = stats_of(pool);
    *stitched = stats.stitched_bytes;
    MUST(tol_stream_synchronize(stream));
    tol_pool_destroy(pool);
    tol_stream_destroy(stream);
    return stats.held;
}

Test(pool_lowest, work_that_uses_idle_pages_is_waited_for_above_a_share) {
    uint64_t stitched = 0;
    cr_assert_eq(held_after_work(1.01, &stitched), 80 * MIB);
    cr_assert_eq(stitched, 40 * MIB);
    cr_assert_eq(held_after_work(0, &stitched), 120 * MIB, "nothing is waited for");
    cr_assert_eq(held_after_work(1.6, &stitched), 120 * MIB, "it is allowed");
}

static tol_status wait_for_flag(void *user, char *reason, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)reason, (void)bytes;
    while (!atomic_load((atomic_bool *)user)) nanosleep(&pause, NULL);
    return TOL_OK;
}

/* A search in vain, because work uses the idle pages, is not repeated for a while, unless the
 * result must not depend on the time. */
static uint64_t held_after_vain_search(void) {
    enum { COUNT = 20 };
    atomic_bool flag = false;
    struct tol_block blocks[COUNT], large;
    struct tol_stream *stream = NULL;
    struct tol_pool_options options = options_of(true, 1.005);
    struct tol_pool *pool = NULL;
    options.stitch_always = true;
    MUST(tol_pool_create(test_context(), &options, &pool));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (int i = 0; i < COUNT; i++) MUST(tol_pool_allocate(pool, 4 * MIB, stream, &blocks[i]));
    MUST(tol_stream_call(stream, wait_for_flag, &flag));
    for (int i = 0; i < COUNT; i += 2) MUST(tol_pool_free(pool, blocks[i], stream));
    MUST(tol_pool_allocate(pool, 6 * MIB, stream, &large));
    atomic_store(&flag, true);
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_allocate(pool, 32 * MIB, stream, &large));
    const uint64_t held = stats_of(pool).held;
    tol_pool_destroy(pool);
    tol_stream_destroy(stream);
    return held;
}

Test(pool_lowest, a_search_in_vain_is_repeated_at_once_if_time_does_not_count) {
    cr_assert_eq(held_after_vain_search(), 86 * MIB);
}

/* The memory of a block is one handle, or several of at most join_bytes. */
Test(pool_lowest, a_handle_that_pages_share_has_at_most_its_bytes) {
    static const size_t join_bytes[] = {0, 64 * MIB, 8 * MIB}, handles[] = {1, 1, 5};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        struct tol_pool_options options = options_of(false, 0);
        struct tol_pool *pool = NULL;
        options.first_count = 0;
        options.join_bytes = join_bytes[i];
        MUST(tol_pool_create(test_context(), &options, &pool));
        allocate(pool, 40 * MIB);
        const struct tol_pool_stats stats = stats_of(pool);
        cr_assert(stats.held == 40 * MIB && stats.driver_allocations == handles[i], "%zu: %llu",
                  join_bytes[i], (unsigned long long)stats.driver_allocations);
        tol_pool_destroy(pool);
    }
}

Test(pool_lowest, a_share_below_one_is_refused) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.stitch_above = 0.9;
    MUST_FAIL(tol_pool_create(test_context(), &options, &pool), TOL_INVALID_ARGUMENT,
              "stitch_above is 0.9");
    options.stitch_above = 1.02;
    options.wait_above = 1.01;
    MUST_FAIL(tol_pool_create(test_context(), &options, &pool), TOL_INVALID_ARGUMENT,
              "wait_above is 1.01: it must be 0, or at least stitch_above, which is 1.02");
    options.stitch_above = 0;
    MUST_FAIL(tol_pool_create(test_context(), &options, &pool), TOL_INVALID_ARGUMENT,
              "wait_above is 1.01");
}
