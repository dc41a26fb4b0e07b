/*
 * tollens run where its surroundings fail it: processes that die or hang, disks that are full or
 * read-only, a person who stops it. Each ends with one clear sentence and exit code 2, and no half
 * of a file is left; none is ever a pass.
 */
#include "shell_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

TestSuite(trouble, .init = program_begin, .fini = program_end, .timeout = 300);

/* The number of printed lines that begin with a text and contain another. */
static unsigned lines_with(const char *begin, const char *text) {
    unsigned count = 0;
    for (const char *line = program_output; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = strncmp(line, begin, strlen(begin)) == 0 ? strstr(line, text) : NULL;
        count += at != NULL && (size_t)(at - line) <= strcspn(line, "\n");
    }
    return count;
}

/* Every file can be read, and none is half written. */
static void expect_whole_files(const char *folder) {
    char command[512], said[2048];
    snprintf(said, sizeof said, "%.2000s", program_output);
    snprintf(command, sizeof command,
             "find \"$D/%s\" -name '*~' | grep . && exit 1; find \"$D/%s\" -name '*.json' | "
             "while read f; do tail -c 1 \"$f\" | grep -q '}' || { echo \"$f\"; exit 1; }; done",
             folder, folder);
    cr_assert(program_shell(command) == 0, "%s after: %s", program_output, said);
}

/* Goal: however a process dies, its claim is inconclusive, by name, and the run goes on. */
Test(trouble, a_process_that_dies_is_no_pass) {
    static const struct {
        const char *fault, *says, *code;
    } deaths[] = {{"worker_kill", "the worker was killed by signal 9", "worker_missing"},
                  {"attack_kill", "its process was killed by signal 9", "worker_crashed"},
                  {"attack_crash", "its process was killed by signal 11", "worker_crashed"}};
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        char command[256], path[64];
        snprintf(command, sizeof command, "\"$T\" run H2 H3 --under %s --out \"$D/%s\"",
                 deaths[i].fault, deaths[i].fault);
        int code = program_shell(command);
        cr_assert(code == 2, "%s: %d: %s", deaths[i].fault, code, program_output);
        cr_assert(lines_with("H2 inconclusive: ", "") == 1 &&
                      lines_with("H3 inconclusive: ", "") == 1 && program_says(deaths[i].says) &&
                      program_says("0 survived, 0 falsified, 2 inc"),
                  "%s: %s", deaths[i].fault, program_output);
        expect_whole_files(deaths[i].fault);
        snprintf(path, sizeof path, "%s/H2/verdict.json", deaths[i].fault);
        json_t *verdict = program_json(path);
        cr_assert_str_eq(json_string_value(json_object_get(verdict, "code")), deaths[i].code);
        json_decref(verdict);
    }
}

/* Goal: where the driver has no pools, attacks that would have used one have not been survived. */
Test(trouble, without_the_drivers_pools_h9_is_not_all_tested) {
    int code = program_shell(
        "echo '{\"quiet\": true, \"rules\": [{\"function\": \"cuMemPoolCreate\", \"action\": "
        "\"return\", \"code\": \"CUDA_ERROR_NOT_SUPPORTED\"}]}' >\"$D/faults.json\"; "
        "TOLLENS_SOFT_FAULTS=$D/faults.json \"$T\" run --verbose --filter 'H9/*' "
        "--out \"$D/h9\"");
    static const char *const skipped[] = {
        "H9  a_batch_is_made_whole_or_not_at_all", "H9  allocating_until_refused_ends_in_an_error",
        "H9  during_copies_the_copies_arrive", "H9  in_a_second_thread_it_is_that_threads_error",
        "H9  more_than_there_is_is_refused_with_numbers"};
    cr_assert(code == 3, "%d: %s", code, program_output);
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++) {
        cr_assert(lines_with(skipped[i], "skipped") == 1, "%s: %s", skipped[i], program_output);
    }
    cr_assert(lines_with("H9  limits_refuse_in_the_same_words", "passed") == 1, "%s",
              program_output);
    json_t *verdict = program_json("h9/H9/verdict.json");
    const char *reason = json_string_value(json_object_get(verdict, "reason"));
    cr_assert_str_eq(json_string_value(json_object_get(verdict, "code")), "part_not_tested");
    cr_assert(strstr(reason, "the driver's pool: ") != NULL, "%s", reason);
    cr_assert(strstr(reason, "CUDA_ERROR_NOT_SUPPORTED") != NULL, "%s", reason);
    json_decref(verdict);
}

