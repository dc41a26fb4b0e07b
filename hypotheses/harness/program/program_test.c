/*
 * The program as its users meet it: what it prints, what it writes, and its exit codes.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(program, .init = program_begin, .fini = program_end);

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

Test(program, wrong_words_are_usage_errors) {
    static const char *const commands[] = {
        "\"$T\"",
        "\"$T\" frob",
        "\"$T\" run H0",
        "\"$T\" run --frob",
        "\"$T\" run --device",
        "\"$T\" run --device gpu",
        "\"$T\" run --out",
        "\"$T\" run --under",
        "\"$T\" run --under nobody",
        "\"$T\" run --under launch_delay_us",
        "\"$T\" run --under launch_drop --sabotage",
        "\"$T\" run --seed many",
        "\"$T\" run --inconclusive=maybe",
        "\"$T\" gate",
        "\"$T\" gate /tmp",
        "\"$T\" gate /tmp --baseline",
        "\"$T\" gate /tmp /tmp --baseline /tmp",
        "\"$T\" gate /tmp --baseline /tmp --frob",
        "\"$T\" gate /nowhere --baseline /nowhere",
        "\"$T\" run --device soft --require-gpu",
        "\"$T\" explain",
        "\"$T\" explain H77",
        "\"$T\" list H1",
        "\"$T\" doctor now",
        "TOLLENS_MODE=slow \"$T\" run H1",
        "TOLLENS_SOFT_LIBRARY=/nowhere \"$T\" run H1",
        "TOLLENS_ROOT=/nowhere \"$T\" run H1",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int code = program_shell(commands[i]);
        cr_assert(code == 2, "%s: %d: %s", commands[i], code, program_output);
        cr_assert(strlen(program_output) > 10, "%s: it says nothing", commands[i]);
    }
    cr_assert(program_shell("\"$T\" --help") == 0 && program_says("exit codes"));
    cr_assert(program_shell("\"$T\" list --help") == 0 && program_says("exit codes"));
    /* The help of one command has that command's options and those of every command. */
    cr_assert(!program_says("--baseline") && program_says("usage: tollens\n  list "));
    for (int i = 0; i < 2; i++) {
        cr_assert(program_shell(i == 0 ? "\"$T\" gate --help" : "\"$T\" help gate") == 0);
        cr_assert(program_says("--across") && program_says("--plugin") &&
                      !program_says("--sabotage") && !program_says("--format"),
                  "%s", program_output);
    }
    const char *const names[] = {"threads", "crowd"}; /* the second is its old name */
    for (size_t i = 0; i < 2; i++) {
        char line[100];
        snprintf(line, sizeof line, "\"$T\" %s --help", names[i]);
        cr_assert(program_shell(line) == 0 && program_says("threads THREADS") &&
                      !program_says("crowd") && !program_says("--baseline"),
                  "%s", program_output);
        snprintf(line, sizeof line, "TOLLENS_DEVICE=soft \"$T\" %s 2 8", names[i]);
        cr_assert(program_shell(line) == 0, "%s: %s", line, program_output);
        snprintf(line, sizeof line, "\"$T\" %s 0 8", names[i]);
        cr_assert(program_shell(line) == 2 && program_says("threads requires a number"), "%s",
                  program_output);
    }
    cr_assert(program_shell("\"$T\" nonsense --help") == 0 && program_says("--sabotage"));
    cr_assert(program_shell("\"$T\" '' --help") == 0 && program_says("--sabotage"));
}

Test(program, without_a_gpu_cuda_is_one_clear_sentence) {
    int code =
        program_shell("TOLLENS_LIBCUDA=/nowhere/libcuda.so.1 TOLLENS_DEVICE=cuda \"$T\" run H1");
    cr_assert(code == 2, "%d: %s", code, program_output);
    cr_assert(program_says("no cuda device") && program_says("/nowhere/libcuda.so.1"), "%s",
              program_output);
    cr_assert(strstr(program_output, "\n  next: ") == strchr(program_output, '\n') &&
                  program_says("tollens doctor\n"),
              "one line, and what to do: %s", program_output);
    code = program_shell("TOLLENS_LIBCUDA=/nowhere/libcuda.so.1 TOLLENS_DEVICE=auto \"$T\" run H1 "
                         "--require-gpu");
    cr_assert(code == 2, "%d: %s", code, program_output);
}

