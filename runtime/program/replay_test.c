/*
 * Replays: a recorded trace comes out the same each time, all profiles take it, and a file that is
 * none is refused with its line.
 */
#include "files/atomic_file.h"
#include "program/shell_scene.h"
#include "harness/session.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum {
    THREADS = 3,
    STEPS = 120,
    UNSERVED = 1 /* the exit code where an allocation failed, as one of each recorded trace does */
};

TestSuite(replay, .init = program_begin, .fini = program_end);

/* ---- recording ------------------------------------------------------------------------------- */

struct recorder {
    struct tol_context *context;
    struct tol_pool *pool;
    uint64_t random;
    bool failed;
};

static uint64_t draw(struct recorder *r, uint64_t below) {
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (r->random >> 33) % below;
}

static void *record(void *user) {
    struct recorder *r = user;
    struct tol_stream *streams[3] = {NULL};
    struct tol_block blocks[STEPS];
    size_t count = 0;
    unsigned tag = 0;
    r->failed |= tol_pool_tag(r->pool, "weights", 0, &tag) != TOL_OK;
    for (int i = 1; i < 3; i++) {
        r->failed |= tol_stream_create(r->context, NULL, &streams[i]) != TOL_OK;
    }
    for (int step = 0; step < STEPS && !r->failed; step++) {
        if (step == STEPS / 2) r->failed |= tol_pool_trim(r->pool, 0) != TOL_OK;
        struct tol_stream *stream = streams[draw(r, 3)];
        if (count > 0 && draw(r, 100) < 40) {
            size_t which = (size_t)draw(r, count);
            r->failed |= tol_pool_free(r->pool, blocks[which], stream) != TOL_OK;
            blocks[which] = blocks[--count];
            continue;
        }
        size_t bytes = 1 + (size_t)draw(r, (20 * MIB) >> draw(r, 12));
        r->failed |= tol_pool_allocate_tagged(r->pool, bytes, stream, tag * (step % 2),
                                              &blocks[count++]) != TOL_OK;
    }
    for (int i = 1; i < 3; i++) tol_stream_destroy(streams[i]);
    return NULL;
}

