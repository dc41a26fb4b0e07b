/*
 * Health: the kind of memory, leaks and their call sites, and errors that no call has returned yet.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

TestSuite(health, .fini = test_end);

static struct tol_health check(const struct tol_health_mark *since) {
    struct tol_health health = {0};
    MUST(tol_health_check(test_context(), since, &health));
    return health;
}

static struct tol_health_mark *mark(void) {
    struct tol_health_mark *made = NULL;
    MUST(tol_health_mark_create(test_context(), &made));
    return made;
}

Test(health, of_a_new_context_is_good) {
    struct tol_health health = check(NULL);
    cr_assert(health.is_healthy && !health.is_lost, "%s", health.complaint);
    cr_assert_str_eq(health.complaint, "");
    cr_assert(health.total_bytes > 0 && health.free_bytes <= health.total_bytes);
    for (int i = 0; i < TOL_HELD_KINDS; i++) {
        cr_assert(health.held[i].count == 0 && health.held[i].bytes == 0);
    }
    cr_assert(health.resident == 0 && health.astray == 0 && health.worst_site == NULL);
}

Test(health, what_is_no_argument_is_refused) {
    struct tol_health health = {.streams = 7};
    struct tol_context *other = NULL;
    struct tol_driver *driver = NULL;
    struct tol_health_mark *foreign = NULL;
    MUST_FAIL(tol_health_check(NULL, NULL, &health), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_health_check(test_context(), NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_health_mark_create(NULL, &foreign), TOL_INVALID_ARGUMENT, "NULL");
    MUST(tol_driver_open(test_library(), &driver));
    MUST(tol_context_create(driver, 0, &other));
    MUST(tol_health_mark_create(other, &foreign));
    MUST_FAIL(tol_health_check(test_context(), foreign, &health), TOL_INVALID_ARGUMENT, "another");
    cr_assert(health.streams == 7, "a refused call has written");
    tol_context_destroy(other);
    tol_driver_close(driver);
    tol_health_mark_destroy(foreign); /* which may outlive its context */
    tol_health_mark_destroy(NULL);
    tol_health_each(NULL, NULL, NULL);
    cr_assert(tol_held_name(TOL_HELD_KINDS) == NULL);
    cr_assert_str_eq(tol_held_name(TOL_HELD_BUFFER), "buffer");
}

/* One of each kind, and two of a pool. */
struct all {
    struct tol_buffer *buffer;
    struct tol_pinned *pinned;
    struct tol_pool *pool;
    struct tol_block blocks[2];
    struct tol_vram_context *vram;
    struct tol_vram memory;
};

static struct all make_all(void) {
    struct all all = {0};
    unsigned tag = 0;
    MUST(tol_buffer_create(test_context(), 1000, 1, &all.buffer));
    MUST(tol_pinned_create(test_context(), 2000, &all.pinned));
    MUST(tol_pool_create(test_context(), NULL, &all.pool));
    MUST(tol_pool_tag(all.pool, "weights", 0, &tag));
    MUST(tol_pool_allocate_tagged(all.pool, 3000, NULL, tag, &all.blocks[0]));
    MUST(tol_pool_allocate(all.pool, 40 << 20, NULL, &all.blocks[1])); /* memory of its own */
    MUST(tol_vram_context_create(test_context(), 0, &all.vram));
    MUST(tol_vram_allocate(all.vram, 5000, &all.memory));
    return all;
}

static void end_all(struct all *all) {
    MUST(tol_vram_free(all->vram, all->memory));
    tol_vram_context_destroy(all->vram);
    MUST(tol_pool_free(all->pool, all->blocks[0], NULL));
    MUST(tol_pool_free(all->pool, all->blocks[1], NULL));
    tol_pool_destroy(all->pool);
    tol_pinned_destroy(all->pinned);
    tol_buffer_destroy(all->buffer);
}

struct seen {
    unsigned count, tagged, nameless;
    uint64_t bytes;
};

