/*
 * Traces: they contain what was called and queued, in order, and no more than fits.
 */
#include "test/test_device.h"
#include "trace_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void end(void) {
    tol_trace_remove(test_driver());
    test_end();
}
TestSuite(trace, .fini = end);

static char *written(bool is_part) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    MUST(tol_trace_write(file, "a \"test\"", is_part));
    fclose(file);
    return text;
}

static unsigned count(const char *text, const char *what) {
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) found++;
    return found;
}

/* The number after the name of an event and a member: "ts", "dur". -1: it is not there. */
static double number(const char *text, const char *name, const char *member) {
    const char *at = strstr(text, name);
    at = at != NULL ? strstr(at, member) : NULL;
    return at != NULL ? strtod(at + strlen(member), NULL) : -1;
}

static void work(unsigned launches) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_pinned *pinned = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 1024, 4, &buffer));
    MUST(tol_pinned_create(test_context(), 4096, &pinned));
    for (unsigned i = 0; i < launches; i++) {
        MUST(tol_launch(stream, fill, tol_launch_linear(1024, 256),
                        TOL_ARGUMENTS(tol_buffer_address(buffer), i, 1024ull)));
    }
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, 4096));
    MUST(tol_stream_synchronize(stream));
    tol_pinned_destroy(pinned);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(trace, has_calls_and_device_work_in_order) {
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    work(3);
    char *text = written(false);
    cr_assert(strncmp(text, "{\"displayTimeUnit\"", 18) == 0);
    cr_assert(strstr(text, "\"overflowed\":false") != NULL && strstr(text, "a \\\"test\\\""));
    cr_assert(count(text, "\"cuLaunchKernel\",\"cat\":\"driver\"") == 3, "%s", text);
    cr_assert(count(text, "\"fill\",\"cat\":\"kernel\"") == 3, "%s", text);
    cr_assert(count(text, "\"cat\":\"copy\"") == 1 && strstr(text, "\"bytes\":4096") != NULL);
    /* The kernel began after the beginning of its call, and the copy after the kernels. */
    double call = number(text, "\"cuLaunchKernel\",\"cat\":\"driver\"", "\"ts\":"),
           kernel = number(text, "\"fill\",\"cat\":\"kernel\"", "\"ts\":"),
           copy = number(text, "cuMemcpyDtoHAsync_v2\",\"cat\":\"copy\"", "\"ts\":");
    cr_assert(call > 0 && copy >= kernel, "%g %g %g", call, kernel, copy);
    free(text);
    text = written(true);
    cr_assert(strncmp(text, "{\"name\"", 7) == 0 && strcmp(text + strlen(text) - 2, ",\n") == 0);
    free(text);
}

Test(trace, keeps_what_it_has_room_for_and_counts_the_rest) {
    struct tol_trace_stats stats;
    MUST(tol_trace_install(
        test_driver(), &(struct tol_trace_options){.calls_max = 10, .operations_max = 4}, NULL));
    work(20);
    tol_trace_stats(&stats);
    cr_assert(stats.calls == 10 && stats.operations == 4 && stats.overflowed);
    cr_assert(stats.lost_calls > 20 && stats.lost_operations >= 17, "%zu, %zu", stats.lost_calls,
              stats.lost_operations);
    char *text = written(false);
    cr_assert(strstr(text, "\"overflowed\":true") != NULL &&
              count(text, "\"cat\":\"kernel\"") == 4 &&
              strstr(text, "the trace overflowed") != NULL);
    free(text);
}

/* What is no kernel takes no room: a model's copies must not put its kernels out. */
Test(trace, of_kernels_alone_has_room_for_them_whatever_is_copied) {
    struct tol_trace_stats stats;
    MUST(tol_trace_install(
        test_driver(), &(struct tol_trace_options){.operations_max = 6, .kernels_only = true},
        NULL));
    for (int i = 0; i < 3; i++) work(2);
    tol_trace_stats(&stats);
    cr_assert(stats.operations == 6 && stats.lost_operations == 0, "%zu, %zu", stats.operations,
              stats.lost_operations);
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"kernel\"") == 6 && count(text, "\"cat\":\"copy\"") == 0);
    cr_assert(count(text, "\"cuMemcpyDtoHAsync_v2\",\"cat\":\"driver\"") == 3, "%s", text);
    free(text);
}

static unsigned heard;

static void hear(struct tol_interpose_call *call, void *user) {
    heard += call->index == TOL_DRIVER_INDEX_cuLaunchKernel && user == &heard;
}