Test(trouble, what_hangs_ends_at_its_deadline) {
    static const char *const faults[] = {"attack_hang", "worker_stop"};
    for (size_t i = 0; i < 2; i++) {
        char command[256];
        snprintf(command, sizeof command,
                 "\"$T\" run --filter 'H3/small*' --deadline 1 --under %s --out \"$D/%s\"",
                 faults[i], faults[i]);
        int code = program_shell(command);
        cr_assert(code == 2 && lines_with("H3 inconclusive: ", "") == 1 &&
                      program_says("it did not end before its deadline"),
                  "%s: %d: %s", faults[i], code, program_output);
        expect_whole_files(faults[i]);
    }
    static const char *const wrong[] = {"0", "-1", "soon", "1.5", "''"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char command[128];
        snprintf(command, sizeof command, "\"$T\" run H3 --deadline %s", wrong[i]);
        cr_assert(program_shell(command) == 2 && program_says("--deadline must be"), "%s",
                  program_output);
    }
}

/* Goal: after the run is killed, no worker keeps a GPU busy. */
Test(trouble, a_run_that_is_killed_leaves_no_process) {
    int code = program_shell(
        "\"$T\" run H3 --under attack_hang --out \"$D/out\" & p=$!; "
        "until w=$(pgrep -P $p) && a=$(pgrep -P $w); do sleep 0.05; done; kill -KILL $p; "
        "for q in $w $a; do until [ ! -e /proc/$q/status ] || grep -q 'State:.[ZX]' "
        "/proc/$q/status; do sleep 0.05; done; done; test ! -e \"$D/out/results.json\"");
    cr_assert(code == 0, "%d: %s", code, program_output);
}

/* Goal: a run that is interrupted while it hangs ends at once with a message, and keeps what it
 * has. */
Test(trouble, an_interruption_ends_what_hangs) {
    static const char *const signals[] = {"INT", "TERM", "HUP"};
    for (size_t i = 0; i < 3; i++) {
        char command[512], path[64];
        snprintf(command, sizeof command,
                 "\"$T\" run H3 H7 --repeat 3 --under attack_hang --out \"$D/%s\" & p=$!; "
                 "until [ -e \"$D/%s/repeat1/H3/attacks.log\" ]; do sleep 0.05; done; "
                 "kill -%s $p; wait $p",
                 signals[i], signals[i], signals[i]);
        int code = program_shell(command);
        cr_assert(code == 2 && lines_with("tollens: interrupted; the results so far", "") == 1 &&
                      program_says("1 of 3 runs"),
                  "%s: %d: %s", signals[i], code, program_output);
        expect_whole_files(signals[i]);
        snprintf(path, sizeof path, "%s/repeat1/H3/verdict.json", signals[i]);
        json_t *verdict = program_json(path);
        cr_assert_str_eq(json_string_value(json_object_get(verdict, "code")), "interrupted");
        json_decref(verdict);
    }
}

/* ---- disks ----------------------------------------------------------------------------------- */

/* ulimit counts blocks of 512 bytes: at first nothing can be written, then the small files alone,
 * and with the last Criterion itself finds no room to begin. */
Test(trouble, a_file_that_may_not_grow_is_an_error) {
    static const struct {
        unsigned blocks;
        const char *says;
    } limits[] = {{0, "cannot be written: File too large"},
                  {1, "cannot be written: File too large"},
                  {8, "H1 inconclusive: "}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char command[256], name[32];
        snprintf(name, sizeof name, "limit%u", limits[i].blocks);
        snprintf(command, sizeof command, "(ulimit -f %u; \"$T\" run H1 --out \"$D/%s\")",
                 limits[i].blocks, name);
        int code = program_shell(command);
        cr_assert(code == 2 && program_says(limits[i].says) && !program_says("1 survived"),
                  "%u: %d: %s", limits[i].blocks, code, program_output);
        expect_whole_files(name);
    }
}