Test(program, a_claim_survives_and_its_evidence_is_there) {
    int code = program_shell("\"$T\" run H9 H11 --out \"$D/out\"");
    cr_assert(code == 0, "%d: %s", code, program_output);
    cr_assert(program_says("1 survived, 0 falsified, 0 inconclusive, 1 not tested"), "%s",
              program_output);
    cr_assert(program_says("needs a GPU (mechanics exercised)"), "%s", program_output);
    json_t *results = program_json("out/results.json");
    const json_t *claims = json_object_get(results, "claims");
    cr_assert(json_array_size(claims) == 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 0), "verdict")),
                     "survived");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 1), "verdict")),
                     "not_tested");
    json_decref(results);
    static const char *const files[] = {"out/machine.json", "out/run.json", "out/H9/claim.json",
                                        "out/H9/verdict.json", "out/H11/verdict.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) json_decref(program_json(files[i]));
    code = program_shell("\"$T\" run H9 --out \"$D/out\"");
    cr_assert(code == 2 && program_says("is not empty"), "evidence was written over: %s",
              program_output);
}

/* Evidence is published: nothing in it may tell where it lay on this machine. */
Test(program, evidence_does_not_say_where_it_lies) {
    static const char *const ways[] = {"--out \"$D/out\" --seed=7", "--seed=7 --out=\"$D/out\""};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char command[256];
        snprintf(command, sizeof command,
                 "\"$T\" run H9 --quick %s || exit 9; grep -rl \"$D\" \"$D/out\"", ways[i]);
        cr_assert(program_shell(command) == 1, "%s", program_output);
        json_t *run = program_json("out/run.json");
        cr_assert_str_eq(text_of(run, "command"), "tollens run H9 --quick --seed=7");
        json_decref(run);
        cr_assert(program_shell("rm -r \"$D/out\"") == 0, "%s", program_output);
    }
}

/* Who waits for verdicts does not wait for saboteurs. */
Test(program, all_verdicts_come_before_the_first_saboteur) {
    int code = program_shell("\"$T\" run H8 H9 --sabotage --out \"$D/out\"");
    const char *last = strstr(program_output, "H9  survived"),
               *first = strstr(program_output, "H8  severity 100 % (2 of 2)");
    cr_assert(code == 0 && last != NULL && first != NULL && last < first, "%d: %s", code,
              program_output);
    json_t *verdict = program_json("out/H8/verdict.json");
    cr_assert(json_integer_value(json_object_get(json_object_get(verdict, "severity"), "of")) == 2);
    json_decref(verdict);
}

Test(program, sabotage_is_noticed) {
    int code = program_shell("\"$T\" run H1 --sabotage --out \"$D/out\"");
    cr_assert(code == 0 && program_says("severity 100 % (3 of 3)"), "%d: %s", code, program_output);
    json_t *verdict = program_json("out/H1/sabotage/jit_log_lost/attacks/"
                                   "broken_ptx_is_refused_with_the_jits_words.json");
    cr_assert(json_integer_value(json_object_get(verdict, "violations")) > 0);
    json_decref(verdict);
    /* That was enough: the attacks before it ran, and those after it did not. */
    cr_assert(program_shell("cd \"$D/out/H1/sabotage/jit_log_lost/attacks\" && ls") == 0);
    cr_assert(program_says("a_nul_inside") && !program_says("truncated_ptx"), "%s", program_output);
    cr_assert(program_shell("ls \"$D/out/H1/attacks\"") == 0 && program_says("truncated_ptx"));
}

/* Of an attack's evidence in the folder. */
static long long count_in(const char *attack, const char *key) {
    json_t *record = program_json(attack);
    const json_t *count = json_object_get(record, key);
    cr_assert(json_is_integer(count), "%s has no %s", attack, key);
    const long long value = json_integer_value(count);
    json_decref(record);
    return value;
}

