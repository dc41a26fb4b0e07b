/*
 * Threads that allocate and free blocks of all sizes in the default profile, while another thread
 * queries and trims the pool.
 */
#include "threads_pool_check.h"

#include "tollens/pool.h"
#include "tollens/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WALKERS = 3, LIVE = 40, STEPS = 2500 };

struct growing {
    struct tol_pool *pool;
    struct tol_context *context;
    atomic_bool is_done, has_failed;
};

static uint64_t pool_check_draw(uint64_t *random, uint64_t below) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static void *pool_check_walk(void *user) {
    static _Atomic(uint64_t) seeds = 1;
    struct growing *all = user;
    struct tol_stream *stream = NULL;
    struct tol_block live[LIVE] = {{0}};
    uint64_t random = atomic_fetch_add(&seeds, 1) * 7919;
    bool ok = tol_stream_create(all->context, NULL, &stream) == TOL_OK;
    for (int step = 0; step < STEPS && ok; step++) {
        const size_t i = pool_check_draw(&random, LIVE);
        /* Small ones, those that are parked, and large ones with a mapping of their own. */
        const size_t bytes =
            1 + pool_check_draw(&random, (size_t)20 << pool_check_draw(&random, 21));
        if (live[i].name != 0) ok = tol_pool_free(all->pool, live[i], stream) == TOL_OK;
        ok = ok && tol_pool_allocate(all->pool, bytes, stream, &live[i]) == TOL_OK;
    }
    for (size_t i = 0; i < LIVE; i++) {
        if (live[i].name != 0 && tol_pool_free(all->pool, live[i], stream) != TOL_OK) ok = false;
    }
    ok = ok && tol_stream_synchronize(stream) == TOL_OK;
    tol_stream_destroy(stream);
    if (!ok) atomic_store(&all->has_failed, true);
    return NULL;
}

static void *pool_check_look(void *user) {
    struct growing *all = user;
    struct tol_pool_stats stats;
    for (int i = 0; !atomic_load(&all->is_done); i++) {
        if (tol_pool_stats(all->pool, &stats) != TOL_OK ||
            (i % 64 == 63 && tol_pool_trim(all->pool, (size_t)64 << 20) != TOL_OK)) {
            atomic_store(&all->has_failed, true);
        }
    }
    return NULL;
}

static tol_status pool_check_open_pool(struct growing *all) {
    struct tol_pool_options options;
    tol_pool_default(tol_context_device(all->context), &options);
    options.first_bytes = options.page_bytes;
    options.slack_bytes = 0;
    return tol_pool_create(all->context, &options, &all->pool);
}

int check_growing_pool(struct tol_driver *driver) {
    struct growing all = {.pool = NULL};
    struct tol_pool_stats stats = {.held = 1};
    pthread_t threads[WALKERS + 1];
    if (tol_context_create(driver, 0, &all.context) != TOL_OK ||
        pool_check_open_pool(&all) != TOL_OK) {
        fprintf(stderr, "threads-check: %s\n", tol_message());
        return 2;
    }
    for (int i = 0; i <= WALKERS; i++) {
        if (pthread_create(&threads[i], NULL, i < WALKERS ? pool_check_walk : pool_check_look,
                           &all) != 0)
            return 2;
    }
    for (int i = 0; i < WALKERS; i++) pthread_join(threads[i], NULL);
    atomic_store(&all.is_done, true);
    pthread_join(threads[WALKERS], NULL);
    if (tol_pool_trim(all.pool, 0) != TOL_OK || tol_pool_stats(all.pool, &stats) != TOL_OK ||
        stats.held != 0 || stats.driver_allocations != stats.driver_frees ||
        atomic_load(&all.has_failed)) {
        fprintf(stderr,
                "threads-check: a growing pool: %llu bytes are held, %llu handles were taken and "
                "%llu given back\n",
                (unsigned long long)stats.held, (unsigned long long)stats.driver_allocations,
                (unsigned long long)stats.driver_frees);
        return 1;
    }
    tol_pool_destroy(all.pool);
    tol_context_destroy(all.context);
    return 0;
}
