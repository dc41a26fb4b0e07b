/*
 * How findings are reported: where, how severe, and whether the launch continues.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(report, .fini = test_soft_close);

static char path[] = "/tmp/tollens_report_XXXXXX";

static void begin(const char *file, const char *checks) {
    setenv("TOLLENS_SOFT_REPORT", file, 1);
    if (checks != NULL) setenv("TOLLENS_SOFT_CHECK", checks, 1);
    test_capture(stderr);
    test_soft_open();
}

static void begin_file(const char *checks) {
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    begin(path, checks);
}

static const char *reported(void) {
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

static unsigned times_in(const char *text, const char *part) {
    unsigned times = 0;
    while ((text = strstr(text, part)) != NULL) {
        times++;
        text++;
    }
    return times;
}

/* A read of what was never written, a race of two warps, and one of equal values. */
#define UNWRITTEN                                                                                  \
    TEST_KERNEL_WITH(".shared .u32 s;", "ld.shared.u32 %r5, [s]; st.global.u32 [%rd2], %r5;\n")
#define RACE TEST_KERNEL_WITH(".shared .u32 s;", "st.shared.u32 [s], %r3;\n")
#define EQUAL TEST_KERNEL_WITH(".shared .u32 s;", "st.shared.u32 [s], 7;\n")

Test(report, a_file_that_cannot_be_written_is_told_of_once) {
    static const char *const files[] = {"/dev/full", "/nowhere/at/all"};
    for (int i = 0; i < 2; i++) {
        /* Options are read once for a process. */
        pid_t child = fork();
        if (child == 0) {
            uint32_t out[32] = {0};
            begin(files[i], NULL);
            bool ok = true;
            for (int turn = 0; turn < 2; turn++) {
                ok = test_run(UNWRITTEN, 1, 32, out, sizeof out) == CUDA_SUCCESS && ok;
            }
            ok = ok && times_in(test_captured(stderr), "uninitialised read in kernel k") == 2 &&
                 times_in(test_captured(stderr), "cannot write to the report file ") == 1 &&
                 times_in(test_captured(stderr), files[i]) == 1;
            _exit(ok ? 0 : 1);
        }
        int status = 0;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", files[i]);
    }
}

Test(report, findings_are_warnings_and_the_launch_goes_on) {
    uint32_t out[64] = {0};
    begin_file("init,race");
    TEST_RUN(UNWRITTEN, 1, 64, out);
    TEST_RUN(RACE, 1, 64, out);
    TEST_RUN(EQUAL, 1, 64, out);
    const char *json = reported();
    cr_assert_eq(times_in(json, "\n"), 3, "%s", json);
    cr_assert_eq(times_in(json, "\"result\": 0, "), 3, "%s", json);
    cr_assert_eq(times_in(json, "\"severity\": \"warning\""), 2, "%s", json);
    cr_assert_eq(times_in(json, "\"severity\": \"note\""), 1, "%s", json);
    cr_assert_eq(times_in(json, "\"other\": {\"function\": \"\", "), 2, "%s", json);
}

/* With the check fatal, a finding ends the launch and with it the context; a note never does. */
Test(report, findings_may_be_fatal) {
    static const char *const texts[] = {UNWRITTEN, RACE};
    uint32_t out[64] = {0};
    begin_file("init,race,fatal");
    TEST_RUN(EQUAL, 1, 64, out);
    for (int i = 0; i < 2; i++) {
        CUdeviceptr more = 0;
        cr_assert_eq(test_run(texts[i], 1, 64, out, sizeof out), CUDA_ERROR_LAUNCH_FAILED, "%d", i);
        cr_assert_eq(cuMemAlloc_v2(&more, 4), CUDA_ERROR_LAUNCH_FAILED);
        test_soft_close();
        test_soft_open();
    }
    const char *json = reported();
    cr_assert_eq(times_in(json, "\n"), 3, "%s", json);
    cr_assert_eq(times_in(json, "\"kind\": \"uninitialised read\", \"result\": 719"), 1, "%s",
                 json);
    cr_assert_eq(times_in(json, "\"kind\": \"data race\", \"result\": 719"), 1, "%s", json);
    cr_assert_eq(times_in(json, "\"severity\": \"error\""), 2, "%s", json);
}

Test(report, what_is_not_asked_for_is_not_found) {
    uint32_t out[64] = {0};
    begin_file("memory");
    TEST_RUN(UNWRITTEN, 1, 64, out);
    TEST_RUN(RACE, 1, 64, out);
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra EVEN;\n"
                         "bar.sync 0; bra END; EVEN: bar.sync 0; END:\n"),
             1, 32, out);
    cr_assert_str_eq(reported(), "");
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Block 1 reads a word that block 0 changes by an atomic; two blocks take a lock, with or without a
 * fence after the compare-and-swap that takes it. */
