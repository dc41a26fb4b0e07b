/*
 * A pool as text: what a snapshot adds up to, and that programs can read all of it.
 */
#include "test/test_device.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct tol_pool *open_pool(const struct tol_pool_options *options) {
    struct tol_pool *pool = NULL;
    tol_status status = tol_pool_create(test_context(), options, &pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    return pool;
}

static struct tol_pool *new_pool(enum tol_pool_source source, size_t trace_events) {
    struct tol_pool_options options;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.source = source;
    options.trace_events = trace_events;
    return open_pool(&options);
}

static json_t *parse(char *text) {
    json_error_t error;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    cr_assert(object != NULL, "line %d: %s: %.2000s", error.line, error.text, text);
    free(text);
    return object;
}

static uint64_t number_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    cr_assert(json_is_integer(value), "%s is no number", name);
    return (uint64_t)json_integer_value(value);
}

/* The sum of a number over a list, of all or of those of a kind. */
static uint64_t sum_of(const json_t *list, const char *name, const char *kind) {
    uint64_t sum = 0;
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(list, i, one) {
        if (kind != NULL && !json_is_true(json_object_get(one, kind))) continue;
        sum += number_of(one, name);
    }
    return sum;
}

/* Small, middle and large blocks under two tags; a third of them are freed again. */
static void fill(struct tol_pool *pool, struct tol_stream *stream) {
    unsigned tags[2] = {0};
    MUST(tol_pool_tag(pool, "weights \"\\\n", 0, &tags[0]));
    MUST(tol_pool_tag(pool, "cache", 500 * MIB, &tags[1]));
    for (size_t i = 0; i < 60; i++) {
        struct tol_block block = {0};
        size_t bytes = i % 20 == 19 ? 17 * MIB : 100 + i * i * 1000;
        MUST(tol_pool_allocate_tagged(pool, bytes, stream, tags[i % 2], &block));
        if (i % 3 == 0) MUST(tol_pool_free(pool, block, stream));
    }
}

Test(pool_trace, a_snapshot_adds_up) {
    struct tol_pool *pool = new_pool(TOL_POOL_MAPPED, 0);
    char *text = NULL;
    fill(pool, NULL);
    MUST(tol_pool_snapshot(pool, &text));
    json_t *all = parse(text);
    const json_t *stats = json_object_get(all, "stats"), *blocks = json_object_get(all, "blocks"),
                 *holes = json_object_get(all, "holes"), *pages = json_object_get(all, "pages"),
                 *tags = json_object_get(all, "tags");
    struct tol_pool_stats s;
    MUST(tol_pool_stats(pool, &s));
    cr_assert(number_of(stats, "held") == s.held && number_of(stats, "blocks") == 40);
    const json_t *asked = json_object_get(all, "options");
    struct tol_pool_options o;
    tol_pool_tight(tol_context_device(test_context()), &o);
    cr_assert(number_of(asked, "page_bytes") == o.page_bytes &&
              number_of(asked, "first_bytes") == o.first_bytes &&
              number_of(asked, "first_count") == o.first_count &&
              number_of(asked, "slack_bytes") == o.slack_bytes &&
              number_of(asked, "keep_bytes") == o.keep_bytes);
    cr_assert_eq(sum_of(blocks, "bytes", NULL), s.requested);
    cr_assert_eq(sum_of(blocks, "rounded", NULL), s.used + s.kept);
    cr_assert_eq(sum_of(blocks, "rounded", "cached"), s.cached + s.kept);
    cr_assert_eq(sum_of(holes, "mapped", NULL), s.idle + s.page_waste);
    cr_assert_eq(sum_of(holes, "pending", NULL), 0);
    uint64_t large = sum_of(blocks, "rounded", "large");
    cr_assert(large >= 36 * MIB && sum_of(pages, "bytes", NULL) == s.held - large);
    cr_assert_eq(sum_of(tags, "used", NULL), s.requested);
    cr_assert_eq(json_array_size(tags), 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(tags, 0), "name")),
                     "weights \"\\\n");
    const json_t *times = json_object_get(json_object_get(all, "times"), "allocate");
    cr_assert(number_of(times, "count") > 0 &&
              number_of(times, "p50_ns") <= number_of(times, "max_ns"));
    json_decref(all);
    tol_pool_destroy(pool);
    test_end();
}

static uint64_t held_of(struct tol_pool *pool) {
    struct tol_pool_stats stats;
    MUST(tol_pool_stats(pool, &stats));
    return stats.held;
}

