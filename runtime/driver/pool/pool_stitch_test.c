/*
 * Stitching: when a limit is reached, idle pieces form a block that none of them could hold,
 * without new memory from the driver. The neighbours keep their bytes, no failed driver call loses
 * any, and everything is released at the end.
 */
#include "pool_scene.h"
#include "test/test_scenarios.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the rung alone -------------------------------------------------------------------------- */

/* Both forms: a block among the pages, and one with memory of its own. */
static const size_t large_from[] = {32 * MIB, 4 * MIB};
enum { FORMS = sizeof large_from / sizeof large_from[0] };

/* Goal: no cuMemCreate and no cuMemRelease for a block that fits by stitching alone. */
Test(pool_stitch, idle_pages_serve_a_block_without_the_driver) {
    static struct scene s;
    scene_watch();
    for (int form = 0; form < FORMS; form++) {
        const struct tol_pool_options options = scene_options(16 * MIB, large_from[form]);
        scene_comb(&s, &options);
        const struct scene_calls before = scene_calls;
        const uint64_t driver_calls = scene_stats(&s).driver_calls;
        MUST(scene_add(&s, 8 * MIB));
        cr_assert(scene_calls.creates == before.creates && scene_calls.releases == before.releases,
                  "%u were made and %u released", scene_calls.creates - before.creates,
                  scene_calls.releases - before.releases);
        cr_assert(scene_calls.unmaps == before.unmaps + 4 && scene_calls.maps == before.maps + 4 &&
                  scene_calls.opens == before.opens + 1);
        struct tol_pool_stats stats = scene_stats(&s);
        cr_assert(stats.stitched == 4 && stats.stitched_bytes == 8 * MIB, "%llu handles, %llu",
                  (unsigned long long)stats.stitched, (unsigned long long)stats.stitched_bytes);
        cr_assert(stats.held == 16 * MIB && stats.held_peak == 16 * MIB && stats.idle == 0);
        cr_assert_eq(stats.driver_calls, driver_calls + 9);
        for (size_t i = 0; i < s.count; i++) scene_look(&s, s.blocks[i]);
        scene_end(&s);
    }
    scene_end_test();
}

/* Goal: a kernel sees one block. */
Test(pool_stitch, a_kernel_writes_across_the_seams, .timeout = 60) {
    static struct scene s;
    static unsigned host[2 * 1024 * 1024];
    scene_watch();
    struct tol_kernel *fill = test_kernel("fill");
    tol_auto_stream struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (int form = 0; form < FORMS; form++) {
        const struct tol_pool_options options = scene_options(16 * MIB, large_from[form]);
        scene_comb(&s, &options);
        struct tol_block block = {0};
        MUST(tol_pool_allocate(s.pool, 8 * MIB, stream, &block));
        CUdeviceptr at = tol_pool_address(s.pool, block);
        const unsigned long long count = 8 * MIB / sizeof host[0];
        MUST(tol_launch(stream, fill, tol_launch_linear(count, 256),
                        TOL_ARGUMENTS(at, 1000u, count)));
        MUST(tol_stream_synchronize(stream));
        cr_assert_eq(scene_driver()->cuMemcpyDtoH_v2(host, at, 8 * MIB), CUDA_SUCCESS);
        size_t whole = 0;
        while (whole < count && host[whole] == 1000) whole++;
        cr_assert(whole == count, "word %zu is %u", whole, host[whole]);
        MUST(tol_pool_free(s.pool, block, stream));
        MUST(tol_stream_synchronize(stream));
        scene_end(&s);
    }
    tol_stream_destroy(stream);
    stream = NULL;
    scene_end_test();
}

/* ---- which handles --------------------------------------------------------------------------- */

/* Goal: where the largest first leaves a rest, the sizes that add up are found. */
Test(pool_stitch, sizes_that_add_up_are_found) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(20 * MIB, 4 * MIB);
    scene_open(&s, &options);
    for (size_t i = 0; i < 3; i++) MUST(scene_add(&s, (i == 1 ? 8 : 6) * MIB));
    while (s.count > 0) scene_drop(&s, 0, NULL);
    const unsigned creates = scene_calls.creates;
    MUST(scene_add(&s, 12 * MIB));
    cr_assert(scene_calls.creates == creates && scene_stats(&s).stitched == 2);
    cr_assert(scene_stats(&s).held == 20 * MIB && scene_stats(&s).kept == 8 * MIB);
    scene_end(&s);
    scene_end_test();
}

