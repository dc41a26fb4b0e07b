/*
 * Contexts: one per device, current wherever they are needed, poisoned for good.
 */
#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(context, .fini = test_end);

Test(context, creating_again_gives_the_same_one) {
    struct tol_context *again = NULL;
    struct tol_context *context = test_context();
    MUST(tol_context_create(test_driver(), 0, &again));
    cr_assert(again == context);
    tol_context_destroy(again);
    MUST(tol_context_memory(context, NULL, NULL));
}

Test(context, memory_is_sane) {
    size_t free_bytes = 0, total = 0;
    MUST(tol_context_memory(test_context(), &free_bytes, &total));
    cr_assert(total > 0 && free_bytes <= total);
    cr_assert(total <= tol_context_device(test_context())->memory_bytes);
}

Test(context, priorities_are_a_range) {
    int lowest = 9, highest = 9;
    MUST(tol_context_priorities(test_context(), &lowest, &highest));
    cr_assert(highest <= lowest, "%d is not above %d", highest, lowest);
}

Test(context, a_device_that_is_none_is_refused) {
    struct tol_context *context = NULL;
    MUST_FAIL(tol_context_create(test_driver(), 999, &context), TOL_NO_DEVICE, "999");
    cr_assert(context == NULL);
    MUST_FAIL(tol_context_create(NULL, 0, &context), TOL_INVALID_ARGUMENT, "NULL");
}

/* The soft device, on a machine with a GPU as well: it can be older than the kernels' targets. */
static tol_status create_on(const char *capability, struct tol_context **context) {
    struct tol_driver *driver = NULL;
    setenv("TOLLENS_DEVICE", "soft", 1);
    setenv("TOLLENS_SOFT_COMPUTE", capability, 1);
    MUST(tol_driver_open(test_library(), &driver));
    const tol_status status = tol_context_create(driver, 0, context);
    tol_driver_close(driver);
    return status;
}

Test(context, a_device_that_is_too_old_is_refused_with_both_capabilities) {
    struct tol_context *context = NULL;
    MUST_FAIL(create_on("72", &context), TOL_DEVICE_UNSUPPORTED, "has compute capability 7.2;");
    cr_assert(strstr(tol_message(), "7.5 or newer is required") != NULL, "%s", tol_message());
    cr_assert(context == NULL);
}

Test(context, the_oldest_device_that_is_not_is_accepted) {
    struct tol_context *context = NULL;
    MUST(create_on("75", &context));
    cr_assert_eq(tol_context_device(context)->compute_capability, 75);
    tol_context_destroy(context);
}

static void *use_on_thread(void *context) {
    struct tol_buffer *buffer = NULL;
    unsigned value = 7, back = 0;
    tol_status status = tol_buffer_create(context, 1, sizeof value, &buffer);
    if (status == TOL_OK) status = tol_buffer_write(buffer, &value, sizeof value);
    if (status == TOL_OK) status = tol_buffer_read(buffer, &back, sizeof back);
    tol_buffer_destroy(buffer);
    return status == TOL_OK && back == 7 ? context : NULL;
}

/* Copies on a thread without a current context once gave zeros silently (SPEC_INVENTORY 1.6). */
Test(context, a_second_thread_needs_no_call_of_its_own) {
    pthread_t thread;
    void *result = NULL;
    struct tol_context *context = test_context();
    cr_assert(pthread_create(&thread, NULL, use_on_thread, context) == 0);
    pthread_join(thread, &result);
    cr_assert(result == context);
}

Test(context, binding_again_repairs_what_a_program_changed) {
    struct tol_context *context = test_context();
    MUST(tol_context_bind(context));
    cr_assert(tol_context_functions(context)->cuCtxSetCurrent(NULL) == CUDA_SUCCESS);
    MUST(tol_context_bind(context));
    CUcontext current = NULL;
    cr_assert(tol_context_functions(context)->cuCtxGetCurrent(&current) == CUDA_SUCCESS);
    cr_assert(current != NULL);
}

Test(context, handles_outlive_the_users_reference) {
    struct tol_context *context = NULL;
    struct tol_buffer *buffer = NULL;
    char byte = 5;
    MUST(tol_context_create(test_driver(), 0, &context));
    MUST(tol_buffer_create(context, 1, 1, &buffer));
    tol_context_destroy(context);
    MUST(tol_buffer_write(buffer, &byte, 1));
    tol_buffer_destroy(buffer);
}

Test(context, destroying_null_is_a_no_op) {
    tol_context_destroy(NULL);
    tol_stream_destroy(NULL);
    tol_event_destroy(NULL);
    tol_module_destroy(NULL);
    tol_buffer_destroy(NULL);
    tol_pinned_destroy(NULL);
}

/* A kernel that writes to address 0 destroys the context. The call that sees it says what happened;
 * every later one, on anything of the context, says that it is poisoned and by what. */
Test(context, a_fatal_error_is_remembered) {
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *stream = NULL, *late = NULL;
    struct tol_buffer *buffer = NULL, *late_buffer = NULL;
    CUdeviceptr nowhere = 0;
    unsigned long long count = 1;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), 4, 4, &buffer));
    MUST(tol_context_check(test_context()));
    MUST(tol_launch(stream, fill, tol_launch_linear(1, 1), TOL_ARGUMENTS(nowhere, 1u, count)));
    MUST_FAIL(tol_stream_synchronize(stream), TOL_DRIVER_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS");
    cr_assert(tol_message_cuda() == CUDA_ERROR_ILLEGAL_ADDRESS);

    MUST_FAIL(tol_context_check(test_context()), TOL_POISONED, "ILLEGAL_ADDRESS");
    MUST_FAIL(tol_launch(stream, fill, tol_launch_linear(1, 1), TOL_ARGUMENTS(nowhere, 1u, count)),
              TOL_POISONED, "ILLEGAL_ADDRESS");
    MUST_FAIL(tol_buffer_write(buffer, "0123456789abcde", 16), TOL_POISONED, "ILLEGAL_ADDRESS");
    MUST_FAIL(tol_stream_create(test_context(), NULL, &late), TOL_POISONED, "ILLEGAL_ADDRESS");
    MUST_FAIL(tol_buffer_create(test_context(), 1, 1, &late_buffer), TOL_POISONED, "fill");
    MUST_FAIL(tol_stream_synchronize(stream), TOL_POISONED, "ILLEGAL_ADDRESS");
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
}

Test(context, synchronizing_waits_for_every_stream) {
    enum { STREAMS = 3, COUNT = 1000 };
    struct tol_kernel *fill = test_kernel("fill");
    struct tol_stream *streams[STREAMS];
    struct tol_buffer *buffers[STREAMS];
    unsigned values[COUNT];
    for (unsigned i = 0; i < STREAMS; i++) {
        unsigned long long count = COUNT;
        MUST(tol_stream_create(test_context(), NULL, &streams[i]));
        MUST(tol_buffer_create(test_context(), COUNT, 4, &buffers[i]));
        MUST(tol_launch(streams[i], fill, tol_launch_linear(COUNT, 128),
                        TOL_ARGUMENTS(tol_buffer_address(buffers[i]), i + 1, count)));
    }
    MUST(tol_context_synchronize(test_context(), TOL_DEADLINE_MS));
    for (unsigned i = 0; i < STREAMS; i++) {
        MUST(tol_stream_query(streams[i]));
        MUST(tol_buffer_read(buffers[i], values, sizeof values));
        for (int k = 0; k < COUNT; k++) cr_assert(values[k] == i + 1);
        tol_buffer_destroy(buffers[i]);
        tol_stream_destroy(streams[i]);
    }
}
