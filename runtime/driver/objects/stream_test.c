/*
 * Streams: the requested flags and priorities, and no wait without an end.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(stream, .fini = test_end);

Test(stream, is_non_blocking_unless_asked_otherwise) {
    struct tol_stream *usual = NULL, *blocking = NULL;
    bool non_blocking = false;
    MUST(tol_stream_create(test_context(), NULL, &usual));
    MUST(tol_stream_properties(usual, NULL, &non_blocking));
    cr_assert(non_blocking);
    MUST(tol_stream_create(test_context(), &(struct tol_stream_options){.blocking = true},
                           &blocking));
    MUST(tol_stream_properties(blocking, NULL, &non_blocking));
    cr_assert(!non_blocking);
    tol_stream_destroy(usual);
    tol_stream_destroy(blocking);
}

Test(stream, has_the_priority_asked_for_within_the_range) {
    int lowest = 0, highest = 0, priority = 99;
    struct tol_stream *stream = NULL;
    MUST(tol_context_priorities(test_context(), &lowest, &highest));
    MUST(tol_stream_create(test_context(), &(struct tol_stream_options){.priority = highest},
                           &stream));
    MUST(tol_stream_properties(stream, &priority, NULL));
    cr_assert(priority == highest);
    tol_stream_destroy(stream);
    MUST(tol_stream_create(test_context(), &(struct tol_stream_options){.priority = highest - 100},
                           &stream));
    MUST(tol_stream_properties(stream, &priority, NULL));
    cr_assert(priority == highest, "beyond the range counts as its end");
    tol_stream_destroy(stream);
}

Test(stream, an_empty_one_is_done) {
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_stream_query(stream));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_stream_synchronize_for(stream, 0));
    cr_assert(tol_stream_context(stream) == test_context());
    tol_stream_destroy(stream);
}

/* A kernel that spins until the host says stop: the wait ends at its deadline with a status that
 * names stream and kernel; after the stop everything works again (D-18). */
Test(stream, a_wait_ends_at_its_deadline, .timeout = 60) {
    struct tol_kernel *spin = test_kernel("spin");
    struct tol_stream *stream = NULL;
    struct tol_pinned *flag = NULL;
    void *stop = NULL;
    MUST(tol_pinned_create(test_context(), sizeof(unsigned), &flag));
    MUST(tol_pinned_access(flag, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_launch(stream, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    cr_assert(tol_stream_query(stream) == TOL_NOT_READY);
    MUST_FAIL(tol_stream_synchronize_for(stream, 50), TOL_TIMEOUT, "spin");
    cr_assert(strstr(tol_message(), "50 ms") != NULL, "%s", tol_message());
    MUST_FAIL(tol_context_synchronize(test_context(), 50), TOL_TIMEOUT, "spin");
    *(volatile unsigned *)stop = 1;
    MUST(tol_stream_synchronize(stream));
    tol_stream_destroy(stream);
    tol_pinned_destroy(flag);
}

/* The handle ends at once; the work it had still runs, and the context still waits for it. */
Test(stream, destroying_it_leaves_its_work, .timeout = 60) {
    struct tol_kernel *spin = test_kernel("spin");
    struct tol_stream *stream = NULL;
    struct tol_pinned *flag = NULL;
    void *stop = NULL;
    MUST(tol_pinned_create(test_context(), sizeof(unsigned), &flag));
    MUST(tol_pinned_access(flag, &stop));
    *(volatile unsigned *)stop = 0;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_launch(stream, spin, tol_launch_linear(1, 1),
                    TOL_ARGUMENTS((CUdeviceptr)(uintptr_t)stop)));
    tol_stream_destroy(stream);
    MUST_FAIL(tol_context_synchronize(test_context(), 50), TOL_TIMEOUT, "spin");
    *(volatile unsigned *)stop = 1;
    MUST(tol_context_synchronize(test_context(), TOL_DEADLINE_MS));
    tol_pinned_destroy(flag);
}

Test(stream, null_is_refused) {
    struct tol_stream *stream = NULL;
    MUST_FAIL(tol_stream_create(NULL, NULL, &stream), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_create(test_context(), NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_query(NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_synchronize(NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_properties(NULL, NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
}