/* Goal: idle pages that lie where the block goes serve it there. */
Test(pool_stitch, pages_of_its_own_place_stay) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(16 * MIB, 32 * MIB);
    scene_open(&s, &options);
    for (int i = 0; i < 8; i++) MUST(scene_add(&s, 2 * MIB));
    const CUdeviceptr last = tol_pool_address(s.pool, s.blocks[7]);
    scene_drop(&s, 7, NULL);
    scene_drop(&s, 2, NULL);
    scene_drop(&s, 0, NULL);
    const unsigned creates = scene_calls.creates;
    MUST(scene_add(&s, 6 * MIB));
    cr_assert(tol_pool_address(s.pool, s.blocks[5]) == last && scene_calls.creates == creates &&
              scene_stats(&s).stitched == 2);
    scene_end(&s);
    scene_end_test();
}

/* Goal: where an idle page parts the place of a block, what lies before it and what lies after it
 * are filled, without a byte from the driver. */
Test(pool_stitch, both_gaps_around_an_idle_page_are_filled) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(16 * MIB, 32 * MIB);
    scene_open(&s, &options);
    for (int i = 0; i < 8; i++) MUST(scene_add(&s, 2 * MIB));
    const CUdeviceptr third = tol_pool_address(s.pool, s.blocks[2]);
    scene_drop(&s, 4, NULL);
    scene_drop(&s, 2, NULL);
    MUST(scene_add(&s, 4 * MIB)); /* takes the memory of the third and of the fifth page */
    scene_drop(&s, 4, NULL);
    scene_drop(&s, 2, NULL);
    scene_drop(&s, 0, NULL);
    const struct scene_calls before = scene_calls;
    MUST(scene_add(&s, 6 * MIB));
    cr_assert_eq(tol_pool_address(s.pool, s.blocks[s.count - 1]), third);
    cr_assert(scene_calls.creates == before.creates && scene_calls.releases == before.releases &&
                  scene_calls.maps == before.maps + 2 && scene_stats(&s).stitched == 4,
              "%u made, %u released, %u mapped", scene_calls.creates - before.creates,
              scene_calls.releases - before.releases, scene_calls.maps - before.maps);
    scene_end(&s);
    scene_end_test();
}

/* Goal: a handle that is larger than the block is given back for one that is made, and what the sum
 * lacks is made within the limit. */
Test(pool_stitch, what_does_not_fit_is_given_back) {
    static struct scene s;
    scene_watch();
    struct tol_pool_options options = scene_options(16 * MIB, 4 * MIB);
    scene_open(&s, &options);
    MUST(scene_add(&s, 12 * MIB));
    MUST(scene_add(&s, 4 * MIB));
    scene_drop(&s, 0, NULL);
    unsigned creates = scene_calls.creates, releases = scene_calls.releases;
    MUST(scene_add(&s, 8 * MIB));
    cr_assert(scene_calls.creates == creates + 1 && scene_calls.releases == releases + 1,
              "%u made, %u released", scene_calls.creates - creates,
              scene_calls.releases - releases);
    cr_assert(scene_stats(&s).held == 12 * MIB && scene_stats(&s).stitched == 0);
    scene_end(&s);

    scene_open(&s, &options);
    MUST(scene_add(&s, 4 * MIB));
    MUST(scene_add(&s, 8 * MIB));
    scene_drop(&s, 0, NULL);
    creates = scene_calls.creates;
    releases = scene_calls.releases;
    MUST(scene_add(&s, 8 * MIB));
    cr_assert(scene_calls.creates == creates + 1 && scene_calls.releases == releases);
    cr_assert(scene_stats(&s).held == 16 * MIB && scene_stats(&s).stitched == 1);
    scene_end(&s);
    scene_end_test();
}

