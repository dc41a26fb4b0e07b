/*
 * The pool as its users see it: blocks, freed handles, streams, limits, tags, guards, wiping,
 * giving memory back, and the messages when memory is out.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *
pool_with(void (*profile)(const struct tol_device *, struct tol_pool_options *), size_t limit) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    profile(tol_context_device(test_context()), &options);
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

static struct tol_block new_block(struct tol_pool *pool, size_t bytes, struct tol_stream *stream) {
    struct tol_block block = {0};
    MUST(tol_pool_allocate(pool, bytes, stream, &block));
    return block;
}

static const struct tol_driver_table *driver_now(void) {
    MUST(tol_context_bind(test_context()));
    return tol_context_functions(test_context());
}

Test(pool, blocks_are_apart_and_hold_what_is_written) {
    static void (*const profiles[])(const struct tol_device *, struct tol_pool_options *) = {
        tol_pool_default, tol_pool_tight, tol_pool_latency};
    static const size_t sizes[] = {1, 256, 257, 70000, MIB, 3 * MIB + 1, 20 * MIB};
    for (int p = 0; p < 3; p++) {
        struct tol_pool *pool = pool_with(profiles[p], 0);
        struct tol_block blocks[7];
        for (int i = 0; i < 7; i++) {
            blocks[i] = new_block(pool, sizes[i], NULL);
            CUdeviceptr at = tol_pool_address(pool, blocks[i]);
            cr_assert(at != 0 && at % TOL_POOL_ALIGNMENT == 0);
            cr_assert_eq(tol_pool_bytes(pool, blocks[i]), sizes[i]);
            cr_assert_eq(driver_now()->cuMemsetD8_v2(at, (unsigned char)(i + 1), sizes[i]),
                         CUDA_SUCCESS);
        }
        for (int i = 0; i < 7; i++) {
            unsigned char ends[2] = {0};
            CUdeviceptr at = tol_pool_address(pool, blocks[i]);
            driver_now()->cuMemcpyDtoH_v2(&ends[0], at, 1);
            driver_now()->cuMemcpyDtoH_v2(&ends[1], at + sizes[i] - 1, 1);
            cr_assert(ends[0] == i + 1 && ends[1] == i + 1, "block %d has %d and %d", i, ends[0],
                      ends[1]);
        }
        MUST(tol_pool_free_batch(pool, 7, blocks, NULL));
        struct tol_pool_stats stats = stats_of(pool);
        cr_assert(stats.requested == 0 && stats.blocks == 0 && stats.allocations == 7);
        MUST(tol_pool_trim(pool, 0));
        cr_assert_eq(stats_of(pool).held, 0);
        tol_pool_destroy(pool);
    }
    test_end();
}

Test(pool, what_was_freed_or_never_was_is_refused) {
    struct tol_pool *pool = pool_with(tol_pool_default, 0), *other = pool_with(tol_pool_tight, 0);
    struct tol_block none = {0}, block = {0};
    unsigned tag = 0;
    MUST(tol_pool_tag(pool, "weights", 0, &tag));
    static const size_t sizes[] = {300, 5 * MIB, 40 * MIB};
    for (int i = 0; i < 3; i++) {
        MUST(tol_pool_allocate_tagged(pool, sizes[i], NULL, tag, &block));
        MUST_FAIL(tol_pool_free(other, block, NULL), TOL_INVALID_ARGUMENT,
                  "does not belong to this pool");
        MUST(tol_pool_free(pool, block, NULL));
        MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "freed before");
        cr_assert(strstr(tol_message(), "weights") != NULL, "%s", tol_message());
        cr_assert(tol_pool_address(pool, block) == 0 && tol_pool_bytes(pool, block) == 0);
        /* Also when its memory is another block's now. */
        struct tol_block again = new_block(pool, sizes[i], NULL);
        MUST_FAIL(tol_pool_free(pool, block, NULL), TOL_INVALID_ARGUMENT, "freed before");
        cr_assert_eq(tol_pool_bytes(pool, again), sizes[i]);
        MUST(tol_pool_free(pool, again, NULL));
    }
    MUST_FAIL(tol_pool_free(pool, none, NULL), TOL_INVALID_ARGUMENT,
              "does not belong to this pool");
    MUST_FAIL(tol_pool_allocate(pool, 0, NULL, &block), TOL_INVALID_ARGUMENT,
              "size of a block is 0");
    MUST_FAIL(tol_pool_allocate(pool, 1, NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_pool_allocate_tagged(pool, 1, NULL, 99, &block), TOL_INVALID_ARGUMENT, "tag 99");
    MUST_FAIL(tol_pool_allocate(pool, SIZE_MAX, NULL, &block), TOL_OUT_OF_DEVICE_MEMORY, "any");
    tol_pool_destroy(pool);
    tol_pool_destroy(other);
    tol_pool_destroy(NULL);
    test_end();
}

