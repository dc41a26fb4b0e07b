/*
 * The program on a terminal, in a pipe, and where it has to complain.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(program_terminal, .init = program_begin, .fini = program_end);

/* util-linux's script gives a command a terminal of its own. */
#define ON_A_TERMINAL(environment, command)                                                        \
    environment " script -qec '" command "' /dev/null </dev/null"

Test(program_terminal, colours_are_for_terminals_alone) {
    static const char red[] = "\033[1;31mfalsified", plain[] = "H3  falsified";
    static const struct {
        const char *command;
        bool colour;
    } cases[] = {
        {ON_A_TERMINAL("TERM=xterm NO_COLOR=",
                       "\"$T\" run H3 --filter small* --under copy_flip_bit --out \"$D/a\""),
         true},
        {ON_A_TERMINAL("TERM=xterm NO_COLOR=1",
                       "\"$T\" run H3 --filter small* --under copy_flip_bit --out \"$D/b\""),
         false},
        {ON_A_TERMINAL("TERM=dumb",
                       "\"$T\" run H3 --filter small* --under copy_flip_bit --out \"$D/c\""),
         false},
        {"TERM=xterm \"$T\" run H3 --filter 'small*' --under copy_flip_bit --out \"$D/d\"", false}};
    if (program_shell("command -v script") != 0) cr_skip_test("there is no script(1) here");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = program_shell(cases[i].command);
        cr_assert(code == 1, "%d: %s", code, program_output);
        cr_assert(program_says(cases[i].colour ? red : plain) &&
                      program_says("\033[1;31m") == cases[i].colour,
                  "case %zu: %s", i, program_output);
    }
}

Test(program_terminal, a_pipe_gets_a_line_a_claim) {
    int code = program_shell("\"$T\" run H1 H8 --sabotage --out \"$D/out\"");
    cr_assert(code == 0, "%d: %s", code, program_output);
    size_t lines = 0;
    for (const char *at = program_output; (at = strchr(at, '\n')) != NULL; at++) lines++;
    cr_assert_eq(lines, 8, "what runs, two claims, what they notice, the counts: %s",
                 program_output);
    code = program_shell("\"$T\" run H8 --verbose --sabotage --out \"$D/more\"");
    cr_assert(code == 0 && program_says("saboteur pool_no_reuse") &&
                  program_says("H8  pairs_in_any_order"),
              "%s", program_output);
}

Test(program_terminal, a_red_line_has_the_way_to_look_closer) {
    char *way, *end;
    int code = program_shell("\"$T\" run H3 --seed 7 --under copy_flip_bit --out \"$D/out\"");
    cr_assert(code == 1, "%d: %s", code, program_output);
    way = strstr(program_output, "look closer: ");
    cr_assert(way != NULL && strstr(way, "/tollens run H3 --filter ") != NULL, "%s",
              program_output);
    way += strlen("look closer: ");
    end = strchr(way, '\n');
    *end = '\0';
    cr_assert(strstr(way, " --seed 7 --device soft --under 'copy_flip_bit'") != NULL, "%s", way);
    /* The file that it names is there, and the command shows the same again. */
    char file[1100], command[2300];
    cr_assert(sscanf(end + 1, " %1000s", file) == 1);
    snprintf(command, sizeof command,
             "%s --out \"$D/again\" >/dev/null 2>&1; code=$?; "
             "test -s '%s' && exit $code",
             way, file);
    cr_assert_eq(program_shell(command), 1, "%s: %s", command, program_output);
}

Test(program_terminal, what_survived_has_no_way) {
    cr_assert(program_shell("\"$T\" run H8 --out \"$D/out\"") == 0 && !program_says("look closer"),
              "%s", program_output);
}

