/*
 * Graphs: by hand and captured, changed in place, cloned, launched from several threads.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(graph, .fini = test_end);

enum { N = 256 };

static struct tol_stream *stream;
static struct tol_kernel *fill, *spin;
static struct tol_buffer *buffer;
static struct tol_pinned *pinned;

static void begin(void) {
    MUST(tol_stream_create(test_context(), NULL, &stream));
    fill = test_kernel("fill");
    MUST(tol_buffer_create(test_context(), N, 4, &buffer));
    MUST(tol_pinned_create(test_context(), 4 * N, &pinned));
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, N));
}

static void finish(void) {
    tol_stream_destroy(stream);
    tol_buffer_destroy(buffer);
    tol_pinned_destroy(pinned);
}

static unsigned at(unsigned index) {
    unsigned value = 0;
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read_at(buffer, 4 * (size_t)index, &value, 4));
    return value;
}

/* out, value, count */
#define FILL(index, value, n)                                                                      \
    fill, tol_launch_linear(n, 32),                                                                \
        TOL_ARGUMENTS(tol_buffer_address(buffer) + 4 * (CUdeviceptr)(index), (unsigned)(value),    \
                      (unsigned long long)(n))

Test(graph, runs_nodes_after_those_they_depend_on) {
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    unsigned first = 99, second = 99, third = 99;
    begin();
    MUST(tol_graph_create(test_context(), &graph));
    MUST(tol_graph_add_kernel(graph, FILL(0, 1, N), NULL, 0, &first));
    MUST(tol_graph_add_kernel(graph, FILL(0, 2, 128), &first, 1, &second));
    MUST(tol_graph_add_kernel(graph, FILL(64, 3, 64), (unsigned[]){first, second}, 2, &third));
    cr_assert(first == 0 && second == 1 && third == 2 && tol_graph_nodes(graph) == 3);
    MUST(tol_graph_instantiate(graph, &exec));
    tol_graph_destroy(graph); /* the instance stays */
    for (int i = 0; i < 3; i++) MUST(tol_graph_launch(exec, stream));
    cr_assert(at(0) == 2 && at(64) == 3 && at(127) == 3 && at(128) == 1 && at(N - 1) == 1);
    tol_graph_exec_destroy(exec);
    finish();
}

Test(graph, arguments_change_in_place_and_queued_launches_keep_theirs) {
    struct tol_graph *graph = NULL, *clone = NULL;
    struct tol_graph_exec *exec = NULL, *other = NULL;
    unsigned node = 0;
    begin();
    MUST(tol_graph_create(test_context(), &graph));
    MUST(tol_graph_add_kernel(graph, FILL(0, 1, 8), NULL, 0, &node));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_graph_exec_set_kernel(exec, node, FILL(8, 2, 8)));
    MUST(tol_graph_launch(exec, stream));
    cr_assert(at(0) == 1 && at(8) == 2, "%u %u", at(0), at(8));
    /* A clone is changed apart; the graph itself was not changed by changing its instance. */
    MUST(tol_graph_clone(graph, &clone));
    MUST(tol_graph_set_kernel(clone, node, FILL(16, 5, 8)));
    MUST(tol_graph_instantiate(clone, &other));
    MUST(tol_graph_launch(other, stream));
    cr_assert(at(16) == 5);
    MUST(tol_graph_exec_update(exec, clone));
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, N));
    MUST(tol_graph_launch(exec, stream));
    cr_assert(at(16) == 5 && at(0) == 0 && at(8) == 0);
    tol_graph_exec_destroy(other);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(clone);
    tol_graph_destroy(graph);
    finish();
}

