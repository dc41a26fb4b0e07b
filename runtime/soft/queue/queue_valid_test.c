/*
 * The asserts about queues and the set of handles fire: each is broken on purpose.
 */
#include "state/handle_set.h"
#include "base/deep_assert.h"
#include "queue.h"
#include "test/test_abort.h"
#include "test/test_soft.h"

#ifndef NDEBUG

/* The device's default stream, and the lock, so that nothing is carried out meanwhile. */
static struct soft_stream *locked_stream(void) {
    struct soft_context *context = NULL;
    struct soft_stream *stream = NULL;
    test_child_needs(cuInit(0) == CUDA_SUCCESS &&
                     cuDevicePrimaryCtxRetain((CUcontext *)&context, 0) == CUDA_SUCCESS &&
                     cuCtxSetCurrent((CUcontext)context) == CUDA_SUCCESS &&
                     soft_stream_find(NULL, &context, &stream) == CUDA_SUCCESS);
    pthread_mutex_lock(&soft_lock);
    return stream;
}

static struct soft_operation *record(void) {
    struct soft_event_point *point = soft_event_point_new(1);
    struct soft_operation *operation = soft_operation_point(SOFT_OPERATION_RECORD, point);
    test_child_needs(point != NULL && operation != NULL);
    return operation;
}

static void lose_the_first(void) {
    struct soft_stream *stream = locked_stream();
    soft_queue_append(stream, record());
    stream->first = NULL;
    soft_queue_append(stream, record());
}

static void record_what_is_reached(void) {
    struct soft_stream *stream = locked_stream();
    struct soft_operation *operation = record();
    operation->point->reached = true;
    soft_queue_append(stream, operation);
}

static void record_what_nobody_holds(void) {
    struct soft_stream *stream = locked_stream();
    struct soft_operation *operation = record();
    operation->point->references = 0;
    soft_queue_append(stream, operation);
}

static void add_a_handle_twice(void) {
    static int thing;
    test_child_needs(soft_handle_add(SOFT_HANDLE_EVENT, &thing));
    soft_handle_add(SOFT_HANDLE_EVENT, &thing);
}

Test(queue_valid, a_broken_queue_aborts) {
    test_must_abort(lose_the_first, "queue.c", "soft_stream_is_valid(stream)");
    test_must_abort(record_what_is_reached, "queue.c", "soft_operation_is_valid(operation)");
    test_must_abort(record_what_nobody_holds, "queue.c", "soft_operation_is_valid(operation)");
}

Test(queue_valid, a_handle_that_is_registered_twice_aborts) {
    test_must_abort(add_a_handle_twice, "handle_set.c", "find(kind, handle) == NULL");
}

Test(queue_valid, a_walk_over_queues_sees_what_does_not_add_up, .fini = test_soft_close) {
    test_soft_open();
    struct soft_stream *stream = locked_stream();
    struct soft_operation *operation = record();
    soft_queue_append(stream, operation);
    cr_assert(soft_queue_is_valid());
    stream->context->stream_count++;
    cr_assert_not(soft_queue_is_valid(), "a stream that is not listed");
    stream->context->stream_count--;
    struct soft_event event = {.point = operation->point, .next = stream->context->events};
    stream->context->events = &event;
    cr_assert_not(soft_queue_is_valid(), "an event without a reference to its event point");
    stream->context->events = event.next;
    stream->first = stream->last = NULL;
    cr_assert_not(soft_queue_is_valid(), "an operation that is counted and in no queue");
    stream->first = stream->last = operation;
    cr_assert(soft_queue_is_valid());
    pthread_mutex_unlock(&soft_lock);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    cuDevicePrimaryCtxRelease_v2(0);
}

Test(queue_valid, a_walk_over_the_register_sees_a_handle_that_cannot_be_found) {
    static int things[1000];
    for (int i = 0; i < 1000; i++) cr_assert(soft_handle_add(SOFT_HANDLE_EVENT, &things[i]));
    for (int i = 0; i < 1000; i += 3) soft_handle_remove(SOFT_HANDLE_EVENT, &things[i]);
    cr_assert(soft_handles_are_valid());
    cr_assert(soft_handle_add(SOFT_HANDLE_EVENT, NULL)); /* which is no handle */
    cr_assert_not(soft_handles_are_valid());
}

#ifdef TOL_DEEP_CHECKS

static void miscount_streams(void) {
    struct soft_stream *stream = locked_stream();
    stream->context->stream_count++;
    for (int i = 0; i < SOFT_DEEP_ONE_IN; i++) soft_queue_append(stream, record());
}

static void register_no_handle(void) {
    static int things[SOFT_DEEP_ONE_IN];
    test_child_needs(soft_handle_add(SOFT_HANDLE_EVENT, NULL));
    for (int i = 0; i < SOFT_DEEP_ONE_IN; i++) soft_handle_add(SOFT_HANDLE_EVENT, &things[i]);
}

Test(queue_valid, deep_checks_abort) {
    test_must_abort(miscount_streams, "queue.c", "soft_queue_is_valid()");
    test_must_abort(register_no_handle, "handle_set.c", "soft_handles_are_valid()");
}

#endif
#endif