/* Goal: an attack under a saboteur ends with its first violation, and without one it goes on. */
Test(program, the_first_violation_is_enough_under_a_saboteur) {
    static const char *const saboteurs[] = {"launch_drop", "launch_twice"};
    static const char attack[] = "attacks/every_block_size_runs_every_thread.json";
    char path[200];
    int code = program_shell("\"$T\" run H2 --sabotage --out \"$D/out\"");
    cr_assert(code == 0 && program_says("severity 100 % (3 of 3)"), "%d: %s", code, program_output);
    snprintf(path, sizeof path, "out/H2/%s", attack);
    const long long all = count_in(path, "samples");
    for (size_t i = 0; i < sizeof saboteurs / sizeof saboteurs[0]; i++) {
        snprintf(path, sizeof path, "out/H2/sabotage/%s/%s", saboteurs[i], attack);
        cr_assert(count_in(path, "violations") == 1, "%s: it went on", saboteurs[i]);
        cr_assert(count_in(path, "samples") < all, "%s: it went on", saboteurs[i]);
    }
    code = program_shell("\"$T\" run --filter 'H2/every_block*' --under launch_twice "
                         "--out \"$D/under\"");
    cr_assert(code == 1 && program_says("1 falsified"), "%d: %s", code, program_output);
    snprintf(path, sizeof path, "under/H2/%s", attack);
    cr_assert(count_in(path, "violations") > 1 && count_in(path, "samples") == all);
}

/* Goal: H4 comes out honestly, whatever this machine is like. On a busy one it may be inconclusive,
 * for a reason that has a code; it is never falsified, and under a saboteur it never survives where
 * it must not. */
Test(program, a_timed_claim_has_an_interval_or_a_reason, .timeout = 300) {
#ifdef PROGRAM_IS_SANITIZED
    /* The sanitizers make the interposer's own part half a microsecond, so what is planted as just
     * inside the threshold lies outside. */
    cr_skip_test("times under the sanitizers are not those of the runtime");
#endif
    int code = program_shell("\"$T\" run H4 --sabotage --out \"$D/out\"");
    cr_assert(code == 0 || code == 3, "%d: %s", code, program_output);
    json_t *verdict = program_json("out/H4/verdict.json");
    const char *kind = text_of(verdict, "verdict"), *why = text_of(verdict, "code");
    bool could_not_tell = strncmp(why, "unfit_", 6) == 0 || strcmp(why, "undecided") == 0 ||
                          strcmp(why, "unconfirmed") == 0;
    cr_assert(strcmp(kind, "survived") == 0 ||
                  (strcmp(kind, "inconclusive") == 0 && could_not_tell),
              "%s: %s", kind, program_output);
    double low = json_number_value(json_object_get(verdict, "low")),
           effect = json_number_value(json_object_get(verdict, "effect")),
           high = json_number_value(json_object_get(verdict, "high"));
    cr_assert(low <= effect && effect <= high && high > low, "%g %g %g", low, effect, high);
    cr_assert(json_integer_value(json_object_get(verdict, "processes")) == 1);
    json_t *borderline = json_object_get(verdict, "borderline");
    cr_assert(json_integer_value(json_object_get(borderline, "right")) == 2, "%s", program_output);
    json_decref(verdict);
    json_t *attack =
        program_json("out/H4/attacks/a_launch_costs_little_more_than_the_drivers.json");
    cr_assert(json_array_size(json_object_get(attack, "effects")) == 3);
    cr_assert(json_is_object(json_object_get(attack, "conditions")));
    json_decref(attack);
    cr_assert(program_shell("cat \"$D\"/out/H4/a_launch*.launch_4_arguments.csv | wc -l") == 0);
    cr_assert(strtol(program_output, NULL, 10) >= 51, "%s blocks were kept", program_output);
}

