/*
 * bench-kernels beside this program: what its rows say with a peer, without one, with ggml's times,
 * and what a run leaves that is ended before its end.
 * It runs on the soft device, whose times mean nothing.
 */
#include "test/test_device.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 4096, COMMAND = 5 * PATH };

/* The loop of a peer; "batch" does what is given. */
#define PEER(batch, check)                                                                         \
    "while read -r w r; do case $w in prepare) echo ready fake;; batch) " batch ";; check) " check \
    ";; quit) exit;; esac; done"

static char folder[PATH];

static void find_folder(void) {
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 64);
    char *slash = length > 0 ? strrchr(folder, '/') : NULL;
    cr_assert(slash != NULL);
    *slash = '\0';
    char program[PATH + 32];
    snprintf(program, sizeof program, "%s/bench-kernels", folder);
    if (access(program, X_OK) != 0) cr_skip_test("there is no bench-kernels beside the tests");
}

TestSuite(bench_program, .init = find_folder, .timeout = 300);

/* Its exit code; what it printed is in output. */
static int run(const char *arguments, char *output, size_t bytes) {
    char command[COMMAND];
    snprintf(command, sizeof command, "'%s/bench-kernels' %s 2>&1", folder, arguments);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    const size_t got = fread(output, 1, bytes - 1, pipe);
    output[got] = '\0';
    const int how = pclose(pipe);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

/* What --json holds of a run on the soft device, or on the one that the platform has. */
static json_t *json_of(const char *arguments, bool on_soft, int exit_code) {
    char output[8192], all[COMMAND], file[] = "/tmp/bench_program.XXXXXX", driver[PATH + 64] = "";
    const int made = mkstemp(file);
    cr_assert(made >= 0);
    close(made);
    if (on_soft) snprintf(driver, sizeof driver, "--library '%s/libtollens-soft.so'", folder);
    snprintf(all, sizeof all, "%s --json %s %s", driver, file, arguments);
    const int code = run(all, output, sizeof output);
    json_t *json = json_load_file(file, 0, NULL);
    unlink(file);
    cr_assert(code == exit_code, "exit code %d: %s", code, output);
    cr_assert(json != NULL, "no JSON: %s", output);
    return json;
}

static json_t *row_of(json_t *json, const char *operation, const char *variant) {
    size_t i = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(json, "rows"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "operation")), operation) == 0 &&
            strcmp(json_string_value(json_object_get(row, "variant")), variant) == 0) {
            return row;
        }
    }
    cr_assert_fail("no row \"%s %s\"", operation, variant);
    return NULL;
}

static double number(json_t *row, const char *key) {
    json_t *value = json_object_get(row, key);
    cr_assert(json_is_number(value), "no number \"%s\"", key);
    return json_number_value(value);
}

#define SOFTMAX "--filter 'softmax f32 32 x 4096 chosen' "

/* What must be in the row of a peer that failed, and that the row is there all the same. */
static void must_be_without(const char *peer, const char *why) {
    char arguments[1000];
    snprintf(arguments, sizeof arguments, SOFTMAX "--peer '%s'", peer);
    json_t *json = json_of(arguments, true, 0), *row = row_of(json, "softmax", "chosen");
    const char *said = json_string_value(json_object_get(row, "without_peer"));
    cr_assert(said != NULL && strstr(said, why) != NULL, "%s", said);
    cr_assert(json_object_get(row, "peer") == NULL);
    cr_assert(number(row, "us") > 0);
    json_decref(json);
}

Test(bench_program, a_row_has_the_peers_time_ratio_and_interval) {
    json_t *json = json_of(SOFTMAX "--peer '" PEER("echo 1e9", "echo right") "'", true, 0);
    json_t *row = row_of(json, "softmax", "chosen");
    cr_assert_str_eq(json_string_value(json_object_get(row, "peer")), "fake");
    cr_assert_eq(number(row, "peer_us"), 1e9);
    const double ratio = number(row, "of_peer");
    cr_assert(fabs(ratio - 1e9 / number(row, "us")) <= 1e-6 * ratio);
    cr_assert(number(row, "peer_low") <= ratio && ratio <= number(row, "peer_high"));
    cr_assert(json_object_get(row, "without_peer") == NULL);
    cr_assert(json_is_true(json_object_get(json, "complete")));
    cr_assert_str_eq(json_string_value(json_object_get(json, "error")), "");
    cr_assert_eq(number(json, "wrong"), 0);
    cr_assert_eq(number(json, "impossible"), 0);
    /* The copy beside it is no problem of the peer's. */
    row = row_of(json, "copy", "driver's");
    cr_assert(json_object_get(row, "peer") == NULL && !json_object_get(row, "without_peer"));
    json_decref(json);
}