/* What some threads did with a pool, as file "trace" of the test's folder. */
static void record_trace(size_t events) {
    enum hyp_device_kind kind = HYP_DEVICE_SOFT;
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_pool *pool = NULL;
    struct tol_pool_options options;
    struct recorder recorders[THREADS];
    pthread_t threads[THREADS];
    struct tol_block refused;
    char *text = NULL;
    cr_assert(hyp_session_open(&kind, &driver) == TOL_OK &&
                  tol_context_create(driver, 0, &context) == TOL_OK,
              "%s", tol_message());
    tol_pool_tight(tol_context_device(context), &options);
    options.trace_events = events;
    cr_assert(tol_pool_create(context, &options, &pool) == TOL_OK, "%s", tol_message());
    for (unsigned i = 0; i < THREADS; i++) {
        recorders[i] = (struct recorder){context, pool, 77 + i, false};
        cr_assert(pthread_create(&threads[i], NULL, record, &recorders[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(!recorders[i].failed);
    }
    cr_assert(tol_pool_allocate(pool, (size_t)1 << 45, NULL, &refused) == TOL_OUT_OF_DEVICE_MEMORY);
    cr_assert(tol_pool_trace(pool, &text) == TOL_OK, "%s", tol_message());
    program_write("in/trace", text);
    free(text);
    tol_pool_destroy(pool);
    tol_context_destroy(context);
    tol_driver_close(driver);
}

/* ---- replaying ------------------------------------------------------------------------------- */

static double result_of(const char *file, const char *name) {
    json_t *all = program_json(file);
    const json_t *value = json_object_get(json_object_get(all, "result"), name);
    cr_assert(json_is_number(value), "%s has no %s", file, name);
    double number = json_number_value(value);
    json_decref(all);
    return number;
}

Test(replay, what_was_recorded_comes_out_the_same_twice) {
    record_trace(10000);
    for (int i = 1; i <= 2; i++) {
        char command[200];
        snprintf(command, sizeof command,
                 "\"$T\" replay \"$D/in/trace\" --profile tight --out \"$D/out%d\"", i);
        cr_assert_eq(program_shell(command), UNSERVED, "%s", program_output);
    }
    cr_assert(program_says("4 threads and 6 streams") && program_says("driver calls: "), "%s",
              program_output);
    cr_assert_eq(program_shell("cmp \"$D/out1/fragmentation.csv\" \"$D/out2/fragmentation.csv\""),
                 0, "%s", program_output);
    json_t *one = program_json("out1/replay.json"), *two = program_json("out2/replay.json");
    cr_assert(json_equal(json_object_get(one, "result"), json_object_get(two, "result")));
    json_decref(one);
    json_decref(two);
    cr_assert(result_of("out1/replay.json", "held") >= result_of("out1/replay.json", "requested"));
    cr_assert(result_of("out1/replay.json", "worst") >= 1);
    cr_assert(result_of("out1/replay.json", "refused") == 0 &&
              result_of("out1/replay.json", "granted") == 0);
}

Test(replay, its_evidence_can_be_read) {
    record_trace(10000);
    char command[1200];
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --out=\"$D/out\""), UNSERVED, "%s",
                 program_output);
    snprintf(command, sizeof command,
             "cd '%s' && \"$(cat build/python)\" -m reports.schema "
             "runtime/driver/pool/snapshot.schema.json \"$D/out/snapshot.json\"",
             hyp_session_root());
    cr_assert_eq(program_shell(command), 0, "%s", program_output);
    json_t *timeline = program_json("out/timeline.json");
    cr_assert(json_array_size(json_object_get(timeline, "traceEvents")) > 3 * STEPS);
    json_decref(timeline);
    cr_assert_eq(program_shell("head -n 1 \"$D/out/fragmentation.csv\"; grep -c . "
                               "\"$D/out/times.hlog\"; grep Tag=allocate \"$D/out/times.hlog\""),
                 0);
    cr_assert(program_says("step,requested,used,held,largest_hole\n"), "%s", program_output);
}

Test(replay, every_profile_and_limits_take_it) {
    static const char *const commands[] = {"--profile default", "--profile latency",
                                           "--profile driver", "--profile tight --floor 1"};
    char command[200];
    record_trace(10000);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(command, sizeof command, "\"$T\" replay \"$D/in/trace\" %s", commands[i]);
        cr_assert_eq(program_shell(command), UNSERVED, "%s: %s", commands[i], program_output);
        cr_assert(program_says("held / requested: final "), "%s", program_output);
    }
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --limit 60000000 --out \"$D/out\""),
                 UNSERVED, "%s", program_output);
    cr_assert(program_says(" of these succeeded in the trace, and 0 that failed in the trace") &&
                  program_says(" bytes serves all but 1, which this device cannot serve\n"),
              "%s", program_output);
    cr_assert(result_of("out/replay.json", "held_peak") <= 6e7);
}

/* Of a ring that was too small: what was made before its events is left out. */
Test(replay, a_trace_without_its_beginning_is_replayed_as_far_as_it_goes) {
    record_trace(100);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\""), UNSERVED, "%s", program_output);
    cr_assert(program_says("events that were lost before the first one: "), "%s", program_output);
}

/* ---- what is no trace ------------------------------------------------------------------------ */

#define HEAD                                                                                       \
    "#tollens pool trace 1\n#lost 0\n#tag 1 weights\n#more to come\n"                              \
    "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns\n"                                   \
    "0,10,1,0,grow,0,4096,0,0\n1,11,1,0,stitch,0,4096,0,0\n"                                       \
    "3,12,1,1,allocate,77,1000,1,5\n"

Test(replay, a_trace_may_be_written_by_hand) {
    program_write("in/trace", HEAD "4,13,2,0,free,77,1000,1,5\r\n9,14,1,0,trim,0,0,0,0\n"
                                   "10,15,1,0,refuse,0,50,0,0\n");
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --out \"$D/out\""), 0, "%s",
                 program_output);
    cr_assert(program_says("every allocation was served; 1 of them failed in the trace"), "%s",
              program_output);
    cr_assert(result_of("out/replay.json", "requested") == 0);
}