static void see(void *user, const struct tol_held *held) {
    struct seen *seen = user;
    seen->count++;
    seen->bytes += held->bytes;
    seen->tagged += held->kind == TOL_HELD_BLOCK && strcmp(held->tag, "weights") == 0;
    seen->nameless += held->site == NULL || held->address == 0 || held->tag == NULL;
}

Test(health, residency_is_asked_of_all_that_lives) {
    struct all all = make_all();
    struct seen seen = {0};
    struct tol_health health = check(NULL);
    cr_assert(health.is_healthy, "%s", health.complaint);
    cr_assert(health.held[TOL_HELD_BUFFER].count == 1 &&
              health.held[TOL_HELD_BUFFER].bytes == 1000);
    cr_assert(health.held[TOL_HELD_PINNED].count == 1 &&
              health.held[TOL_HELD_PINNED].bytes == 2000);
    cr_assert(health.held[TOL_HELD_BLOCK].count == 2);
    cr_assert(health.held[TOL_HELD_BLOCK].bytes == 3000 + (40 << 20));
    cr_assert(health.held[TOL_HELD_VRAM].count == 1 && health.held[TOL_HELD_VRAM].bytes == 5000);
    cr_assert(health.resident == 4 && health.astray == 0, "%llu and %llu",
              (unsigned long long)health.resident, (unsigned long long)health.astray);
    tol_health_each(test_context(), see, &seen);
    cr_assert(seen.count == 5 && seen.bytes == 1000 + 2000 + 3000 + (40 << 20) + 5000);
    cr_assert(seen.tagged == 1 && seen.nameless == 0);
    end_all(&all);
    health = check(NULL);
    for (int i = 0; i < TOL_HELD_KINDS; i++) {
        cr_assert(health.held[i].count == 0, "%s", tol_held_name((unsigned)i));
    }
    cr_assert(health.ending == 0);
}

/* What a driver would say that has moved memory to the host, or has made it managed. */
static enum { AS_IT_IS, ON_THE_HOST, MANAGED, NEVER_HEARD_OF } lie;

static void answer(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuPointerGetAttribute) return;
    unsigned *value = *(unsigned *const *)call->arguments[0];
    CUpointer_attribute attribute = *(const CUpointer_attribute *)call->arguments[1];
    if (lie == ON_THE_HOST && attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        *value = CU_MEMORYTYPE_HOST;
    }
    if (lie == MANAGED && attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED) *value = 1;
    if (lie == NEVER_HEARD_OF) call->result = CUDA_ERROR_INVALID_VALUE;
}

Test(health, memory_that_is_not_on_the_device_is_told) {
    struct tol_driver *driver = test_driver();
    MUST(tol_interpose_install(driver, &(struct tol_interpose_options){.after = answer}));
    struct all all = make_all();
    for (lie = ON_THE_HOST; lie <= NEVER_HEARD_OF; lie++) {
        struct tol_health health = check(NULL);
        cr_assert(!health.is_healthy && !health.is_lost);
        cr_assert(health.astray == 4 && health.resident == 0, "lie %d: %llu", (int)lie,
                  (unsigned long long)health.astray);
        cr_assert(strstr(health.complaint, "4 of 4 allocations are not in device memory") != NULL,
                  "%s", health.complaint);
    }
    lie = AS_IT_IS;
    cr_assert(check(NULL).is_healthy);
    end_all(&all);
    tol_interpose_remove(driver);
}

__attribute__((noinline)) static struct tol_buffer *leak(size_t bytes) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), bytes, 1, &buffer));
    return buffer;
}

/* Code of that function: it is short. */
static bool is_in_leak(const void *site) {
    const uintptr_t at = (uintptr_t)site, begin = (uintptr_t)leak;
    return at > begin && at < begin + 4096;
}

