/*
 * tollens soft: a program on the soft device, what is found in it, and what can go wrong.
 */
#include "program/shell_scene.h"
#include "soft_report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(soft_command, .init = program_begin, .fini = program_end);

#define CLIENT "\"${T%/*}/soft-client\""

Test(soft_command, a_clean_program_has_no_findings) {
    cr_assert(program_shell("\"$T\" soft -- " CLIENT " store 15") == 0, "%s", program_output);
    cr_assert(program_says("tollens soft: 1 process, 1 kernel, 1 launch\n"), "%s", program_output);
    cr_assert(program_says("tollens soft: 0 findings (checks: memory,init,sync)\n"), "%s",
              program_output);
}

Test(soft_command, what_is_found_is_counted_and_shown) {
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " store 16") == 7, "%s",
              program_output);
    cr_assert(program_says("tollens soft: 1 finding: 1 illegal address (checks:"), "%s",
              program_output);
    cr_assert(program_says("tollens soft: the first: illegal address in kernel store, block "
                           "(0,0,0), thread (0,0,0), at PTX line 7: a store of 4 bytes"),
              "%s", program_output);
    /* Without the option the exit code is the program's. */
    cr_assert(program_shell("\"$T\" soft -- " CLIENT " store 16") == 0, "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --check=leak --error-exitcode=9 -- " CLIENT " store 0") ==
                  9,
              "%s", program_output);
    cr_assert(program_says(" leak (checks: leak)"), "%s", program_output);
}

#define LEAKS "\"$T\" soft --check leak --error-exitcode 9 "

Test(soft_command, known_findings_are_suppressed) {
    cr_assert(program_shell("cd \"$D\" && " LEAKS "--write-suppressions known -- " CLIENT
                            " store 0") == 9,
              "%s", program_output);
    cr_assert(program_shell("grep -q '^leak; [*]; .*soft_client.c:[0-9]*$' \"$D/known\"") == 0);
    cr_assert(program_shell("cd \"$D\" && " LEAKS "--suppressions known -- " CLIENT " store 0") ==
                  0,
              "%s", program_output);
    cr_assert(program_says("0 findings; ") && program_says(" suppressed (checks: leak)"), "%s",
              program_output);
    /* What ends a launch is reported all the same. */
    program_write("all", "# all\n*; *; *\n");
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 --suppressions \"$D/all\" -- " CLIENT
                            " store 16") == 7,
              "%s", program_output);
}

Test(soft_command, suppressions_that_cannot_be_read_or_written_are_an_error) {
    program_write("wrong", "leak; *; *\nleak *\n");
    cr_assert(program_shell("\"$T\" soft --suppressions \"$D/wrong\" -- " CLIENT " store 0") == 2);
    cr_assert(program_says("line 2: expected KIND; KERNEL; PLACE"), "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --suppressions \"$D/none\" -- " CLIENT " store 0") == 2);
    cr_assert(program_shell(LEAKS "--write-suppressions /dev/full -- " CLIENT " store 0") == 2,
              "%s", program_output);
}

Test(soft_command, the_programs_exit_code_and_signal_are_passed_on) {
    cr_assert(program_shell("\"$T\" soft -- " CLIENT " return 42") == 42, "%s", program_output);
    cr_assert(program_shell("\"$T\" soft -- sh -c 'kill -TERM $$'") == 128 + 15, "%s",
              program_output);
    cr_assert(program_says("tollens soft: no process used the device"), "%s", program_output);
    cr_assert(program_shell("\"$T\" soft -- " CLIENT " leave 99") == 0, "%s", program_output);
    cr_assert(program_says("no process used the device and ended by itself") &&
                  program_says("1 finding: 1 illegal address"),
              "%s", program_output);
}

Test(soft_command, children_and_their_reports_count) {
    program_write("report.json", "{\"kind\": \"older\", \"severity\": \"error\"}\n");
    cr_assert(program_shell("cd \"$D\" && \"$T\" soft --report report.json --error-exitcode 1 -- "
                            "sh -c 'for i in 1 2 3; do " CLIENT " store $i; done; " CLIENT
                            " store 20'") == 1,
              "%s", program_output);
    cr_assert(program_says("4 processes, 4 kernels, 4 launches") &&
                  program_says("1 finding: 1 illegal address"),
              "%s", program_output);
    cr_assert(program_shell("test \"$(wc -l <\"$D/report.json\")\" = 2") == 0,
              "the report is appended to what was there");
}

