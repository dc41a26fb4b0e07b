/*
 * Watches: what happens to a block is counted, and a broken rule raises one alarm, and is refused
 * where the rule says so.
 */
#include "tollens/watch.h"

#include "test/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

static struct tol_watch *watch;
static struct tol_stream *stream;
static struct tol_buffer *weights, *other;
static struct tol_watch_alarm last;
static char last_rule[TOL_WATCH_LABEL_BYTES], last_label[TOL_WATCH_LABEL_BYTES];
static uint64_t clock_ns;

static uint64_t now_ns(void) {
    return clock_ns;
}

static void on_alarm(const struct tol_watch_alarm *alarm, void *user) {
    cr_assert(user == &last);
    last = *alarm;
    snprintf(last_rule, sizeof last_rule, "%s", alarm->rule);
    snprintf(last_label, sizeof last_label, "%s", alarm->label);
}

/* A watch with these rules, two blocks of BYTES, and a stream. */
static void begin(const char *rules, FILE *lines) {
    clock_ns = 1000000000;
    MUST(tol_watch_create(
        &(struct tol_watch_options){
            .rules = rules, .on_alarm = on_alarm, .user = &last, .lines = lines, .now_ns = now_ns},
        &watch));
    MUST(tol_watch_install(watch, test_driver()));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &weights));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &other));
    MUST(tol_watch_add(watch, tol_buffer_address(weights), BYTES, "weights.0"));
    MUST(tol_watch_add(watch, tol_buffer_address(other), BYTES, "other"));
}

static void end(void) {
    tol_stream_destroy(stream);
    tol_buffer_destroy(weights);
    tol_buffer_destroy(other);
    tol_interpose_remove(test_driver());
    test_end();
    tol_watch_destroy(watch);
}
TestSuite(watch, .fini = end);

static struct tol_watch_block seen(const struct tol_buffer *buffer) {
    struct tol_watch_block block;
    MUST(tol_watch_find(watch, tol_buffer_address(buffer) + BYTES - 1, &block));
    return block;
}

static void write_to(struct tol_buffer *buffer) {
    static unsigned char bytes[BYTES];
    MUST(tol_buffer_write(buffer, bytes, sizeof bytes));
}

static tol_status read_from(struct tol_buffer *buffer) {
    static unsigned char bytes[BYTES];
    return tol_buffer_read(buffer, bytes, sizeof bytes);
}

static void launch_on(const struct tol_buffer *buffer, struct tol_kernel *fill) {
    MUST(tol_launch(stream, fill, tol_launch_linear(BYTES / 4, 256),
                    TOL_ARGUMENTS(tol_buffer_address(buffer), 7u, (unsigned long long)BYTES / 4)));
}

/* ---- counts ---------------------------------------------------------------------------------- */

Test(watch, counts_copies_fills_and_launches_of_each_block) {
    begin(NULL, NULL);
    struct tol_kernel *fill = test_kernel("fill");
    write_to(weights);
    clock_ns += 5;
    MUST(read_from(weights));
    MUST(read_from(weights));
    launch_on(weights, fill);
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_copy(other, 0, weights, 0, BYTES));
    const struct tol_watch_block from = seen(weights), to = seen(other);
    cr_assert(strcmp(from.label, "weights.0") == 0 && from.address == tol_buffer_address(weights));
    cr_assert(from.bytes == BYTES && from.bytes_in == BYTES && from.copies_in == 1);
    cr_assert(from.bytes_out == 2 * BYTES && from.copies_out == 2 && from.launches == 1);
    cr_assert(from.bytes_read == BYTES && from.bytes_written == 0 && to.bytes_written == BYTES);
    cr_assert(from.first_ns == 1000000000 && from.last_ns == 1000000005);
    cr_assert(from.threads == 1 && from.streams >= 1, "%u %u", from.threads, from.streams);
    cr_assert(to.launches == 0 && to.bytes_out == 0);
    cr_assert(tol_watch_alarms(watch) == 0 && tol_watch_launches_unread(watch) == 0);
    MUST(tol_watch_check(watch));
}

