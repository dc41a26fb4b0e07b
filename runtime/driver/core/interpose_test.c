/*
 * The interposer: it counts, traces, delays and fails calls, and is not in the path when it is off.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void end(void) {
    tol_interpose_remove(test_driver());
    test_end();
}
TestSuite(interpose, .fini = end);

static struct tol_buffer *new_buffer(void) {
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 16, 1, &buffer));
    return buffer;
}

Test(interpose, off_it_is_not_in_the_path) {
    struct tol_driver *driver = test_driver();
    const struct tol_driver_table *raw = tol_driver_functions(driver);
    cr_assert(tol_context_functions(test_context()) == raw);
    MUST(tol_interpose_install(driver, NULL));
    cr_assert(tol_driver_functions(driver) != raw);
    tol_interpose_remove(driver);
    cr_assert(tol_driver_functions(driver) == raw);
}

Test(interpose, counts_every_call) {
    char bytes[16] = {0};
    MUST(tol_interpose_install(test_driver(), NULL));
    for (int i = 0; i < 3; i++) {
        struct tol_buffer *buffer = new_buffer();
        MUST(tol_buffer_write(buffer, bytes, sizeof bytes));
        tol_buffer_destroy(buffer);
    }
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemAlloc_v2) == 3);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemFree_v2) == 3);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuMemcpyHtoD_v2) == 3);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == 0);
    cr_assert(tol_interpose_count(TOL_DRIVER_FUNCTIONS) >= 9);
    tol_interpose_reset();
    cr_assert(tol_interpose_count(TOL_DRIVER_FUNCTIONS) == 0);
}

Test(interpose, fails_the_nth_call_only) {
    const struct tol_interpose_rule rule = {.function = "cuMemAlloc_v2",
                                            .nth = 2,
                                            .action = TOL_INTERPOSE_FAIL,
                                            .result = CUDA_ERROR_OUT_OF_MEMORY};
    struct tol_buffer *none = NULL;
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.rules = &rule, .rule_count = 1}));
    tol_buffer_destroy(new_buffer());
    MUST_FAIL(tol_buffer_create(test_context(), 16, 1, &none), TOL_OUT_OF_DEVICE_MEMORY,
              "16 bytes");
    tol_buffer_destroy(new_buffer());
}

Test(interpose, a_prefix_matches_a_family) {
    const struct tol_interpose_rule rule = {
        .function = "cuMemset*", .action = TOL_INTERPOSE_FAIL, .result = CUDA_ERROR_NOT_SUPPORTED};
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.rules = &rule, .rule_count = 1}));
    struct tol_buffer *buffer = new_buffer();
    MUST_FAIL(tol_buffer_fill_at(buffer, 0, 0, 1, 4), TOL_UNSUPPORTED, "cuMemsetD8_v2");
    MUST_FAIL(tol_buffer_fill_at(buffer, 0, 0, 4, 4), TOL_UNSUPPORTED, "cuMemsetD32_v2");
    MUST(tol_buffer_write_at(buffer, 0, "x", 1));
    tol_buffer_destroy(buffer);
}

Test(interpose, drops_a_call_and_says_success) {
    const struct tol_interpose_rule rule = {.function = "cuMemcpyHtoD_v2",
                                            .action = TOL_INTERPOSE_DROP};
    unsigned char bytes[16];
    MUST(tol_interpose_install(test_driver(),
                               &(struct tol_interpose_options){.rules = &rule, .rule_count = 1}));
    struct tol_buffer *buffer = new_buffer();
    MUST(tol_buffer_fill_at(buffer, 0, 7, 1, 16));
    memset(bytes, 1, sizeof bytes);
    MUST(tol_buffer_write(buffer, bytes, sizeof bytes));
    MUST(tol_buffer_read(buffer, bytes, sizeof bytes));
    for (int i = 0; i < 16; i++) cr_assert(bytes[i] == 7, "the dropped copy was made");
    tol_buffer_destroy(buffer);
}

Test(interpose, delays_and_times) {
    const struct tol_interpose_rule rule = {
        .function = "cuMemcpyHtoD_v2", .action = TOL_INTERPOSE_DELAY, .delay_ns = 2000000};
    char bytes[16] = {0};
    static struct tol_interpose_record records[4096]; /* waiting asks a real device many times */
    bool overflowed = true;
    MUST(tol_interpose_install(
        test_driver(),
        &(struct tol_interpose_options){.rules = &rule, .rule_count = 1, .trace_records = 4096}));
    struct tol_buffer *buffer = new_buffer();
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    MUST(tol_buffer_write(buffer, bytes, sizeof bytes));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double took = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    cr_assert(took >= 2e6, "%g ns", took);
    cr_assert(tol_interpose_ns(TOL_DRIVER_INDEX_cuMemcpyHtoD_v2) > 0);
    size_t count = tol_interpose_trace(records, 4096, &overflowed);
    cr_assert(!overflowed && count >= 2, "%zu records", count);
    for (size_t i = 0; i < count; i++) {
        cr_assert(records[i].sequence == i + 1 && records[i].thread == 1);
        cr_assert(records[i].end_ns >= records[i].begin_ns && records[i].begin_ns > 0);
    }
    tol_buffer_destroy(buffer);
}

