/*
 * Host functions: in order, with a status that reaches the waiting thread, and without CUDA calls
 * in them.
 */
#include "test/test_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

TestSuite(host_function, .fini = test_end);

static struct tol_stream *new_stream(void) {
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    return stream;
}

static tol_status count(void *user, char *reason, size_t bytes) {
    (void)reason, (void)bytes;
    atomic_fetch_add((atomic_int *)user, 1);
    return TOL_OK;
}

static tol_status fail_with(void *user, char *reason, size_t bytes) {
    snprintf(reason, bytes, "file %s is full", (const char *)user);
    return TOL_OVER_LIMIT;
}

static tol_status see_zero(void *user, char *reason, size_t bytes) {
    (void)reason, (void)bytes;
    return **(volatile unsigned **)user == 7 ? TOL_OK : TOL_SIZE_MISMATCH;
}

Test(host_function, runs_in_the_order_of_the_stream) {
    struct tol_stream *stream = new_stream();
    struct tol_pinned *pinned = NULL;
    struct tol_buffer *buffer = NULL;
    void *data = NULL;
    MUST(tol_pinned_create(test_context(), 4, &pinned));
    MUST(tol_buffer_create(test_context(), 1, 4, &buffer));
    MUST(tol_pinned_access(pinned, &data));
    *(unsigned *)data = 0;
    MUST(tol_copy_fill(stream, buffer, 0, 7, 4, 1));
    MUST(tol_copy_to_host(stream, pinned, 0, buffer, 0, 4));
    MUST(tol_stream_call(stream, see_zero, &data));
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(buffer);
    tol_pinned_destroy(pinned);
    tol_stream_destroy(stream);
}

static tol_status fill_reason(void *user, char *reason, size_t bytes) {
    *(size_t *)user = bytes;
    memset(reason, '~', bytes);
    return TOL_OVER_LIMIT;
}

/* A reason without an end is cut where its room ends. */
Test(host_function, a_reason_ends_with_its_room) {
    struct tol_stream *stream = new_stream();
    size_t room = 0, marks = 0;
    MUST(tol_stream_call(stream, fill_reason, &room));
    MUST_FAIL(tol_stream_synchronize(stream), TOL_OVER_LIMIT, "~~~~");
    for (const char *at = tol_message(); *at != '\0'; at++) marks += *at == '~';
    cr_assert(room > 8 && marks == room - 1, "%zu of %zu", marks, room);
    tol_stream_destroy(stream);
}

Test(host_function, a_failure_is_delivered_once_to_whoever_waits) {
    atomic_int calls = 0;
    struct tol_stream *stream = new_stream(), *other = new_stream();
    MUST(tol_stream_call(stream, fail_with, (void *)"one"));
    MUST(tol_stream_call(stream, fail_with, (void *)"two"));
    MUST(tol_stream_call(stream, count, &calls));
    MUST(tol_stream_synchronize(other));
    MUST_FAIL(tol_stream_synchronize(stream), TOL_OVER_LIMIT, "file one is full");
    cr_assert(calls == 1, "work after a failure runs");
    MUST(tol_stream_synchronize(stream));
    MUST(tol_stream_call(stream, fail_with, (void *)"three"));
    MUST_FAIL(tol_context_synchronize(test_context(), TOL_DEADLINE_MS), TOL_OVER_LIMIT, "three");
    MUST(tol_context_check(test_context()));
    tol_stream_destroy(stream);
    tol_stream_destroy(other);
}

static tol_status use_the_runtime(void *user, char *reason, size_t bytes) {
    struct tol_buffer *buffer = NULL;
    tol_status status = tol_buffer_create(user, 1, 1, &buffer);
    snprintf(reason, bytes, "%.100s", strstr(tol_message(), "a host") ? "it says why" : "no word");
    return status;
}

Test(host_function, must_not_use_the_runtime_and_is_told_so) {
    struct tol_stream *stream = new_stream();
    struct tol_buffer *buffer = NULL;
    MUST(tol_stream_call(stream, use_the_runtime, test_context()));
    MUST_FAIL(tol_stream_synchronize(stream), TOL_INVALID_ARGUMENT, "it says why");
    MUST(tol_buffer_create(test_context(), 1, 1, &buffer)); /* this thread may */
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(host_function, many_of_them_are_given_back) {
    atomic_int calls = 0;
    struct tol_stream *stream = new_stream();
    for (int i = 0; i < 1000; i++) MUST(tol_stream_call(stream, count, &calls));
    MUST(tol_stream_synchronize(stream));
    cr_assert(calls == 1000, "%d calls", calls);
    MUST_FAIL(tol_stream_call(stream, NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_stream_call(NULL, count, NULL), TOL_INVALID_ARGUMENT, "NULL");
    tol_stream_destroy(stream);
}