/* Goal: what is not enough for the block stays, for the next. */
Test(pool_stitch, a_block_that_does_not_fit_takes_nothing_away) {
    static struct scene s;
    scene_watch();
    for (int form = 0; form < FORMS; form++) {
        const struct tol_pool_options options = scene_options(16 * MIB, large_from[form]);
        scene_comb(&s, &options);
        const struct scene_calls before = scene_calls;
        MUST_FAIL(tol_pool_allocate(s.pool, 10 * MIB, NULL, &s.blocks[s.count]),
                  TOL_OUT_OF_DEVICE_MEMORY, "limit");
        cr_assert(scene_calls.creates == before.creates && scene_calls.maps == before.maps &&
                      scene_calls.unmaps == before.unmaps &&
                      scene_calls.releases == before.releases,
                  "memory was moved");
        cr_assert(scene_stats(&s).held == 16 * MIB && scene_stats(&s).stitched == 0);
        MUST(scene_add(&s, 8 * MIB));
        scene_end(&s);
    }
    scene_end_test();
}

/* Goal: a device that has no more is a limit too. */
Test(pool_stitch, a_full_device_serves_by_stitching) {
    static struct scene s;
    if (test_on_gpu()) cr_skip_test("it would take a whole GPU");
    setenv("TOLLENS_SOFT_MEMORY", "16M", 1);
    scene_watch();
    struct tol_pool_options options = scene_options(0, 4 * MIB);
    options.address_bytes = 256 * MIB;
    scene_open(&s, &options);
    while (scene_add(&s, 2 * MIB) == TOL_OK) continue;
    cr_assert_geq(s.count, 6);
    for (size_t i = 3; i-- > 0;) scene_drop(&s, 2 * i, NULL);
    const struct scene_calls before = scene_calls;
    MUST(scene_add(&s, 6 * MIB));
    cr_assert(scene_calls.creates == before.creates && scene_calls.releases == before.releases);
    scene_end(&s);
    scene_end_test();
}

/* ---- what becomes of a stitched block -------------------------------------------------------- */

/* Goal: freed, it is kept whole for one of its size, or serves in parts, or goes back. */
Test(pool_stitch, a_large_block_of_parts_is_used_again) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(16 * MIB, 4 * MIB);
    scene_comb(&s, &options);
    MUST(scene_add(&s, 8 * MIB));
    CUdeviceptr at = tol_pool_address(s.pool, s.blocks[4]);
    struct scene_calls before = scene_calls;
    scene_drop(&s, 4, NULL);
    cr_assert_eq(scene_stats(&s).kept, 8 * MIB);
    MUST(scene_add(&s, 8 * MIB));
    cr_assert(tol_pool_address(s.pool, s.blocks[4]) == at && scene_calls.maps == before.maps);
    /* Half of it for a smaller one; the other half has no place, and serves a page and another. */
    scene_drop(&s, 4, NULL);
    MUST(scene_add(&s, 4 * MIB));
    cr_assert(scene_stats(&s).idle == 4 * MIB && scene_stats(&s).kept == 0 &&
              scene_stats(&s).held == 16 * MIB);
    MUST(scene_add(&s, 2 * MIB));
    MUST(scene_add(&s, 2 * MIB));
    cr_assert(scene_stats(&s).idle == 0 && scene_stats(&s).held == 16 * MIB);
    cr_assert(scene_calls.creates == before.creates && scene_calls.releases == before.releases);
    /* All of what was made of it goes again to one. */
    for (int i = 0; i < 3; i++) scene_drop(&s, 4, NULL);
    MUST(scene_add(&s, 8 * MIB));
    cr_assert(scene_calls.creates == before.creates && scene_calls.releases == before.releases);
    scene_drop(&s, 4, NULL);
    /* A trim takes it, parts and all. */
    MUST(tol_pool_trim(s.pool, 8 * MIB));
    cr_assert(scene_stats(&s).held == 8 * MIB && scene_calls.releases == before.releases + 4,
              "%llu bytes are held, %u handles released", (unsigned long long)scene_stats(&s).held,
              scene_calls.releases - before.releases);
    scene_end(&s);
    scene_end_test();
}