Test(trace, hooks_beneath_it_go_on) {
    const struct tol_interpose_rule rule = {.function = "cuMemAlloc_v2",
                                            .nth = 2,
                                            .action = TOL_INTERPOSE_FAIL,
                                            .result = CUDA_ERROR_OUT_OF_MEMORY};
    struct tol_buffer *one = NULL, *two = NULL;
    MUST(tol_trace_install(test_driver(), NULL,
                           &(struct tol_interpose_options){
                               .rules = &rule, .rule_count = 1, .before = hear, .user = &heard}));
    MUST_FAIL(tol_trace_install(test_driver(), NULL, NULL), TOL_INVALID_ARGUMENT, "already");
    MUST(tol_buffer_create(test_context(), 16, 1, &one));
    MUST_FAIL(tol_buffer_create(test_context(), 16, 1, &two), TOL_OUT_OF_DEVICE_MEMORY, "16");
    tol_buffer_destroy(one);
    work(5);
    cr_assert(heard == 5, "%u", heard);
}

/* A graph is one piece of work; what is captured is none; a closed context's work is kept. */
Test(trace, knows_graphs_and_contexts_that_have_ended) {
    struct tol_stream *stream = NULL;
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    struct tol_buffer *buffer = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 16, 4, &buffer));
    MUST(tol_graph_capture_begin(stream));
    MUST(tol_copy_fill(stream, buffer, 0, 1, 4, 16));
    MUST(tol_graph_capture_end(stream, &graph));
    MUST(tol_graph_instantiate(graph, &exec));
    MUST(tol_graph_launch(exec, stream));
    MUST(tol_stream_synchronize(stream));
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"graph\"") == 1 && count(text, "\"cat\":\"fill\"") == 0, "%s",
              text);
    free(text);
}

/* During a capture no call waits for an event, so the trace must know when it ends. */
Test(trace, knows_when_captures_are_over) {
    struct tol_stream *stream = NULL;
    struct tol_graph *graph = NULL;
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    for (int i = 0; i < 2; i++) {
        MUST(tol_graph_capture_begin(stream));
        cr_assert_eq(atomic_load(&tol_trace.captures), 1u);
        MUST(tol_graph_capture_end(stream, &graph));
        cr_assert_eq(atomic_load(&tol_trace.captures), 0u);
        tol_graph_destroy(graph);
    }
    tol_stream_destroy(stream);
}

/* Writing the trace waits, for a short time, for work that no call has waited for. One worker, so
 * that no other thread does the work meanwhile; a busy host may use up the time, but not every
 * time. */
Test(trace, waits_for_what_ends_in_a_moment) {
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    unsigned found = 0;
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 16, 4, &buffer));
    for (unsigned i = 1; i <= 10 && found < i; i++) {
        MUST(tol_copy_fill(stream, buffer, 0, i, 4, 16));
        char *text = written(false);
        found = count(text, "\"cat\":\"fill\"");
        free(text);
        if (found < i) found = 0;
    }
    cr_assert(found > 0, "no fill has its time");
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

/* The trace has a stream and events of its own in a context, and gives them back. */
Test(trace, leaves_nothing_in_a_context) {
    if (test_on_gpu()) cr_skip_test("the soft device reports what is left");
    char path[] = "/tmp/tollens_trace_XXXXXX", text[4096] = "";
    int file = mkstemp(path);
    cr_assert(file >= 0);
    setenv("TOLLENS_SOFT_CHECK", "leak", 1);
    setenv("TOLLENS_SOFT_REPORT", path, 1);
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    work(3);
    tol_trace_remove(test_driver());
    test_end();
    cr_assert(read(file, text, sizeof text - 1) >= 0);
    unlink(path);
    close(file);
    cr_assert(strstr(text, "a stream") == NULL && strstr(text, "an event") == NULL, "%s", text);
}

static unsigned stats_operations(void) {
    struct tol_trace_stats stats;
    tol_trace_stats(&stats);
    return (unsigned)stats.operations;
}

/* Operations with an event of their own in front. An event is one itself, and takes no time. */
static unsigned own_begins(const char *text) {
    unsigned own = count(text, "\"begin\":\"event\"");
    for (const char *at = text; (at = strstr(at, "\"cat\":\"event\"")) != NULL; at++) {
        own -= strncmp(strstr(at, "\"begin\":") + 9, "event", 5) == 0;
    }
    return own;
}