/* A small disk of its own, where this system lets a user have one; then the same, read-only. */
Test(trouble, a_full_or_read_only_disk_is_an_error) {
    static const char mount[] = "unshare -rm sh -c 'mkdir -p \"$D/disk\" && mount -t tmpfs -o "
                                "size=%s tmpfs \"$D/disk\" && %s'";
    char command[1024];
    snprintf(command, sizeof command, mount, "64k", "true");
    if (program_shell(command) != 0) cr_skip_test("no disk can be mounted here");
    snprintf(command, sizeof command, mount, "64k",
             "{ \"$T\" run H1 H3 --out \"$D/disk/out\"; c=$?; find \"$D/disk\" -name \"*~\"; "
             "exit $c; }");
    int code = program_shell(command);
    cr_assert(code == 2 && program_says("No space left on device") && !program_says("~\n"),
              "%d: %s", code, program_output);
    cr_assert(lines_with("tollens: ", "") + lines_with("H3 inconclusive: ", "") > 0, "%s",
              program_output);
    snprintf(command, sizeof command, mount, "64k",
             "mount -o remount,ro \"$D/disk\" && \"$T\" run H1 --out \"$D/disk/out\"");
    code = program_shell(command);
    cr_assert(code == 2 && lines_with("tollens: ", "") == 1 &&
                  program_says("Read-only file system"),
              "%d: %s", code, program_output);
}

Test(trouble, a_folder_that_cannot_be_is_an_error) {
    int code = program_shell("touch \"$D/file\"; \"$T\" run H1 --out \"$D/file/out\"");
    cr_assert(code == 2 && lines_with("tollens: ", "") == 1 && program_says("Not a directory"),
              "%d: %s", code, program_output);
}

/* A verdict that does not arrive is no pass. */
Test(trouble, a_stdout_that_takes_nothing_is_an_error) {
    if (program_shell("test -c /dev/full") != 0) cr_skip_test("there is no /dev/full");
    static const char *const commands[] = {"run H1 --out \"$D/out\"", "list",
                                           "export \"$D/out\" --format junit"};
    for (size_t i = 0; i < 3; i++) {
        char command[128];
        snprintf(command, sizeof command, "\"$T\" %s >/dev/full", commands[i]);
        cr_assert(program_shell(command) == 2 && program_says("stdout cannot be written"), "%s: %s",
                  command, program_output);
    }
}

/* ---- plugins that end the process, or judge something else ----------------------------------- */

/* A plugin that measures 5 where at most 1 is allowed. */
#define PLUGIN                                                                                     \
    "#include <harness/plugin.h>\n#include <stdlib.h>\n#include <unistd.h>\n"                      \
    "#ifndef MEASURED\n#define MEASURED .is_measured = true,\n#endif\n"                            \
    "static const struct hyp_saboteur s[] = {{.name = \"alloc_leak\", .forced = "                  \
    "HYP_MUST_FALSIFY}, {.name = NULL}};\n"                                                        \
    "static const struct hyp_plugin_claim claims[] = {{.id = \"BRK\", .title = \"t\", .unit = "    \
    "\"ratio\", .source = \"s\", .threshold = 1, .direction = HYP_AT_MOST, .words = {MEASURED "    \
    ".claim = \"c\", .prediction = \"p\", .falsified_if = \"f\", .method = \"m\", .control = "     \
    "\"k\", .confounders = \"z\"}, .saboteurs = s}, {.id = NULL}};\n"                              \
    "HYP_PLUGIN(.name = \"brk\", .version = \"1\", .claims = claims);\n"                           \
    "HYP_ATTACK(brk, a) { ATTACK; hyp_attack_measure(attack, VALUE, \"x\"); }\nEXTRA\n"

/* Builds it with macros and runs its claim. Returns the exit code. */
static int run_plugin(const char *macros) {
    char command[1200];
    program_write("p.c", PLUGIN);
    snprintf(
        command, sizeof command,
        "\"${CC:-cc}\" -shared -fPIC -DVALUE=5 -DATTACK= -DEXTRA= %s -Ihypotheses/harness/include "
        "-Iruntime/include -Iruntime/include/tollens -Iruntime/driver \"$D/p.c\" -o \"$D/p.so\" "
        "|| exit 99; cd \"$D\" && rm -rf out && timeout -k 3 60 \"$T\" run --plugin p.so "
        "--out out",
        macros);
    return program_shell(command);
}

