/*
 * tollens run --limits: what it prints, what it writes, and what it refuses.
 */
#include "harness/session.h"
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(limits, .init = program_begin, .fini = program_end);

static const json_t *inner(const json_t *object, const char *first, const char *second) {
    return json_object_get(json_object_get(object, first), second);
}

/* H8 is quick, and its limit does not depend on chance: the pool needs 3 of at most 9 driver
 * allocations, so 128 / 16 more are too many, and 128 / 32 are not. */
Test(limits, a_claim_would_have_noticed_what_it_noticed, .timeout = 300) {
    int code = program_shell("\"$T\" run H8 --limits --out \"$D/out\"");
    cr_assert(code == 0 && program_says("1 survived"), "%d: %s", code, program_output);
    cr_assert(program_says("H8  would have noticed: one block in 16 of a pool is a driver"), "%s",
              program_output);
    cr_assert(program_says("not noticed: one block in 24 of a pool is a driver allocation"), "%s",
              program_output);
    json_t *results = program_json("out/results.json");
    const json_t *limits =
        json_object_get(json_array_get(json_object_get(results, "claims"), 0), "detection_limits");
    cr_assert(json_array_size(limits) == 1);
    const json_t *limit = json_array_get(limits, 0);
    cr_assert_str_eq(json_string_value(json_object_get(limit, "fault")), "pool_own_one_in");
    cr_assert_str_eq(json_string_value(inner(limit, "noticed", "saboteur")), "pool_own_one_in=16");
    cr_assert_str_eq(json_string_value(inner(limit, "noticed", "words")),
                     "one block in 16 of a pool is a driver allocation");
    cr_assert_str_eq(json_string_value(inner(limit, "missed", "saboteur")), "pool_own_one_in=24");
    json_decref(results);
    /* Two seeds noticed the one, and the first did not notice the other. */
    static const char *const files[] = {"out/H8/limits/pool_own_one_in=16/seed1.json",
                                        "out/H8/limits/pool_own_one_in=16/seed2.json",
                                        "out/H8/limits/pool_own_one_in=24/seed1.json"};
    for (int i = 0; i < 3; i++) {
        json_t *step = program_json(files[i]);
        cr_assert(json_is_boolean(json_object_get(step, "noticed")) &&
                  json_is_true(json_object_get(step, "noticed")) == (i < 2));
        json_decref(step);
    }
    cr_assert(program_shell("test -e \"$D/out/H8/limits/pool_own_one_in=24/seed2.json\"") == 1);
    cr_assert(program_shell("cat \"$D/out/summary.md\"") == 0 &&
                  program_says("## Detection limits") &&
                  program_says("* H8 would have noticed: one block in 16 of a pool is a driver "
                               "allocation; not noticed: one block in 24"),
              "%s", program_output);
    char line[400];
    snprintf(line, sizeof line,
             "cd '%s' && \"$(cat build/python)\" -m reports.schema "
             "hypotheses/results.schema.json \"$D/out/results.json\"",
             hyp_session_root());
    code = program_shell(line);
    cr_assert(code == 0, "%d: %s", code, program_output);
}

Test(limits, severity_and_limits_go_together_and_under_does_not, .timeout = 300) {
    int code = program_shell("\"$T\" run H8 --sabotage --limits --full --out \"$D/out\"");
    cr_assert(code == 0 && program_says("severity 100 % (2 of 2)") &&
                  program_says("H8  would have noticed: "),
              "%d: %s", code, program_output);
    code = program_shell("\"$T\" run H8 --limits --under launch_drop --out \"$D/two\"");
    cr_assert(code == 2 && program_says("--under and --limits cannot be combined"), "%d: %s", code,
              program_output);
    code = program_shell("\"$T\" run H8 --out \"$D/plain\"");
    cr_assert(code == 0 && !program_says("noticed"), "%d: %s", code, program_output);
    json_t *results = program_json("plain/results.json");
    cr_assert(json_is_null(json_object_get(json_array_get(json_object_get(results, "claims"), 0),
                                           "detection_limits")));
    json_decref(results);
}

/* Ladders that are searched side by side give the same limits, in the same order. */
Test(limits, jobs_change_no_limit, .timeout = 300) {
    char command[300];
    for (int jobs = 1; jobs <= 3; jobs += 2) {
        snprintf(command, sizeof command,
                 "\"$T\" run H7 H8 H9 --limits --jobs %d --out \"$D/jobs%d\" >\"$D/said\" && "
                 "grep 'noticed' \"$D/said\" >\"$D/lines%d\"",
                 jobs, jobs, jobs);
        int code = program_shell(command);
        cr_assert(code == 0, "%d: %s", code, program_output);
    }
    cr_assert(program_shell("cmp \"$D/lines1\" \"$D/lines3\" && wc -l <\"$D/lines1\"") == 0, "%s",
              program_output);
    cr_assert(program_says("8\n"), "%s", program_output);
}

/* What falls without a fault would seem to notice the finest one. */
Test(limits, a_falsified_claim_has_none, .timeout = 300) {
    program_write("faults.json",
                  "{\"rules\": [{\"function\": \"cuModuleGetFunction\", \"every\": 5, "
                  "\"action\": \"return\", \"code\": 500}]}\n");
    int code = program_shell("TOLLENS_SOFT_FAULTS=\"$D/faults.json\" \"$T\" run H1 --limits "
                             "--out \"$D/out\"");
    cr_assert(code == 1 && program_says("falsified") && !program_says("noticed"), "%d: %s", code,
              program_output);
    json_t *verdict = program_json("out/H1/verdict.json");
    cr_assert(json_is_null(json_object_get(verdict, "detection_limits")));
    json_decref(verdict);
}

/* Where nothing is noticed, that is said of the grossest fault. */
Test(limits, a_filtered_claim_may_notice_nothing, .timeout = 300) {
    int code = program_shell("\"$T\" run --filter 'H8/without*' --limits --inconclusive=warn "
                             "--out \"$D/out\"");
    cr_assert(code == 0 && program_says("H8  would not have noticed: one block in 8 of a pool"),
              "%d: %s", code, program_output);
    cr_assert(program_shell("cat \"$D/out/summary.md\"") == 0 &&
                  program_says("* H8 would not have noticed: one block in 8 of a pool"),
              "%s", program_output);
}

Test(limits, explain_names_the_ladders) {
    cr_assert(program_shell("\"$T\" explain H2") == 0 &&
                  program_says("launch_drop_one_in=1000,10000") &&
                  program_says("one launch in this many is skipped"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run --help") == 0 && program_says("--limits"));
}