/* Goal: a claim about a number says the number, and on a small device that its walk was scaled. */
Test(program, a_measured_claim_says_what_it_measured, .timeout = 120) {
    int code = program_shell("TOLLENS_SOFT_MEMORY=8G \"$T\" run H12 --out \"$D/out\"");
    cr_assert(code == 0 && program_says(" ratio in ") && program_says(", scaled"), "%d: %s", code,
              program_output);
    json_t *verdict = program_json("out/H12/verdict.json");
    double effect = json_number_value(json_object_get(verdict, "effect"));
    cr_assert(effect > 1 && effect <= 1.1, "%g", effect);
    cr_assert_str_eq(text_of(verdict, "label"), "scaled");
    json_decref(verdict);
    cr_assert(program_shell("head -n 1 \"$D\"/out/H12/a_walk_of_one_thread.seed0.csv; "
                            "cat \"$D\"/out/H12/a_walk_of_one_thread.seed0.csv | wc -l") == 0);
    cr_assert(program_says("step,requested,used,held,largest_hole\n1001\n"), "%s", program_output);
    /* Where the tests have a small device, this attack still makes its own. */
    code = program_shell("env -u TOLLENS_SOFT_MEMORY \"$T\" run --filter 'H12/a_walk*' "
                         "--under pool_takes_much --out \"$D/fell\"");
    cr_assert(code == 1 && program_says("expected at most 1.1 ratio"), "%d: %s", code,
              program_output);
    cr_assert(!program_says("scaled"), "%s", program_output);
}

/* Goal: each exit code has its cause: a falsified claim, and an undecided one. */
Test(program, exit_codes_are_those_of_the_verdicts, .timeout = 300) {
    int code = program_shell("\"$T\" run H2 --under launch_drop --out \"$D/fell\"");
    cr_assert(code == 1 && program_says("1 falsified") &&
                  program_says("under the saboteur launch_drop"),
              "%d: %s", code, program_output);
    json_t *results = program_json("fell/results.json");
    cr_assert_str_eq(text_of(results, "under"), "launch_drop");
    json_decref(results);
    code = program_shell("\"$T\" run H4 --under launch_jitter_us=60 --out \"$D/open\"");
    cr_assert(code == 3 && program_says("1 inconclusive"), "%d: %s", code, program_output);
    json_t *verdict = program_json("open/H4/verdict.json");
    cr_assert(strncmp(text_of(verdict, "code"), "unfit_", 6) == 0, "%s", text_of(verdict, "code"));
    json_decref(verdict);
    code = program_shell("\"$T\" run --filter 'H4/what*' --inconclusive=warn --out \"$D/warn\"");
    cr_assert(code == 0 && program_says("1 inconclusive"), "%d: %s", code, program_output);
}

Test(program, full_mode_runs_six_fresh_processes, .timeout = 300) {
    int code = program_shell("\"$T\" run H4 --full --out \"$D/out\"");
    cr_assert(code == 0 || code == 3, "%d: %s", code, program_output);
    json_t *verdict = program_json("out/H4/verdict.json");
    cr_assert(json_integer_value(json_object_get(verdict, "processes")) == 6);
    cr_assert(json_array_size(json_object_get(verdict, "attacks")) == 12, "two in each");
    json_decref(verdict);
    json_decref(program_json("out/H4/process6/attacks/"
                             "a_launch_costs_little_more_than_the_drivers.json"));
    cr_assert(!program_says("one process"), "%s", program_output);
    cr_assert(program_shell("cat \"$D\"/out/H4/attacks/a_launch*.json "
                            "\"$D\"/out/H4/process*/attacks/a_launch*.json | "
                            "grep -o '\"padding_bytes\": [0-9]*' | sort -u | wc -l | "
                            "grep -qx 6") == 0,
              "each process has an environment of another size: %s", program_output);
}

/* The soft device's launch says nothing of a GPU's: the mechanics run, and that is said. */
Test(program, a_claim_that_needs_a_gpu_is_not_tested_here) {
    int code = program_shell("\"$T\" run H11 --sabotage --out \"$D/out\"");
    cr_assert(code == 0 && program_says("1 not tested") && program_says("needs a GPU"), "%d: %s",
              code, program_output);
    json_t *verdict = program_json("out/H11/verdict.json");
    cr_assert_str_eq(text_of(verdict, "code"), "needs_gpu");
    cr_assert(json_is_null(json_object_get(verdict, "effect")));
    json_decref(verdict);
    json_t *attack = program_json("out/H11/attacks/a_launch_is_as_fast_as_in_c.json");
    cr_assert(json_array_size(json_object_get(attack, "effects")) == 3);
    cr_assert(json_integer_value(json_object_get(attack, "violations")) == 0);
    json_decref(attack);
}

