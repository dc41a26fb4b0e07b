/*
 * The steps before an allocation fails, and the pool without mapped memory.
 */
#include "test/test_device.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *pool_of(const struct tol_pool_options *options) {
    struct tol_pool *pool = NULL;
    tol_status status = tol_pool_create(test_context(), options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return pool;
}

static struct tol_pool_options options_with(enum tol_pool_source source, size_t limit) {
    struct tol_pool_options options;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.source = source;
    options.limit_bytes = limit;
    options.first_bytes = 4 * MIB;
    return options;
}

static struct tol_pool_stats stats_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats;
}

/* ---- the program's own say ------------------------------------------------------------------- */

struct reserve {
    struct tol_block blocks[8];
    int count;
    unsigned asked, attempts;
    size_t bytes;
};

static bool give_one(void *user, struct tol_pool *pool, size_t bytes, unsigned attempt) {
    struct reserve *reserve = user;
    reserve->asked++;
    reserve->attempts = attempt;
    reserve->bytes = bytes;
    if (reserve->count == 0) return true; /* in vain: the pool must not ask for ever */
    MUST(tol_pool_free(pool, reserve->blocks[--reserve->count], NULL));
    return true;
}

Test(pool_ladder, the_program_may_free_something_and_is_not_asked_for_ever) {
    struct reserve reserve = {.count = 0};
    struct tol_pool_options options = options_with(TOL_POOL_MAPPED, 32 * MIB);
    options.on_out_of_memory = give_one;
    options.user = &reserve;
    struct tol_pool *pool = pool_of(&options);
    struct tol_block block = {0};
    for (; reserve.count < 8; reserve.count++) {
        MUST(tol_pool_allocate(pool, 4 * MIB, NULL, &reserve.blocks[reserve.count]));
    }
    MUST(tol_pool_allocate(pool, 12 * MIB, NULL, &block));
    cr_assert(reserve.count == 5 && reserve.asked == 3 && reserve.attempts == 2, "asked %u times",
              reserve.asked);
    cr_assert_eq(reserve.bytes, 12 * MIB);
    MUST_FAIL(tol_pool_allocate(pool, 64 * MIB, NULL, &block), TOL_OUT_OF_DEVICE_MEMORY, "limit");
    cr_assert_eq(reserve.asked, 3 + 8);
    tol_pool_destroy(pool);
    test_end();
}

/* ---- limits ---------------------------------------------------------------------------------- */

Test(pool_ladder, above_the_soft_limit_all_is_tried_before_it_grows) {
    struct tol_pool_options options = options_with(TOL_POOL_MAPPED, 0);
    options.soft_limit_bytes = 16 * MIB;
    options.slack_bytes = 64 * MIB;
    struct tol_pool *pool = pool_of(&options);
    tol_auto_stream struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    struct tol_block blocks[3];
    MUST(tol_pool_allocate(pool, 12 * MIB, stream, &blocks[0]));
    MUST(tol_pool_free(pool, blocks[0], stream));
    /* There is no place for it, but it can be made. */
    MUST(tol_pool_allocate(pool, 16 * MIB, stream, &blocks[0]));
    cr_assert(stats_of(pool).held == 16 * MIB && stats_of(pool).soft_passed == 0, "%llu",
              (unsigned long long)stats_of(pool).held);
    MUST(tol_pool_allocate(pool, 3 * MIB, stream, &blocks[1]));
    cr_assert(stats_of(pool).held > 16 * MIB && stats_of(pool).soft_passed == 1);
    MUST(tol_pool_free_batch(pool, 2, blocks, stream));
    tol_pool_destroy(pool);
    test_end();
}

static bool says(const char *text) {
    return strstr(tol_message(), text) != NULL;
}

