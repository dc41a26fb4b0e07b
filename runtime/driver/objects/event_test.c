/*
 * Events: order across streams, and time.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(event, .fini = test_end);

Test(event, one_never_recorded_counts_as_reached) {
    struct tol_event *event = NULL;
    MUST(tol_event_create(test_context(), false, &event));
    MUST(tol_event_query(event));
    MUST(tol_event_synchronize(event));
    tol_event_destroy(event);
}

/* One stream holds until the host says stop, then fills; the other waits for it and copies what was
 * filled. Without the wait it would copy what was there before. */
Test(event, orders_work_on_different_streams, .timeout = 60) {
    enum { COUNT = 4096 };
    struct tol_kernel *spin = test_kernel("spin"), *fill = test_kernel("fill");
    struct tol_stream *first = NULL, *second = NULL;
    struct tol_event *filled = NULL;
    struct tol_pinned *flag = NULL;
    struct tol_buffer *source = NULL, *copy = NULL;
    unsigned values[COUNT];
    void *stop = NULL;
    unsigned long long count = COUNT;
    MUST(tol_pinned_create(test_context(), sizeof(unsigned), &flag));
    MUST(tol_pinned_access(flag, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_stream_create(test_context(), NULL, &first));
    MUST(tol_stream_create(test_context(), NULL, &second));
    MUST(tol_event_create(test_context(), false, &filled));
    MUST(tol_buffer_create(test_context(), COUNT, 4, &source));
    MUST(tol_buffer_create(test_context(), COUNT, 4, &copy));
    MUST(tol_buffer_fill_at(source, 0, 1, 4, COUNT));
    MUST(tol_context_synchronize(test_context(), TOL_DEADLINE_MS));

    MUST(tol_launch(first, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    MUST(tol_launch(first, fill, tol_launch_linear(COUNT, 256),
                    TOL_ARGUMENTS(tol_buffer_address(source), 2u, count)));
    MUST(tol_event_record(filled, first));
    MUST(tol_stream_wait_event(second, filled));
    MUST(tol_copy_on_device(second, copy, 0, source, 0, sizeof values));
    cr_assert(tol_event_query(filled) == TOL_NOT_READY);
    MUST_FAIL(tol_event_synchronize_for(filled, 20), TOL_TIMEOUT, "20 ms");
    cr_assert(tol_stream_query(second) == TOL_NOT_READY);
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(second));
    MUST(tol_event_query(filled));
    MUST(tol_buffer_read(copy, values, sizeof values));
    for (int i = 0; i < COUNT; i++) cr_assert(values[i] == 2, "element %d is %u", i, values[i]);

    tol_event_destroy(filled);
    tol_stream_destroy(first);
    tol_stream_destroy(second);
    tol_buffer_destroy(source);
    tol_buffer_destroy(copy);
    tol_pinned_destroy(flag);
}

Test(event, measures_time_that_passes) {
    struct tol_stream *stream = NULL;
    struct tol_event *begin = NULL, *end = NULL;
    struct tol_buffer *buffer = NULL;
    double forward = -1, backward = -1;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_event_create(test_context(), true, &begin));
    MUST(tol_event_create(test_context(), true, &end));
    MUST(tol_buffer_create(test_context(), 16 << 20, 1, &buffer));
    MUST(tol_event_record(begin, stream));
    MUST(tol_copy_fill(stream, buffer, 0, 1, 1, 16 << 20));
    MUST(tol_event_record(end, stream));
    MUST(tol_event_synchronize(end));
    MUST(tol_event_elapsed_ns(begin, end, &forward));
    MUST(tol_event_elapsed_ns(end, begin, &backward));
    cr_assert(forward > 0 && forward < 10e9, "%g ns", forward);
    cr_assert(backward <= 0);
    tol_event_destroy(begin);
    tol_event_destroy(end);
    tol_stream_destroy(stream);
    tol_buffer_destroy(buffer);
}

Test(event, time_needs_timed_and_recorded_events) {
    struct tol_event *untimed = NULL, *timed = NULL;
    double ns = 0;
    MUST(tol_event_create(test_context(), false, &untimed));
    MUST(tol_event_create(test_context(), true, &timed));
    MUST_FAIL(tol_event_elapsed_ns(untimed, timed, &ns), TOL_INVALID_ARGUMENT, "timed");
    cr_assert(tol_event_elapsed_ns(timed, timed, &ns) != TOL_OK, "it was never recorded");
    MUST_FAIL(tol_event_elapsed_ns(NULL, timed, &ns), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_event_record(NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_wait_event(NULL, timed), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_event_query(NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_event_synchronize(NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_event_create(NULL, true, &timed), TOL_INVALID_ARGUMENT, "NULL");
    tol_event_destroy(untimed);
    tol_event_destroy(timed);
}