Test(health, leaks_since_a_mark_are_told_with_their_place) {
    enum { LEAKS = 100 };
    struct tol_buffer *leaked[LEAKS] = {NULL};
    struct all all = make_all();
    struct tol_buffer *before = leak(70);
    struct tol_health_mark *since = mark();
    cr_assert(check(since).is_healthy, "what was there at the mark is no leak");

    /* A place that has less than at the mark does not make up for one that has more. */
    tol_buffer_destroy(all.buffer);
    for (int i = 0; i < LEAKS; i++) leaked[i] = leak(50);
    struct tol_health health = check(since);
    cr_assert(!health.is_healthy && health.leaked.count == LEAKS);
    cr_assert(health.leaked.bytes == 50 * LEAKS && health.worst.bytes == 50 * LEAKS);
    cr_assert(health.worst.count == LEAKS && health.worst_kind == TOL_HELD_BUFFER);
    cr_assert(is_in_leak(health.worst_site));
    cr_assert(strstr(health.complaint, "100 allocations and 5000 bytes more than at the mark"),
              "%s", health.complaint);
    cr_assert(check(NULL).is_healthy, "without a mark leaks are not looked for");

    for (int i = 0; i < LEAKS; i++) tol_buffer_destroy(leaked[i]);
    health = check(since);
    cr_assert(health.is_healthy && health.leaked.count == 0, "%s", health.complaint);
    cr_assert(health.worst_site == NULL);
    tol_buffer_destroy(before);
    MUST(tol_buffer_create(test_context(), 1, 1, &all.buffer));
    end_all(&all);
    tol_health_mark_destroy(since);
}

/* Many places: each block of code below is one. */
Test(health, leaks_of_a_pool_are_told_among_many_places) {
    struct tol_pool *pool = NULL;
    struct tol_block blocks[4];
    MUST(tol_pool_create(test_context(), NULL, &pool));
    struct tol_health_mark *since = mark();
    MUST(tol_pool_allocate(pool, 1000, NULL, &blocks[0]));
    MUST(tol_pool_allocate(pool, 9000, NULL, &blocks[1]));
    MUST(tol_pool_allocate(pool, 2000, NULL, &blocks[2]));
    struct tol_health health = check(since);
    cr_assert(health.leaked.count == 3 && health.leaked.bytes == 12000);
    cr_assert(health.worst.count == 1 && health.worst.bytes == 9000);
    cr_assert(health.worst_kind == TOL_HELD_BLOCK);
    MUST(tol_pool_free(pool, blocks[1], NULL));
    cr_assert(check(since).leaked.bytes == 3000);
    tol_pool_destroy(pool); /* takes what was not freed along */
    cr_assert(check(since).is_healthy);
    tol_health_mark_destroy(since);
}

/* A kernel's fault is asynchronous: no call of the program need ever have met it. */
Test(health, an_error_that_nobody_has_met_is_found, .timeout = 60) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_health health;
    CUdeviceptr nowhere = 0;
    unsigned long long count = 1;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 4, 4, &buffer));
    MUST(tol_launch(stream, fill, tol_launch_linear(1, 1), TOL_ARGUMENTS(nowhere, 1u, count)));
    do {
        health = check(NULL);
    } while (!health.is_lost);
    cr_assert(!health.is_healthy && health.error == CUDA_ERROR_ILLEGAL_ADDRESS, "%d", health.error);
    cr_assert(strstr(health.complaint, "ILLEGAL_ADDRESS") != NULL, "%s", health.complaint);
    cr_assert(health.held[TOL_HELD_BUFFER].count == 1, "live objects are known without the driver");
    cr_assert(health.astray == 0, "what is unknown is not reported as wrong");
    health = check(NULL);
    cr_assert(health.is_lost && health.error == CUDA_ERROR_ILLEGAL_ADDRESS);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(health, streams_with_work_are_counted) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *streams[2];
    struct tol_buffer *buffer = NULL;
    const unsigned long long count = 1;
    MUST(tol_stream_create(test_context(), NULL, &streams[0]));
    MUST(tol_stream_create(test_context(), NULL, &streams[1]));
    MUST(tol_buffer_create(test_context(), 1, 4, &buffer));
    MUST(tol_graph_capture_begin(streams[1]));
    struct tol_health health = check(NULL);
    cr_assert(health.streams == 2 && health.busy == 0);
    /* Looking has not ended the capture. */
    struct tol_graph *graph = NULL;
    MUST(tol_launch(streams[1], fill, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS(tol_buffer_address(buffer), 1u, count)));
    MUST(tol_graph_capture_end(streams[1], &graph));
    cr_assert(graph != NULL);
    tol_graph_destroy(graph);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(streams[0]);
    tol_stream_destroy(streams[1]);
}