/* driver.def begins with cuInit: its place in the table is 0. */
Test(interpose, the_first_function_of_the_table_is_timed_too) {
    const struct tol_interpose_rule rule = {
        .function = "cuInit", .action = TOL_INTERPOSE_DELAY, .delay_ns = 1000};
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){
                                                  .rules = &rule, .rule_count = 1, .time = true}));
    cr_assert(tol_driver_functions(test_driver())->cuInit(0) == CUDA_SUCCESS);
    cr_assert(tol_interpose_count(TOL_DRIVER_INDEX_cuInit) == 1);
    cr_assert(tol_interpose_ns(TOL_DRIVER_INDEX_cuInit) > 0);
    cr_assert(tol_interpose_ns(TOL_DRIVER_FUNCTIONS) == 0);
}

Test(interpose, a_full_trace_says_so) {
    struct tol_interpose_record records[4];
    bool overflowed = false;
    MUST(tol_interpose_install(test_driver(), &(struct tol_interpose_options){.trace_records = 4}));
    for (int i = 0; i < 5; i++) tol_buffer_destroy(new_buffer());
    cr_assert(tol_interpose_trace(records, 4, &overflowed) == 4);
    cr_assert(overflowed);
    cr_assert(tol_interpose_trace(NULL, 0, NULL) == 0);
}

/* Hooks see the arguments by address, may change them, and may replace the call. */
static void halve_the_copy(struct tol_interpose_call *call, void *user) {
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyHtoD_v2) return;
    cr_assert(call->argument_count == 3 && call->argument_bytes[2] == sizeof(size_t));
    *(size_t *)call->arguments[2] /= 2;
    ++*(int *)user;
}

static void change_the_answer(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuDeviceGetCount) **(int **)call->arguments[0] = 42;
}

Test(interpose, hooks_change_arguments_and_answers) {
    unsigned char bytes[16];
    int seen = 0, devices = 0;
    MUST(tol_interpose_install(
        test_driver(), &(struct tol_interpose_options){
                           .before = halve_the_copy, .after = change_the_answer, .user = &seen}));
    struct tol_context *context = NULL;
    struct tol_buffer *buffer = NULL;
    MUST(tol_device_count(test_driver(), &devices));
    cr_assert(devices == 42);
    MUST(tol_context_create(test_driver(), 0, &context));
    MUST(tol_buffer_create(context, 16, 1, &buffer));
    MUST(tol_buffer_fill_at(buffer, 0, 7, 1, 16));
    memset(bytes, 1, sizeof bytes);
    MUST(tol_buffer_write(buffer, bytes, sizeof bytes));
    MUST(tol_buffer_read(buffer, bytes, sizeof bytes));
    for (int i = 0; i < 16; i++) cr_assert(bytes[i] == (i < 8 ? 1 : 7), "byte %d", i);
    cr_assert(seen == 1);
    tol_buffer_destroy(buffer);
    tol_context_destroy(context);
}

Test(interpose, refuses_what_makes_no_sense) {
    struct tol_driver *other = NULL;
    const struct tol_interpose_rule typo = {.function = "cuMemAloc_v2"};
    const struct tol_interpose_rule none = {.function = NULL};
    MUST_FAIL(tol_interpose_install(NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_interpose_install(
                  test_driver(), &(struct tol_interpose_options){.rules = &typo, .rule_count = 1}),
              TOL_INVALID_ARGUMENT, "cuMemAloc_v2");
    MUST_FAIL(tol_interpose_install(
                  test_driver(), &(struct tol_interpose_options){.rules = &none, .rule_count = 1}),
              TOL_INVALID_ARGUMENT, "null");
    MUST(tol_interpose_install(test_driver(), NULL));
    MUST(tol_driver_open(test_library(), &other));
    MUST_FAIL(tol_interpose_install(other, NULL), TOL_INVALID_ARGUMENT, "already");
    tol_interpose_remove(other); /* not the one that is interposed: a no-op */
    cr_assert(tol_driver_functions(other) != tol_driver_functions(test_driver()));
    tol_driver_close(other);
    cr_assert(tol_interpose_count((enum tol_driver_index) - 1) == 0);
    cr_assert(tol_interpose_ns(TOL_DRIVER_FUNCTIONS) == 0);
}