/* The spans of kernels, in the order in which they were launched on one stream. */
static void must_follow_each_other(const char *text, unsigned kernels) {
    double end_us = 0;
    const char *at = text;
    for (unsigned i = 0; i < kernels; i++) {
        at = strstr(at, "\"fill\",\"cat\":\"kernel\"");
        cr_assert(at != NULL, "%u of %u kernels", i, kernels);
        double begin = number(at, "\"fill\"", "\"ts\":"),
               takes = number(at, "\"fill\"", "\"dur\":");
        /* Written in thousandths. */
        cr_assert(takes >= 0 && begin >= end_us - 0.0015, "%u: %.3f, %.3f", i, begin, end_us);
        end_us = begin + takes;
        at++;
    }
}

Test(trace, one_event_serves_two_operations_of_a_stream) {
    MUST(tol_trace_install(test_driver(), &(struct tol_trace_options){.share = 1}, NULL));
    work(200);
    char *text = written(false);
    must_follow_each_other(text, 200);
    cr_assert(strncmp(strstr(strstr(text, "\"cat\":\"kernel\""), "\"begin\":") + 9, "event", 5) ==
                  0,
              "the first on a stream has its own");
    unsigned before = count(text, "\"previous end\"");
    cr_assert(own_begins(text) == 1 && 1 + before + count(text, "\"begin\":\"call\"") == 201, "%u",
              before);
    cr_assert(count(text, "\"end\":\"event\"") == 202 && strstr(text, "shared") == NULL, "%s",
              text);
    free(text);
}

/* So long a gap, that all is a burst. */
enum { LONG_NS = 2000000000 };

Test(trace, operations_of_a_burst_share_an_event) {
    const struct tol_trace_options options = {.gap_ns = LONG_NS, .share = 4};
    MUST(tol_trace_install(test_driver(), &options, NULL));
    work(201); /* one with its own event, 50 times four, and the copy with the runtime's event */
    char *text = written(false);
    must_follow_each_other(text, 201);
    cr_assert(count(text, "\"end\":\"event\"") == 1 && count(text, "\"shared_by\":4}") == 200 &&
                  count(text, "\"shared_by\":2}") == 2,
              "%s", text);
    cr_assert(own_begins(text) == 1 && count(text, "\"begin\":\"shared\"") == 151, "%s", text);
    free(text);
}

Test(trace, has_times_of_each_operation_whatever_it_shares) {
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    work(200);
    char *text = written(false);
    must_follow_each_other(text, 200);
    cr_assert(count(text, "\"cat\":\"kernel\"") == 200 && count(text, "\"cat\":\"copy\"") == 1);
    cr_assert(count(text, "\"end\":\"event\"") + count(text, "\"end\":\"shared\"") == 202);
    free(text);
}

/* Two operations on a stream of which the second waits for others to share its event. */
static struct tol_stream *stream_with_two(struct tol_buffer **buffer) {
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 1024, 4, buffer));
    for (unsigned i = 0; i < 2; i++) MUST(tol_copy_fill(stream, *buffer, 0, i, 4, 16));
    return stream;
}

static void *destroy_stream(void *stream) {
    tol_stream_destroy(stream);
    return NULL;
}

Test(trace, who_destroys_a_stream_ends_what_another_thread_has_there) {
    struct tol_buffer *buffer = NULL;
    pthread_t other;
    MUST(tol_trace_install(test_driver(), &(struct tol_trace_options){.gap_ns = LONG_NS}, NULL));
    struct tol_stream *stream = stream_with_two(&buffer);
    cr_assert(pthread_create(&other, NULL, destroy_stream, stream) == 0);
    pthread_join(other, NULL);
    MUST(tol_context_synchronize(test_context(), 60000));
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"fill\"") == 2 && count(text, "\"end\":\"event\"") == 2, "%s",
              text);
    free(text);
    tol_buffer_destroy(buffer);
}

Test(trace, an_event_that_came_too_late_is_said_to_be_late) {
    enum { GAP_NS = 300000000 };
    struct tol_buffer *buffer = NULL;
    MUST(tol_trace_install(test_driver(), &(struct tol_trace_options){.gap_ns = GAP_NS}, NULL));
    struct tol_stream *stream = stream_with_two(&buffer);
    nanosleep(&(struct timespec){.tv_nsec = GAP_NS + 50000000}, NULL);
    MUST(tol_copy_fill(stream, buffer, 0, 2, 4, 16));
    MUST(tol_stream_synchronize(stream));
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"fill\"") == 3 && count(text, "\"late\":true") == 1, "%s",
              text);
    free(text);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

