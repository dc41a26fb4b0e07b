/*
 * tollens run as people choose with it: claims, attacks, seeds, how often. What was not attacked is
 * never said to have survived.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(choice, .init = program_begin, .fini = program_end);

/* A member of the only claim of a results.json; json_decref the root. */
static const json_t *member(const json_t *results, const char *key) {
    const json_t *claims = json_object_get(results, "claims");
    cr_assert(json_array_size(claims) == 1, "%zu claims", json_array_size(claims));
    return json_object_get(json_array_get(claims, 0), key);
}

static void expect_text(const json_t *results, const char *key, const char *expected) {
    const char *text = json_string_value(member(results, key));
    cr_assert(text != NULL && strcmp(text, expected) == 0, "%s: %s", key, text ? text : "null");
}

Test(choice, what_would_run_can_be_listed) {
    cr_assert(program_shell("\"$T\" run --only H4,h7 --list") == 0, "%s", program_output);
    cr_assert(program_says("H4  a_launch_costs_little") && program_says("H7  the_fixtures") &&
                  !program_says("H3 "),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run --list --filter 'h4/A_LAUNCH*'") == 0, "%s",
              program_output);
    cr_assert_str_eq(program_output, "H4  a_launch_costs_little_more_than_the_drivers\n");
    cr_assert(program_shell("\"$T\" run --list --filter 'a_launch*'") == 0, "%s", program_output);
    cr_assert(program_says("H4  a_launch") && program_says("H11 a_launch") &&
                  !program_says("what_other_calls"),
              "%s", program_output);
}

Test(choice, a_run_can_be_traced) {
    int code = program_shell("\"$T\" run H4 H13 --seeds 1 --filter 'a_[kl]*' "
                             "--trace \"$D/trace.json\" --out \"$D/out\"");
    cr_assert(code == 3 || code == 0, "%d: %s", code, program_output);
    json_t *trace = program_json("trace.json");
    const json_t *events = json_object_get(trace, "traceEvents"), *event = NULL;
    size_t i = 0, lookups = 0, processes = 0;
    json_array_foreach(events, i, event) {
        const char *name = json_string_value(json_object_get(event, "name"));
        lookups += strcmp(name, "cuModuleGetFunction") == 0;
        processes += strcmp(name, "process_name") == 0;
        cr_assert(strcmp(name, "cuLaunchKernel") != 0, "a claim about time was traced");
    }
    cr_assert(lookups >= 8 && processes == 2, "%zu lookups of %zu processes", lookups, processes);
    json_decref(trace);
    cr_assert(program_shell("\"$T\" run H13 --trace \"$D/no/such\" --out \"$D/other\"") == 2 &&
                  program_says("the trace"),
              "%s", program_output);
}

/* Counts the events of a category, and of those the ones whose argument is this. */
static size_t count_events(const char *file, const char *category, const char *name,
                           const char *value, size_t *all) {
    json_t *trace = program_json(file);
    const json_t *event = NULL;
    size_t i = 0, found = 0;
    *all = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *its = json_string_value(json_object_get(event, "cat"));
        const json_t *arguments = json_object_get(event, "args");
        if (its == NULL || strcmp(its, category) != 0) continue;
        const char *text = json_string_value(json_object_get(arguments, name));
        ++*all;
        found += text != NULL && strcmp(text, value) == 0;
    }
    json_decref(trace);
    return found;
}

Test(choice, a_trace_is_as_exact_as_is_asked) {
    size_t each = 0, some = 0;
    int code = program_shell("\"$T\" run --filter 'H2/planes*' --seeds 1 --trace-share 1 "
                             "--trace \"$D/each.json\" --out \"$D/out1\"");
    cr_assert(code == 3, "%d: %s", code, program_output);
    cr_assert(count_events("each.json", "kernel", "end", "event", &each) == each && each > 0);
    code = program_shell("\"$T\" run --filter 'H2/planes*' --seeds 1 --trace-every=3 "
                         "--trace \"$D/some.json\" --out \"$D/out3\"");
    cr_assert(code == 3, "%d: %s", code, program_output);
    cr_assert(count_events("some.json", "kernel", "begin", "event", &some) == some);
    cr_assert(2 * some < each, "%zu, %zu", some, each);
    cr_assert(program_shell("grep -q -e --trace \"$D/out3/run.json\"") == 1, "%s", program_output);
}