Test(watch, a_part_of_a_block_and_two_blocks_at_once_are_counted_by_their_bytes) {
    begin(NULL, NULL);
    struct tol_buffer *large = NULL;
    MUST(tol_buffer_create(test_context(), 4 * BYTES, 1, &large));
    const CUdeviceptr at = tol_buffer_address(large);
    MUST(tol_watch_add(watch, at, BYTES, "first"));
    MUST(tol_watch_add(watch, at + 2 * BYTES, BYTES, "third"));
    unsigned char *bytes = calloc(1, 4 * BYTES);
    MUST(tol_buffer_write(large, bytes, 4 * BYTES));
    MUST(tol_buffer_write_at(large, BYTES - 10, bytes, 20));
    struct tol_watch_block block;
    MUST(tol_watch_find(watch, at, &block));
    cr_assert(block.bytes_in == BYTES + 10 && block.copies_in == 2, "%llu",
              (unsigned long long)block.bytes_in);
    MUST(tol_watch_find(watch, at + 3 * BYTES - 1, &block));
    cr_assert(block.bytes_in == BYTES && block.copies_in == 1);
    MUST_FAIL(tol_watch_find(watch, at + BYTES, &block), TOL_NOT_FOUND, "no watched block");
    free(bytes);
    tol_buffer_destroy(large);
}

static void *read_in_thread(void *user) {
    (void)user;
    for (unsigned i = 0; i < 50; i++) MUST(read_from(other));
    return NULL;
}

Test(watch, threads_are_counted_and_no_byte_is_lost) {
    begin(NULL, NULL);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        cr_assert(pthread_create(&threads[i], NULL, read_in_thread, NULL) == 0);
    }
    for (unsigned i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    const struct tol_watch_block block = seen(other);
    cr_assert(block.threads == 4 && block.copies_out == 200 && block.bytes_out == 200 * BYTES);
}

Test(watch, a_dropped_block_is_not_counted_and_a_wrong_one_is_refused) {
    begin(NULL, NULL);
    const CUdeviceptr at = tol_buffer_address(weights);
    MUST_FAIL(tol_watch_add(watch, at + BYTES - 1, 2, "over"), TOL_INVALID_ARGUMENT,
              "overlap \"weights.0\"");
    MUST_FAIL(tol_watch_add(watch, at, 0, "empty"), TOL_INVALID_ARGUMENT, "are not a range");
    MUST_FAIL(tol_watch_add(watch, UINT64_MAX - 1, 8, "high"), TOL_INVALID_ARGUMENT,
              "are not a range");
    char text[2 * TOL_WATCH_LABEL_BYTES] = "";
    memset(text, 'x', sizeof text - 1);
    MUST_FAIL(tol_watch_add(watch, 16, 8, text), TOL_INVALID_ARGUMENT, "127 bytes");
    MUST_FAIL(tol_watch_drop(watch, at + 1), TOL_NOT_FOUND, "begins at");
    MUST(tol_watch_drop(watch, at));
    write_to(weights);
    struct tol_watch_block block;
    MUST_FAIL(tol_watch_find(watch, at, &block), TOL_NOT_FOUND, "no watched block");
}

Test(watch, a_call_that_fails_is_taken_back) {
    begin("[[rule]]\nname = \"once\"\nkind = \"written_once\"\n", NULL);
    static unsigned char bytes[2 * BYTES];
    const CUdeviceptr at = tol_buffer_address(weights);
    MUST(tol_context_bind(test_context()));
    cr_assert(
        tol_driver_functions(test_driver())->cuMemcpyHtoD_v2(at + BYTES - 1, bytes, 1u << 30) !=
        CUDA_SUCCESS);
    cr_assert(seen(weights).bytes_in == 0 && seen(weights).copies_in == 0);
}