#define GUARD                                                                                      \
    TEST_KERNEL("mov.u32 %r5, %ctaid.x; setp.ne.u32 %p1, %r5, 0;\n"                                \
                "@%p1 ld.global.u32 %r6, [%rd1];\n"                                                \
                "@!%p1 atom.global.max.u32 %r6, [%rd1], 3;\n")
#define LOCK(fence)                                                                                \
    TEST_KERNEL("AGAIN: atom.global.cas.b32 %r5, [%rd1], 0, 1; setp.ne.u32 %p1, %r5, 0;\n"         \
                "@%p1 bra AGAIN;\n" fence                                                          \
                "ld.global.u32 %r6, [%rd1+4]; add.u32 %r6, %r6, 1; st.global.u32 [%rd1+4], %r6;\n" \
                "membar.gl; atom.global.exch.b32 %r5, [%rd1], 0;\n")

static void check_races(const char *text, const char *checks, bool are_expected) {
    uint32_t out[64] = {0};
    begin_file(checks);
    TEST_RUN(text, 2, 1, out);
    const char *json = reported();
    cr_assert_eq(times_in(json, "data race") > 0, are_expected, "%s", json);
}

Test(report, a_weak_read_beside_an_atomic_is_no_race) {
    check_races(GUARD, "race", false);
}

Test(report, a_weak_read_beside_an_atomic_is_a_strict_race) {
    check_races(GUARD, "race=strict", true);
}

Test(report, a_lock_without_a_fence_is_no_race) {
    check_races(LOCK(""), "race", false);
}

Test(report, a_lock_without_a_fence_is_a_strict_race) {
    check_races(LOCK(""), "race=strict", true);
}

Test(report, a_lock_with_a_fence_is_no_strict_race) {
    check_races(LOCK("membar.gl;\n"), "race=strict", false);
}

/* Goal: one run shows the mistakes of several kernels, which a GPU's context cannot. */
Test(report, an_error_may_leave_the_context_alone) {
    uint32_t out[64] = {0};
    begin_file("memory,continue");
    TEST_RUN(TEST_KERNEL("st.global.u32 [%rd1+4096], 1;\n"), 1, 64, out);
    TEST_RUN(TEST_KERNEL("mov.u64 %rd5, 0; st.global.u32 [%rd5], 1;\n"), 1, 64, out);
    TEST_RUN(TEST_KERNEL("st.global.u32 [%rd2], 3;\n"), 1, 64, out);
    cr_assert(out[0] == 3 && out[63] == 3);
    const char *json = reported();
    cr_assert_eq(times_in(json, "\"severity\": \"error\""), 2, "%s", json);
    cr_assert_eq(times_in(json, "\"result\": 700"), 2, "%s", json);
}

/* Goal: a finding in a library's header is suppressed by the program's own line. */
Test(report, a_call_of_an_inlined_line_is_a_place) {
    uint32_t out[64] = {0};
    char known[] = "/tmp/tollens_known_XXXXXX";
    static const char line[] = "uninitialised read; k; */program.cu:20\n";
    const int file = mkstemp(known);
    cr_assert(file >= 0 && write(file, line, sizeof line - 1) == sizeof line - 1);
    close(file);
    setenv("TOLLENS_SOFT_SUPPRESSIONS", known, 1);
    begin_file("init");
    unlink(known);
    TEST_RUN(TEST_KERNEL_WITH(".shared .u32 s;",
                              ".file 1 \"/a/program.cu\"\n.file 2 \"/b/header.h\"\n"
                              ".loc 2 8 5, function_name $L__info_string0, inlined_at 1 20 3\n"
                              "ld.shared.u32 %r5, [s]; st.global.u32 [%rd2], %r5;\n"),
             1, 1, out);
    cr_assert(strstr(reported(), "\"severity\": \"suppressed\"") != NULL);
    cr_assert(strstr(test_captured(stderr), "uninitialised") == NULL);
}

/* The default looks for what costs next to nothing to look for. */
Test(report, a_list_of_checks_that_makes_no_sense_is_ignored) {
    uint32_t out[64] = {0};
    begin_file("race,luck");
    TEST_RUN(UNWRITTEN, 1, 64, out);
    TEST_RUN(RACE, 1, 64, out);
    cr_assert(
        strstr(test_captured(stderr),
               "TOLLENS_SOFT_CHECK=race,luck is ignored: it must be a "
               "list of: memory, init, sync, race, race=strict, stream, leak, fatal, continue") !=
            NULL,
        "%s", test_captured(stderr));
    const char *json = reported();
    cr_assert_eq(times_in(json, "\"kind\": \"uninitialised read\""), 1, "%s", json);
    cr_assert_eq(times_in(json, "\n"), 1, "%s", json);
}

static void launch_watched(void) {
    static CUdeviceptr memory;
    if (memory == 0) OK(cuMemAlloc_v2(&memory, 64));
    api_put(memory, 1, NULL);
    OK(cuCtxSynchronize());
}

Test(report, what_watches_a_launch_goes_with_it) {
    begin_file("race");
    api_must_keep_nothing(launch_watched, 200);
    cr_assert_str_eq(reported(), "");
}