Test(pool, a_limit_and_a_quota_hold_and_nothing_is_lost) {
    struct tol_pool *pool = pool_with(tol_pool_tight, 64 * MIB);
    struct tol_block blocks[80], block = {0};
    size_t count = 0;
    while (tol_pool_allocate(pool, MIB, NULL, &blocks[count]) == TOL_OK) {
        cr_assert(++count < 80, "the limit did not hold");
    }
    cr_assert(count >= 62, "only %zu MiB of 64 could be allocated", count);
    cr_assert(strstr(tol_message(), "\"limit\": 67108864") != NULL, "%s", tol_message());
    cr_assert(stats_of(pool).held <= 64 * MIB && stats_of(pool).refused == 1);
    while (count > 0) MUST(tol_pool_free(pool, blocks[--count], NULL));
    /* All of it, also as one block that needs other pages. */
    block = new_block(pool, 60 * MIB, NULL);
    MUST(tol_pool_free(pool, block, NULL));
    unsigned tag = 0, same = 0;
    MUST(tol_pool_tag(pool, "cache", 1000, &tag));
    MUST(tol_pool_allocate_tagged(pool, 600, NULL, tag, &block));
    struct tol_block second = {0};
    MUST_FAIL(tol_pool_allocate_tagged(pool, 600, NULL, tag, &second), TOL_OUT_OF_DEVICE_MEMORY,
              "quota of 1000 bytes of the tag cache");
    MUST(tol_pool_tag(pool, "cache", 2000, &same));
    cr_assert_eq(same, tag);
    MUST(tol_pool_allocate_tagged(pool, 600, NULL, tag, &second));
    MUST(tol_pool_free(pool, block, NULL));
    MUST(tol_pool_free(pool, second, NULL));
    MUST_FAIL(tol_pool_tag(pool, "", 0, &tag), TOL_INVALID_ARGUMENT, "characters");
    tol_pool_destroy(pool);
    test_end();
}

/* Goal: a block freed on one stream is another's only when the work before the free is done. */
Test(pool, memory_passes_between_streams_in_order) {
    struct tol_pool *pool = pool_with(tol_pool_tight, 32 * MIB);
    tol_auto_stream struct tol_stream *one = NULL;
    tol_auto_stream struct tol_stream *two = NULL;
    MUST(tol_stream_create(test_context(), NULL, &one));
    MUST(tol_stream_create(test_context(), NULL, &two));
    struct tol_block first = new_block(pool, 15 * MIB, one),
                     second = new_block(pool, 15 * MIB, one);
    CUdeviceptr at = tol_pool_address(pool, first);
    const struct tol_driver_table *driver = driver_now();
    for (int i = 0; i < 20; i++) {
        driver->cuMemsetD8Async(at, 1, 15 * MIB, tol_stream_handle(one));
    }
    MUST(tol_pool_free(pool, first, one));
    /* There is room for no other: it must be the one that stream one still writes. */
    struct tol_block third = new_block(pool, 15 * MIB, two);
    cr_assert_eq(tol_pool_address(pool, third), at);
    driver->cuMemsetD8Async(at, 2, 15 * MIB, tol_stream_handle(two));
    MUST(tol_stream_synchronize(two));
    MUST(tol_stream_synchronize(one));
    unsigned char byte = 0;
    driver->cuMemcpyDtoH_v2(&byte, at + 7 * MIB, 1);
    cr_assert_eq(byte, 2, "the first stream's work came after");
    MUST(tol_pool_free(pool, second, one));
    MUST(tol_pool_free(pool, third, two));
    /* The host's waits. */
    struct tol_block all = new_block(pool, 30 * MIB, NULL);
    MUST(tol_pool_free(pool, all, NULL));
    tol_pool_destroy(pool);
    test_end();
}