Test(program, a_broken_driver_is_falsified) {
    /* It refuses one valid text in twenty. */
    int code = program_shell(
        "echo '{\"quiet\": true, \"rules\": [{\"function\": \"cuModuleLoadDataEx\", \"every\": 20, "
        "\"action\": \"return\", \"code\": \"CUDA_ERROR_INVALID_PTX\"}]}' >\"$D/faults.json\"; "
        "TOLLENS_SOFT_FAULTS=$D/faults.json \"$T\" run --filter 'H1/every_module*' "
        "--out \"$D/out\"");
    cr_assert(code == 1 && program_says("falsified") && program_says("CUDA_ERROR_INVALID_PTX"),
              "%d: %s", code, program_output);
}

/* That a device is too old for the runtime falsifies nothing, and nothing is claimed of it. */
Test(program, a_device_that_is_too_old_is_said) {
    int code = program_shell("TOLLENS_SOFT_COMPUTE=70 \"$T\" run H1 --out \"$D/out\"");
    cr_assert(program_says("7.5 or newer is required") && program_says("1 not tested"), "%d: %s",
              code, program_output);
}

/* The kernels' PTX is for the oldest driver that the runtime accepts, but for some of PTX 8.1. That
 * these are refused falsifies nothing. */
Test(program, an_older_driver_loads_what_it_knows) {
    int code = program_shell("TOLLENS_SOFT_DRIVER_VERSION=12000 \"$T\" run --filter "
                             "'H1/every_module*' --out \"$D/out\"");
    cr_assert(code == 3 && program_says("4 of 10 attacks, and they found nothing"), "%d: %s", code,
              program_output);
}

/* Some of the project's PTX is for newer devices. That it is refused falsifies nothing. */
Test(program, an_older_device_need_not_load_what_is_for_newer_ones) {
    int code = program_shell("TOLLENS_SOFT_COMPUTE=75 \"$T\" run --filter 'H1/every*' "
                             "--out \"$D/out\"");
    cr_assert(code == 3 && program_says("5 of 10 attacks, and they found nothing"), "%d: %s", code,
              program_output);
}

Test(program, an_interrupted_run_keeps_what_it_has, .timeout = 120) {
    int code = program_shell(
        "\"$T\" run H7 H12 H13 --jobs 1 --out \"$D/out\" & p=$!; "
        "while kill -0 $p && [ ! -e \"$D\"/out/H12/attacks.log ]; do sleep 0.02; done; "
        "kill -INT $p; wait $p");
    cr_assert(code == 2, "%d: %s", code, program_output);
    cr_assert(program_says("tollens: interrupted; the results so far are in "), "%s",
              program_output);
    json_t *results = program_json("out/results.json");
    const json_t *claims = json_object_get(results, "claims");
    cr_assert(json_array_size(claims) == 3);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 0), "verdict")),
                     "survived");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 2), "verdict")),
                     "not_tested");
    json_decref(results);
    cr_assert(
        program_shell("test -s \"$D/out/run.json\" && ! find \"$D/out\" -name '*~' | grep .") == 0,
        "%s", program_output);
}

/* Claims that run when the signal comes have no verdict, and no process remains. */
Test(program, an_interrupted_run_ends_all_that_run_side_by_side, .timeout = 120) {
    int code = program_shell(
        "\"$T\" run H2 H3 H5 --full --jobs 3 --out \"$D/out\" & p=$!; "
        "while kill -0 $p && [ ! -e \"$D\"/out/H5/attacks.log ]; do sleep 0.02; done; "
        "kill -INT $p; wait $p; code=$?; sleep 0.2; "
        "grep -lzs \"^TOLLENS_OUT=$D\" /proc/[0-9]*/environ && exit 9; exit $code");
    cr_assert(code == 2, "%d: %s", code, program_output);
    cr_assert(program_says("tollens: interrupted; the results so far are in "), "%s",
              program_output);
    json_t *results = program_json("out/results.json");
    const json_t *claim = json_array_get(json_object_get(results, "claims"), 2);
    cr_assert_str_eq(json_string_value(json_object_get(claim, "verdict")), "inconclusive");
    cr_assert_str_eq(json_string_value(json_object_get(claim, "code")), "interrupted");
    json_decref(results);
}