/* A mistake that happens again and again is one place. */
Test(soft_command, findings_of_one_place_are_counted_together) {
    cr_assert(program_shell("\"$T\" soft --error-exitcode 9 -- sh -c 'for i in 20 21 22; do " CLIENT
                            " store $i; done'") == 9,
              "%s", program_output);
    cr_assert(program_says("3 findings at 1 place: 3 illegal address (checks:"), "%s",
              program_output);
    cr_assert(program_shell(
                  "\"$T\" soft --json --error-exitcode 9 -- sh -c 'for i in 20 21 22; do " CLIENT
                  " store $i; done'") == 9);
    cr_assert(program_says("\"findings\": 3, \"places\": 1"), "%s", program_output);
}

/* The number of kernels in a trace, and of their processes. */
static int count_kernels(const json_t *trace, int *processes, int *errors) {
    json_int_t seen[8] = {0};
    int kernels = 0;
    size_t at = 0;
    const json_t *event = NULL;
    *processes = *errors = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), at, event) {
        const char *category = json_string_value(json_object_get(event, "cat"));
        const json_int_t id = json_integer_value(json_object_get(event, "pid"));
        if (category == NULL || strcmp(category, "kernel") != 0) continue;
        kernels++;
        const json_t *arguments = json_object_get(event, "args");
        *errors += json_integer_value(json_object_get(arguments, "error")) == 700;
        int i = 0;
        while (i < *processes && seen[i] != id) i++;
        if (i == *processes && i < 8) seen[(*processes)++] = id;
    }
    return kernels;
}

Test(soft_command, a_trace_has_all_processes) {
    int processes = 0, errors = 0;
    cr_assert(program_shell("cd \"$D\" && \"$T\" soft --trace trace.json -- sh -c 'cd /; " CLIENT
                            " store 1; " CLIENT " store 2; " CLIENT " leave 99'") == 0,
              "%s", program_output);
    json_t *trace = program_json("trace.json");
    cr_assert(count_kernels(trace, &processes, &errors) == 3);
    cr_assert(processes == 3 && errors == 1);
    json_decref(trace);
    /* A program that uses no device, and a file that is no file. */
    cr_assert(program_shell("cd \"$D\" && \"$T\" soft --allow-unused --trace=trace.json -- true") ==
              0);
    trace = program_json("trace.json");
    cr_assert(json_array_size(json_object_get(trace, "traceEvents")) == 1);
    json_decref(trace);
    cr_assert(program_shell("\"$T\" soft --trace /none/trace.json -- true") == 2);
    cr_assert(program_says("the trace /none/trace.json cannot be written: No such file"), "%s",
              program_output);
}

Test(soft_command, options_reach_the_device) {
    cr_assert(program_shell("\"$T\" soft --devices 3 --memory=64M --compute 80 -- "
                            "\"$T\" doctor --device cuda") >= 0);
    cr_assert(
        program_shell("\"$T\" soft --devices 3 --memory=64M --compute 80 --seed 5 --workers 2 "
                      "--driver 12040 --order drawn --allow-unused -- sh -c 'env | grep "
                      "^TOLLENS_SOFT | sort'") == 0);
    cr_assert(program_says("TOLLENS_SOFT_COMPUTE=80\nTOLLENS_SOFT_DEVICES=3\n"
                           "TOLLENS_SOFT_DRIVER_VERSION=12040\n") &&
                  program_says("TOLLENS_SOFT_MEMORY=64M\nTOLLENS_SOFT_ORDER=drawn\n") &&
                  program_says("TOLLENS_SOFT_SEED=5\n") && program_says("TOLLENS_SOFT_WORKERS=2\n"),
              "%s", program_output);
    /* What follows -- is the program's. */
    cr_assert(program_shell("\"$T\" soft --allow-unused -- echo --help --plugin=none") == 0, "%s",
              program_output);
    cr_assert(program_says("--help --plugin=none\n"), "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --help") == 0 && program_says("--error-exitcode"), "%s",
              program_output);
}

