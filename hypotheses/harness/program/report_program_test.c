/*
 * tollens report and compare: the program finds the Python that writes pages, and its help names
 * what that takes.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(report_program, .init = program_begin, .fini = program_end, .timeout = 300);

/* Goal: what a run left is a page after one command, and two runs are another, from any folder. */
Test(report_program, pages_are_written_and_named) {
    cr_assert(program_shell("\"$T\" run H1 --filter 'functions*' --out \"$D/run\"") == 3, "%s",
              program_output);
    cr_assert(program_shell("\"$T\" report \"$D/run\" --no-png --out \"$D/a page\"") == 0, "%s",
              program_output);
    cr_assert(program_says("/a page/report.html"), "%s", program_output);
    cr_assert(program_shell("grep -q 'id=\"H1\"' \"$D/a page/report.html\"") == 0);
    cr_assert(program_shell("cd / && \"$T\" report \"$D/run\" --no-png --json --out \"$D/b\"") ==
              0);
    cr_assert(program_says("\"command\": \"report\"") && program_says("b/report.html\""), "%s",
              program_output);
    /* A run of some attacks is no baseline: one sentence, and the exit code of an error. */
    cr_assert(program_shell("\"$T\" compare \"$D/run\" \"$D/run\" --no-png --out \"$D/c\"") == 2);
    cr_assert(program_says("ran only the attacks"), "%s", program_output);
    cr_assert(program_shell("\"$T\" compare \"$D/run\" \"$D/run\" --across --no-png --out "
                            "\"$D/c\" && test -s \"$D/c/compare.html\"") == 0,
              "%s", program_output);
}

/* Goal: without Python's part a user reads what to do. */
Test(report_program, without_the_package_a_sentence_says_what_is_missing) {
    const char *command = "mkdir -p \"$D/away/fixtures/ptx\" && cp \"$T\" \"$D/away\" && cd / && "
                          "TOLLENS_ROOT=\"$D/away\" \"$D/away/tollens\" report \"$D\"";
    cr_assert(program_shell(command) == 2, "%s", program_output);
    cr_assert(program_says("need the Python package tollens") &&
                  program_says("next: pip install tollens"),
              "%s", program_output);
}

/* Goal: the help, from which the manual is made, names the options that Python takes, no other. */
Test(report_program, the_help_names_each_option) {
    static const char *const names[] = {"report", "compare", "merge"};
    for (size_t i = 0; i < 3; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "python=$(cat build/python); options() { grep -oE -- '--[a-z]+[a-z-]*' | "
                 "grep -vE -- '--(help|json|plugin)$' | sort -u; }; "
                 "\"$T\" help %s | sed '/every command/,$d' | options >\"$D/told\"; "
                 "\"$python\" -m reports %s --help | options >\"$D/taken\"; "
                 "test -s \"$D/told\" && diff \"$D/told\" \"$D/taken\"",
                 names[i], i == 0 ? "" : names[i]);
        cr_assert(program_shell(command) == 0, "%s: %s", names[i], program_output);
    }
}