/* What runs side by side changes no verdict, and neither does it the order of the lines. */
Test(program, jobs_change_times_alone, .timeout = 120) {
    const char *show = "grep -o '^H[0-9]* *[a-z]* *[a-z0-9 %()]*'";
    char command[400];
    for (int jobs = 1; jobs <= 3; jobs += 2) {
        snprintf(command, sizeof command,
                 "\"$T\" run H3 H7 H8 H9 --sabotage --jobs %d --out \"$D/jobs%d\" >\"$D/said\" "
                 "&& %s \"$D/said\" >\"$D/lines%d\"",
                 jobs, jobs, show, jobs);
        int code = program_shell(command);
        cr_assert(code == 0, "%d: %s", code, program_output);
    }
    cr_assert(program_shell("cmp \"$D/lines1\" \"$D/lines3\" && wc -l <\"$D/lines1\"") == 0, "%s",
              program_output);
    cr_assert(program_says("8\n"), "%s", program_output);
    cr_assert(program_shell("\"$T\" run H2 --jobs 0") == 2 && program_says("--jobs must be"), "%s",
              program_output);
}

/* script(1) gives the program a terminal. */
Test(program, a_terminal_shows_a_bar, .timeout = 120) {
    if (program_shell("command -v script") != 0) cr_skip_test("there is no script(1)");
    int code = program_shell("TERM=xterm script -qec '\"'\"$T\"'\" run H4 --out \"'\"$D/out\"'\"' "
                             "/dev/null");
    cr_assert(code == 0 || code == 3, "%d: %s", code, program_output);
    cr_assert(program_says("[####") && program_says("100 %"), "%s", program_output);
    cr_assert(program_shell("\"$T\" run H9 --out \"$D/plain\"") == 0 && !program_says("[#") &&
                  !program_says("\033["),
              "%s", program_output);
}

/* The claims on the worker are in a plugin beside the program, and so are all the others. */
Test(program, the_workers_claims_are_known_by_name) {
    cr_assert(program_shell("\"$T\" explain W1 w3 S2 P1 Q3") == 0, "%s", program_output);
    cr_assert(program_says("poison_hidden") && program_says("free_lost_one_in"));
    cr_assert(program_shell("\"$T\" run --only h2,W2 --list --device soft") == 0, "%s",
              program_output);
    cr_assert(program_says("threads_beside_change_nothing") && program_says("H2"));
    cr_assert(program_shell("\"$T\" run W9") == 2 && program_says("unknown claim 'W9'"));
    cr_assert(program_shell("\"$T\" run H99") == 2 && program_says("unknown claim 'H99'"));
    cr_assert(!program_says("W1,"), "W1 is listed, though no claim of the plugin was named");
    cr_assert(program_shell("\"$T\" run H3W1") == 2 && program_says("unknown claim 'H3W1'"));
    cr_assert(!program_says("W1,"), "W1 is listed, though no claim of the plugin was named");
}

/* So are those on memory, and both at once. */
Test(program, claims_on_memory_are_known_by_name) {
    cr_assert(program_shell("\"$T\" explain s1 W2") == 0, "%s", program_output);
    cr_assert(program_says("never stored in plaintext") && program_says("verification_blind") &&
              program_says("The same seed gives the same tokens"));
    cr_assert(program_shell("\"$T\" run S7") == 2 && program_says("unknown claim 'S7'"));
}

/* What the soft device can tell of W3 in seconds, with a fault that it must notice. */
Test(program, a_claim_on_the_worker_is_tried) {
    cr_assert(program_shell("\"$T\" run W3 --device soft --seeds 1 --out \"$D/sound\"") == 0, "%s",
              program_output);
    cr_assert(program_says("W3  survived"), "%s", program_output);
    cr_assert(program_shell("\"$T\" run W3 --device soft --under residency_always_true --out "
                            "\"$D/under\"") == 1);
    cr_assert(program_says("W3  falsified"), "%s", program_output);
}