Test(bench_program, a_peer_that_fails_takes_only_its_own_figures_with_it) {
    must_be_without(PEER("exit 3", "echo right"), "the peer ended with exit code 3");
    must_be_without("n=0; " PEER("n=$((n + 1)); [ $n = 5 ] && exit 4; echo 1", "echo right"),
                    "the peer ended with exit code 4");
    must_be_without(PEER("echo 1 \"2\"", "echo right"), "the peer answered");
    must_be_without(PEER("echo 1", "echo wrong by 7"), "results are wrong: by 7");
    must_be_without("echo cannot; read -r l", "the peer answered");
}

/* PyTorch's figures where python3 has it, and its reason where it has not. */
Test(bench_program, the_peer_of_pytorch_answers, .timeout = 600) {
    char script[2 * PATH], arguments[3 * PATH];
    if (system("command -v python3 >/dev/null") != 0) cr_skip_test("there is no python3");
    snprintf(script, sizeof script, "%s/torch_peer.py", folder);
    if (access(script, R_OK) != 0) {
        snprintf(script, sizeof script, "%s/../kernels/bench/torch_peer.py", folder);
    }
    if (access(script, R_OK) != 0) cr_skip_test("there is no torch_peer.py beside the tests");
    snprintf(arguments, sizeof arguments, SOFTMAX "--peer \"exec python3 '%s'\"", script);
    json_t *json = json_of(arguments, true, 0), *row = row_of(json, "softmax", "chosen");
    const char *name = json_string_value(json_object_get(row, "peer"));
    const char *without = json_string_value(json_object_get(row, "without_peer"));
    if (name != NULL) {
        cr_assert(strncmp(name, "torch", 5) == 0, "%s", name);
        cr_assert(without == NULL);
        cr_assert(number(row, "peer_us") > 0);
    } else {
        cr_assert(without != NULL && strncmp(without, "the peer cannot: ", 17) == 0, "%s", without);
    }
    json_decref(json);
}