/* Goal: a pool that ends while such blocks live, are kept and are spare gives all back. */
Test(pool_stitch, a_pool_that_ends_gives_parts_back) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(16 * MIB, 4 * MIB);
    for (int which = 0; which < 3; which++) {
        scene_comb(&s, &options);
        MUST(scene_add(&s, 8 * MIB));
        if (which > 0) scene_drop(&s, 4, NULL);
        if (which > 1) MUST(scene_add(&s, 4 * MIB));
        cr_assert_eq(scene_stats(&s).idle, which > 1 ? 4 * MIB : 0);
        tol_pool_destroy(s.pool);
        cr_assert(scene_calls.handles == 0 && scene_calls.mapped == 0,
                  "%lld handles, %lld MiB are mapped", (long long)scene_calls.handles,
                  (long long)scene_calls.mapped);
    }
    scene_end_test();
}

/* ---- other calls ----------------------------------------------------------------------------- */

Test(pool_stitch, the_soft_limit_is_passed_for_the_rest_alone) {
    static struct scene s;
    scene_watch();
    struct tol_pool_options options = scene_options(0, 4 * MIB);
    options.soft_limit_bytes = 16 * MIB;
    scene_comb(&s, &options);
    const unsigned releases = scene_calls.releases;
    MUST(scene_add(&s, 8 * MIB));
    cr_assert(scene_stats(&s).soft_passed == 0 && scene_stats(&s).stitched == 4);
    scene_drop(&s, 4, NULL);
    MUST(scene_add(&s, 12 * MIB));
    cr_assert(scene_stats(&s).soft_passed == 1 && scene_stats(&s).stitched == 8);
    cr_assert(scene_stats(&s).held == 20 * MIB && scene_calls.releases == releases);
    scene_end(&s);
    scene_end_test();
}

/* Goal: nothing of a wiped block is in the next, and a guard follows a stitched one. */
Test(pool_stitch, wiped_and_guarded_blocks_are_stitched) {
    static struct scene s;
    scene_watch();
    struct tol_pool_options options = scene_options(16 * MIB, 32 * MIB);
    options.wipe = true;
    options.guard_one_in = 1;
    scene_open(&s, &options);
    for (int i = 0; i < 8; i++) MUST(scene_add(&s, 2 * MIB));
    for (size_t i = 4; i-- > 0;) scene_drop(&s, 2 * i, NULL);
    const unsigned creates = scene_calls.creates;
    struct tol_block block = {0};
    MUST(tol_pool_allocate(s.pool, 8 * MIB - 16, NULL, &block));
    cr_assert(scene_calls.creates == creates && scene_stats(&s).stitched == 4 &&
              scene_stats(&s).guarded == 9);
    CUdeviceptr at = tol_pool_address(s.pool, block);
    static unsigned char host[8 * MIB];
    cr_assert_eq(scene_driver()->cuMemcpyDtoH_v2(host, at, 8 * MIB - 16), CUDA_SUCCESS);
    for (size_t i = 0; i < 8 * MIB - 16; i++) cr_assert(host[i] == 0, "byte %zu", i);
    if (!test_on_gpu()) {
        cr_assert_neq(scene_driver()->cuMemsetD8_v2(at + 8 * MIB - 16, 1, 1), CUDA_SUCCESS);
    }
    MUST(tol_pool_free(s.pool, block, NULL));
    scene_end(&s);
    scene_end_test();
}

static void block_stream(void *user) {
    (void)user;
    usleep(50000);
}

/* Frees one that queued work writes still. */
static void drop_in_use(struct scene *s, size_t i, struct tol_stream *stream) {
    const CUdeviceptr at = tol_pool_address(s->pool, s->blocks[i]);
    const size_t bytes = tol_pool_bytes(s->pool, s->blocks[i]);
    scene_look(s, s->blocks[i]);
    scene_driver()->cuMemsetD8Async(at, 0xee, bytes, tol_stream_handle(stream));
    MUST(tol_pool_free(s->pool, s->blocks[i], stream));
    for (s->count--; i < s->count; i++) s->blocks[i] = s->blocks[i + 1];
}