Test(choice, a_trace_that_cannot_be_is_a_usage_error) {
    static const struct {
        const char *words, *says;
    } wrong[] = {
        {"--trace t --trace-every 0", "--trace-every must be a number from 1 to 1000000, not '0'"},
        {"--trace t --trace-every=x", "--trace-every must be"},
        {"--trace t --trace-every", "--trace-every must be"},
        {"--trace t --trace-share 65", "--trace-share must be a number from 1 to 64, not '65'"},
        {"--trace t --trace-share -1", "--trace-share must be"},
        {"--trace-every 4", "require --trace FILE"},
        {"--trace t --trace-every 4 --trace-share 2", "cannot be combined with --trace-share 2"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char command[256];
        snprintf(command, sizeof command, "\"$T\" run H1 %s --out \"$D/out\"", wrong[i].words);
        cr_assert(program_shell(command) == 2 && program_says(wrong[i].says), "%s", program_output);
    }
}

Test(choice, what_chooses_nothing_is_a_usage_error) {
    static const char *const wrong[] = {"--only H4,",
                                        "--only ,H4",
                                        "--only H4 --only H77",
                                        "--only ''",
                                        "--filter nobody",
                                        "--filter ''",
                                        "--filter",
                                        "--filter H4",
                                        "--only H3 --filter 'H4/*'",
                                        "--filter '*' --sabotage",
                                        "--repeat 0",
                                        "--repeat -1",
                                        "--repeat many",
                                        "--repeat 2x",
                                        "--repeat 99999999999",
                                        "--repeat",
                                        "--seed",
                                        "--seed -1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char command[128];
        snprintf(command, sizeof command, "\"$T\" run --out \"$D/out\" %s", wrong[i]);
        cr_assert(program_shell(command) == 2, "%s: %s", command, program_output);
        const char *next = strchr(program_output, '\n');
        cr_assert(next != NULL && strncmp(next + 1, "  next: ", 8) == 0 &&
                      strchr(next + 1, '\n') == next + strlen(next) - 1,
                  "%s: what is wrong, and what to do next: %s", command, program_output);
        cr_assert(program_shell("ls \"$D/out\"") != 0, "%s left a folder", command);
    }
    cr_assert(program_shell("\"$T\" run --filter nobody") == 2 && program_says("'nobody'"), "%s",
              program_output);
}

Test(choice, a_part_of_a_claim_does_not_survive) {
    int code = program_shell("\"$T\" run --filter 'H1/functions*' --out \"$D/out\"");
    cr_assert(code == 3, "%d: %s", code, program_output);
    cr_assert(
        program_says("0 survived, 0 falsified, 1 inconclusive, 0 not tested, 12 not chosen") &&
            program_says("the filter selected 1 of 10 attacks, and they found nothing"),
        "%s", program_output);
    json_t *results = program_json("out/results.json");
    expect_text(results, "verdict", "inconclusive");
    expect_text(results, "code", "part_not_tested");
    cr_assert(json_integer_value(member(results, "left_out")) == 9);
    cr_assert(json_integer_value(member(results, "samples")) > 0);
    json_decref(results);
    json_t *run = program_json("out/run.json");
    cr_assert_str_eq(json_string_value(json_object_get(run, "filter")), "H1/functions*");
    json_decref(run);
    cr_assert(program_shell("ls \"$D/out/H1/attacks\"") == 0);
    cr_assert_str_eq(program_output, "functions_that_are_not_there_are_not_found.json\n");
    code = program_shell("TOLLENS_FILTER='H1/functions*' \"$T\" run --inconclusive=warn --out "
                         "\"$D/warn\"");
    cr_assert(code == 0 && program_says("1 inconclusive"), "%d: %s", code, program_output);
}

Test(choice, a_filter_that_leaves_nothing_out_changes_nothing) {
    int code = program_shell("\"$T\" run --only H9 --filter '*' --out \"$D/out\"");
    cr_assert(code == 0 && program_says("1 survived"), "%d: %s", code, program_output);
    json_t *results = program_json("out/results.json");
    cr_assert(json_integer_value(member(results, "left_out")) == 0);
    json_decref(results);
}

Test(choice, a_repeated_run_counts_its_verdicts) {
    int code = program_shell("\"$T\" run --only H9,H11 --repeat 2 --out \"$D/out\"");
    cr_assert(code == 0 && program_says("2 of 2 runs") && !program_says("not always"), "%d: %s",
              code, program_output);
    json_t *repeats = program_json("out/repeats.json");
    const json_t *claims = json_object_get(repeats, "claims");
    cr_assert(json_array_size(claims) == 2);
    cr_assert(json_integer_value(json_object_get(json_array_get(claims, 0), "survived")) == 2);
    cr_assert(json_integer_value(json_object_get(json_array_get(claims, 1), "not_tested")) == 2);
    cr_assert(json_integer_value(json_object_get(repeats, "done")) == 2);
    json_decref(repeats);
    json_decref(program_json("out/repeat1/results.json"));
    cr_assert(program_shell("\"$T\" gate \"$D/out/repeat2\" --baseline \"$D/out/repeat1\"") == 0,
              "%s", program_output);
}

/* One counterexample is enough, whichever attacks there are besides. */
Test(choice, a_part_of_a_claim_can_fall) {
    int code = program_shell("\"$T\" run --filter 'H1/functions*' --under function_lost --out "
                             "\"$D/out\"");
    cr_assert(code == 3 || code == 1, "%d: %s", code, program_output);
    code = program_shell("\"$T\" run --filter 'H1/every_module*' --under function_lost --out "
                         "\"$D/fell\"");
    cr_assert(code == 1 && program_says("1 falsified"), "%d: %s", code, program_output);
}

/* What H4 records beside its claim decides nothing: alone, it is no fault of the harness. */
Test(choice, a_timed_claim_without_its_comparison_is_open) {
    int code = program_shell("\"$T\" run --filter 'H4/what*' --out \"$D/out\"");
    cr_assert(code == 3, "%d: %s", code, program_output);
    json_t *results = program_json("out/results.json");
    expect_text(results, "code", "part_not_tested");
    json_decref(results);
}

/* The seeds of a run: the requested number, each with its evidence. */
Test(choice, a_claim_is_attacked_with_each_seed) {
    int code = program_shell("\"$T\" run H9 H4 --seed 5 --seeds 3 --inconclusive=warn "
                             "--out \"$D/out\"");
    cr_assert(code == 0 && program_says("seeds 5 to 7"), "%d: %s", code, program_output);
    for (unsigned seed = 5; seed <= 7; seed++) {
        char path[100];
        snprintf(path, sizeof path, "out/H9/%s%sattacks/during_copies_the_copies_arrive.json",
                 seed == 6   ? "seed6"
                 : seed == 7 ? "seed7"
                             : "",
                 seed > 5 ? "/" : "");
        json_t *record = program_json(path);
        cr_assert(json_integer_value(json_object_get(record, "seed")) == seed, "%s", path);
        json_decref(record);
    }
    json_t *verdict = program_json("out/H9/verdict.json"), *run = program_json("out/run.json");
    cr_assert(json_integer_value(json_object_get(verdict, "seeds")) == 3);
    cr_assert(json_array_size(json_object_get(verdict, "attacks")) % 3 == 0);
    cr_assert(json_integer_value(json_object_get(run, "seeds")) == 3);
    json_decref(verdict);
    json_decref(run);
    cr_assert(program_shell("ls -d \"$D\"/out/H4/seed* 2>/dev/null") != 0,
              "a claim about time has processes, not seeds: %s", program_output);
    code = program_shell("\"$T\" run H9 --under alloc_leak --seed 8 --seeds 2 --out \"$D/fell\"");
    cr_assert(code == 1 && program_says("worst seed 8") && program_says("seed 8: "), "%d: %s", code,
              program_output);
}

Test(choice, a_seed_that_is_named_is_the_only_one) {
    int code = program_shell("\"$T\" run H9 --seed 5 --out \"$D/out\"");
    cr_assert(code == 0 && program_says("seed 5\n"), "%d: %s", code, program_output);
    code = program_shell("unset TOLLENS_SEED; \"$T\" run H9 --out \"$D/two\"");
    cr_assert(code == 0 && program_says("seeds 1 to 2\n"), "%d: %s", code, program_output);
    code = program_shell("\"$T\" run H2 --seed 9223372036854775807 --seeds 2");
    cr_assert(code == 2 && program_says("go beyond the largest seed"), "%d: %s", code,
              program_output);
    cr_assert(program_shell("\"$T\" run H2 --seeds 0") == 2 &&
                  program_says("--seeds must be a number from 1 to 1000"),
              "%s", program_output);
}

Test(choice, a_seed_is_kept) {
    int code = program_shell("\"$T\" run --only H9 --seed 9223372036854775807 --out \"$D/out\"");
    cr_assert(code == 0 && program_says("seed 9223372036854775807"), "%d: %s", code,
              program_output);
    cr_assert(program_shell("\"$T\" run --only H9 --seed 9223372036854775808") == 2 &&
                  program_says("--seed must be a number"),
              "%s", program_output);
}