/* Pages that went back to the driver are in no snapshot, though the pool knows their place. */
Test(pool_trace, a_snapshot_has_no_pages_that_are_gone) {
    enum { BLOCKS = 8 };
    struct tol_pool_options options;
    struct tol_block blocks[BLOCKS] = {{0}};
    char *text = NULL;
    size_t i = 0;
    const json_t *one = NULL;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.source = TOL_POOL_MAPPED;
    options.first_bytes = options.page_bytes;
    struct tol_pool *pool = open_pool(&options);
    for (size_t b = 0; b < BLOCKS; b++) MUST(tol_pool_allocate(pool, 6 * MIB, NULL, &blocks[b]));
    const uint64_t held = held_of(pool);
    for (size_t b = 0; b < BLOCKS; b += 2) MUST(tol_pool_free(pool, blocks[b], NULL));
    MUST(tol_pool_trim(pool, 0));
    cr_assert_lt(held_of(pool), held);
    MUST(tol_pool_snapshot(pool, &text));
    json_t *all = parse(text);
    json_array_foreach(json_object_get(all, "pages"), i, one) {
        cr_assert(number_of(one, "bytes") > 0, "entry %zu", i);
    }
    cr_assert(i > 0);
    json_decref(all);
    tol_pool_destroy(pool);
    test_end();
}

Test(pool_trace, a_snapshot_of_the_drivers_pool_has_its_blocks) {
    struct tol_pool *pool = new_pool(TOL_POOL_DRIVER, 0);
    char *text = NULL;
    fill(pool, NULL);
    MUST(tol_pool_snapshot(pool, &text));
    json_t *all = parse(text);
    cr_assert_str_eq(json_string_value(json_object_get(all, "source")), "driver");
    cr_assert_eq(json_array_size(json_object_get(all, "blocks")), 40);
    cr_assert_eq(json_array_size(json_object_get(all, "pages")), 0);
    json_decref(all);
    MUST_FAIL(tol_pool_snapshot(pool, NULL), TOL_INVALID_ARGUMENT, "NULL");
    tol_pool_destroy(pool);
    test_end();
}

/* What is requested at the end of the tracks is what the pool says; slices have a length. */
Test(pool_trace, chromes_viewers_get_counters_and_slices) {
    struct tol_pool *pool = new_pool(TOL_POOL_MAPPED, 60), *quiet = new_pool(TOL_POOL_MAPPED, 0);
    char *text = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    uint64_t requested = 0, held = 0;
    size_t slices = 0, i = 0;
    const json_t *event = NULL;
    MUST(tol_stream_create(test_context(), NULL, &stream));
    fill(pool, stream);
    MUST(tol_pool_chrome_trace(pool, &text));
    json_t *all = parse(text);
    json_array_foreach(json_object_get(all, "traceEvents"), i, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        const char *name = json_string_value(json_object_get(event, "name"));
        const json_t *arguments = json_object_get(event, "args");
        if (strcmp(phase, "M") == 0) continue;
        cr_assert(json_is_number(json_object_get(event, "ts")) && json_is_object(arguments));
        if (strcmp(phase, "X") == 0) {
            cr_assert(json_number_value(json_object_get(event, "dur")) >= 1.0 &&
                      number_of(event, "tid") > 0);
            slices++;
        } else {
            cr_assert_str_eq(phase, "C");
            *(strcmp(name, "held") == 0 ? &held : &requested) = number_of(arguments, "bytes");
        }
    }
    struct tol_pool_stats s;
    MUST(tol_pool_stats(pool, &s));
    cr_assert(requested == s.requested && held == s.held && slices > 0);
    cr_assert_eq(number_of(json_object_get(all, "otherData"), "lost"), s.events_lost);
    cr_assert(s.events_lost > 0);
    json_decref(all);
    MUST_FAIL(tol_pool_chrome_trace(quiet, &text), TOL_UNSUPPORTED, "keeps no events");
    MUST_FAIL(tol_pool_trace(quiet, &text), TOL_UNSUPPORTED, "keeps no events");
    tol_pool_destroy(pool);
    tol_pool_destroy(quiet);
    test_end();
}

Test(pool_trace, a_trace_has_a_line_for_each_event) {
    struct tol_pool *pool = new_pool(TOL_POOL_MAPPED, 100);
    struct tol_block block = {0};
    char *text = NULL, line[200];
    unsigned tag = 0;
    MUST(tol_pool_tag(pool, "weights", 0, &tag));
    MUST(tol_pool_allocate_tagged(pool, 5000, NULL, tag, &block));
    MUST(tol_pool_trace(pool, &text));
    const char *begin = "#tollens pool trace 1\n#lost 0\n#tag 1 weights\n"
                        "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns\n0,";
    cr_assert(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
    snprintf(line, sizeof line, ",0,allocate,%llu,5000,1,", (unsigned long long)block.name);
    cr_assert(strstr(text, line) != NULL && strstr(text, "\n2,") == NULL, "%s", text);
    free(text);
    tol_pool_destroy(pool);
    test_end();
}
