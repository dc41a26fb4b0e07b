/*
 * --json: each command prints one object, whose members are those of hypotheses/JSON.md.
 */
#include "shell_scene.h"

#include "harness/session.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *manual;

static void begin(void) {
    char path[1100];
    program_begin();
    cr_assert_not_null(hyp_session_root());
    snprintf(path, sizeof path, "%s/hypotheses/JSON.md", hyp_session_root());
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    manual = calloc(1, 65536);
    cr_assert_not_null(manual);
    cr_assert(fread(manual, 1, 65535, file) > 1000);
    fclose(file);
}

static void end(void) {
    free(manual);
    program_end();
}

TestSuite(program_json, .init = begin, .fini = end);

static json_t *answer(const char *command, int code) {
    json_error_t error;
    int got = program_shell(command);
    cr_assert_eq(got, code, "%s: %d: %s", command, got, program_output);
    json_t *object = json_loads(program_output, 0, &error);
    cr_assert(json_is_object(object), "%s: %s: %s", command, error.text, program_output);
    return object;
}

/* The text under a heading of the manual, up to the next one; free it. */
static char *section_of(const char *heading) {
    char line[64];
    snprintf(line, sizeof line, "\n## %s\n", heading);
    const char *text = strstr(manual, line);
    cr_assert_not_null(text, "JSON.md has no '%s'", heading);
    text += strlen(line);
    const char *stop = strstr(text, "\n## ");
    return strndup(text, stop != NULL ? (size_t)(stop - text) : strlen(text));
}

/* The first member that the section does not name, in found; "": it names all. */
static void find_unnamed(const json_t *value, const char *path, const char *section, char *found,
                         size_t bytes) {
    char below[300], marked[320];
    const char *key;
    json_t *member;
    snprintf(marked, sizeof marked, "`%s.*`", path);
    if (found[0] != '\0' || (path[0] != '\0' && strstr(section, marked) != NULL)) return;
    if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
        snprintf(below, sizeof below, "%s[]", path);
        for (size_t i = 0; i < json_array_size(value); i++) {
            find_unnamed(json_array_get(value, i), below, section, found, bytes);
        }
        return;
    }
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member) {
            snprintf(below, sizeof below, "%s%s%s", path, path[0] != '\0' ? "." : "", key);
            find_unnamed(member, below, section, found, bytes);
        }
        return;
    }
    const bool is_empty = json_is_array(value) && json_array_size(value) == 0;
    snprintf(marked, sizeof marked, is_empty ? "`%s[" : "`%s`", path);
    if (is_empty && strstr(section, marked) != NULL) return;
    snprintf(marked, sizeof marked, "`%s`", path);
    if (strstr(section, marked) == NULL && strcmp(path, "schema") != 0 &&
        strcmp(path, "command") != 0) {
        snprintf(found, bytes, "%s", path);
    }
}

static void expect_named(const json_t *object, const char *heading) {
    char *section = section_of(heading), found[300] = "";
    find_unnamed(object, "", section, found, sizeof found);
    cr_assert_str_empty(found, "JSON.md does not name %s of %s", found, heading);
    free(section);
}

/* Runs a command, holds its answer against the manual, and returns it. */
static json_t *expect(const char *command, int code, const char *heading) {
    json_t *object = answer(command, code);
    cr_assert_eq(json_integer_value(json_object_get(object, "schema")), 1);
    cr_assert_str_eq(json_string_value(json_object_get(object, "command")), heading);
    expect_named(object, heading);
    return object;
}

static const char *text_at(const json_t *list, size_t i, const char *name) {
    return json_string_value(json_object_get(json_array_get(list, i), name));
}

Test(program_json, doctor_list_and_explain) {
    json_t *object = expect("\"$T\" doctor --json", 0, "doctor");
    const json_t *drivers = json_object_get(object, "drivers");
    cr_assert_eq(json_array_size(drivers), 2);
    cr_assert_str_eq(text_at(drivers, 1, "kind"), "soft");
    const json_t *devices = json_object_get(json_array_get(drivers, 1), "devices");
    cr_assert_eq(json_array_size(devices), 1);
    cr_assert(json_is_true(json_object_get(object, "tests_on_soft")));
    json_decref(object);

    object = expect("\"$T\" --json list", 0, "list");
    const json_t *claims = json_object_get(object, "claims");
    cr_assert_eq(json_array_size(claims), 13);
    cr_assert_str_eq(text_at(claims, 12, "id"), "H13");
    cr_assert(json_integer_value(json_object_get(json_array_get(claims, 2), "attacks")) > 5);
    json_decref(object);

    object = expect("\"$T\" explain H3 H12 --json", 0, "explain");
    claims = json_object_get(object, "claims");
    cr_assert_eq(json_array_size(claims), 2);
    cr_assert(json_array_size(json_object_get(json_array_get(claims, 0), "saboteurs")) >= 3);
    cr_assert(strlen(text_at(claims, 1, "falsified_if")) > 10);
    json_decref(object);
}