/* In front of what comes when the stream may be idle there is an event only if asked. */
Test(trace, what_comes_later_begins_with_its_call_or_with_an_event) {
    for (int way = 0; way < 2; way++) {
        struct tol_buffer *buffer = NULL;
        const struct tol_trace_options options = {
            .gap_ns = 1, .begins = way == 0 ? TOL_TRACE_BEGINS_DERIVED : TOL_TRACE_BEGINS_IDLE};
        MUST(tol_trace_install(test_driver(), &options, NULL));
        struct tol_stream *stream = stream_with_two(&buffer);
        MUST(tol_stream_synchronize(stream));
        MUST(tol_copy_fill(stream, buffer, 0, 2, 4, 16));
        MUST(tol_stream_synchronize(stream));
        char *text = written(false);
        cr_assert(own_begins(text) == (way == 0 ? 1 : 3) && strstr(text, "shared") == NULL, "%s",
                  text);
        cr_assert(count(text, "\"begin\":\"call\"") >= (way == 0 ? 1 : 0), "%s", text);
        free(text);
        tol_buffer_destroy(buffer);
        tol_stream_destroy(stream);
        end();
    }
}

static void *wait_for_stream(void *stream) {
    MUST(tol_stream_synchronize(stream));
    return NULL;
}

/* The stream is the same, but what was queued on it before is in the trace that was removed. */
Test(trace, a_new_trace_knows_nothing_of_what_an_earlier_one_saw) {
    pthread_t other;
    struct tol_buffer *buffer = NULL;
    const struct tol_trace_options options = {.begins = TOL_TRACE_BEGINS_DERIVED};
    MUST(tol_trace_install(test_driver(), &options, NULL));
    struct tol_stream *stream = stream_with_two(&buffer);
    MUST(tol_stream_synchronize(stream));
    tol_trace_remove(test_driver());
    MUST(tol_trace_install(test_driver(), &options, NULL));
    /* The context is current here, and the new trace first sees it where it becomes current. */
    cr_assert_eq(pthread_create(&other, NULL, wait_for_stream, stream), 0);
    pthread_join(other, NULL);
    MUST(tol_copy_fill(stream, buffer, 0, 2, 4, 16));
    MUST(tol_stream_synchronize(stream));
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"fill\"") == 1 && own_begins(text) == 1, "%s", text);
    free(text);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(trace, refuses_what_does_not_go_together) {
    static const struct tol_trace_options wrong[] = {
        {.share = TOL_TRACE_SHARE_MAX + 1},
        {.share = 2, .every = 2},
        {.share = 2, .begins = TOL_TRACE_BEGINS_EACH},
        {.begins = (enum tol_trace_begins)(TOL_TRACE_BEGINS_EACH + 1)}};
    static const char *const reasons[] = {"at most 64", "cannot be combined", "cannot be combined",
                                          "begins: 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        MUST_FAIL(tol_trace_install(test_driver(), &wrong[i], NULL), TOL_INVALID_ARGUMENT,
                  reasons[i]);
    }
}

Test(trace, each_operation_has_both_events_if_asked) {
    const struct tol_trace_options options = {.begins = TOL_TRACE_BEGINS_EACH};
    MUST(tol_trace_install(test_driver(), &options, NULL));
    work(50);
    char *text = written(false);
    must_follow_each_other(text, 50);
    cr_assert(own_begins(text) == 51, "%s", text);
    free(text);
}

Test(trace, times_every_so_many_and_notes_all_calls) {
    MUST(tol_trace_install(test_driver(), &(struct tol_trace_options){.every = 10}, NULL));
    work(100);
    char *text = written(false);
    cr_assert(count(text, "\"cuLaunchKernel\",\"cat\":\"driver\"") == 100);
    cr_assert(count(text, "\"cat\":\"kernel\"") == 10 && stats_operations() == 11, "%s", text);
    cr_assert(own_begins(text) == stats_operations(), "what came before was not timed");
    free(text);
}

/* What waits, waits for something else: its beginning is not the end of what came before. */
Test(trace, a_wait_between_two_operations_parts_them) {
    struct tol_stream *stream = NULL;
    struct tol_event *event = NULL;
    struct tol_buffer *buffer = NULL;
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_event_create(test_context(), false, &event));
    MUST(tol_buffer_create(test_context(), 1024, 4, &buffer));
    MUST(tol_event_record(event, stream));
    for (unsigned i = 0; i < 20; i++) {
        MUST(tol_stream_wait_event(stream, event));
        MUST(tol_copy_fill(stream, buffer, 0, 1, 4, 16));
    }
    MUST(tol_stream_synchronize(stream));
    char *text = written(false);
    cr_assert(count(text, "\"cat\":\"fill\"") == 20 && own_begins(text) == 20, "%s", text);
    free(text);
    tol_buffer_destroy(buffer);
    tol_event_destroy(event);
    tol_stream_destroy(stream);
}