/* Goal: the diagnosis is right, both ways: blocks that are kept by one half of a page each. */
Test(pool_ladder, the_diagnosis_knows_whether_compaction_would_help) {
    for (int compact = 0; compact < 2; compact++) {
        struct tol_pool_options options = options_with(TOL_POOL_MAPPED, 16 * MIB);
        options.first_count = 0;
        options.large_bytes = 4 * MIB;
        options.compact = compact;
        struct tol_pool *pool = pool_of(&options);
        struct tol_block blocks[16], large = {0};
        for (int i = 0; i < 16; i++) MUST(tol_pool_allocate(pool, MIB, NULL, &blocks[i]));
        MUST_FAIL(tol_pool_allocate(pool, 4 * MIB, NULL, &large), TOL_OUT_OF_DEVICE_MEMORY, "{");
        cr_assert(says("\"would_fit_after_defragmentation\": false") &&
                      says("\"would_serve\": \"limit_bytes\"") &&
                      says("\"largest_hole\": 0, \"pending\": 0, \"pending_streams\": {}, "),
                  "%s", tol_message());
        cr_assert(says(compact ? "\"compaction\": true" : "\"compaction\": false"), "%s",
                  tol_message());
        for (int i = 0; i < 16; i++) {
            uint64_t mib = tol_pool_address(pool, blocks[i]) / MIB;
            if (mib % 2 == mib / 2 % 2) MUST(tol_pool_free(pool, blocks[i], NULL));
        }
        MUST_FAIL(tol_pool_allocate(pool, 10 * MIB, NULL, &large), TOL_OUT_OF_DEVICE_MEMORY, "{");
        cr_assert(says("\"would_fit_after_defragmentation\": false") &&
                      says("\"largest_hole\": 2097152, "),
                  "%s", tol_message());
        MUST_FAIL(tol_pool_allocate(pool, (size_t)1 << 50, NULL, &large), TOL_OUT_OF_DEVICE_MEMORY,
                  "\"would_serve\": \"free\"");
        tol_status status = tol_pool_allocate(pool, 8 * MIB, NULL, &large);
        if (compact) {
            cr_assert(status == TOL_OK, "%s", tol_message());
        } else {
            cr_assert(status == TOL_OUT_OF_DEVICE_MEMORY &&
                          says("\"would_fit_after_defragmentation\": true") &&
                          says("\"would_serve\": \"compact\""),
                      "%s", tol_message());
        }
        tol_pool_destroy(pool);
    }
    test_end();
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void exercise_chunks(struct tol_pool *pool) {
    struct tol_block blocks[64], none = {0};
    tol_auto_stream struct tol_stream *stream = NULL;
    const struct tol_driver_table *driver = tol_context_functions(test_context());
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (unsigned i = 0; i < 64; i++) {
        size_t bytes = i % 16 == 0 ? 5 * MIB : 1000 + 20000 * (size_t)i;
        MUST(tol_pool_allocate(pool, bytes, stream, &blocks[i]));
        CUdeviceptr at = tol_pool_address(pool, blocks[i]);
        cr_assert(at % TOL_POOL_ALIGNMENT == 0);
        driver->cuMemsetD8Async(at, (unsigned char)i, bytes, tol_stream_handle(stream));
    }
    for (unsigned i = 0; i < 64; i += 2) MUST(tol_pool_free(pool, blocks[i], stream));
    MUST_FAIL(tol_pool_free(pool, blocks[0], stream), TOL_INVALID_ARGUMENT, "freed before");
    MUST_FAIL(tol_pool_free(pool, none, stream), TOL_INVALID_ARGUMENT,
              "does not belong to this pool");
    MUST(tol_stream_synchronize(stream));
    for (unsigned i = 1; i < 64; i += 2) {
        unsigned char ends[2] = {0};
        CUdeviceptr at = tol_pool_address(pool, blocks[i]);
        driver->cuMemcpyDtoH_v2(&ends[0], at, 1);
        driver->cuMemcpyDtoH_v2(&ends[1], at + tol_pool_bytes(pool, blocks[i]) - 1, 1);
        cr_assert(ends[0] == i && ends[1] == i, "block %u has %u and %u", i, ends[0], ends[1]);
        MUST(tol_pool_free(pool, blocks[i], stream));
    }
    MUST(tol_stream_synchronize(stream));
    /* A large one fits where all chunks have gone; and all comes back. */
    MUST(tol_pool_allocate(pool, 62 * MIB, stream, &blocks[0]));
    MUST_FAIL(tol_pool_allocate(pool, 8 * MIB, stream, &blocks[1]), TOL_OUT_OF_DEVICE_MEMORY,
              "limit");
    MUST(tol_pool_free(pool, blocks[0], stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_trim(pool, 0));
    struct tol_pool_stats stats = stats_of(pool);
    cr_assert(stats.held == 0 && stats.used == 0 && stats.requested == 0 &&
                  stats.held_peak <= 64 * MIB && stats.driver_allocations == stats.driver_frees,
              "%llu bytes are held", (unsigned long long)stats.held);
}

Test(pool_ladder, chunks_serve_where_they_are_asked_for) {
    struct tol_pool_options options = options_with(TOL_POOL_CHUNKED, 64 * MIB);
    options.large_bytes = 8 * MIB;
    struct tol_pool *pool = pool_of(&options);
    exercise_chunks(pool);
    tol_pool_destroy(pool);
    options.guard_one_in = 1;
    MUST_FAIL(tol_pool_create(test_context(), &options, &pool), TOL_UNSUPPORTED, "guards");
    test_end();
}

static void deny_mapping(struct tol_interpose_call *call, void *user) {
    unsigned *mapped = user;
    if (call->index == TOL_DRIVER_INDEX_cuMemCreate) ++*mapped;
    if (call->index != TOL_DRIVER_INDEX_cuDeviceGetAttribute) return;
    CUdevice_attribute attribute = *(const CUdevice_attribute *)call->arguments[1];
    if (attribute != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) return;
    **(int *const *)call->arguments[0] = 0;
}

Test(pool_ladder, chunks_serve_where_memory_cannot_be_mapped) {
    unsigned mapped = 0;
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){.after = deny_mapping, .user = &mapped}));
    struct tol_pool_options options = options_with(TOL_POOL_MAPPED, 64 * MIB);
    options.large_bytes = 8 * MIB;
    options.compact = true;
    struct tol_pool *pool = pool_of(&options);
    exercise_chunks(pool);
    tol_pool_destroy(pool);
    cr_assert_eq(mapped, 0);
    tol_interpose_remove(test_driver());
    test_end();
}