static atomic_bool is_over;

static void *make_and_free(void *pool) {
    tol_status status = TOL_OK;
    while (!atomic_load(&is_over) && status == TOL_OK) {
        struct tol_buffer *buffer = NULL;
        struct tol_block small = {0}, large = {0};
        status = tol_buffer_create(test_context(), 100, 1, &buffer);
        if (status == TOL_OK) status = tol_pool_allocate(pool, 100, NULL, &small);
        if (status == TOL_OK) status = tol_pool_allocate(pool, 20 << 20, NULL, &large);
        if (status == TOL_OK) status = tol_pool_free(pool, large, NULL);
        if (status == TOL_OK) status = tol_pool_free(pool, small, NULL);
        tol_buffer_destroy(buffer);
    }
    return status == TOL_OK ? pool : NULL;
}

/* What others free meanwhile is never seen without its memory. */
Test(health, is_checked_beside_threads_that_allocate, .timeout = 120) {
    enum { THREADS = 3, ROUNDS = 200 };
    pthread_t threads[THREADS];
    struct tol_pool *pool = NULL;
    MUST(tol_pool_create(test_context(), NULL, &pool));
    for (int i = 0; i < THREADS; i++) {
        cr_assert(pthread_create(&threads[i], NULL, make_and_free, pool) == 0);
    }
    struct tol_health_mark *since = mark();
    for (int i = 0; i < ROUNDS; i++) {
        struct tol_health health = check(since);
        cr_assert(!health.is_lost && health.astray == 0, "%s", health.complaint);
        cr_assert(health.held[TOL_HELD_BUFFER].count <= THREADS);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        cr_assert(result == pool);
    }
    cr_assert(check(NULL).held[TOL_HELD_BLOCK].count == 0);
    tol_health_mark_destroy(since);
    tol_pool_destroy(pool);
}

/* A driver call that fails for a reason that is not fatal is returned, and nothing is written. */
Test(health, what_the_driver_does_not_tell_is_an_error) {
    static const char *const functions[] = {"cuPointerGetAttribute", "cuMemGetInfo_v2",
                                            "cuStreamQuery"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const struct tol_interpose_rule rule = {.function = functions[i],
                                                .nth = 1,
                                                .action = TOL_INTERPOSE_FAIL,
                                                .result = CUDA_ERROR_NOT_PERMITTED};
        struct tol_driver *driver = test_driver();
        struct tol_stream *stream = NULL;
        struct tol_buffer *buffer = NULL;
        struct tol_health health = {.streams = 7};
        MUST(tol_interpose_install(
            driver, &(struct tol_interpose_options){.rules = &rule, .rule_count = 1}));
        MUST(tol_stream_create(test_context(), NULL, &stream));
        MUST(tol_buffer_create(test_context(), 1, 1, &buffer));
        MUST_FAIL(tol_health_check(test_context(), NULL, &health), TOL_DRIVER_ERROR, functions[i]);
        cr_assert(health.streams == 7, "%s", functions[i]);
        cr_assert(check(NULL).is_healthy, "one call that failed is no illness");
        tol_buffer_destroy(buffer);
        tol_stream_destroy(stream);
        tol_interpose_remove(driver);
        test_end();
    }
}
