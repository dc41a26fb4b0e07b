/*
 * What a pool counts, times and keeps of what happened.
 */
#include "test/test_device.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *pool_with(unsigned time_one_in, size_t trace_events) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.park_bytes = 0; /* what is freed is the pool's at once */
    options.time_one_in = time_one_in;
    options.trace_events = trace_events;
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

/* So many blocks of some sizes, each freed again but the last. */
static struct tol_block use(struct tol_pool *pool, int pairs, struct tol_stream *stream) {
    struct tol_block block = {0};
    for (int i = 0; i < pairs; i++) {
        if (block.name != 0) MUST(tol_pool_free(pool, block, stream));
        MUST(tol_pool_allocate(pool, 1 + (size_t)(i % 7) * 300000, stream, &block));
    }
    return block;
}

static int64_t times_of(struct tol_pool *pool, enum tol_pool_call call) {
    struct tol_hdr *times = NULL;
    MUST(tol_pool_times(pool, call, &times));
    int64_t total = times->total;
    cr_assert(total == 0 || (tol_hdr_min(times) > 0 && tol_hdr_percentile(times, 50) > 0));
    tol_hdr_free(times);
    return total;
}

Test(pool_events, samples_stand_for_the_calls_between_them) {
    enum { PAIRS = 3000 };
    struct tol_pool *every = pool_with(1, 0), *some = pool_with(64, 0), *none = pool_with(0, 0);
    use(every, PAIRS, NULL);
    cr_assert_eq(times_of(every, TOL_POOL_CALL_ALLOCATE), PAIRS);
    cr_assert_eq(times_of(every, TOL_POOL_CALL_FREE), PAIRS - 1);
    use(some, PAIRS, NULL);
    int64_t counted = times_of(some, TOL_POOL_CALL_ALLOCATE);
    cr_assert(counted > PAIRS - 128 && counted <= PAIRS, "%lld", (long long)counted);
    use(none, PAIRS, NULL);
    cr_assert(times_of(none, TOL_POOL_CALL_ALLOCATE) == 0 &&
              times_of(none, TOL_POOL_CALL_FREE) == 0);
    struct tol_hdr *times = NULL;
    MUST_FAIL(tol_pool_times(every, TOL_POOL_CALLS, &times), TOL_INVALID_ARGUMENT, "call is 2");
    MUST_FAIL(tol_pool_times(NULL, TOL_POOL_CALL_FREE, &times), TOL_INVALID_ARGUMENT, "NULL");
    tol_pool_destroy(every);
    tol_pool_destroy(some);
    tol_pool_destroy(none);
    test_end();
}

/* All that is held is accounted for: in use, cached, kept, idle, or lost between blocks. */
Test(pool_events, what_is_held_is_accounted_for) {
    struct tol_pool *pool = pool_with(64, 0);
    struct tol_block blocks[40] = {{0}}, large = {0};
    for (size_t i = 0; i < 40; i++) {
        MUST(tol_pool_allocate(pool, 100 + i * 33333, NULL, &blocks[i]));
    }
    MUST(tol_pool_allocate(pool, 17 * MIB, NULL, &large));
    MUST(tol_pool_free(pool, large, NULL));
    for (int i = 0; i < 40; i += 3) MUST(tol_pool_free(pool, blocks[i], NULL));
    struct tol_pool_stats s = stats_of(pool);
    cr_assert_eq(s.held, s.used + s.kept + s.idle + s.page_waste);
    cr_assert_eq(s.used, s.rounded + s.cached);
    cr_assert(s.kept >= 17 * MIB && s.page_waste > 0 && s.cached > 0);
    cr_assert(s.rounded >= s.requested && s.rounded < s.requested + 40 * 256);
    for (int i = 0; i < 40; i++) {
        if (i % 3 != 0) MUST(tol_pool_free(pool, blocks[i], NULL));
    }
    MUST(tol_pool_trim(pool, 0));
    s = stats_of(pool);
    cr_assert(s.held + s.used + s.kept + s.idle + s.page_waste + s.pending == 0);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_events, what_work_may_still_use_is_pending) {
    struct tol_pool *pool = pool_with(64, 0);
    tol_auto_stream struct tol_stream *stream = NULL;
    struct tol_block small = {0}, large = {0};
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_pool_allocate(pool, 3 * MIB, stream, &small));
    MUST(tol_pool_allocate(pool, 18 * MIB, stream, &large));
    MUST(tol_pool_free(pool, small, stream));
    MUST(tol_pool_free(pool, large, stream));
    cr_assert_eq(stats_of(pool).pending, 21 * MIB);
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_trim(pool, 0));
    cr_assert_eq(stats_of(pool).pending, 0);
    tol_pool_destroy(pool);
    test_end();
}