/* Each of 300 threads starts when the one before has ended; one of the first comes back. */
Test(replay, a_program_may_start_any_number_of_threads) {
    cr_assert_eq(
        program_shell("awk 'BEGIN { print \"#tollens pool trace 1\"; print \"event,time_ns,"
                      "thread,stream,kind,block,bytes,tag,took_ns\"; for (i = 1; i <= 301; "
                      "i++) { t = i > 300 ? 3 : i; print 2 * i \",1,\" t \",0,allocate,\" i "
                      "\",5000,0,5\"; print 2 * i + 1 \",1,\" t \",0,free,\" i \",5000,0,5\" "
                      "} }' >\"$D/trace\"; \"$T\" replay \"$D/trace\""),
        0, "%s", program_output);
    cr_assert(program_says("602 events of 256 threads") &&
                  program_says("threads that took the place of one that had been silent") &&
                  program_says("at once: 45, the first in line 515"),
              "%s", program_output);
}

/* A program that ran out of memory fits here, or it does not. */
Test(replay, the_exit_code_tells_whether_all_was_served) {
    program_write("in/trace", HEAD "4,13,1,0,refuse,0,50,0,0\n5,13,1,0,allocate,78,9000000,0,5\n");
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\""), 0, "%s", program_output);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --limit 4000000"), UNSERVED, "%s",
                 program_output);
    program_write("in/trace", HEAD "4,13,1,0,refuse,0,35184372088832,0,0\n");
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\""), UNSERVED, "%s", program_output);
}

static int replay_limited(const char *trace, uint64_t limit) {
    char command[200];
    program_write("in/log", trace);
    snprintf(command, sizeof command,
             "\"$T\" replay \"$D/in/log\" --profile tight --limit %llu --out \"$D/out\"",
             (unsigned long long)limit);
    return program_shell(command);
}

#define LOG "Thread,Time,Action,Pointer,Size,Stream\n7,10:00:01.0,allocate,0x10,41943040,0\n"
#define LOG_END "7,10:00:04.0,free,0x10,41943040,0\n7,10:00:05.0,allocate,0x30,41943040,0\n"

/* What it says about a failure is so: the size that would have fit is served, and 256 bytes more
 * are not; the limit that would have served all does. */
Test(replay, the_first_failure_is_named_with_what_would_have_fit) {
    char log[500];
    cr_assert_eq(
        replay_limited(LOG "8,10:00:03.5,allocate,0x20,41943040,7f0000000010\n" LOG_END, 64 * MIB),
        UNSERVED, "%s", program_output);
    cr_assert(
        program_says("1 of 3 allocations failed; 1 of these succeeded in the trace, and 0 that "
                     "failed in the trace succeeded here\n"
                     "the first one: line 3, at 2.500000 s, 41943040 bytes on stream "
                     "0x7f0000000010, while 41943040 bytes were live and "),
        "%s", program_output);
    json_t *all = program_json("out/replay.json");
    const json_t *result = json_object_get(all, "result");
    const json_t *first = json_object_get(result, "first_unserved");
    const long long fits = json_integer_value(json_object_get(first, "fits"));
    const uint64_t least = (uint64_t)json_integer_value(json_object_get(result, "least_limit"));
    cr_assert(json_integer_value(json_object_get(first, "number")) == 3 &&
              json_integer_value(json_object_get(first, "size")) == 40 * (long long)MIB &&
              json_integer_value(json_object_get(first, "requested")) == 40 * (long long)MIB &&
              json_integer_value(json_object_get(first, "stream")) == 0x7f0000000010);
    json_decref(all);
    cr_assert(fits > 16 * (long long)MIB && fits <= 24 * (long long)MIB, "%lld", fits);
    cr_assert(least >= 80 * MIB && least <= 84 * MIB, "%llu", (unsigned long long)least);
    for (int more = 0; more <= 256; more += 256) {
        snprintf(log, sizeof log, LOG "8,1,allocate,0x20,%lld,0\n" LOG_END, fits + more);
        cr_assert_eq(replay_limited(log, 64 * MIB), more > 0 ? UNSERVED : 0, "%s", program_output);
    }
    const char *whole = LOG "8,1,allocate,0x20,41943040,0\n" LOG_END;
    /* The replays that look for a limit have the whole device, which has no room for two pools. */
    setenv("TOLLENS_SOFT_MEMORY", "128M", 1);
    cr_assert_eq(replay_limited(whole, 64 * MIB), UNSERVED, "%s", program_output);
    cr_assert(program_says(" bytes serves all\n"), "%s", program_output);
    unsetenv("TOLLENS_SOFT_MEMORY");
    cr_assert_eq(replay_limited(whole, least), 0, "%s", program_output);
    cr_assert(program_says("every allocation was served; 0 of them failed in the trace\n"));
    cr_assert_eq(replay_limited(whole, 78 * MIB), UNSERVED, "%s", program_output);
}