/* Goal: memory that queued work writes still is not taken before that is done: pages for a block
 * among pages and for a large one, and large blocks that are kept. */
Test(pool_stitch, work_on_what_was_freed_is_waited_for) {
    static struct scene s;
    static const struct {
        size_t large, bytes;
    } forms[] = {{32 * MIB, 2 * MIB}, {4 * MIB, 2 * MIB}, {4 * MIB, 4 * MIB}};
    tol_auto_stream struct tol_stream *stream = NULL;
    scene_watch();
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        const size_t bytes = forms[form].bytes;
        const struct tol_pool_options options = scene_options(16 * MIB, forms[form].large);
        scene_open(&s, &options);
        while (s.count < 16 * MIB / bytes) MUST(scene_add(&s, bytes));
        cr_assert_eq(
            scene_driver()->cuLaunchHostFunc(tol_stream_handle(stream), block_stream, NULL),
            CUDA_SUCCESS);
        for (size_t i = s.count / 2; i-- > 0;) drop_in_use(&s, 2 * i, stream);
        const unsigned creates = scene_calls.creates;
        MUST(scene_add(&s, 8 * MIB));
        cr_assert(scene_calls.creates == creates && scene_stats(&s).stitched_bytes == 8 * MIB);
        MUST(tol_stream_synchronize(stream));
        for (size_t i = 0; i < s.count; i++) scene_look(&s, s.blocks[i]);
        scene_end(&s);
    }
    tol_stream_destroy(stream);
    stream = NULL;
    scene_end_test();
}

/* Goal: what a capture has freed is not taken before it ends, and the capture is not harmed. */
Test(pool_stitch, a_capture_keeps_what_it_freed) {
    static struct scene s;
    scene_watch();
    const struct tol_pool_options options = scene_options(16 * MIB, 4 * MIB);
    tol_auto_stream struct tol_stream *stream = NULL;
    struct tol_graph *graph = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    scene_open(&s, &options);
    for (int i = 0; i < 8; i++) MUST(scene_add(&s, 2 * MIB));
    for (size_t i = 0; i < 8; i++) scene_look(&s, s.blocks[i]);
    MUST(tol_graph_capture_begin(stream));
    for (size_t i = 0; i < 4; i++) {
        CUdeviceptr at = tol_pool_address(s.pool, s.blocks[4 + i]);
        scene_driver()->cuMemsetD8Async(at, 0xee, 2 * MIB, tol_stream_handle(stream));
        MUST(tol_pool_free(s.pool, s.blocks[4 + i], stream));
    }
    s.count = 4;
    MUST_FAIL(tol_pool_allocate(s.pool, 8 * MIB, NULL, &s.blocks[4]), TOL_OUT_OF_DEVICE_MEMORY,
              "limit");
    cr_assert_eq(scene_stats(&s).stitched, 0);
    /* The message names the stream that the memory waits for. */
    cr_assert(strstr(tol_message(), "\"pending\": 8388608, \"pending_streams\": {\"") != NULL &&
                  strstr(tol_message(), "\": 8388608}, \"would_serve\": \"synchronize\"") != NULL,
              "%s", tol_message());
    MUST_FAIL(tol_pool_allocate(s.pool, 2 * MIB, NULL, &s.blocks[4]), TOL_OUT_OF_DEVICE_MEMORY,
              "limit");
    MUST(tol_graph_capture_end(stream, &graph));
    tol_graph_destroy(graph);
    MUST(scene_add(&s, 8 * MIB));
    cr_assert_eq(scene_stats(&s).stitched, 4);
    scene_end(&s);
    tol_stream_destroy(stream);
    stream = NULL;
    scene_end_test();
}