/* What a GPU does: an event that was recorded just now has not been reached when it is queried. */
static void ask_too_early(struct tol_interpose_call *call, void *user) {
    int *asked = user;
    if (call->index == TOL_DRIVER_INDEX_cuEventRecord) *asked = 0;
    if (call->index != TOL_DRIVER_INDEX_cuEventQuery || (*asked)++ > 0) return;
    call->result = CUDA_ERROR_NOT_READY;
}

/* Goal: after the program has waited, all that was freed can be given back at once. */
Test(pool, what_was_waited_for_can_be_given_back) {
    struct tol_stream *stream = NULL;
    struct tol_block blocks[3];
    int asked = 0;
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){.after = ask_too_early, .user = &asked}));
    struct tol_pool *pool = pool_with(tol_pool_tight, 0);
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (int i = 0; i < 3; i++) blocks[i] = new_block(pool, (size_t)(1 + 9 * i) * MIB, stream);
    for (int i = 0; i < 3; i++) MUST(tol_pool_free(pool, blocks[i], stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_trim(pool, 0));
    cr_assert_eq(stats_of(pool).held, 0, "%llu bytes stay",
                 (unsigned long long)stats_of(pool).held);
    tol_stream_destroy(stream);
    tol_pool_destroy(pool);
    tol_interpose_remove(test_driver());
    test_end();
}

Test(pool, streams_may_end_before_their_blocks) {
    struct tol_pool *pool = pool_with(tol_pool_default, 0);
    struct tol_block blocks[200];
    for (int i = 0; i < 200; i++) {
        tol_auto_stream struct tol_stream *stream = NULL;
        MUST(tol_stream_create(test_context(), NULL, &stream));
        blocks[i] = new_block(pool, 4000 + 256 * (size_t)(i % 3), stream);
        if (i % 2 == 0) MUST(tol_pool_free(pool, blocks[i], stream));
    }
    for (int i = 1; i < 200; i += 2) MUST(tol_pool_free(pool, blocks[i], NULL));
    cr_assert_eq(stats_of(pool).blocks, 0);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool, a_small_block_comes_back_to_its_thread) {
    struct tol_pool *pool = pool_with(tol_pool_default, 0);
    struct tol_block block = new_block(pool, 5000, NULL);
    CUdeviceptr at = tol_pool_address(pool, block);
    MUST(tol_pool_free(pool, block, NULL));
    block = new_block(pool, 5001, NULL);
    cr_assert(tol_pool_address(pool, block) == at && stats_of(pool).magazine_hits == 1);
    MUST(tol_pool_free(pool, block, NULL));
    cr_assert(stats_of(pool).cached == 5120, "%llu", (unsigned long long)stats_of(pool).cached);
    MUST(tol_pool_trim(pool, 0));
    cr_assert(stats_of(pool).cached == 0 && stats_of(pool).held == 0);
    tol_pool_destroy(pool);
    test_end();
}