/* The picture is XML, with a rectangle in the frame for each block that was served, and marks. */
static const char map_check[] =
    "import sys, xml.etree.ElementTree as tree\n"
    "svg = '{http://www.w3.org/2000/svg}'\n"
    "root = tree.parse(sys.argv[1]).getroot()\n"
    "blocks = [one for one in root.iter(svg + 'rect') if one.get('class') != 'edge']\n"
    "edge = next(one for one in root.iter(svg + 'rect') if one.get('class') == 'edge')\n"
    "number = lambda one: [float(one.get(name)) for name in ('x', 'y', 'width', 'height')]\n"
    "x, y, width, height = number(edge)\n"
    "for one in blocks:\n"
    "    a, b, c, d = number(one)\n"
    "    assert c >= 0 and d >= 0 and a >= x and b >= y, number(one)\n"
    "    assert a + c <= x + width + .02 and b + d <= y + height + .02, number(one)\n"
    "for one in root.iter(svg + 'polyline'):\n"
    "    for point in one.get('points').split():\n"
    "        assert 489 <= float(point.split(',')[1]) <= 591, point\n"
    "lines = [one.get('class') for one in root.iter(svg + 'line')]\n"
    "print(len(blocks), sum(one.get('class') == 'block stays' for one in blocks), *lines)\n";

static void replay_expect_map(const char *says) {
    program_write("check.py", map_check);
    cr_assert_eq(program_shell("\"$(cat \"$R/build/python\")\" \"$D/check.py\" \"$D/out/map.svg\""),
                 0, "%s", program_output);
    cr_assert_str_eq(program_output, says);
}

Test(replay, a_picture_has_the_blocks_and_the_moments) {
    cr_assert_eq(replay_limited(LOG "8,10:00:03.5,allocate,0x20,41943040,0\n" LOG_END, 64 * MIB),
                 UNSERVED);
    replay_expect_map("2 1 worst failed\n");
    cr_assert_eq(replay_limited(LOG, 64 * MIB), 0);
    replay_expect_map("1 1 worst\n");
    cr_assert_eq(replay_limited("Thread,Time,Action,Pointer,Size,Stream\n"
                                "1,1,allocate failure,(nil),35184372088832,0\n",
                                64 * MIB),
                 UNSERVED);
    replay_expect_map("0 0 failed\n");
    record_trace(10000);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --out \"$D/out\""), UNSERVED);
    program_write("check.py", map_check);
    program_shell("\"$(cat \"$R/build/python\")\" \"$D/check.py\" \"$D/out/map.svg\"");
    cr_assert(program_says(" worst failed\n") && atoi(program_output) > STEPS, "%s",
              program_output);
}

static double replay_searched(const json_t *search, const char *when, size_t half) {
    const json_t *score = json_array_get(json_object_get(search, when), half);
    cr_assert(json_is_integer(json_object_get(score, "held_peak")), "%s %zu", when, half);
    return json_number_value(json_object_get(score, "held_peak"));
}

/* In each half small blocks of many sizes come and go, and a large one needs their memory. */
Test(replay, a_search_finds_what_holds_less_on_a_half_that_it_has_not_seen) {
    int code = program_shell(
        "awk 'BEGIN { print \"Thread,Time,Action,Pointer,Size,Stream\"; print \"1,1,allocate,1,"
        "25165824,0\"; for (half = 0; half < 2; half++) { for (i = 2; i < 1026; i++) printf(\"1,1,"
        "allocate,%x,%d,0\\n\", i, 512 + i % 128 * 512); for (i = 2; i < 1026; i++) printf(\"1,1,"
        "free,%x,1,0\\n\", i); print \"1,1,allocate,2000,33554432,0\\n1,1,free,2000,33554432,0\" } "
        "}' >\"$D/log\"; \"$T\" replay \"$D/log\" --search 20");
    cr_assert_eq(code, 0, "%s", program_output);
    cr_assert(program_says("what was found helps on the other half, too:\n") &&
                  program_says("    struct tol_pool_options options;\n    tol_pool_") &&
                  program_says(";\n    options."),
              "%s", program_output);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/log\" --search 20 --json >\"$D/j\""), 0);
    json_t *all = program_json("j"), *search = json_object_get(all, "search");
    for (size_t half = 0; half < 2; half++) {
        const double before = replay_searched(search, "before", half);
        const double after = replay_searched(search, "after", half);
        cr_assert(before >= 60.0 * MIB && after < before && after >= 56.0 * MIB, "%zu: %g, %g",
                  half, before, after);
    }
    cr_assert(json_is_true(json_object_get(search, "holds")) &&
              json_integer_value(json_object_get(search, "replays")) > 5);
    json_decref(all);
}