Test(soft_command, nvjitlink_can_be_hidden) {
    const char *const list = "sh -c 'cd ${LD_LIBRARY_PATH%%:*} && readlink libnvJitLink.so.*'";
    char command[160];
    snprintf(command, sizeof command, "\"$T\" soft --allow-unused -- %s", list);
    cr_assert(program_shell(command) == 0 && program_says("/libnvJitLink.so.12\n") &&
                  program_says("/libnvJitLink.so.13\n"),
              "%s", program_output);
    snprintf(command, sizeof command, "\"$T\" soft --allow-unused --no-nvjitlink -- %s", list);
    cr_assert(program_shell(command) == 0, "%s", program_output);
    cr_assert(program_says("libtollens-soft.so\n") && !program_says("JitLink"), "%s",
              program_output);
}

/* Without the audit library, the loader would open this file, which is no library. */
Test(soft_command, a_driver_is_replaced_wherever_it_is_looked_for) {
    program_write("libcuda.so.1", "no library\n");
    cr_assert(program_shell(CLIENT " open \"$D/libcuda.so.1\"") == 98, "%s", program_output);
    cr_assert(program_shell("\"$T\" soft -- " CLIENT " open \"$D/libcuda.so.1\"") == 0, "%s",
              program_output);
    cr_assert(program_shell("\"$T\" soft -- sh -c 'cd /; LD_LIBRARY_PATH=$D " CLIENT
                            " store 3; LD_LIBRARY_PATH= " CLIENT " store 3'") == 0,
              "%s", program_output);
    cr_assert(program_says("2 processes, 2 kernels, 2 launches"), "%s", program_output);
    /* What is not of the list stays. */
    cr_assert(program_shell("\"$T\" soft --allow-unused -- " CLIENT " open \"$D/libother.so.1\"") ==
                  98,
              "%s", program_output);
    cr_assert(
        program_shell("GLIBC_TUNABLES=glibc.malloc.check=0 \"$T\" soft --allow-unused -- sh -c "
                      "'echo $GLIBC_TUNABLES'") == 0 &&
            program_says("glibc.rtld.optional_static_tls=8192:glibc.malloc.check=0\n"),
        "%s", program_output);
#ifndef PROGRAM_IS_SANITIZED /* it does not start below another preloaded library */
    /* What the user preloads and audits stays too. */
    cr_assert(program_shell("LD_PRELOAD=libdl.so.2 LD_AUDIT=/none/audit.so \"$T\" soft "
                            "--allow-unused -- sh -c 'echo $LD_PRELOAD; echo $LD_AUDIT'") == 0 &&
                  program_says("libdl.so.2 ") && program_says("libtollens-audit.so:/none/audit.so"),
              "%s", program_output);
#endif
}

Test(soft_command, a_static_runtime_is_redirected_by_its_names) {
#ifdef PROGRAM_IS_SANITIZED
    cr_skip_test("no runtime is preloaded that the sanitizers are in");
#endif
    cr_assert(program_shell(CLIENT " version 0") == 0 && program_says("version -1\n"), "%s",
              program_output);
    /* Its functions are those of CUDA 12. */
    cr_assert(program_shell("\"$T\" soft --allow-unused -- " CLIENT " version 0") == 0, "%s",
              program_output);
    cr_assert(program_says("version 12") && !program_says("own cuda"), "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --allow-unused -- sh -c 'cd /; " CLIENT " version 0'") ==
                      0 &&
                  program_says("version 12"),
              "%s", program_output);
    /* A child that is started without the runtime says so. */
    cr_assert(program_shell("\"$T\" soft --allow-unused -- env -u LD_PRELOAD " CLIENT
                            " version 0") == 0 &&
                  program_says("version -1\n") &&
                  program_says("is not redirected, because no libcudart of tollens is loaded"),
              "%s", program_output);
}

Test(soft_command, a_runtime_that_cannot_be_redirected_is_named) {
#ifdef PROGRAM_IS_SANITIZED
    cr_skip_test("the client has no runtime then");
#endif
    if (program_shell("strip -o \"$D/stripped\" " CLIENT) == 0) {
        cr_assert(program_shell("\"$T\" soft --allow-unused -- \"$D/stripped\" version 0") == 0,
                  "%s", program_output);
        cr_assert(program_says("/stripped has device code and a CUDA runtime whose functions have "
                               "no names: its CUDA calls are refused; link it with -cudart shared, "
                               "or do not strip it"),
                  "%s", program_output);
        cr_assert(program_shell("\"$T\" doctor -- \"$D/stripped\"") == 0 &&
                      program_says("CUDA runtime: static and without names"),
                  "%s", program_output);
    }
    /* PR_SET_MDWE: this process and its children may not change pages that are executed. */
#define UNCHANGED "perl -e 'exit 9 if syscall(157, 65, 1, 0, 0, 0) != 0; exec @ARGV' "
#if defined(__x86_64__)
    if (program_shell(UNCHANGED "true") == 0) {
        cr_assert(program_shell("\"$T\" soft --allow-unused -- " UNCHANGED CLIENT " version 0") ==
                      0,
                  "%s", program_output);
        cr_assert(
            program_says("soft-client: the pages of its static CUDA runtime may not be changed "
                         "(mprotect: ") &&
                program_says("version -1\n"),
            "%s", program_output);
    }
#endif
}