/* Goal: what a small program ever needs takes a handful of driver calls (H8). */
Test(pool, a_hundred_blocks_take_few_driver_calls) {
    struct tol_pool *pool = pool_with(tol_pool_default, 0);
    for (int i = 0; i < 128; i++) {
        struct tol_block block = new_block(pool, 1 + (size_t)i * 81920, NULL);
        MUST(tol_pool_free(pool, block, NULL));
    }
    cr_assert(stats_of(pool).driver_allocations < 10, "%llu",
              (unsigned long long)stats_of(pool).driver_allocations);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool, wiping_leaves_nothing_to_be_read) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.wipe = true;
    MUST(tol_pool_create(test_context(), &options, &pool));
    static const size_t sizes[] = {1000, 3 * MIB, 17 * MIB};
    for (int i = 0; i < 3; i++) {
        tol_auto_stream struct tol_stream *stream = NULL;
        MUST(tol_stream_create(test_context(), NULL, &stream));
        struct tol_block block = new_block(pool, sizes[i], stream);
        CUdeviceptr at = tol_pool_address(pool, block);
        driver_now()->cuMemsetD8Async(at, 0x5a, sizes[i], tol_stream_handle(stream));
        MUST(tol_pool_free(pool, block, stream));
        block = new_block(pool, sizes[i], stream);
        cr_assert_eq(tol_pool_address(pool, block), at);
        MUST(tol_stream_synchronize(stream));
        unsigned char ends[2] = {1, 1};
        driver_now()->cuMemcpyDtoH_v2(&ends[0], at, 1);
        driver_now()->cuMemcpyDtoH_v2(&ends[1], at + sizes[i] - 1, 1);
        cr_assert(ends[0] == 0 && ends[1] == 0, "%x %x", ends[0], ends[1]);
        MUST(tol_pool_free(pool, block, stream));
        MUST(tol_stream_synchronize(stream));
    }
    tol_pool_destroy(pool);
    test_end();
}

/* Goal: one byte beyond a guarded block is a fault, not another block's loss. */
Test(pool, an_overrun_of_a_guarded_block_faults) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    tol_pool_default(tol_context_device(test_context()), &options);
    options.guard_one_in = 1;
    MUST(tol_pool_create(test_context(), &options, &pool));
    struct tol_block block = new_block(pool, 4096, NULL);
    CUdeviceptr at = tol_pool_address(pool, block);
    cr_assert_eq(stats_of(pool).guarded, 1);
    cr_assert_eq(driver_now()->cuMemsetD8_v2(at, 1, 4096), CUDA_SUCCESS);
    cr_assert_neq(driver_now()->cuMemsetD8_v2(at, 1, 4097), CUDA_SUCCESS, "it went unnoticed");
    tol_pool_destroy(pool);
    test_end();
}

static void park_nothing(const struct tol_device *device, struct tol_pool_options *options) {
    tol_pool_default(device, options);
    options->park_bytes = 0;
}

/* Freed large blocks wait for another use, but only so much of them, and the oldest go first. */
Test(pool, few_large_blocks_are_kept) {
    struct tol_pool *pool = pool_with(park_nothing, 0);
    struct tol_block first = new_block(pool, 40 * MIB, NULL),
                     second = new_block(pool, 32 * MIB, NULL),
                     third = new_block(pool, 80 * MIB, NULL);
    MUST(tol_pool_free(pool, first, NULL));
    cr_assert_eq(stats_of(pool).kept, 40 * MIB);
    MUST(tol_pool_free(pool, second, NULL));
    cr_assert_eq(stats_of(pool).kept, 32 * MIB);
    MUST(tol_pool_free(pool, third, NULL));
    cr_assert(stats_of(pool).kept == 0 && stats_of(pool).held == 0);
    tol_pool_destroy(pool);
    test_end();
}

static void note(void *user, const struct tol_pool_live *live) {
    char *text = user;
    snprintf(text + strlen(text), 60, "%zu %s %d;", live->bytes, live->tag, live->site != NULL);
}