/* Without time the profiles are compared, and what does not help is not recommended. */
Test(replay, a_search_without_time_takes_a_profile) {
    record_trace(10000);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --search 0"), UNSERVED, "%s",
                 program_output);
    cr_assert(program_says("\n5 replays of the first half in ") &&
                  program_says("no option helps by 0.1 %: take the profile\n") &&
                  !program_says("struct tol_pool_options"),
              "%s", program_output);
    program_write("in/trace", HEAD);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --search 1"), 2);
    cr_assert(program_says("a search requires at least 2 events"), "%s", program_output);
}

/* Whether profile a is no better than the best one. */
static bool replay_is_no_better(const json_t *a, const json_t *best) {
    static const char *const names[] = {"unserved", "least_limit", "held_peak"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_int_t x = json_integer_value(json_object_get(a, names[i]));
        const json_int_t y = json_integer_value(json_object_get(best, names[i]));
        cr_assert(x > 0 && y > 0, "%s: %lld, %lld", names[i], (long long)x, (long long)y);
        if (x != y) return x > y;
    }
    return true;
}

Test(replay, all_profiles_are_a_table_and_the_best_is_named) {
    size_t at = 0;
    const json_t *one = NULL, *best = NULL;
    record_trace(10000);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --profile all --out \"$D/out\""),
                 UNSERVED, "%s", program_output);
    cr_assert(program_says("profile   failed       held peak     least limit    worst      end") &&
                  program_says("\ndefault        1 ") && program_says("\ntight          1 ") &&
                  program_says("\nlatency        1 ") && program_says("\ntorch          1 ") &&
                  program_says("\nlean           1 ") && !program_says("\ndriver ") &&
                  program_says("\nbest, by failures, then by the least limit, then by what it "
                               "holds: "),
              "%s", program_output);
    cr_assert(result_of("out/latency/replay.json", "held_peak") > 0 &&
              result_of("out/tight/replay.json", "held_peak") > 0);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --profile=all --json >\"$D/j\""),
                 UNSERVED);
    json_t *all = program_json("j"), *profiles = json_object_get(all, "profiles");
    const char *name = json_string_value(json_object_get(all, "best"));
    cr_assert(json_array_size(profiles) == 5 && name != NULL);
    json_array_foreach(profiles, at, one) {
        if (strcmp(json_string_value(json_object_get(one, "profile")), name) == 0) best = one;
    }
    json_array_foreach(profiles, at, one) {
        cr_assert(
            replay_is_no_better(json_object_get(one, "result"), json_object_get(best, "result")));
    }
    json_decref(all);
    program_write("in/trace", HEAD);
    /* Where the driver counts as CUDA's, its own pool is a row, unless there is a limit. */
    setenv("TOLLENS_LIBCUDA", hyp_session_soft_library(), 1);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --device cuda --profile all"), 0);
    cr_assert(program_says("\ndriver         0 "), "%s", program_output);
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\" --device cuda --profile all "
                               "--limit 999999999"),
                 0);
    cr_assert(!program_says("\ndriver "), "%s", program_output);
}