Test(trouble, a_plugin_that_ends_the_process_hides_no_verdict) {
    cr_assert(run_plugin("") == 1 && program_says("1 falsified"), "%s", program_output);
    cr_assert(run_plugin("'-UEXTRA' '-DEXTRA=__attribute__((constructor)) static void c(void) { "
                         "exit(0); }'") == 2,
              "%s", program_output);
    cr_assert(program_says("its constructors end the process"), "%s", program_output);
    cr_assert(run_plugin("'-UEXTRA' '-DEXTRA=__attribute__((constructor)) static void c(void) { "
                         "abort(); }'") == 2,
              "%s", program_output);
    cr_assert(program_says("its constructors end by signal 6"), "%s", program_output);
    cr_assert(run_plugin("'-UEXTRA' '-DEXTRA=__attribute__((destructor)) static void c(void) { "
                         "_exit(0); }'") == 1,
              "%s", program_output);
    cr_assert(run_plugin("'-UEXTRA' '-DEXTRA=static void c(void) { _exit(0); } "
                         "__attribute__((constructor)) static void d(void) { atexit(c); }'") == 1,
              "%s", program_output);
    cr_assert(run_plugin("'-UATTACK' '-DATTACK=exit(0)'") != 0, "%s", program_output);
}

Test(trouble, a_plugin_that_judges_another_number_is_refused) {
    cr_assert(run_plugin("-DMEASURED=") == 2, "%s", program_output);
    cr_assert(program_says("BRK counts violations, so its threshold must be at most 0"), "%s",
              program_output);
}

/* Nothing was checked, or the number is none: exit code 2 or 1, and never 0. */
Test(trouble, an_attack_that_checked_nothing_is_no_success) {
    cr_assert(run_plugin("'-UATTACK' '-DATTACK=if (attack != NULL) return'") == 2 &&
                  program_says("a: the attack checked nothing"),
              "%s", program_output);
    cr_assert(run_plugin("'-UATTACK' '-DATTACK=hyp_attack_record(attack, 5, \"x\"); return'") ==
                      2 &&
                  program_says("a: the attack checked nothing"),
              "%s", program_output);
    cr_assert(run_plugin("'-UATTACK' '-DATTACK=HYP_CHECK(attack, true, \"x\"); return'") == 2 &&
                  program_says("nothing was measured"),
              "%s", program_output);
    cr_assert(
        run_plugin("'-UATTACK' '-DATTACK=hyp_attack_not_tested(attack, \"c\", \"r\"); return'") ==
                2 &&
            program_says("tollens: no attack checked anything, so nothing is known\n  next: "),
        "%s", program_output);
    cr_assert(program_shell("cd \"$D\" && \"$T\" run --plugin p.so --allow-untested --out o") == 0,
              "%s", program_output);
    cr_assert(!program_says("tollens: "), "%s", program_output);
}

Test(trouble, a_number_that_is_none_or_comes_first_hides_no_violation) {
    cr_assert(run_plugin("-UVALUE '-DVALUE=(0.0 / 0.0)'") == 1, "%s", program_output);
    cr_assert(run_plugin("-UVALUE '-DVALUE=(1.0 / 0.0)'") == 1, "%s", program_output);
    cr_assert(run_plugin("-UVALUE '-DVALUE=(-1.0 / 0.0)'") == 2, "%s", program_output);
    cr_assert(run_plugin("-UVALUE -DVALUE=0.5 '-UATTACK' "
                         "'-DATTACK=hyp_attack_measure(attack, 9, \"y\")'") == 1,
              "%s", program_output);
    cr_assert(run_plugin("'-UEXTRA' '-DEXTRA=HYP_ATTACK(brk, b) { hyp_attack_not_tested(attack, "
                         "\"c\", \"r\"); }'") == 1,
              "%s", program_output);
}

Test(trouble, an_attack_that_changes_its_folder_keeps_its_record) {
    cr_assert(run_plugin("-UVALUE -DVALUE=0.5 '-UATTACK' '-DATTACK=if (chdir(\"/\")) abort()'") ==
                  0,
              "%s", program_output);
    cr_assert(program_says("1 survived"), "%s", program_output);
    expect_whole_files("out");
}