/* The calls that the pool counts are those that the driver saw. */
Test(pool_events, driver_calls_are_counted_as_the_driver_sees_them) {
    static const enum tol_driver_index counted[] = {
        TOL_DRIVER_INDEX_cuMemCreate,       TOL_DRIVER_INDEX_cuMemMap,
        TOL_DRIVER_INDEX_cuMemSetAccess,    TOL_DRIVER_INDEX_cuMemUnmap,
        TOL_DRIVER_INDEX_cuMemRelease,      TOL_DRIVER_INDEX_cuEventCreate,
        TOL_DRIVER_INDEX_cuEventRecord,     TOL_DRIVER_INDEX_cuEventQuery,
        TOL_DRIVER_INDEX_cuStreamQuery,     TOL_DRIVER_INDEX_cuStreamWaitEvent,
        TOL_DRIVER_INDEX_cuEventSynchronize};
    MUST(tol_interpose_install(test_driver(), NULL));
    struct tol_pool *pool = pool_with(64, 0);
    struct tol_stream *streams[2] = {NULL};
    struct tol_block blocks[9] = {{0}};
    for (int i = 0; i < 2; i++) MUST(tol_stream_create(test_context(), NULL, &streams[i]));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 9; i++) {
            struct tol_stream *stream = streams[(i + round) % 2];
            MUST(tol_pool_allocate(pool, (size_t)(1 + 2 * i) * MIB, stream, &blocks[i]));
        }
        for (int i = 0; i < 9; i++) {
            /* With work on it, so that the other stream must wait for it. */
            CUdeviceptr at = tol_pool_address(pool, blocks[i]);
            tol_context_functions(test_context())
                ->cuMemsetD8Async(at, 1, (size_t)(1 + 2 * i) * MIB,
                                  tol_stream_handle(streams[i % 2]));
            MUST(tol_pool_free(pool, blocks[i], streams[i % 2]));
        }
        if (round == 2) MUST(tol_pool_trim(pool, 0));
    }
    struct tol_pool_stats s = stats_of(pool);
    uint64_t calls = 0;
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        calls += tol_interpose_count(counted[i]);
    }
    cr_assert(s.driver_calls == calls && calls > 20, "%llu of %llu calls",
              (unsigned long long)s.driver_calls, (unsigned long long)calls);
    cr_assert(s.driver_ns > 0);
    cr_assert(s.stream_waits > 0, "no stream waited for the other");
    for (int i = 0; i < 2; i++) tol_stream_destroy(streams[i]);
    tol_pool_destroy(pool);
    tol_interpose_remove(test_driver());
    test_end();
}

Test(pool_events, events_come_in_order_and_say_what_happened) {
    struct tol_pool *pool = pool_with(0, 100);
    tol_auto_stream struct tol_stream *stream = NULL;
    struct tol_pool_event e[100];
    struct tol_block block = {0}, none = {0};
    uint64_t lost = 1;
    unsigned tag = 0;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_pool_tag(pool, "weights", 0, &tag));
    MUST(tol_pool_allocate_tagged(pool, 5000, stream, tag, &block));
    MUST(tol_pool_free(pool, block, NULL));
    MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "freed before");
    MUST_FAIL(tol_pool_allocate(pool, SIZE_MAX, NULL, &none), TOL_OUT_OF_DEVICE_MEMORY, "any");
    MUST(tol_pool_trim(pool, 77));
    static const unsigned kinds[] = {TOL_POOL_EVENT_GROW, TOL_POOL_EVENT_ALLOCATE,
                                     TOL_POOL_EVENT_FREE, TOL_POOL_EVENT_REFUSE,
                                     TOL_POOL_EVENT_TRIM, TOL_POOL_EVENT_SHRINK};
    cr_assert_eq(sizeof e[0], 32);
    cr_assert_eq(tol_pool_events(pool, e, 100, &lost), 6);
    cr_assert_eq(lost, 0);
    for (int i = 0; i < 6; i++) {
        cr_assert(e[i].kind == kinds[i], "event %d is %s", i, tol_pool_event_name(e[i].kind));
        cr_assert(e[i].thread == e[0].thread && e[i].thread > 0);
    }
    cr_assert(e[0].bytes > 0 && e[1].bytes == 5000 && e[1].tag == tag && e[1].block == block.name);
    cr_assert(e[1].stream > 0 && e[1].took_ns > 0 && e[2].stream == 0 && e[2].took_ns > 0);
    cr_assert(e[2].block == block.name && e[2].begin_ns >= e[1].begin_ns && e[3].block == 0);
    cr_assert(e[4].bytes == 77 && e[5].bytes == 0 && tol_pool_event_name(99) == NULL);
    cr_assert_eq(stats_of(pool).events, 6);
    cr_assert_eq(times_of(pool, TOL_POOL_CALL_ALLOCATE), 1, "who keeps events has all times");
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_events, a_full_ring_keeps_the_latest_and_says_what_is_lost) {
    struct tol_pool *pool = pool_with(0, 10), *quiet = pool_with(64, 0);
    struct tol_pool_event e[10];
    uint64_t lost = 0;
    struct tol_block last = use(pool, 500, NULL);
    cr_assert_eq(tol_pool_events(pool, e, 10, &lost), 10);
    cr_assert(e[9].block == last.name && e[9].kind == TOL_POOL_EVENT_ALLOCATE);
    struct tol_pool_stats s = stats_of(pool);
    cr_assert(lost == s.events_lost && s.events == lost + 10 && lost > 900);
    cr_assert_eq(tol_pool_events(pool, e, 3, NULL), 3);
    use(quiet, 20, NULL);
    cr_assert(tol_pool_events(quiet, e, 10, &lost) == 0 && lost == 0);
    cr_assert_eq(stats_of(quiet).events, 0);
    tol_pool_destroy(pool);
    tol_pool_destroy(quiet);
    test_end();
}