Test(soft_command, a_program_without_the_loader_is_refused) {
    static const unsigned char head[64] = {0x7f, 'E',      'L',       'F',      2,        1,
                                           1,    [16] = 2, [18] = 62, [20] = 1, [54] = 56};
    char path[600];
    cr_assert(program_shell("echo \"$D/static\"") == 0);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(program_output, "\n"), program_output);
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL && fwrite(head, sizeof head, 1, file) == 1 && fclose(file) == 0);
    cr_assert(program_shell("chmod +x \"$D/static\" && \"$T\" doctor -- \"$D/static\"") == 2);
#if defined(__x86_64__)
    cr_assert(program_says("tollens soft refuses it: ") &&
                  program_says("/static is statically linked, so no loader can give it the soft "
                               "device\n"),
              "%s", program_output);
    /* A script's program is its interpreter. */
    program_write("script", "#! ./static  -x\n");
    cr_assert(program_shell("cd \"$D\" && chmod +x script && \"$T\" soft -- ./script") == 2 &&
                  program_says("/static is statically linked") &&
                  program_says("soft --allow-unused -- ./script, if only its children"),
              "%s", program_output);
#endif
    if (program_shell("test \"$(id -u)\" = 0 && cp \"$(command -v true)\" \"$D/changes\" && chown "
                      "daemon \"$D/changes\" && chmod u+s \"$D/changes\"") != 0) {
        return;
    }
    cr_assert(program_shell("\"$T\" soft -- \"$D/changes\"") == 2 &&
                  program_says("/changes is setuid or setgid, so the loader ignores LD_AUDIT"),
              "%s", program_output);
}

/* An access outside of a matrix is found in cuBLAS's kernel. */
Test(soft_command, cublas_is_ours_by_either_name) {
    static const char *const names[] = {"cublas", "cublas12"};
    char command[200];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "\"$T\" soft --error-exitcode 7 -- %s %s 4", CLIENT,
                 names[i]);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        cr_assert(program_says("c[1][1] = 174\n") && program_says("0 findings"), "%s",
                  program_output);
        snprintf(command, sizeof command, "\"$T\" soft --error-exitcode 7 -- %s %s 5", CLIENT,
                 names[i]);
        cr_assert(program_shell(command) == 7, "%s", program_output);
        cr_assert(program_says("illegal address in kernel blas_") &&
                      program_says("16 bytes past the end of allocation ") &&
                      program_says(" of 64 bytes") &&
                      program_says("tollens soft: 1 process, 1 kernel, 1 launch\n"),
                  "%s", program_output);
    }
}

Test(soft_command, the_doctor_says_what_a_program_gets) {
    cr_assert(program_shell("\"$T\" doctor -- sh") == 0, "%s", program_output);
    cr_assert(program_says("program: /") && program_says("\n  CUDA runtime: none in this file") &&
                  program_says("/libtollens-soft.so\n  libcuda.so ") &&
                  program_says("/libcudart.so.13\n") && program_says("/libcublasLt.so.13\n"),
              "%s", program_output);
#ifndef PROGRAM_IS_SANITIZED
    cr_assert(program_shell("\"$T\" doctor -- " CLIENT) == 0 &&
                  program_says("  CUDA runtime: static; its functions go to the libcudart below\n"),
              "%s", program_output);
#endif
    cr_assert(program_shell("\"$T\" doctor -- /no/such/program") == 2 &&
                  program_says("there is no program /no/such/program"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" doctor --json -- sh") == 2 && program_says("without --json"),
              "%s", program_output);
}

