/*
 * What frees of blocks in flight cost in driver calls, and that another stream is still ordered.
 */
#include "pool_state.h"
#include "test/test_device.h"
#include "tollens/auto.h"
#include "tollens/host_function.h"
#include "tollens/stream.h"

#include <sched.h>

#define MIB ((size_t)1 << 20)
enum { BLOCKS = 64 };

static atomic_bool is_let_go;

static tol_status hold(void *unused, char *reason, size_t bytes) {
    (void)unused, (void)reason, (void)bytes;
    while (!atomic_load(&is_let_go)) sched_yield();
    return TOL_OK;
}

static struct tol_pool *new_pool(size_t limit) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.park_bytes = 0;
    options.slack_bytes = 512 * MIB;
    options.limit_bytes = limit;
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return pool;
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats;
}

/* A free calls nothing; another stream waits once for all that was freed before. */
Test(tickets, frees_in_flight_cost_one_event, .fini = test_end) {
    struct tol_pool *pool = new_pool(0);
    tol_auto_stream struct tol_stream *busy = NULL, *other = NULL;
    struct tol_block blocks[BLOCKS];
    MUST(tol_stream_create(test_context(), NULL, &busy));
    MUST(tol_stream_create(test_context(), NULL, &other));
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_allocate(pool, 2 * MIB, busy, &blocks[i]));
    atomic_store(&is_let_go, false);
    MUST(tol_stream_call(busy, hold, NULL));
    const struct tol_pool_stats before = stats_of(pool);
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_free(pool, blocks[i], busy));
    cr_assert_eq(stats_of(pool).driver_calls, before.driver_calls);
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_allocate(pool, 2 * MIB, other, &blocks[i]));
    struct tol_pool_stats after = stats_of(pool);
    cr_assert(after.driver_allocations == before.driver_allocations && after.stream_waits == 1,
              "%llu waits", (unsigned long long)after.stream_waits);
    cr_assert(after.driver_calls - before.driver_calls <= 4, "%llu driver calls",
              (unsigned long long)(after.driver_calls - before.driver_calls));
    /* What is freed after that wait is waited for anew. */
    MUST(tol_pool_free(pool, blocks[0], busy));
    MUST(tol_pool_allocate(pool, 2 * MIB, other, &blocks[0]));
    cr_assert_eq(stats_of(pool).stream_waits, 2);
    atomic_store(&is_let_go, true);
    MUST(tol_stream_synchronize(busy));
    MUST(tol_stream_synchronize(other));
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_free(pool, blocks[i], NULL));
    tol_pool_destroy(pool);
}

/* The search for memory to release queries each stream once, not once per hole. */
Test(tickets, a_trim_asks_once_about_a_stream, .fini = test_end) {
    struct tol_pool *pool = new_pool(0);
    tol_auto_stream struct tol_stream *busy = NULL;
    struct tol_block blocks[BLOCKS];
    MUST(tol_stream_create(test_context(), NULL, &busy));
    for (int i = 0; i < BLOCKS; i++) MUST(tol_pool_allocate(pool, 4 * MIB, busy, &blocks[i]));
    atomic_store(&is_let_go, false);
    MUST(tol_stream_call(busy, hold, NULL));
    for (int i = 0; i < BLOCKS; i += 2) MUST(tol_pool_free(pool, blocks[i], busy));
    const struct tol_pool_stats before = stats_of(pool);
    MUST(tol_pool_trim(pool, 0));
    const struct tol_pool_stats after = stats_of(pool);
    cr_assert_eq(after.driver_frees - before.driver_frees, 0, "memory in use went back");
    cr_assert(after.driver_calls - before.driver_calls <= 4, "%llu driver calls",
              (unsigned long long)(after.driver_calls - before.driver_calls));
    atomic_store(&is_let_go, true);
    MUST(tol_stream_synchronize(busy));
    MUST(tol_pool_trim(pool, 0));
    cr_assert_eq(stats_of(pool).idle, 0);
    tol_pool_destroy(pool);
}
