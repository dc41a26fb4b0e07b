/*
 * Pools of streams: one borrower per stream, the orders of fork and join, one stream per thread.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct tol_stream_pool *pool;

static void begin(unsigned max_streams) {
    MUST(tol_stream_pool_create(
        test_context(), &(struct tol_stream_pool_options){.max_streams = max_streams}, &pool));
}

static void end(void) {
    tol_stream_pool_destroy(pool);
    test_end();
}
TestSuite(stream_pool, .fini = end);

Test(stream_pool, lends_a_stream_to_one_and_lends_it_again) {
    struct tol_stream *one = NULL, *two = NULL, *again = NULL;
    struct tol_stream_pool_stats stats;
    begin(0);
    MUST(tol_stream_pool_take(pool, 0, &one));
    MUST(tol_stream_pool_take(pool, 0, &two));
    cr_assert(one != two);
    MUST(tol_stream_pool_give(pool, one));
    MUST(tol_stream_pool_take(pool, 0, &again));
    cr_assert(again == one, "an idle stream is lent again");
    MUST(tol_stream_pool_stats(pool, &stats));
    cr_assert(stats.made == 2 && stats.lent == 2, "%u made, %u lent", stats.made, stats.lent);
}

Test(stream_pool, keeps_priorities_apart) {
    int lowest = 0, highest = 0, priority = 99;
    struct tol_stream *urgent = NULL, *usual = NULL;
    begin(0);
    MUST(tol_context_priorities(test_context(), &lowest, &highest));
    MUST(tol_stream_pool_take(pool, highest - 10, &urgent));
    MUST(tol_stream_properties(urgent, &priority, NULL));
    cr_assert(priority == highest, "beyond the range counts as its end");
    MUST(tol_stream_pool_give(pool, urgent));
    MUST(tol_stream_pool_take(pool, lowest, &usual));
    cr_assert(usual != urgent || lowest == highest);
}

Test(stream_pool, refuses_what_is_not_lent) {
    struct tol_stream *stream = NULL, *more = NULL, *foreign = NULL;
    begin(1);
    MUST(tol_stream_pool_take(pool, 0, &stream));
    MUST_FAIL(tol_stream_pool_take(pool, 0, &more), TOL_OVER_LIMIT, "all 1 streams");
    MUST(tol_stream_pool_give(pool, stream));
    MUST_FAIL(tol_stream_pool_give(pool, stream), TOL_INVALID_ARGUMENT, "not lent");
    MUST(tol_stream_create(test_context(), NULL, &foreign));
    MUST_FAIL(tol_stream_pool_give(pool, foreign), TOL_INVALID_ARGUMENT, "not from this pool");
    MUST_FAIL(tol_stream_pool_take(NULL, 0, &more), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_pool_fork(pool, stream, 2, (struct tol_stream *[2]){NULL}), TOL_OVER_LIMIT,
              "all 1");
    MUST(tol_stream_pool_take(pool, 0, &more)); /* a fork that failed keeps nothing */
    tol_stream_destroy(foreign);
}

/* The branches wait for the kernel before the fork, which ends when the test lets it, and the work
 * after the join waits for the branches. */
Test(stream_pool, forks_wait_and_joins_wait, .timeout = 60) {
    enum { BRANCHES = 3 };
    struct tol_kernel *spin = test_kernel("spin");
    struct tol_stream *from = NULL, *branches[BRANCHES];
    struct tol_pinned *flag = NULL, *back = NULL;
    struct tol_buffer *sums = NULL;
    void *stop = NULL, *data = NULL;
    begin(0);
    MUST(tol_pinned_create(test_context(), sizeof(unsigned), &flag));
    MUST(tol_pinned_create(test_context(), BRANCHES * 4, &back));
    MUST(tol_pinned_access(flag, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_buffer_create(test_context(), BRANCHES, 4, &sums));
    MUST(tol_stream_pool_take(pool, 0, &from));
    MUST(tol_launch(from, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    MUST(tol_copy_fill(from, sums, 0, 0, 4, BRANCHES));
    MUST(tol_stream_pool_fork(pool, from, BRANCHES, branches));
    for (unsigned i = 0; i < BRANCHES; i++) {
        MUST(tol_copy_fill(branches[i], sums, (size_t)i * 4, i + 1, 4, 1));
        cr_assert(tol_stream_query(branches[i]) == TOL_NOT_READY, "branch %u ran ahead", i);
    }
    MUST(tol_stream_pool_join(pool, from, BRANCHES, branches));
    MUST(tol_copy_to_host(from, back, 0, sums, 0, BRANCHES * 4));
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(from));
    MUST(tol_pinned_access(back, &data));
    for (unsigned i = 0; i < BRANCHES; i++) {
        cr_assert(((unsigned *)data)[i] == i + 1, "branch %u: %u", i, ((unsigned *)data)[i]);
    }
    struct tol_stream_pool_stats stats;
    MUST(tol_stream_pool_stats(pool, &stats));
    cr_assert(stats.lent == 1 && stats.events == 1, "%u lent, %u events", stats.lent, stats.events);
    tol_buffer_destroy(sums);
    tol_pinned_destroy(back);
    tol_pinned_destroy(flag);
}

static void *ask_twice(void *user) {
    struct tol_stream **own = user, *again = NULL;
    if (tol_stream_pool_of_thread(pool, own) != TOL_OK) return "no stream";
    if (tol_stream_pool_of_thread(pool, &again) != TOL_OK || again != *own) return "another stream";
    if (tol_stream_pool_give(pool, *own) != TOL_INVALID_ARGUMENT) return "given back by hand";
    return tol_stream_synchronize(*own) == TOL_OK ? NULL : "no wait";
}

Test(stream_pool, has_a_stream_for_each_thread_until_it_ends) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct tol_stream *own[THREADS] = {NULL}, *mine = NULL;
    struct tol_stream_pool_stats stats;
    begin(0);
    MUST(tol_stream_pool_of_thread(pool, &mine));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ask_twice, &own[i]);
    for (int i = 0; i < THREADS; i++) {
        void *trouble = NULL;
        pthread_join(threads[i], &trouble);
        cr_assert(trouble == NULL, "thread %d: %s", i, (char *)trouble);
        cr_assert(own[i] != mine, "thread %d has the stream of another live thread", i);
    }
    MUST(tol_stream_pool_stats(pool, &stats));
    cr_assert(stats.threads == 1 && stats.lent == 1, "%u threads, %u lent", stats.threads,
              stats.lent);
}