Test(soft_command, without_the_audit_library_it_says_so) {
    cr_assert(program_shell("mkdir \"$D/alone\" \"$D/a:b\" && for d in alone a:b; do ln "
                            "\"${T%/*}/libtollens-soft.so\" \"$D/$d\" || cp "
                            "\"${T%/*}/libtollens-soft.so\" \"$D/$d\"; done; cp "
                            "\"${T%/*}/libtollens-audit.so\" \"$D/a:b\"") == 0,
              "%s", program_output);
    cr_assert(
        program_shell("TOLLENS_SOFT_LIBRARY=\"$D/alone/libtollens-soft.so\" \"$T\" soft -- " CLIENT
                      " store 1") == 0,
        "%s", program_output);
    cr_assert(program_says("tollens soft: libtollens-audit.so is not beside ") &&
                  program_says("1 process, 1 kernel, 1 launch"),
              "%s", program_output);
    cr_assert(
        program_shell("TOLLENS_SOFT_LIBRARY=\"$D/a:b/libtollens-soft.so\" \"$T\" soft -- " CLIENT
                      " store 1") == 0,
        "%s", program_output);
    cr_assert(program_says("because LD_AUDIT separates paths at : and expands $") &&
                  program_says("1 process, 1 kernel, 1 launch"),
              "%s", program_output);
}

Test(soft_command, a_run_that_tested_nothing_is_no_success) {
    cr_assert(program_shell("\"$T\" soft -- true") == 2, "%s", program_output);
    cr_assert(program_says("no process used the device, so nothing was tested") &&
                  program_says("next: ") && program_says("soft --allow-unused -- true"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --allow-unused -- true") == 0, "%s", program_output);
    cr_assert(program_shell("\"$T\" soft -- false") == 1, "%s", program_output);
    /* A report that cannot be read may have had findings. */
    cr_assert(program_shell("cd \"$D\" && \"$T\" soft --report r -- sh -c '" CLIENT
                            " store 1; echo no JSON >>r'") == 2,
              "%s", program_output);
}

Test(soft_command, queued_work_is_checked_before_the_summary) {
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " quit 16") == 7, "%s",
              program_output);
    cr_assert(program_says("tollens soft: 1 process, 1 kernel, 1 launch\n") &&
                  program_says("1 finding: 1 illegal address"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " quit 3") == 0, "%s",
              program_output);
}

Test(soft_command, what_is_refused_is_a_finding) {
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " refuse 0") == 7, "%s",
              program_output);
    cr_assert(program_says("1 finding: 1 refused") &&
                  program_says("refused: 1 image with kernels could not be loaded; the first: "),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " table 0") == 7, "%s",
              program_output);
    cr_assert(program_says("no kernel ran, and 1 driver function was refused; the first: cuGet"),
              "%s", program_output);
    cr_assert(program_says("NVIDIA's CUDA runtime in /") && program_says("/soft-client needs it; "),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " unmodelled 0") == 7, "%s",
              program_output);
    cr_assert(program_says("no kernel ran, and 1 driver function was refused; the first: "
                           "cudaImportExternalMemory is not modelled"),
              "%s", program_output);
    /* Its caller goes on without it. */
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " table-memory 0") == 0,
              "%s", program_output);
    cr_assert(program_shell("\"$T\" soft --error-exitcode 7 -- " CLIENT " table-store 3") == 0,
              "%s", program_output);
}

Test(soft_command, nvml_has_the_same_devices) {
    cr_assert(program_shell("\"$T\" soft --allow-unused --devices 3 -- " CLIENT " nvml 3") == 0,
              "%s", program_output);
}

Test(soft_command, what_the_parent_process_left_changes_nothing) {
#define IGNORING "perl -e '$SIG{CHLD} = $SIG{PIPE} = \"IGNORE\"; exec @ARGV' \"$T\" soft -- "
    cr_assert(program_shell(IGNORING "false") == 1, "%s", program_output);
    cr_assert(program_shell(IGNORING CLIENT " return 42") == 42, "%s", program_output);
    cr_assert(program_shell(IGNORING CLIENT " return 0") == 0, "%s", program_output);
    /* The loader splits LD_LIBRARY_PATH at : and ;, and expands $. */
    cr_assert(program_shell("cd \"$D\" && for name in 19:45:00 'a;b' '$ORIGIN' 'a blank' ä; do "
                            "mkdir \"$name\" && TMPDIR=$D/$name \"$T\" soft -- " CLIENT
                            " store 1 || exit 9; done") == 0,
              "%s", program_output);
    cr_assert(program_says("1 process, 1 kernel, 1 launch"), "%s", program_output);
}

