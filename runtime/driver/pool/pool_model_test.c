/*
 * The pool against a simple model: seeded operations of several threads on several streams, after
 * which no two live blocks overlap, every byte that was written is there, and the sums agree.
 *
 * Each block is filled with a number of its own when it is made, on its stream, and looked at when
 * it is freed: memory given twice, or too early from one stream to another, shows there.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { LIVE_MAX = 300, THREADS = 3 };

struct one {
    struct tol_block block;
    CUdeviceptr at;
    size_t bytes;
    unsigned value;
};

struct walker {
    struct tol_pool *pool;
    uint64_t random;
    int steps;
    size_t size_max;
    struct one live[LIVE_MAX];
    size_t count;
    uint64_t requested;
    const char *trouble;
};

static uint64_t draw(struct walker *w, uint64_t below) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

/* Frees one, whose first and last word must be its own still. */
static void drop(struct walker *w, size_t i, struct tol_stream *stream) {
    const struct tol_driver_table *driver = tol_context_functions(test_context());
    struct one one = w->live[i];
    unsigned ends[2] = {0};
    driver->cuMemcpyDtoHAsync_v2(&ends[0], one.at, 4, tol_stream_handle(stream));
    driver->cuMemcpyDtoHAsync_v2(&ends[1], one.at + (one.bytes / 4 - 1) * 4, 4,
                                 tol_stream_handle(stream));
    if (tol_stream_synchronize(stream) != TOL_OK) w->trouble = "a wait failed";
    if (ends[0] != one.value || ends[1] != one.value) w->trouble = "a block was written by another";
    if (tol_pool_free(w->pool, one.block, stream) != TOL_OK) w->trouble = "a free failed";
    if (tol_pool_free(w->pool, one.block, stream) == TOL_OK) w->trouble = "freed twice";
    w->requested -= one.bytes;
    w->live[i] = w->live[--w->count];
}

static void *walk(void *user) {
    struct walker *w = user;
    struct tol_stream *streams[2] = {NULL};
    tol_context_bind(test_context());
    for (int i = 0; i < 2; i++) (void)tol_stream_create(test_context(), NULL, &streams[i]);
    const struct tol_driver_table *driver = tol_context_functions(test_context());
    for (int step = 0; step < w->steps && w->trouble == NULL; step++) {
        struct tol_stream *stream = streams[draw(w, 2)];
        if (w->count > 0 && (w->count == LIVE_MAX || draw(w, 100) < 48)) {
            drop(w, draw(w, w->count), stream);
            continue;
        }
        /* Small ones most of the time, now and then one with memory of its own. */
        size_t bytes = 4 * (1 + draw(w, (w->size_max >> draw(w, 14)) / 4));
        struct one *one = &w->live[w->count];
        tol_status status = tol_pool_allocate(w->pool, bytes, stream, &one->block);
        if (status == TOL_OUT_OF_DEVICE_MEMORY) continue;
        if (status != TOL_OK) w->trouble = "an allocation failed";
        one->at = tol_pool_address(w->pool, one->block);
        one->bytes = bytes;
        one->value = (unsigned)draw(w, UINT32_MAX);
        driver->cuMemsetD32Async(one->at, one->value, bytes / 4, tol_stream_handle(stream));
        /* Another stream of this thread may free it: it must see what this one wrote. */
        if (tol_stream_synchronize(stream) != TOL_OK) w->trouble = "a wait failed";
        w->requested += bytes;
        w->count++;
        if (step % 500 == 499 && tol_pool_trim(w->pool, 0) != TOL_OK) w->trouble = "a trim failed";
    }
    for (int i = 0; i < 2; i++) tol_stream_destroy(streams[i]);
    return NULL;
}

static int by_address(const void *a, const void *b) {
    CUdeviceptr x = ((const struct one *)a)->at, y = ((const struct one *)b)->at;
    return (x > y) - (x < y);
}

static void run_model(int threads, int steps, size_t limit, bool compact) {
    static struct walker walkers[THREADS];
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    pthread_t ids[THREADS];
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.limit_bytes = limit;
    options.large_bytes = 2 * MIB;
    options.compact = compact;
    MUST(tol_pool_create(test_context(), &options, &pool));
    for (int i = 0; i < threads; i++) {
        walkers[i] = (struct walker){
            .pool = pool, .random = 7919u * (unsigned)(i + 1), .steps = steps, .size_max = 3 * MIB};
        cr_assert_eq(pthread_create(&ids[i], NULL, walk, &walkers[i]), 0);
    }
    static struct one all[THREADS * LIVE_MAX];
    size_t count = 0;
    uint64_t requested = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        cr_assert(walkers[i].trouble == NULL, "thread %d: %s: %s", i, walkers[i].trouble,
                  tol_message());
        memcpy(all + count, walkers[i].live, walkers[i].count * sizeof *all);
        count += walkers[i].count;
        requested += walkers[i].requested;
    }
    qsort(all, count, sizeof *all, by_address);
    for (size_t i = 1; i < count; i++) {
        cr_assert(all[i - 1].at + all[i - 1].bytes <= all[i].at, "two blocks overlap");
    }
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    cr_assert(stats.requested == requested && stats.blocks == count, "%llu of %llu bytes",
              (unsigned long long)stats.requested, (unsigned long long)requested);
    cr_assert(stats.held >= stats.used && (limit == 0 || stats.held_peak <= limit));
    /* How threads meet is not the same twice. */
    bool must_stitch = threads == 1 && limit > 0 && !compact;
    cr_assert(stats.stitched > 0 || !must_stitch, "there was nothing to stitch");
    cr_assert(stats.compactions > 0 || !compact, "there was nothing to compact");
    for (size_t i = 0; i < count; i++) MUST(tol_pool_free(pool, all[i].block, NULL));
    MUST(tol_pool_trim(pool, 0));
    MUST(tol_pool_stats(pool, &stats));
    cr_assert(stats.held == 0 && stats.requested == 0 && stats.used == 0, "%llu bytes are lost",
              (unsigned long long)stats.held);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_model, one_thread, .timeout = 120) {
    run_model(1, 6000, 0, false);
}

Test(pool_model, threads_that_run_out_of_memory, .timeout = 120) {
    run_model(THREADS, 2000, 40 * MIB, false);
}

Test(pool_model, pages_that_are_stitched, .timeout = 120) {
    run_model(1, 3000, 24 * MIB, false);
}

/* Only one thread: while it allocates, no work is queued. */
Test(pool_model, pages_that_are_compacted, .timeout = 120) {
    run_model(1, 3000, 24 * MIB, true);
}