Test(program_terminal, an_error_says_what_to_do_next) {
    static const struct {
        const char *command, *next;
    } cases[] = {{"\"$T\" rnu", "tollens run\n"},
                 {"\"$T\" doctr", "tollens doctor\n"},
                 {"\"$T\" frobnicate", "tollens help\n"},
                 {"\"$T\" run --frob", "tollens run --help\n"},
                 {"\"$T\" explain H77", "tollens list\n"},
                 {"\"$T\" explain", "tollens list\n"},
                 {"\"$T\" gate", "tollens gate --help\n"},
                 {"\"$T\" gate \"$D\" --baseline \"$D\"", "tollens gate --help\n"},
                 {"\"$T\" export \"$D\"", "tollens export --help\n"},
                 {"\"$T\" threads", "tollens threads --help\n"},
                 {"\"$T\" model frob", "tollens model --help\n"},
                 {"\"$T\" model run", "tollens model run --help\n"},
                 {"\"$T\" model tokenize", "tollens model tokenize --help\n"},
                 {"\"$T\" soft", "tollens soft --help\n"},
                 {"\"$T\" soft -- /nowhere/program", "command -v /nowhere/program"},
                 {"\"$T\" --plugin /nowhere.so list", "tollens help\n"},
                 {"TOLLENS_LIBCUDA=/nowhere \"$T\" run H1 --device cuda", "tollens doctor\n"},
                 {"touch \"$D/file\"; \"$T\" run H8 --out \"$D\"", "tollens run --out DIR"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = program_shell(cases[i].command);
        const char *next = strstr(program_output, "\n  next: ");
        cr_assert(code == 2 && next != NULL && strstr(next, cases[i].next) != NULL, "%s: %d: %s",
                  cases[i].command, code, program_output);
    }
    /* Who asks for help, or gets an answer, needs no next step. */
    cr_assert(program_shell("\"$T\" list") == 0 && !program_says("next: "));
}

Test(program_terminal, a_mistyped_option_is_told_the_nearest) {
    static const struct {
        const char *words, *meant;
    } cases[] = {{"rnu", "unknown command 'rnu'; did you mean run?\n"},
                 {"run --quik", "run has no option --quik; did you mean --quick?\n"},
                 {"run --jsno", "did you mean --json?\n"}, /* every command has it */
                 {"gate --basline x", "did you mean --baseline?\n"},
                 {"replay --profil", "did you mean --profile?\n"},
                 {"soft --memroy 1 -- true", "did you mean --memory?\n"},
                 {"guard --lnes -- true", "did you mean --lines?\n"},
                 {"model rnu", "model has no command rnu; did you mean run?\n"},
                 {"model tokenise", "did you mean tokenize?\n"},
                 {"model info --jsn a", "model info has no option --jsn; did you mean --json?\n"},
                 {"model run a --tmp 1", "model run has no option --tmp; did you mean --temp?\n"},
                 {"model run a --top-n=1", "did you mean --top-k?\n"},
                 {"model bench a --cahce x", "did you mean --cache?\n"},
                 {"model tokenize a --id", "did you mean --ids?\n"},
                 {"model run a --frobnicate", "has no option --frobnicate\n"},
                 {"soft --memory", "the program follows --\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[100];
        snprintf(command, sizeof command, "\"$T\" %s", cases[i].words);
        cr_assert(program_shell(command) == 2 && program_says(cases[i].meant), "%s: %s", command,
                  program_output);
    }
}

/* ci/install and the packages have the version of the page. */
TestSuite(version, .init = program_begin, .fini = program_end);

Test(version, is_that_of_the_newest_changes) {
    cr_assert(
        program_shell("v=$(sed -n 's/^## \\([0-9.]*\\).*/\\1/p' ci/CHANGELOG.md | head -n 1); "
                      "test -n \"$v\" && test \"$(\"$T\" --version)\" = \"tollens $v\"") == 0,
        "%s", program_output);
    cr_assert(program_shell("\"$T\" --help") == 0 && program_says("tollens --version prints"), "%s",
              program_output);
    cr_assert(program_shell("\"$T\" --version >/dev/full") == 2, "%s", program_output);
}