Test(soft_command, a_value_that_means_nothing_is_refused) {
    static const char *const values[] = {"--memory 512MB", "--devices 99",  "--devices=two",
                                         "--compute 95",   "--check luck",  "--workers -1",
                                         "--seed x",       "--driver 99999"};
    char command[200];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        snprintf(command, sizeof command, "\"$T\" soft %s -- true", values[i]);
        cr_assert(program_shell(command) == 2, "%s: %s", values[i], program_output);
        cr_assert(program_says("it must be "), "%s: %s", values[i], program_output);
    }
}

Test(soft_command, visible_devices_are_those_of_cuda) {
    cr_assert(
        program_shell("CUDA_VISIBLE_DEVICES= \"$T\" soft --devices 2 -- " CLIENT " store 1") != 0 &&
            program_says("cuInit: 100\n"),
        "%s", program_output);
    cr_assert(program_shell("CUDA_VISIBLE_DEVICES=1,-1 \"$T\" soft --devices 2 -- " CLIENT
                            " store 1") == 0,
              "%s", program_output);
}

Test(soft_command, nothing_is_left_behind) {
    cr_assert(program_shell("mkdir \"$D/tmp\" && TMPDIR=$D/tmp \"$T\" soft -- " CLIENT
                            " store 16; ls \"$D/tmp\" | wc -l") == 0 &&
                  program_says("\n0\n"),
              "%s", program_output);
}

Test(soft_command, what_cannot_be_run_is_said) {
    static const struct {
        const char *command, *text;
    } cases[] = {
        {"\"$T\" soft", "tollens: soft requires a program"},
        {"\"$T\" soft --", "tollens: soft requires a program"},
        {"\"$T\" soft echo", "soft: echo is not an option with a value; the program follows"},
        {"\"$T\" soft --memory", "soft: --memory is not an option with a value"},
        {"\"$T\" soft --error-exitcode x -- true", "a number from 0 to 255, not x"},
        {"\"$T\" soft -- /no/such/program", "/no/such/program cannot be run: No such file"},
        {"\"$T\" soft --report /no/such/file -- true",
         "the report /no/such/file cannot be written"},
        {"TMPDIR=/no/such \"$T\" soft -- true", "no folder can be made in /no/such: No such file"},
        {"TOLLENS_SOFT_LIBRARY=/no/lib \"$T\" soft -- true", "the soft device /no/lib: No such"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(program_shell(cases[i].command) == 2, "%s: %s", cases[i].command, program_output);
        cr_assert(program_says(cases[i].text), "%s: %s", cases[i].command, program_output);
    }
}

Test(soft_command, a_report_is_counted_by_kind) {
    char path[600], text[4000] = "";
    struct hyp_soft_report report = {.findings = 0};
    for (int i = 0; i < 30; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "{\"kind\": \"kind %d\", \"severity\": \"%s\"}\n",
                 i, i == 3 ? "note" : "warning");
    }
    strcat(text, "not JSON\n");
    program_write("findings", text);
    cr_assert(program_shell("echo \"$D/findings\"") == 0);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(program_output, "\n"), program_output);
    hyp_soft_report_findings(&report, path, 0);
    cr_assert(report.findings == 29 && report.notes == 1 && report.unreadable == 1);
    cr_assert(report.kind_count == HYP_SOFT_KINDS);
    cr_assert_str_eq(report.kinds[HYP_SOFT_KINDS - 1].name, "other");
    cr_assert_eq(report.kinds[HYP_SOFT_KINDS - 1].count, 29 - (HYP_SOFT_KINDS - 1));
    cr_assert(strncmp(report.first, "kind 0: ", 8) == 0, "%s", report.first);
    hyp_soft_report_findings(&report, "/no/such/file", 0);
    cr_assert_eq(report.findings, 29);
    /* The first finding names its kernel, block, thread and line. */
    program_write("findings", "{\"kind\": \"race\", \"severity\": \"error\", \"kernel\": \"k\", "
                              "\"block\": [4, 5, 6], \"thread\": [1, 2, 3], \"ptx_line\": 7}\n");
    report = (struct hyp_soft_report){.findings = 0};
    hyp_soft_report_findings(&report, path, 0);
    cr_assert(strstr(report.first, " in kernel k, block (4,5,6), thread (1,2,3), at PTX line 7") !=
                  NULL,
              "%s", report.first);
}