Test(replay, a_bad_line_is_refused_by_its_number) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "is empty"},
        {"hello\n", "line 1: the first line must be"},
        {"#tollens pool trace 2\n", "line 1: the first line must be"},
        {"#tollens pool trace 1\n", "no event"},
        {"#tollens pool trace 1\nevent,what\n", "line 2: unexpected names of the fields"},
        {"#tollens pool trace 1\n#tag 0 x\n", "line 2: a tag must have a number"},
        {"#tollens pool trace 1\n#lost many\n", "line 2: this is not a number: 'many'"},
        {HEAD "4,13,1,0,free,77,1000,1", "line 9: the line is cut off"},
        {HEAD "4,13,1,0,free,77,1000,1\n", "line 9: a line must have 9 fields"},
        {HEAD "4,13,1,0,free,77,1000,1,5,6\n", "line 9: a line must have 9 fields"},
        {HEAD "4,13,1,0,steal,77,1000,1,5\n", "line 9: unknown kind of event 'steal'"},
        {HEAD "4,13,1,0,free,78,1000,1,5\n", "line 9: the block is not live"},
        {HEAD "4,13,1,0,allocate,77,1000,1,5\n", "line 9: the block is live already"},
        {HEAD "4,13,1,0,allocate,78,0,1,5\n", "line 9: a block must have at least 1 byte"},
        {HEAD "4,13,1,0,allocate,78,-5,1,5\n", "line 9: this is not a number: '-5'"},
        {HEAD "4,13,1,0,allocate,78,281474976710656,1,5\n", "line 9: the number is too large"},
        {HEAD "18446744073709551615,13,1,0,free,77,1000,1,5\n", "line 9: the number is too large"},
        {HEAD "4,13,0,0,allocate,78,5,1,5\n", "line 9: thread numbers begin at 1"},
        {HEAD "4,13,1,0,allocate,78,5,2,5\n", "line 9: no #tag line defines the tag '2'"},
        {HEAD "3,13,1,0,allocate,78,5,1,5\n", "line 9: events must be in the order"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_write("in/trace", cases[i].text);
        int code = program_shell("\"$T\" replay \"$D/in/trace\"");
        cr_assert(code == 2 && program_says(cases[i].says), "%s: %d: %s", cases[i].says, code,
                  program_output);
    }
}

/* A line has at most 398 characters, as the array for one and fgets leave room for. */
Test(replay, a_line_that_is_too_long_is_refused_as_such) {
    for (int length = 398; length <= 399; length++) {
        char text[1024];
        snprintf(text, sizeof text, HEAD "#%0*d\n", length - 1, 0);
        program_write("in/trace", text);
        int code = program_shell("\"$T\" replay \"$D/in/trace\"");
        bool is_refused = code == 2 && program_says("line 9: the line is too long");
        cr_assert(length == 399 ? is_refused : code == 0, "%d: %d: %s", length, code,
                  program_output);
    }
}

/* A free of a block that was allocated before the trace is left out, and its thread with it. */
Test(replay, threads_without_an_event_are_not_counted) {
    program_write("in/trace", "#tollens pool trace 1\n#lost 1\n"
                              "event,time_ns,thread,stream,kind,block,bytes,tag,took_ns\n"
                              "1,10,7,3,free,77,1000,0,5\n2,11,1,0,allocate,78,1000,0,5\n");
    cr_assert_eq(program_shell("\"$T\" replay \"$D/in/trace\""), 0, "%s", program_output);
    cr_assert(program_says("1 event of 1 thread and 0 streams"), "%s", program_output);
}

/* fgets does not say how long a line is, and the text of this one is empty. */
Test(replay, a_line_that_begins_with_a_byte_0_is_refused) {
    program_write("in/trace", "");
    int code = program_shell("printf '#tollens pool trace 1\\n\\000x\\n' >\"$D/in/trace\"; "
                             "\"$T\" replay \"$D/in/trace\"");
    cr_assert(code == 2 && program_says("line 2: the line is cut off"), "%s", program_output);
}

Test(replay, wrong_words_are_usage_errors) {
    static const char *const commands[] = {"replay",
                                           "replay \"$D/none\"",
                                           "replay \"$D\"",
                                           "replay a b",
                                           "replay a --profile fast",
                                           "replay a --profile",
                                           "replay a --frob",
                                           "replay a --limit x",
                                           "replay a --out",
                                           "replay a --profile driver --limit 5",
                                           "replay a --device gpu",
                                           "replay a --search soon",
                                           "replay a --search 5 --profile tight",
                                           "replay a --search 5 --out b",
                                           "replay \"$D/in/trace\" --out /dev/null/x"};
    char command[200];
    program_write("in/trace", HEAD);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(command, sizeof command, "\"$T\" %s", commands[i]);
        int code = program_shell(command);
        cr_assert(code == 2 && program_says("tollens: "), "%s: %d: %s", commands[i], code,
                  program_output);
    }
    cr_assert(program_shell("\"$T\" replay --help") == 0 && program_says("  replay TRACE"));
}