Test(pool_stitch, it_is_told_of) {
    static struct scene s;
    scene_watch();
    struct tol_pool_options options = scene_options(16 * MIB, 32 * MIB);
    options.trace_events = 100;
    char *text = NULL, diagnosis[2048];
    scene_comb(&s, &options);
    tol_pool_diagnose(s.pool, 8 * MIB, diagnosis, sizeof diagnosis);
    cr_assert(strstr(diagnosis, "\"would_fit_after_defragmentation\": true") != NULL);
    MUST(scene_add(&s, 8 * MIB));
    tol_pool_diagnose(s.pool, 8 * MIB, diagnosis, sizeof diagnosis);
    cr_assert(strstr(diagnosis, "\"stitched\": 8388608,") != NULL, "%s", diagnosis);
    MUST(tol_pool_snapshot(s.pool, &text));
    cr_assert(strstr(text, "\"stitched\": 4, \"stitched_bytes\": 8388608") != NULL, "%s", text);
    free(text);
    MUST(tol_pool_trace(s.pool, &text));
    cr_assert(strstr(text, ",stitch,0,8388608,0,0\n") != NULL, "%s", text);
    free(text);
    scene_end(&s);
    scene_end_test();
}

Test(pool_stitch, chunks_are_not_stitched) {
    static struct scene s;
    scene_watch();
    struct tol_pool_options options = scene_options(16 * MIB, 4 * MIB);
    options.source = TOL_POOL_CHUNKED;
    scene_open(&s, &options);
    while (scene_add(&s, MIB) == TOL_OK) continue;
    while (s.count > 2) scene_drop(&s, s.count / 2, NULL);
    (void)scene_add(&s, 8 * MIB);
    cr_assert_eq(scene_stats(&s).stitched, 0);
    /* A hole of a chunk is memory as a whole. */
    char *text = NULL;
    MUST(tol_pool_snapshot(s.pool, &text));
    cr_assert(strstr(text, "\"bytes\": 7340032, \"mapped\": 7340032, \"pending\": 0") != NULL, "%s",
              text);
    free(text);
    while (s.count > 0) scene_drop(&s, 0, NULL);
    tol_pool_destroy(s.pool);
    cr_assert(scene_calls.maps == 0);
    scene_end_test();
}

/* ---- a driver that refuses ------------------------------------------------------------------- */

/* Something of each: spares, kept blocks of parts, pages, and a rest that is made. */
static void refuse_from(struct scene *s, size_t large, uint64_t nth, uint64_t times) {
    const struct tol_pool_options options = scene_options(20 * MIB, large);
    scene_calls.nth = 0;
    scene_comb(s, &options);
    scene_calls.count = 0;
    scene_calls.times = times;
    scene_calls.nth = nth;
    size_t made = s->count;
    for (size_t i = 0; i < 3; i++) {
        static const size_t sizes[] = {10 * MIB, 4 * MIB, 8 * MIB};
        tol_status status = tol_pool_allocate(s->pool, sizes[i], NULL, &s->blocks[s->count]);
        if (status == TOL_OK) s->count++;
        if (i == 0 && s->count > made) {
            MUST(tol_pool_free(s->pool, s->blocks[--s->count], NULL));
        }
    }
    scene_calls.nth = 0;
    for (size_t i = made; i < s->count; i++) scene_mark(s, s->blocks[i]);
    for (size_t i = 0; i < s->count; i++) scene_look(s, s->blocks[i]);
    cr_assert(scene_stats(s).held <= 20 * MIB && scene_stats(s).held_peak <= 20 * MIB);
    /* The allocation that failed succeeds now. */
    while (s->count > made) scene_drop(s, made, NULL);
    MUST(scene_add(s, 12 * MIB));
    scene_end(s);
}

/* Goal: whichever call is refused, once or twice or from then on, nothing is lost. */
Test(pool_stitch, the_nth_call_that_is_refused_loses_nothing, .timeout = 120) {
    static struct scene s;
    scene_watch();
    for (int form = 0; form < FORMS; form++) {
        static const uint64_t times[] = {1, 2, 3, 1000};
        for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
            uint64_t nth = 0;
            do {
                nth = test_next_scenario(nth);
                refuse_from(&s, large_from[form], nth, times[i]);
            } while (scene_calls.count >= nth);
            cr_assert(nth > 12, "only %llu calls", (unsigned long long)nth);
        }
    }
    scene_end_test();
}
