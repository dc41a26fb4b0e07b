/*
 * The program as its users meet it: what it prints, what it writes, and its exit codes.
 */
#include "folder.h"
#include "session.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], output[65536];

static void begin(void) {
    snprintf(folder, sizeof folder, "/tmp/tollens_program_XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    setenv("TOLLENS_DEVICE", "soft", 1);
    unsetenv("BXFI_MAP"); /* by it Criterion's programs know that they are workers of a test */
}
static void end(void) {
    cr_assert(hyp_folder_remove(folder), "%s", hyp_error());
}
TestSuite(program, .init = begin, .fini = end);

/* Runs a shell command in which $T is the program and $D the folder; returns its exit code, and its
 * output is in output. */
static int shell(const char *command) {
    char line[4096], text[6000];
    snprintf(line, sizeof line, "%s/tollens", hyp_session_program_folder());
    setenv("T", line, 1);
    setenv("D", folder, 1);
    snprintf(text, sizeof text, "{ %s; } 2>&1", command);
    FILE *pipe = popen(text, "r");
    cr_assert(pipe != NULL);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *text) {
    return strstr(output, text) != NULL;
}

static json_t *read_json(const char *name) {
    char path[256];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_t *object = json_load_file(path, 0, &error);
    cr_assert(object != NULL, "%s: %s", path, error.text);
    return object;
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
        "\"$T\" run --seed many",
        "\"$T\" run --inconclusive=maybe",
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
        int code = shell(commands[i]);
        cr_assert(code == 2, "%s: %d: %s", commands[i], code, output);
        cr_assert(strlen(output) > 10, "%s: it says nothing", commands[i]);
    }
    cr_assert(shell("\"$T\" --help") == 0 && says("exit codes"));
}

Test(program, without_a_gpu_cuda_is_one_clear_sentence) {
    int code = shell("TOLLENS_LIBCUDA=/nowhere/libcuda.so.1 TOLLENS_DEVICE=cuda \"$T\" run H1");
    cr_assert(code == 2, "%d: %s", code, output);
    cr_assert(says("no cuda device") && says("/nowhere/libcuda.so.1"), "%s", output);
    cr_assert(strchr(output, '\n') == output + strlen(output) - 1, "one line: %s", output);
    code = shell("TOLLENS_LIBCUDA=/nowhere/libcuda.so.1 TOLLENS_DEVICE=auto \"$T\" run H1 "
                 "--require-gpu");
    cr_assert(code == 2, "%d: %s", code, output);
}

Test(program, a_claim_survives_and_its_evidence_is_there) {
    int code = shell("\"$T\" run H1 H4 --out \"$D/out\"");
    cr_assert(code == 0, "%d: %s", code, output);
    cr_assert(says("1 survived, 0 falsified, 0 inconclusive, 1 not tested"), "%s", output);
    cr_assert(says("not implemented yet"), "%s", output);
    json_t *results = read_json("out/results.json");
    const json_t *claims = json_object_get(results, "claims");
    cr_assert(json_array_size(claims) == 2);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 0), "verdict")),
                     "survived");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 1), "verdict")),
                     "not_tested");
    json_decref(results);
    static const char *const files[] = {"out/machine.json", "out/run.json", "out/H1/claim.json",
                                        "out/H1/verdict.json", "out/H4/verdict.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) json_decref(read_json(files[i]));
    code = shell("\"$T\" run H1 --out \"$D/out\"");
    cr_assert(code == 2 && says("no empty folder"), "evidence was written over: %s", output);
}

Test(program, sabotage_is_noticed) {
    int code = shell("\"$T\" run H1 --sabotage --out \"$D/out\"");
    cr_assert(code == 0 && says("severity 100 % (3 of 3)"), "%d: %s", code, output);
    json_t *verdict = read_json("out/H1/sabotage/jit_log_lost/attacks/"
                                "broken_ptx_is_refused_with_the_jits_words.json");
    cr_assert(json_integer_value(json_object_get(verdict, "violations")) > 0);
    json_decref(verdict);
}

Test(program, a_broken_driver_is_falsified) {
    /* A device that claims to be older refuses what the project's kernels need. */
    int code = shell("TOLLENS_SOFT_COMPUTE=70 \"$T\" run H1 --out \"$D/out\"");
    cr_assert(code == 1 && says("falsified") && says("sm_75"), "%d: %s", code, output);
}

/* Goal: a worker that dies leaves an inconclusive claim, never a pass, and the run goes on. */
Test(program, a_killed_worker_is_inconclusive, .timeout = 120) {
    int code = shell("\"$T\" run H2 H1 --full --out \"$D/out\" & p=$!; "
                     "while ! ls \"$D\"/out/H2/progress >/dev/null 2>&1; do sleep 0.05; done; "
                     "pkill -KILL -P $p; wait $p");
    cr_assert(code == 2, "%d: %s", code, output);
    cr_assert(says("inconclusive") && says("signal 9"), "%s", output);
    cr_assert(says("1 survived, 0 falsified, 1 inconclusive"), "%s", output);
}

Test(program, an_interrupted_run_keeps_what_it_has, .timeout = 120) {
    int code = shell("\"$T\" run H1 H2 H3 --full --out \"$D/out\" & p=$!; "
                     "while ! ls \"$D\"/out/H2/progress >/dev/null 2>&1; do sleep 0.05; done; "
                     "kill -INT $p; wait $p");
    cr_assert(code == 2, "%d: %s", code, output);
    cr_assert(says("interrupted"), "%s", output);
    json_t *results = read_json("out/results.json");
    const json_t *claims = json_object_get(results, "claims");
    cr_assert(json_array_size(claims) == 3);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 0), "verdict")),
                     "survived");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(claims, 2), "verdict")),
                     "not_tested");
    json_decref(results);
}

Test(program, a_full_disk_is_an_error) {
    int code = shell("mkdir \"$D/out\"; (ulimit -f 0; trap '' XFSZ; \"$T\" run H1 --out "
                     "\"$D/out\")");
    cr_assert(code == 2, "%d: %s", code, output);
    cr_assert(says("cannot be written"), "%s", output);
}

Test(program, lists_and_explains) {
    cr_assert(shell("\"$T\" list") == 0 && says("H13"), "%s", output);
    cr_assert(shell("\"$T\" explain h3 H13") == 0, "%s", output);
    cr_assert(says("falsified if") && says("copy_truncate") && says("Nothing attacks it yet"), "%s",
              output);
    cr_assert(shell("\"$T\" doctor") == 0 && says("soft: "), "%s", output);
}
