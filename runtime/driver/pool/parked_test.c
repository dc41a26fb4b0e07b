/*
 * Freed blocks that wait for their thread's next allocation: which allocations get them, and which
 * do not.
 */
#include "pool_state.h"
#include "test/test_device.h"
#include "tollens/auto.h"
#include "tollens/stream.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *pool_of(size_t limit) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.limit_bytes = limit;
    options.first_count = 0;
    options.park_bytes = 40 * MIB;
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return pool;
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    cr_assert_eq(stats.held, stats.used + stats.kept + stats.idle + stats.page_waste);
    return stats;
}

static struct tol_block new_block(struct tol_pool *pool, size_t bytes, struct tol_stream *stream) {
    struct tol_block block = {0};
    MUST(tol_pool_allocate(pool, bytes, stream, &block));
    return block;
}

/* The same address, a new name, and no lock of the pool. */
Test(parked, a_block_comes_back_to_its_thread_and_stream, .fini = test_end) {
    struct tol_pool *pool = pool_of(0);
    tol_auto_stream struct tol_stream *stream = NULL;
    size_t before = 0, after = 0;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_context_memory(test_context(), &before, NULL));
    for (size_t bytes = 5 * MIB; bytes <= 20 * MIB; bytes *= 4) {
        const struct tol_block block = new_block(pool, bytes, stream);
        const CUdeviceptr at = tol_pool_address(pool, block);
        const uint64_t hits = stats_of(pool).magazine_hits, epoch = pool->epoch;
        MUST(tol_pool_free(pool, block, stream));
        cr_assert_eq(stats_of(pool).cached, bytes);
        MUST_FAIL(tol_pool_free(pool, block, stream), TOL_INVALID_ARGUMENT, "freed");
        const struct tol_block again = new_block(pool, bytes, stream);
        cr_assert(tol_pool_address(pool, again) == at && again.name != block.name);
        cr_assert(stats_of(pool).magazine_hits == hits + 1 && pool->epoch == epoch);
        MUST(tol_pool_free(pool, again, stream));
        /* Another stream's block is placed by the pool, after that stream's work. */
        const struct tol_block other = new_block(pool, bytes, NULL);
        cr_assert(stats_of(pool).magazine_hits == hits + 1 && stats_of(pool).cached == 0);
        MUST(tol_pool_free(pool, other, NULL));
    }
    tol_pool_destroy(pool);
    MUST(tol_context_memory(test_context(), &after, NULL));
    if (!test_on_gpu()) cr_assert_eq(before, after, "a pool that ends keeps what was parked");
}

Test(parked, few_blocks_and_few_bytes_are_parked, .fini = test_end) {
    struct tol_pool *pool = pool_of(0);
    struct tol_block blocks[6];
    for (int i = 0; i < 6; i++) blocks[i] = new_block(pool, 2 * MIB, NULL);
    for (int i = 0; i < 6; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    cr_assert_eq(stats_of(pool).cached, TOL_PARKED * 2 * MIB);
    for (int i = 0; i < 3; i++) blocks[i] = new_block(pool, 15 * MIB, NULL);
    cr_assert_eq(stats_of(pool).cached, 0, "an allocation of another size frees them");
    for (int i = 0; i < 3; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    cr_assert_eq(stats_of(pool).cached, 30 * MIB);
    blocks[0] = new_block(pool, 48 * MIB, NULL);
    MUST(tol_pool_free(pool, blocks[0], NULL));
    cr_assert_eq(stats_of(pool).cached, 0, "a block above park_bytes is not parked");
    MUST(tol_pool_trim(pool, 0));
    cr_assert_eq(stats_of(pool).held, 0);
    tol_pool_destroy(pool);
}

struct other {
    struct tol_pool *pool;
    struct tol_block block;
    pthread_barrier_t freed, end;
};

static void *free_and_sleep(void *argument) {
    struct other *other = argument;
    MUST(tol_pool_free(other->pool, other->block, NULL));
    pthread_barrier_wait(&other->freed);
    pthread_barrier_wait(&other->end);
    return NULL;
}

/* What another thread has parked serves before the pool calls the driver. */
Test(parked, another_threads_block_serves_before_the_driver, .fini = test_end) {
    static const struct {
        size_t bytes, wanted;
    } cases[] = {{6 * MIB, 5 * MIB}, {20 * MIB, 20 * MIB - 4096}};
    for (size_t i = 0; i < 2; i++) {
        struct other other = {.pool = pool_of(0)};
        pthread_t thread;
        pthread_barrier_init(&other.freed, NULL, 2);
        pthread_barrier_init(&other.end, NULL, 2);
        other.block = new_block(other.pool, cases[i].bytes, NULL);
        cr_assert_eq(pthread_create(&thread, NULL, free_and_sleep, &other), 0);
        pthread_barrier_wait(&other.freed);
        const struct tol_pool_stats before = stats_of(other.pool);
        cr_assert_eq(before.cached, cases[i].bytes);
        const struct tol_block mine = new_block(other.pool, cases[i].wanted, NULL);
        const struct tol_pool_stats after = stats_of(other.pool);
        cr_assert(after.driver_allocations == before.driver_allocations && after.cached == 0,
                  "%zu bytes: the driver was called", cases[i].wanted);
        MUST(tol_pool_free(other.pool, mine, NULL));
        pthread_barrier_wait(&other.end);
        pthread_join(thread, NULL);
        tol_pool_destroy(other.pool);
    }
}

Test(parked, a_limit_is_reached_with_parked_blocks_freed, .fini = test_end) {
    struct tol_pool *pool = pool_of(16 * MIB);
    struct tol_block blocks[4], last;
    for (int i = 0; i < 4; i++) blocks[i] = new_block(pool, 4 * MIB, NULL);
    for (int i = 0; i < 4; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    cr_assert_eq(stats_of(pool).cached, 16 * MIB);
    last = new_block(pool, 15 * MIB, NULL);
    MUST(tol_pool_free(pool, last, NULL));
    tol_pool_destroy(pool);
}