Test(bench_program, ggmls_time_is_beside_the_hot_rows_of_its_product) {
    char file[] = "/tmp/bench_program.XXXXXX", arguments[300];
    static const char text[] =
        "  MUL_MAT(type_a=q4_K,type_b=f32,m=64,n=1,k=2048,bs=[1,1],nr=[1,1],per=[0,1,2,3]): "
        "9 runs - 7000000.00 us/run - 1 MFLOP/run\n";
    const int made = mkstemp(file);
    cr_assert(made >= 0);
    cr_assert_eq(write(made, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(made);
    snprintf(arguments, sizeof arguments, "--filter 'quant q4_k f32 64 x 1 x' --ggml %s", file);
    json_t *json = json_of(arguments, true, 0), *row = row_of(json, "quant", "hot");
    unlink(file);
    cr_assert_eq(number(row, "ggml_us"), 7e6);
    const double ratio = number(row, "of_ggml");
    cr_assert(fabs(ratio - 7e6 / number(row, "us")) <= 1e-6 * ratio);
    cr_assert(json_object_get(row_of(json, "quant", "cold"), "ggml_us") == NULL);
    json_decref(json);
}

Test(bench_program, the_devices_state_is_kept_for_each_operation_that_had_rows) {
    char words[PATH + 200];
    snprintf(words, sizeof words, "%s/libnvml-stand-in.so", folder);
    if (access(words, R_OK) != 0) cr_skip_test("there is no stand-in for NVML beside the tests");
    setenv("TOLLENS_LIBNVML", words, 1);
    setenv("TOLLENS_TEST_NVML",
           "sm_mhz=1755 memory_mhz=2619 milliwatts=655125 celsius=58 name=Tollens soft device", 1);
    json_t *json = json_of(SOFTMAX, true, 0), *states = json_object_get(json, "states");
    cr_assert_eq(json_array_size(states), 1);
    json_t *state = json_array_get(states, 0), *after = json_object_get(state, "after");
    cr_assert_str_eq(json_string_value(json_object_get(state, "operation")), "row");
    cr_assert_eq(number(json_object_get(state, "before"), "celsius"), 58);
    cr_assert_eq(number(after, "sm_mhz"), 1755);
    cr_assert_eq(number(after, "memory_mhz"), 2619);
    cr_assert_eq(number(after, "watts"), 655.125);
    json_decref(json);
}

Test(bench_program, a_row_that_fails_leaves_those_before_it_and_the_reason) {
    char rules[] = "/tmp/bench_program.XXXXXX";
    static const char text[] = "{\"quiet\": true, \"rules\": [{\"function\": \"cuEventRecord\", "
                               "\"nth\": 40, \"action\": \"return\", \"code\": 999}]}";
    /* A row records twelve events; this is in the fourth row. */
    const int made = mkstemp(rules);
    cr_assert(made >= 0);
    cr_assert_eq(write(made, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(made);
    setenv("TOLLENS_SOFT_FAULTS", rules, 1);
    json_t *json = json_of("--filter 'softmax f32 32 x 4096'", true, 1);
    unlink(rules);
    cr_assert(json_is_false(json_object_get(json, "complete")));
    const char *said = json_string_value(json_object_get(json, "error"));
    cr_assert(said != NULL && strstr(said, "CUDA_ERROR_UNKNOWN") != NULL, "%s", said);
    cr_assert(number(row_of(json, "copy", "driver's"), "us") > 0);
    cr_assert(number(row_of(json, "softmax", "chosen"), "us") > 0);
    json_decref(json);
}

/* A run with a peer that never answers about its second problem; what it prints goes to a file. */
static pid_t start_hanging(const char *json, const char *output) {
    char program[PATH + 32], library[PATH + 32];
    snprintf(program, sizeof program, "%s/bench-kernels", folder);
    snprintf(library, sizeof library, "%s/libtollens-soft.so", folder);
    static const char peer[] = "n=0; while read -r w r; do case $w in "
                               "prepare) n=$((n + 1)); [ $n = 2 ] && read -r l; echo ready fake;; "
                               "batch) echo 1e9;; check) echo right;; quit) exit;; esac; done";
    const pid_t id = fork();
    if (id != 0) return id;
    if (freopen(output, "w", stdout) == NULL) _exit(3);
    execl(program, "bench-kernels", "--library", library, "--json", json, "--peer", peer,
          "--filter", "f32 32 x 4096", (char *)NULL);
    _exit(3);
}

static bool has(const char *path, const char *text) {
    char all[16384];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    all[fread(all, 1, sizeof all - 1, file)] = '\0';
    fclose(file);
    return strstr(all, text) != NULL;
}

Test(bench_program, a_run_that_is_ended_leaves_its_operations_and_all_rows_that_it_printed) {
    char json_path[] = "/tmp/bench_program.XXXXXX", output[] = "/tmp/bench_program.XXXXXX";
    const int first = mkstemp(json_path), second = mkstemp(output);
    cr_assert(first >= 0 && second >= 0);
    close(first), close(second);
    const pid_t id = start_hanging(json_path, output);
    int how = 0;
    cr_assert(id > 0);
    /* The row of the first problem, in a file, of a program that goes on. */
    while (!has(output, "of fake") && waitpid(id, &how, WNOHANG) == 0) usleep(10000);
    kill(id, SIGTERM);
    cr_assert_eq(waitpid(id, &how, 0), id);
    cr_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    json_t *json = json_load_file(json_path, 0, NULL);
    unlink(json_path), unlink(output);
    cr_assert(json_is_false(json_object_get(json, "complete")));
    cr_assert_str_eq(json_string_value(json_object_get(json, "error")), "");
    cr_assert(number(row_of(json, "copy", "driver's"), "us") > 0);
    json_decref(json);
}

/* No GPU reads and writes 32 MiB in a nanosecond. */
Test(bench_program, a_figure_above_what_the_device_can_do_fails_the_run) {
    if (!test_on_gpu()) cr_skip_test("the soft device has no rooflines");
    json_t *json = json_of(
        "--filter 'softmax bf16 2048 x 4096 chosen' --peer '" PEER("echo 0.001", "echo right") "'",
        false, 1);
    cr_assert_eq(number(json, "impossible"), 1);
    json_decref(json);
}

Test(bench_program, options_that_are_wrong_are_refused) {
    char output[8192];
    cr_assert_eq(run("--help", output, sizeof output), 0);
    cr_assert(strstr(output, "--peer COMMAND") != NULL, "%s", output);
    cr_assert_eq(run("--filter", output, sizeof output), 2);
    cr_assert_eq(run("--pear x", output, sizeof output), 2);
    cr_assert(strstr(output, "usage: bench-kernels") != NULL, "%s", output);
    cr_assert_eq(run("--json /nowhere/rows.json", output, sizeof output), 1);
    cr_assert(strstr(output, "/nowhere/rows.json") != NULL, "%s", output);
    cr_assert_eq(run("--ggml /nowhere/perf.txt", output, sizeof output), 1);
    cr_assert(strstr(output, "/nowhere/perf.txt") != NULL, "%s", output);
}