Test(pool, what_is_live_can_be_listed) {
    struct tol_pool *pool = pool_with(tol_pool_default, 0);
    struct tol_block kept = {0}, large = {0};
    char text[500] = "";
    unsigned tag = 0;
    MUST(tol_pool_tag(pool, "kv \"cache\"", 0, &tag));
    struct tol_block gone = new_block(pool, 77, NULL);
    MUST(tol_pool_allocate_tagged(pool, 1234, NULL, tag, &kept));
    MUST(tol_pool_allocate_tagged(pool, 33 * MIB, NULL, tag, &large));
    MUST(tol_pool_free(pool, gone, NULL));
    tol_pool_each(pool, note, text);
    cr_assert_str_eq(text, "1234 kv \"cache\" 1;34603008 kv \"cache\" 1;");
    char diagnosis[1000];
    size_t length = tol_pool_diagnose(pool, 5, diagnosis, sizeof diagnosis);
    cr_assert(length == strlen(diagnosis) &&
                  strstr(diagnosis, "\"kv .cache.\": {\"used\": 34604242") != NULL,
              "%s", diagnosis);
    cr_assert_eq(tol_pool_diagnose(pool, 5, diagnosis, 10), length);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool, the_drivers_own_pool_has_the_same_calls) {
    struct tol_pool_options options = {.source = TOL_POOL_DRIVER};
    struct tol_pool *pool = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    tol_status status = tol_pool_create(test_context(), &options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    struct tol_block block = new_block(pool, 3000, stream),
                     other = new_block(pool, 9 * MIB, stream);
    cr_assert(tol_pool_address(pool, block) != 0 && stats_of(pool).blocks == 2);
    cr_assert(stats_of(pool).held >= 9 * MIB && stats_of(pool).requested == 9 * MIB + 3000);
    MUST(tol_pool_free(pool, block, stream));
    MUST_FAIL(tol_pool_free(pool, block, stream), TOL_INVALID_ARGUMENT, "freed before");
    MUST(tol_pool_free(pool, other, stream));
    MUST(tol_stream_synchronize(stream));
    /* The host's may be used, and are given back, without a word to the legacy stream. */
    block = new_block(pool, 40 * MIB, NULL);
    cr_assert_eq(driver_now()->cuMemsetD8Async(tol_pool_address(pool, block), 1, 40 * MIB,
                                               tol_stream_handle(stream)),
                 CUDA_SUCCESS);
    MUST(tol_stream_synchronize(stream));
    MUST(tol_pool_free(pool, block, NULL));
    MUST(tol_pool_trim(pool, 0));
    cr_assert_eq(stats_of(pool).requested, 0);
    cr_assert_eq(stats_of(pool).held, 0);
    /* What was refused is not given back. */
    MUST(tol_interpose_install(test_driver(), NULL));
    MUST_FAIL(tol_pool_allocate(pool, (size_t)1 << 46, stream, &block), TOL_OUT_OF_DEVICE_MEMORY,
              "driver's pool");
    cr_assert_eq(tol_interpose_count(TOL_DRIVER_INDEX_cuMemFreeAsync), 0);
    tol_interpose_remove(test_driver());
    tol_pool_destroy(pool);
    test_end();
}

Test(pool, a_batch_is_all_or_nothing) {
    struct tol_pool *pool = pool_with(tol_pool_tight, 32 * MIB);
    static const size_t good[] = {100, 200, 5 * MIB}, bad[] = {100, 6 * MIB, 900 * MIB};
    struct tol_block blocks[3];
    MUST(tol_pool_allocate_batch(pool, 3, good, NULL, blocks));
    MUST_FAIL(tol_pool_allocate_batch(pool, 3, bad, NULL, blocks + 0), TOL_OUT_OF_DEVICE_MEMORY,
              "limit");
    cr_assert_eq(stats_of(pool).blocks, 3);
    tol_pool_destroy(pool);
    test_end();
}
