/*
 * Traces: what was called and queued is in them, in order, and no more than there is room for.
 */
#include "test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The number behind the name of an event and a member: "ts", "dur". -1: it is not there. */
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
    /* The kernel began behind the beginning of its call, and the copy behind the kernels. */
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

static unsigned stats_operations(void) {
    struct tol_trace_stats stats;
    tol_trace_stats(&stats);
    return (unsigned)stats.operations;
}

/* Operations with an event of their own in front. An event is one itself, and takes no time. */
static unsigned own_begins(const char *text) {
    return count(text, "\"begin\":\"event\"") - count(text, "\"cat\":\"event\"");
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
    MUST(tol_trace_install(test_driver(), NULL, NULL));
    work(200);
    char *text = written(false);
    must_follow_each_other(text, 200);
    cr_assert(strncmp(strstr(strstr(text, "\"cat\":\"kernel\""), "\"begin\":") + 9, "event", 5) ==
                  0,
              "the first on a stream has its own");
    unsigned own = own_begins(text), shared = count(text, "\"previous end\"");
    cr_assert(own < 201 && own + shared + count(text, "\"begin\":\"call\"") == 201, "%u, %u", own,
              shared);
    free(text);
}

Test(trace, each_operation_has_both_events_if_asked) {
    MUST(tol_trace_install(test_driver(), &(struct tol_trace_options){.both_events = true}, NULL));
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