/* So is the claim on peers, which has a process of its own beside. */
Test(program, the_claim_on_peers_is_tried) {
    cr_assert(program_shell("\"$T\" explain P1 w3") == 0, "%s", program_output);
    cr_assert(program_says("peer_pair_swapped") && program_says("poison_hidden"));
    cr_assert(program_shell("\"$T\" run P1 --device soft --seeds 1 --filter 'all_pairs*' --json "
                            "--out \"$D/pairs\"") == 3 &&
                  program_says("part_not_tested") && program_says("\"effect\": 0.0"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run P1 --device soft --filter memory_outlives_its_exporter "
                            "--seeds 1 --out \"$D/outlived\"") == 3,
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run P1 --device soft --under peer_wait_missing --filter "
                            "'*event_of_another*' --seeds 1 --out \"$D/under\"") == 1 &&
                  program_says("P1  falsified"),
              "%s", program_output);
}

/* So is the claim on order, which no fault of an order may survive. */
Test(program, the_claim_on_order_is_tried) {
    cr_assert(program_shell("\"$T\" run Q1 --device soft --sabotage --out \"$D/order\"") == 0 &&
                  program_says("Q1  survived") && program_says("Q1  severity 100 %"),
              "%s", program_output);
}

/* A part of each, in less than a second: copies come back whole, and no stream holds up others. */
Test(program, streams_of_several_kernels_and_threads_are_tried) {
    cr_assert(program_shell("\"$T\" run H10 --device soft --filter 'copies_run*' --seeds 1 --out "
                            "\"$D/copies\"") == 0 &&
                  program_says("H10 not tested"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run H13 --device soft --filter 'no_thread_waits*' --seeds 1 "
                            "--out \"$D/waits\"") == 3 &&
                  program_says("they found nothing"),
              "%s", program_output);
}

/* On one device nothing of it can be said. */
Test(program, the_claim_on_peers_needs_two_devices) {
    cr_assert(program_shell("TOLLENS_SOFT_DEVICES=1 \"$T\" run P1 --device soft --seeds 1 --filter "
                            "'all_pairs*' --out \"$D/one\"") == 0,
              "%s", program_output);
    cr_assert(program_says("P1  not tested") && program_says("peers need two devices"), "%s",
              program_output);
}

Test(program, lists_and_explains) {
    cr_assert(program_shell("\"$T\" list") == 0 && program_says("H7"), "%s", program_output);
    cr_assert(program_shell("\"$T\" explain h3 H7") == 0, "%s", program_output);
    cr_assert(program_says("falsified if") && program_says("copy_truncate") &&
                  program_says("dequantise_tail"),
              "%s", program_output);
    cr_assert(program_says("\nmethod        ") && !program_says("\nmethod         "), "one column");
    cr_assert(program_shell("\"$T\" doctor") == 0 && program_says("soft: "), "%s", program_output);
    cr_assert(program_says("tollens run --device soft\n") &&
                  program_says("tollens soft -- PROGRAM"),
              "%s", program_output);
}

/* NVML's stand-in beside the program says what the device's health is. */
Test(program, the_doctor_tells_of_bad_health) {
    cr_assert(program_shell("TOLLENS_LIBNVML=/nowhere.so \"$T\" doctor") == 0, "%s",
              program_output);
    cr_assert(program_says("NVML is not available: /nowhere.so") && !program_says("unhealthy"),
              "%s", program_output);
    cr_assert(program_shell("TOLLENS_LIBNVML=\"${T%/*}/libnvml-stand-in.so\" TOLLENS_TEST_NVML="
                            "'free=3221225472 used=0 ecc=2 celsius=44 name=Tollens soft device' "
                            "\"$T\" doctor") == 0,
              "%s", program_output);
    cr_assert(program_says("unhealthy: 2 uncorrected ECC errors"), "%s", program_output);
    cr_assert(program_says("3.0 GiB free; 2 uncorrected ECC errors; 44 degrees"), "%s",
              program_output);
}
