/*
 * That the asserts about handles fire: each is broken on purpose.
 */
#include "deep.h"
#include "libcuda_state.h"
#include "module_state.h"
#include "retire.h"
#include "stream_state.h"
#include "test/test_death.h"
#include "test/test_device.h"

#include <stdlib.h>

#ifndef NDEBUG

static struct tol_context *context_of_child(void) {
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    test_child_needs(tol_driver_open(test_library(), &driver) == TOL_OK &&
                     tol_context_create(driver, 0, &context) == TOL_OK);
    return context;
}

static void end_a_stream_twice(void) {
    struct tol_stream *stream = NULL;
    test_child_needs(tol_stream_create(context_of_child(), NULL, &stream) == TOL_OK);
    stream->references = 0; /* as of an orphan, which must have none */
    tol_stream_destroy(stream);
}

static void unname_a_stream(void) {
    struct tol_stream *stream = NULL;
    test_child_needs(tol_stream_create(context_of_child(), NULL, &stream) == TOL_OK);
    stream->number = 0;
    tol_stream_destroy(stream);
}

static void end_a_context_twice(void) {
    struct tol_context *context = context_of_child();
    context->references = 0;
    tol_context_destroy(context);
}

static void end_a_module_twice(void) {
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
    struct tol_module *module = NULL;
    test_child_needs(tol_module_load(context_of_child(), text, sizeof text - 1, NULL, &module) ==
                     TOL_OK);
    module->references = 0;
    tol_module_destroy(module);
}

static void retire_twice(void) {
    struct tol_life *life = malloc(sizeof *life);
    test_child_needs(life != NULL);
    life->mark = TOL_ALIVE;
    tol_retire(life);
    tol_retire(life);
}

Test(handles_valid, a_handle_that_ends_twice_aborts) {
    if (test_on_gpu()) cr_skip_test("what is broken is on the host: the soft device shows it");
    test_must_abort(end_a_stream_twice, "context_streams.c", "stream->references > 0");
    test_must_abort(unname_a_stream, "context_streams.c", "tol_stream_is_valid(stream)");
    test_must_abort(end_a_context_twice, "context.c", "context->references > 0");
    test_must_abort(end_a_module_twice, "module.c", "tol_module_is_valid(module)");
    test_must_abort(retire_twice, "retire.c", "life->mark == TOL_ALIVE");
}

Test(handles_valid, a_walk_over_the_lists_sees_what_does_not_belong) {
    struct tol_context *context = test_context(), other = {.driver = test_driver()};
    struct tol_stream *one = NULL, *two = NULL;
    MUST(tol_stream_create(context, NULL, &one));
    MUST(tol_stream_create(context, NULL, &two));
    cr_assert(tol_context_is_valid(context) && tol_driver_is_valid(context->driver));
    const unsigned number = one->number;
    one->number = two->number;
    cr_assert_not(tol_context_is_valid(context), "two streams of one number");
    one->number = number;
    one->context = &other;
    cr_assert_not(tol_context_is_valid(context), "a stream of another context");
    one->context = context;
    one->blocking = true;
    cr_assert_not(tol_context_is_valid(context), "a blocking stream that is not counted");
    one->blocking = false;
    other = (struct tol_context){
        .driver = context->driver, .references = 1, .next = context->driver->contexts};
    context->driver->contexts = &other;
    cr_assert_not(tol_driver_is_valid(context->driver), "two contexts of one device");
    context->driver->contexts = other.next;
    cr_assert(tol_context_is_valid(context) && tol_driver_is_valid(context->driver));
    tol_stream_destroy(two);
    tol_stream_destroy(one);
    test_end();
}

#endif