/* ---- rules ----------------------------------------------------------------------------------- */

Test(watch, weights_that_are_written_twice_raise_an_alarm) {
    begin("[[rule]]\nname = \"once\"\nblocks = \"weights*\"\nkind = \"written_once\"\n", NULL);
    write_to(weights);
    write_to(other);
    write_to(other);
    cr_assert(tol_watch_alarms(watch) == 0);
    MUST(tol_buffer_fill_at(weights, 0, 0, 1, BYTES));
    cr_assert(tol_watch_alarms(watch) == 1 && seen(weights).alarms == 1);
    cr_assert(last.kind == TOL_WATCH_WRITTEN_ONCE && !last.refused);
    cr_assert(last.value == 2 * BYTES && last.limit == BYTES, "%g of %g", last.value, last.limit);
    cr_assert(strcmp(last_rule, "once") == 0 && strcmp(last_label, "weights.0") == 0);
    MUST_FAIL(tol_watch_check(watch), TOL_ALARM, "the rule \"once\" was broken by cuMemset");
}

Test(watch, what_a_rule_refuses_does_not_happen) {
    begin("[[rule]]\nname = \"stay\"\nblocks = \"weights.0\"\nkind = \"no_read_back\"\n"
          "refuse = true\n",
          NULL);
    write_to(weights);
    MUST_FAIL(read_from(weights), TOL_DRIVER_ERROR, "NOT_PERMITTED");
    cr_assert(last.refused && last.value == BYTES && strncmp(last.call, "cuMemcpyDtoH", 12) == 0);
    cr_assert(seen(weights).bytes_out == 0 && seen(weights).alarms == 1);
    MUST(read_from(other)); /* the context is as usable as before */
    cr_assert(tol_watch_alarms(watch) == 1);
}

Test(watch, copies_out_are_limited_by_the_second) {
    begin("[[rule]]\nname = \"slow\"\nkind = \"copy_out_limit\"\nmb_per_s = 0.01\n", NULL);
    MUST(read_from(weights)); /* 4096 of 10000 bytes */
    MUST(read_from(other));
    cr_assert(tol_watch_alarms(watch) == 0);
    MUST(read_from(weights));
    cr_assert(tol_watch_alarms(watch) == 1 && last.kind == TOL_WATCH_COPY_OUT_LIMIT);
    cr_assert(last.value > 0.0122 && last.value < 0.0124 && last.limit == 0.01);
    clock_ns += 700000000; /* 2288 too many were copied; 7000 more are allowed now */
    MUST(read_from(weights));
    cr_assert(tol_watch_alarms(watch) == 1);
    MUST(read_from(weights));
    cr_assert(tol_watch_alarms(watch) == 2);
}

Test(watch, a_launch_from_a_module_that_came_late_is_refused) {
    begin("[[rule]]\nname = \"known\"\nkind = \"known_modules\"\nrefuse = true\n", NULL);
    struct tol_kernel *fill = test_kernel("fill");
    tol_watch_close_modules(watch);
    launch_on(weights, fill);
    cr_assert(tol_watch_alarms(watch) == 0);
    struct tol_kernel *late = test_kernel("transpose");
    MUST_FAIL(
        tol_launch(stream, late, tol_launch_linear(32, 32),
                   TOL_ARGUMENTS(tol_buffer_address(weights), tol_buffer_address(other), 4u, 4u)),
        TOL_DRIVER_ERROR, "NOT_PERMITTED");
    cr_assert(tol_watch_alarms(watch) == 1 && last.kind == TOL_WATCH_KNOWN_MODULES);
    cr_assert(last_label[0] == '\0' && last.address == 0);
    cr_assert(seen(weights).launches == 1 && seen(other).launches == 0);
    launch_on(weights, fill);
    MUST(tol_stream_synchronize(stream));
    cr_assert(seen(weights).launches == 2);
}