Test(graph, refuses_with_a_sentence) {
    struct tol_graph *graph = NULL, *wider = NULL, *captured = NULL;
    struct tol_graph_exec *exec = NULL;
    unsigned far = 7;
    begin();
    MUST(tol_graph_create(test_context(), &graph));
    MUST_FAIL(tol_graph_add_kernel(graph, FILL(0, 1, 8), &far, 1, NULL), TOL_INVALID_ARGUMENT,
              "depends on node 7");
    MUST_FAIL(tol_graph_add_kernel(graph, fill, tol_launch_linear(0, 1), TOL_ARGUMENTS(1u), NULL, 0,
                                   NULL),
              TOL_OVER_LIMIT, "fill");
    MUST(tol_graph_add_kernel(graph, FILL(0, 1, 8), NULL, 0, NULL));
    MUST(tol_graph_clone(graph, &wider));
    MUST(tol_graph_add_kernel(wider, FILL(0, 1, 8), NULL, 0, NULL));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST_FAIL(tol_graph_exec_set_kernel(exec, 1, FILL(0, 1, 8)), TOL_INVALID_ARGUMENT, "node 1");
    MUST_FAIL(tol_graph_exec_update(exec, wider), TOL_INVALID_ARGUMENT, "2");
    MUST_FAIL(tol_graph_launch(exec, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_graph_capture_end(stream, &graph), TOL_INVALID_ARGUMENT, "not being captured");
    MUST(tol_graph_launch(exec, stream)); /* as it was */
    cr_assert(at(0) == 1);
    /* The driver would add the graph to the capture as a node, and nothing would run. */
    MUST(tol_graph_capture_begin(stream));
    MUST_FAIL(tol_graph_launch(exec, stream), TOL_INVALID_ARGUMENT, "is being captured");
    MUST(tol_graph_capture_end(stream, &captured));
    cr_assert_eq(tol_graph_nodes(captured), 0, "%u nodes", tol_graph_nodes(captured));
    tol_graph_destroy(captured);
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_graph_destroy(wider);
    finish();
}

/* Kernel, copies and a fill, on two streams, noted and not run. */
static struct tol_graph *capture_all(struct tol_stream *side, struct tol_event *event,
                                     unsigned value) {
    struct tol_graph *graph = NULL;
    MUST(tol_graph_capture_begin(stream));
    MUST_FAIL(tol_graph_capture_begin(stream), TOL_INVALID_ARGUMENT, "already");
    MUST_FAIL(tol_copy_from_pageable(stream, buffer, 0, &value, 4), TOL_INVALID_ARGUMENT, "pinned");
    MUST(tol_copy_to_device(stream, buffer, 0, pinned, 0, 4 * 64));
    MUST(tol_event_record(event, stream));
    MUST(tol_stream_wait_event(side, event));
    MUST(tol_launch(side, FILL(64, value, 64)));
    MUST(tol_event_record(event, side));
    MUST(tol_launch(stream, FILL(128, value + 1, 64)));
    MUST(tol_stream_wait_event(stream, event));
    MUST(tol_copy_to_host(stream, pinned, 4 * 64, buffer, 4 * 64, 4 * 128));
    MUST(tol_graph_capture_end(stream, &graph));
    return graph;
}

Test(graph, a_stream_is_captured_and_launched_as_a_whole) {
    struct tol_stream *side = NULL;
    struct tol_event *event = NULL;
    struct tol_graph_exec *exec = NULL;
    unsigned *words = NULL;
    void *data = NULL;
    begin();
    MUST(tol_stream_create(test_context(), NULL, &side));
    MUST(tol_event_create(test_context(), false, &event));
    MUST(tol_pinned_access(pinned, &data));
    words = data;
    memset(words, 0, 4 * N);
    struct tol_graph *graph = capture_all(side, event, 10);
    cr_assert(tol_graph_nodes(graph) >= 4, "%u nodes", tol_graph_nodes(graph));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_pinned_access(pinned, &data)); /* nothing is in flight: nothing has run */
    cr_assert(at(64) == 0 && words[64] == 0);
    for (unsigned i = 0; i < 64; i++) words[i] = 1000 + i;
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_pinned_access(pinned, &data)); /* waits for the launch's copies */
    cr_assert(words[64] == 10 && words[127] == 10 && words[128] == 11, "%u", words[64]);
    cr_assert(at(5) == 1005);
    struct tol_graph *again = capture_all(side, event, 20);
    MUST(tol_graph_exec_update(exec, again));
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_pinned_access(pinned, &data));
    cr_assert(words[64] == 20 && words[128] == 21, "%u", words[64]);
    MUST(tol_launch(side, FILL(64, 3, 1))); /* the streams run again */
    MUST(tol_stream_synchronize(side));
    cr_assert(at(64) == 3);
    tol_graph_destroy(graph);
    tol_graph_destroy(again);
    tol_graph_exec_destroy(exec);
    tol_event_destroy(event);
    tol_stream_destroy(side);
    finish();
}