/* What a person reads goes to stderr, so that stdout can be read by a program. */
Test(program_json, run_gate_and_export) {
    json_t *object = expect(
        "\"$T\" run H8 H12 --filter 'pairs_in*' --json --out \"$D/run\" 2>\"$D/err\"", 3, "run");
    const json_t *results = json_object_get(object, "results");
    cr_assert_eq(json_array_size(json_object_get(results, "claims")), 1);
    cr_assert_eq(json_integer_value(json_object_get(object, "exit_code")), 3);
    json_decref(object);
    cr_assert(program_shell("cat \"$D/err\"") == 0 && program_says("H8  inconclusive") &&
                  program_says("Evidence: "),
              "%s", program_output);

    object = expect("\"$T\" run H8 --repeat 2 --json --out \"$D/twice\" 2>/dev/null", 0, "run");
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(object, "repeats"), "done")),
                 2);
    json_decref(object);
    object = expect("\"$T\" run H8 --list --json", 0, "run");
    cr_assert_eq(json_array_size(json_object_get(object, "attacks")), 3);
    json_decref(object);

    object = expect("\"$T\" gate \"$D/twice/repeat1\" --baseline \"$D/twice/repeat2\" --json", 0,
                    "gate");
    cr_assert_str_eq(text_at(json_object_get(object, "claims"), 0, "change"), "same");
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(object, "counts"), "same")), 1);
    json_decref(object);
    object = expect("\"$T\" export \"$D/twice/repeat1\" --json", 0, "export");
    cr_assert_eq(json_object_size(json_object_get(object, "run")) > 5, true);
    json_decref(object);
}

/* reports/fleet/merge_test.py holds the members against what was merged. */
Test(program_json, merge) {
    cr_assert(program_shell("for node in one two; do TOLLENS_NODE=$node \"$T\" run H8 "
                            "--out \"$D/$node\" || exit; done") == 0,
              "%s", program_output);
    json_t *object = expect("\"$T\" merge \"$D/one\" \"$D/two\" \"$D/two\" \"$D/three\" "
                            "--partial --no-png --json --out \"$D/fleet\"",
                            3, "merge");
    const json_t *machines = json_object_get(object, "machines"),
                 *claims = json_object_get(object, "claims");
    cr_assert_eq(json_array_size(machines), 2);
    cr_assert_str_eq(text_at(machines, 0, "node"), "one");
    cr_assert(strncmp(text_at(machines, 1, "uuid"), "GPU-", 4) == 0);
    cr_assert_eq(json_array_size(claims), 1);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(claims, 0), "survived")), 2);
    cr_assert_eq(json_array_size(json_object_get(object, "missing")), 1);
    cr_assert_eq(json_array_size(json_object_get(object, "duplicates")), 1);
    json_decref(object);
}

Test(program_json, threads_and_replay) {
    json_t *object = expect("\"$T\" threads 2 8 --json", 0, "threads");
    cr_assert_eq(json_integer_value(json_object_get(object, "violations")), 0);
    json_decref(object);
    object = expect("TOLLENS_SABOTAGE=total_unatomic \"$T\" threads 4 400 --json", 1, "threads");
    cr_assert(json_array_size(json_object_get(object, "messages")) > 0);
    json_decref(object);
}

Test(program_json, soft_keeps_stdout_for_the_program) {
    json_t *object =
        answer("\"$T\" soft --json -- sh -c 'echo theirs; exit 5' 2>&1 >\"$D/out\"", 5);
    expect_named(object, "soft");
    cr_assert_eq(json_integer_value(json_object_get(object, "program_exit_code")), 5);
    json_decref(object);
    cr_assert(program_shell("cat \"$D/out\"") == 0 && strcmp(program_output, "theirs\n") == 0);
}

Test(program_json, an_error_is_an_object_too) {
    static const char *const commands[] = {
        "\"$T\" rnu --json 2>/dev/null", "\"$T\" run --frob --json 2>/dev/null",
        "\"$T\" gate --json 2>/dev/null", "\"$T\" replay /nowhere --json 2>/dev/null",
        "\"$T\" model info /nowhere --json 2>/dev/null"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        json_t *object = answer(commands[i], 2);
        expect_named(object, "An error");
        cr_assert(strlen(json_string_value(json_object_get(object, "error"))) > 10 &&
                      strstr(json_string_value(json_object_get(object, "next")), "tollens") != NULL,
                  "%s: %s", commands[i], program_output);
        json_decref(object);
    }
}