Test(watch, more_than_was_learned_is_unusual_once_a_window) {
    begin("[[rule]]\nname = \"usual\"\nkind = \"usual\"\nfalse_alarms = 0.5\nwindow_ms = 10\n",
          NULL);
    for (unsigned window = 0; window < 8; window++) { /* 4 / (7 + 1) = 0.5 */
        cr_assert(tol_watch_has_learned(watch) == (window > 7));
        MUST(read_from(weights));
        if (window == 3) MUST(read_from(weights));
        clock_ns += 10000000;
    }
    MUST(read_from(weights));
    cr_assert(tol_watch_has_learned(watch) && tol_watch_alarms(watch) == 0);
    MUST(read_from(other)); /* two, as in the window 3 */
    cr_assert(tol_watch_alarms(watch) == 0);
    MUST(read_from(other));
    cr_assert(tol_watch_alarms(watch) == 1 && last.kind == TOL_WATCH_USUAL);
    cr_assert(last.value == 3 && last.limit == 2 && strncmp(last.unit, "copies", 6) == 0);
    MUST(read_from(other)); /* the bytes are unusual, too, and then nothing more in this window */
    MUST(read_from(other));
    cr_assert(tol_watch_alarms(watch) == 2);
}

Test(watch, an_alarm_is_a_line_of_json) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    begin("[[rule]]\nname = \"stay\"\nblocks = \"*\"\nkind = \"no_read_back\"\n", lines);
    struct tol_watch_block block;
    MUST(tol_watch_find(watch, tol_buffer_address(other), &block));
    MUST(tol_watch_drop(watch, block.address));
    MUST(tol_watch_add(watch, block.address, BYTES, "a \"b\"\n"));
    MUST(read_from(other));
    fclose(lines);
    cr_assert(strstr(text, "{\"rule\": \"stay\", \"kind\": \"no_read_back\", ") == text, "%s",
              text);
    cr_assert(strstr(text, "\"block\": \"a \\\"b\\\"\\u000a\"") != NULL, "%s", text);
    cr_assert(strstr(text, "\"value\": 4096, \"limit\": 0, ") != NULL, "%s", text);
    cr_assert(strstr(text, "\"refused\": false}\n") != NULL, "%s", text);
    cr_assert(strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    free(text);
}

Test(watch, a_trace_sees_what_a_watch_below_it_refuses) {
    clock_ns = 1;
    MUST(tol_watch_create(
        &(struct tol_watch_options){
            .rules = "[[rule]]\nname = \"stay\"\nkind = \"no_read_back\"\nrefuse = true\n"},
        &watch));
    const struct tol_interpose_options hooks = tol_watch_hooks(watch);
    MUST(tol_trace_install(test_driver(), NULL, &hooks));
    MUST(tol_buffer_create(test_context(), BYTES, 1, &weights));
    MUST(tol_watch_add(watch, tol_buffer_address(weights), BYTES, "weights"));
    MUST_FAIL(read_from(weights), TOL_DRIVER_ERROR, "NOT_PERMITTED");
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    MUST(tol_trace_write(file, "test", false));
    fclose(file);
    cr_assert(strstr(text, "\"result\":800") != NULL, "%s", text);
    const char *alarm = strstr(text, "{\"name\":\"alarm\",\"cat\":\"mark\",\"ph\":\"i\"");
    cr_assert(alarm != NULL, "%s", text);
    cr_assert(strstr(alarm, "\"args\":{\"rule\": \"stay\", \"kind\": \"no_read_back\", ") != NULL);
    cr_assert(strstr(alarm, "\"block\": \"weights\"") != NULL && strstr(alarm, "true}}") != NULL);
    cr_assert(strstr(alarm + 2, "\"name\":\"alarm\"") == NULL, "%s", text);
    free(text);
    tol_trace_remove(test_driver());
}