static tol_status fail_at_the_second(void *user, char *reason, size_t bytes) {
    snprintf(reason, bytes, "run %d", atomic_fetch_add((atomic_int *)user, 1) + 1);
    return atomic_load((atomic_int *)user) == 2 ? TOL_OUT_OF_RANGE : TOL_OK;
}

Test(graph, host_functions_run_at_each_launch_and_may_fail) {
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    atomic_int runs = 0;
    begin();
    MUST(tol_graph_capture_begin(stream));
    MUST(tol_launch(stream, FILL(0, 9, 8)));
    MUST(tol_stream_call(stream, fail_at_the_second, &runs));
    MUST(tol_graph_capture_end(stream, &graph));
    cr_assert(runs == 0);
    MUST(tol_graph_instantiate(graph, &exec));
    tol_graph_destroy(graph);
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_graph_launch(exec, stream));
    MUST_FAIL(tol_stream_synchronize(stream), TOL_OUT_OF_RANGE, "run 2");
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_stream_synchronize(stream));
    cr_assert(runs == 3 && at(0) == 9);
    tol_graph_exec_destroy(exec);
    finish();
}

Test(graph, a_timeout_names_the_kernel_inside, .timeout = 60) {
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    void *stop = NULL;
    begin();
    spin = test_kernel("spin");
    MUST(tol_pinned_access(pinned, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_graph_create(test_context(), &graph));
    MUST(tol_graph_add_kernel(graph, spin, tol_launch_linear(1, 1),
                              TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop), NULL, 0, NULL));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_graph_launch(exec, stream));
    MUST_FAIL(tol_stream_synchronize_for(stream, 50), TOL_TIMEOUT, "spin, in a graph of 1 nodes");
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(stream));
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    finish();
}

static struct tol_graph_exec *shared;

static void *launch_many(void *user) {
    struct tol_stream *own = NULL;
    (void)user;
    if (tol_stream_create(test_context(), NULL, &own) != TOL_OK) return "no stream";
    for (unsigned i = 0; i < 50; i++) {
        if (tol_graph_exec_set_kernel(shared, 0, FILL(i, i, 1)) != TOL_OK) return "no change";
        if (tol_graph_launch(shared, own) != TOL_OK) return "no launch";
    }
    bool ok = tol_stream_synchronize(own) == TOL_OK;
    tol_stream_destroy(own);
    return ok ? NULL : "no end";
}

Test(graph, threads_may_share_an_instance) {
    struct tol_graph *graph = NULL;
    pthread_t threads[4];
    begin();
    MUST(tol_graph_create(test_context(), &graph));
    MUST(tol_graph_add_kernel(graph, FILL(0, 1, 1), NULL, 0, NULL));
    MUST(tol_graph_instantiate(graph, &shared));
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, launch_many, NULL);
    for (int i = 0; i < 4; i++) {
        void *trouble = NULL;
        pthread_join(threads[i], &trouble);
        cr_assert(trouble == NULL, "thread %d: %s", i, (char *)trouble);
    }
    for (unsigned i = 0; i < 50; i++) cr_assert(at(i) == i, "%u: %u", i, at(i));
    tol_graph_exec_destroy(shared);
    tol_graph_destroy(graph);
    finish();
}

Test(graph, programmatic_launches_do_what_launches_do) {
    begin();
    for (unsigned i = 0; i < 8; i++) MUST(tol_launch_programmatic(stream, FILL(i, i + 1, 1)));
    for (unsigned i = 0; i < 8; i++) cr_assert(at(i) == i + 1, "%u: %u", i, at(i));
    MUST_FAIL(tol_launch_programmatic(stream, fill, tol_launch_linear(0, 1), TOL_ARGUMENTS(1u)),
              TOL_OVER_LIMIT, "fill");
    MUST_FAIL(tol_launch_programmatic(NULL, FILL(0, 1, 1)), TOL_INVALID_ARGUMENT, "NULL");
    finish();
}