/* ---- what a parent process, a container or a job left ---------------------------------------- */

Test(trouble, signals_that_a_parent_process_ignored_or_blocked_change_nothing) {
    cr_assert(program_shell("perl -MPOSIX -e '$SIG{CHLD} = $SIG{PIPE} = \"IGNORE\"; "
                            "sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGCHLD, SIGTERM)); exec "
                            "@ARGV' timeout -k 3 60 \"$T\" run H3 --filter 'H3/small*' --out "
                            "\"$D/out\"") == 3,
              "%s", program_output);
    cr_assert(program_says("the filter selected 1 of"), "%s", program_output);
    /* A reader that goes away stops no run: the evidence is whole. */
    cr_assert(program_shell("{ \"$T\" run H2 --seeds 1 --out \"$D/out\"; echo $? >\"$D/code\"; } | "
                            "true; cat \"$D/code\"") == 0 &&
                  program_says("2\n"),
              "%s", program_output);
    expect_whole_files("out");
}

Test(trouble, a_container_without_proc_and_a_limit_of_addresses_are_named) {
    if (program_shell("unshare -rm mount -t tmpfs none /proc") != 0) {
        cr_skip_test("not run here: no mount namespace");
    }
    cr_assert(program_shell("unshare -rm sh -c 'mount -t tmpfs none /proc && \"$T\" run H2 --out "
                            "\"$D/out\"'") == 2,
              "%s", program_output);
    cr_assert(program_says("/proc is not mounted"), "%s", program_output);
    cr_assert(program_shell("ulimit -v 4000000; \"$T\" run H2 --out \"$D/out\"") == 2, "%s",
              program_output);
    cr_assert(program_says("ulimit -v"), "%s", program_output);
}

/* As in containers whose profile is older than these calls. It holds for this test's process and
 * for all that it starts. */
static bool refuse_calls(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

Test(trouble, a_container_that_refuses_membarrier_and_sysinfo_changes_no_verdict) {
    cr_assert(refuse_calls());
    cr_assert(program_shell("\"$T\" run H2 H9 H13 --seeds 1 --out \"$D/out\"") == 0 &&
                  program_says("3 survived"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" run H9 --under alloc_leak --seeds 1 --out \"$D/under\"") == 1,
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- \"${T%/*}/soft-client\" store 16") ==
                  7,
              "%s", program_output);
}

/* Criterion succeeds even if it ran no test. */
Test(trouble, a_filter_of_tests_that_selects_none_is_an_error) {
    cr_assert(program_shell("\"${T%/*}/test-harness\" --filter 'no_such_suite/*'") == 2, "%s",
              program_output);
    cr_assert(program_says("no test matches the filter"), "%s", program_output);
}

/* A name with an escape sequence could hide a message, or change what a terminal shows of it. */
Test(trouble, control_characters_of_names_and_variables_are_not_printed) {
    static const char *const commands[] = {"\"$T\" \"$E\"",
                                           "\"$T\" explain \"$E\"",
                                           "\"$T\" run --out \"/dev/null/$E\"",
                                           "\"$T\" run --device \"$E\"",
                                           "\"$T\" gate \"$E\" --baseline x",
                                           "\"$T\" list --plugin \"/no/$E\"",
                                           "\"$T\" report \"/no/$E\"",
                                           "\"$T\" merge \"/no/$E\" --out \"$D/m\"",
                                           "\"$T\" replay \"/no/$E\"",
                                           "\"$T\" model info \"/no/$E\"",
                                           "\"$T\" soft -- \"/no/$E\"",
                                           "\"$T\" soft --memory \"$E\" -- true",
                                           "\"$T\" guard \"--$E\"",
                                           "TOLLENS_SEED=$E \"$T\" run H1",
                                           "TOLLENS_LIBCUDA=/no/$E \"$T\" run H1 --device cuda"};
    char command[256];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(command, sizeof command, "E=$(printf '\\033[31mx\\302\\233y\\177'); %s",
                 commands[i]);
        cr_assert(program_shell(command) == 2, "%s: %s", command, program_output);
        cr_assert(strpbrk(program_output, "\033\177\r") == NULL && !program_says("\302\233"),
                  "%s: %s", command, program_output);
        cr_assert(program_says("?[31mx"), "%s: %s", command, program_output);
    }
}
