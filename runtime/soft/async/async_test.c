/*
 * Asynchronous copies: visible after the wait, and not before.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(async, .init = begin, .fini = test_soft_close);

/* A kernel whose threads have %r10, 16 bytes of shared memory each, and %rd3, the place of their 16
 * bytes in out. */
#define COPIES(body)                                                                               \
    TEST_KERNEL_WITH(".shared .align 16 .b8 s[2048];",                                             \
                     "mov.u32 %r10, s; mad.lo.u32 %r10, %r3, 16, %r10;\n"                          \
                     "mad.wide.u32 %rd3, %r1, 16, %rd1;\n" body)
enum { COPIES_LINE = TEST_BODY_LINE + 2 };

/* Each thread's 16 bytes go to shared memory and back, plus one in each word. */
#define BACK                                                                                       \
    "ld.shared.v4.u32 {%r20,%r21,%r22,%r23}, [%r10]; add.u32 %r20, %r20, 1;\n"                     \
    "add.u32 %r21, %r21, 1; add.u32 %r22, %r22, 1; add.u32 %r23, %r23, 1;\n"                       \
    "st.global.v4.u32 [%rd3], {%r20,%r21,%r22,%r23};\n"

static void fill(uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) words[i] = (uint32_t)i * 3;
}

Test(async, what_was_waited_for_is_there) {
    static const char *const copies[] = {
        COPIES("cp.async.ca.shared.global [%r10], [%rd3], 4;\n"
               "cp.async.ca.shared::cta.global [%r10+4], [%rd3+4], 4;\n"
               "cp.async.ca.shared.global.L2::128B [%r10+8], [%rd3+8], 8;\n"
               "cp.async.commit_group; cp.async.wait_group 0;\n" BACK),
        COPIES("cp.async.cg.shared.global [%r10], [%rd3], 16; cp.async.wait_all;\n" BACK),
        COPIES("cvt.u64.u32 %rd4, %r10;\n"
               "cp.async.ca.shared.global.L2::64B [%rd4], [%rd3], 16; cp.async.wait_all;\n" BACK),
        COPIES("mov.u64 %rd5, 0; setp.ge.u32 %p1, %r3, 0;\n"
               "cp.async.cg.shared.global.L2::cache_hint.L2::256B [%r10], [%rd3], 16, %rd5;\n"
               "@!%p1 cp.async.commit_group; @%p1 cp.async.wait_all;\n" BACK),
        COPIES("mov.u64 %rd5, 0; mov.u32 %r5, 16;\n"
               "cp.async.cg.shared.global.L2::cache_hint [%r10], [%rd3], 16, %r5, %rd5;\n"
               "cp.async.wait_all;\n" BACK),
    };
    for (size_t c = 0; c < sizeof copies / sizeof copies[0]; c++) {
        uint32_t out[100 * 4];
        fill(out, 400);
        TEST_RUN(copies[c], 1, 100, out);
        for (uint32_t i = 0; i < 400; i++) {
            cr_assert_eq(out[i], 3 * i + 1, "%zu: word %u: %u", c, i, out[i]);
        }
    }
}

/* Without a wait, what shared memory held before is read: a missing wait shows every time. */
Test(async, what_was_not_waited_for_is_not_there) {
    uint32_t out[64 * 4];
    fill(out, 256);
    TEST_RUN(COPIES("mov.u32 %r5, 7; st.shared.v4.u32 [%r10], {%r5,%r5,%r5,%r5};\n"
                    "cp.async.cg.shared.global [%r10], [%rd3], 16; cp.async.commit_group;\n" BACK),
             1, 64, out);
    for (uint32_t i = 0; i < 256; i++) cr_assert_eq(out[i], 8, "word %u: %u", i, out[i]);
    cr_assert_str_eq(test_captured(stderr), "");

    /* An address without memory is reported. */
    TEST_RUN(COPIES("cp.async.cg.shared.global [%r10], [%rd3], 16; cp.async.commit_group;\n" BACK),
             1, 64, out);
    cr_assert(strstr(test_captured(stderr), "uninitialised read in kernel k") != NULL);
}

/* Three groups; the latest ones may be pending, and are. Words 0 to 3 are of groups 0, 0, 1, 2. */
Test(async, a_wait_leaves_the_latest_groups_pending) {
#define GROUPS(wait)                                                                               \
    COPIES(                                                                                        \
        "mov.u32 %r5, 1000; st.shared.v4.u32 [%r10], {%r5,%r5,%r5,%r5};\n"                         \
        "cp.async.ca.shared.global [%r10], [%rd3], 4;\n"                                           \
        "cp.async.ca.shared.global [%r10+4], [%rd3+4], 4; cp.async.commit_group;\n"                \
        "cp.async.ca.shared.global [%r10+8], [%rd3+8], 4; cp.async.commit_group;\n"                \
        "cp.async.ca.shared.global [%r10+12], [%rd3+12], 4; cp.async.commit_group;\n" wait BACK)
    static const struct {
        const char *text;
        uint32_t there; /* words */
    } cases[] = {
        {GROUPS(""), 0},
        {GROUPS("cp.async.wait_group 3;\n"), 0},
        {GROUPS("cp.async.wait_group 2;\n"), 2},
        {GROUPS("cp.async.wait_group 1;\n"), 3},
        {GROUPS("cp.async.wait_group 0;\n"), 4},
        {GROUPS("cp.async.wait_all;\n"), 4},
        {GROUPS("cp.async.wait_group -1;\n"), 0},
        /* Empty groups count as well. */
        {GROUPS("cp.async.commit_group; cp.async.wait_group 2;\n"), 3},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint32_t out[32 * 4];
        fill(out, 128);
        TEST_RUN(cases[c].text, 1, 32, out);
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t expected = i % 4 < cases[c].there ? 3 * i + 1 : 1001;
            cr_assert_eq(out[i], expected, "%zu: word %u: %u, not %u", c, i, out[i], expected);
        }
    }
#undef GROUPS
}

/* A copy that is not committed is in no group that a wait could name; wait_all waits for it. */
Test(async, what_was_not_committed_waits_for_wait_all) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(COPIES("mov.u32 %r5, 7; st.shared.v4.u32 [%r10], {%r5,%r5,%r5,%r5};\n"
                    "cp.async.ca.shared.global [%r10], [%rd3], 8; cp.async.wait_group 0;\n"
                    "ld.shared.u32 %r6, [%r10]; cp.async.wait_all; ld.shared.u32 %r7, [%r10+4];\n"
                    "st.global.v2.u32 [%rd3+8], {%r6,%r7};\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        cr_assert_eq(out[4 * i + 2], 7);
        cr_assert_eq(out[4 * i + 3], 3 * (4 * i + 1));
    }
}

/* Lanes commit and wait on their own: odd ones have a group more, and wait for all but one. */
Test(async, groups_are_each_thread_s_own) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(COPIES("mov.u32 %r5, 7; st.shared.v4.u32 [%r10], {%r5,%r5,%r5,%r5};\n"
                    "and.b32 %r6, %r3, 1; setp.ne.u32 %p1, %r6, 0;\n"
                    "cp.async.ca.shared.global [%r10], [%rd3], 4; @%p1 cp.async.commit_group;\n"
                    "cp.async.ca.shared.global [%r10+4], [%rd3+4], 4; cp.async.commit_group;\n"
                    "@!%p1 bra EVEN; cp.async.wait_group 1; bra END;\n"
                    "EVEN: cp.async.wait_group 0;\n"
                    "END: ld.shared.v2.u32 {%r6,%r7}, [%r10];\n"
                    "st.global.v2.u32 [%rd3+8], {%r6,%r7};\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        cr_assert_eq(out[4 * i + 2], 12 * i, "%u", i);
        cr_assert_eq(out[4 * i + 3], i % 2 ? 7 : 12 * i + 3, "%u: %u", i, out[4 * i + 3]);
    }
}

/* Bytes that are not read are zeros; an address from which nothing is read may be any. */
Test(async, what_is_not_read_is_zero) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(COPIES("mov.u32 %r5, 7; st.shared.v4.u32 [%r10], {%r5,%r5,%r5,%r5};\n"
                    "and.b32 %r6, %r3, 15; setp.eq.u32 %p1, %r6, 0; mov.u64 %rd4, %rd3;\n"
                    "@%p1 mov.u64 %rd4, 1;\n"
                    "cp.async.cg.shared.global [%r10], [%rd4], 16, %r6; cp.async.wait_all;\n" BACK),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t before[4] = {12 * i, 12 * i + 3, 12 * i + 6, 12 * i + 9}, after[4] = {0};
        memcpy(after, before, i % 16);
        for (uint32_t w = 0; w < 4; w++) {
            cr_assert_eq(out[4 * i + w], after[w] + 1, "%u: %u", i, out[4 * i + w]);
        }
    }
}

Test(async, a_predicate_ignores_the_source) {
    static const char *const texts[] = {
        COPIES("and.b32 %r6, %r3, 1; setp.eq.u32 %p1, %r6, 0;\n"
               "cp.async.cg.shared.global [%r10], [%rd3], 16, %p1; cp.async.wait_all;\n" BACK),
        COPIES("and.b32 %r6, %r3, 1; setp.ne.u32 %p1, %r6, 0; mov.u64 %rd4, 0;\n"
               "cp.async.ca.shared.global.L2::cache_hint [%r10], [%rd3], 16, !%p1, %rd4;\n"
               "cp.async.wait_all;\n" BACK),
    };
    for (size_t t = 0; t < 2; t++) {
        uint32_t out[32 * 4];
        fill(out, 128);
        TEST_RUN(texts[t], 1, 32, out);
        for (uint32_t i = 0; i < 128; i++) {
            cr_assert_eq(out[i], i / 4 % 2 ? 3 * i + 1 : 1, "word %u: %u", i, out[i]);
        }
    }
}

/* The copies of a function may be waited for where it was called. */
Test(async, a_caller_may_wait_for_what_a_function_began) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(TEST_KERNEL_WITH(
                 ".shared .align 16 .b8 s[2048]; .func f(.param .b64 from, .param .b32 to) {"
                 ".reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.b64 %rd1, [from];"
                 "ld.param.b32 %r1, [to]; cp.async.cg.shared.global [%r1], [%rd1], 16; ret; }",
                 "mov.u32 %r10, s; mad.lo.u32 %r10, %r3, 16, %r10;\n"
                 "mad.wide.u32 %rd3, %r1, 16, %rd1;\n"
                 "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd3; st.param.b32 [b], %r10;\n"
                 "call f, (a, b); } cp.async.wait_all;\n" BACK),
             1, 32, out);
    for (uint32_t i = 0; i < 128; i++) cr_assert_eq(out[i], 3 * i + 1, "word %u: %u", i, out[i]);
}

/* A loop that never waits: the oldest are carried out in the end. */
Test(async, copies_may_be_many) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(COPIES("mov.u32 %r5, 0;\n"
                    "LOOP: cp.async.cg.shared.global [%r10], [%rd3], 16; cp.async.commit_group;\n"
                    "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5000; @%p1 bra LOOP;\n" BACK),
             1, 32, out);
    for (uint32_t i = 0; i < 128; i++) cr_assert_eq(out[i], 3 * i + 1, "word %u: %u", i, out[i]);
}

/* Runs a body that must fail in one block of 32 threads; what is said is of one line of it. */
static void fails(const char *ptx, CUresult expected, unsigned line, const char *words) {
    uint32_t out[32 * 4] = {0};
    char place[40];
    CUresult result = test_run(ptx, 1, 32, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    snprintf(place, sizeof place, "at PTX line %u: ", COPIES_LINE + line);
    cr_assert(strstr(told, place) != NULL && strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

Test(async, wrong_addresses_are_told_of_where_the_copy_begins) {
    fails(COPIES("cp.async.cg.shared.global [%r10], [%rd3+2048], 16;\ncp.async.wait_all;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 0, "a load of 16 bytes at 0x");
    fails(COPIES("\ncp.async.cg.shared.global [%r10+2048], [%rd3], 16;\ncp.async.wait_all;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "a store of 16 bytes at offset 0x800 is outside");
    fails(COPIES("cp.async.ca.shared.global [%r10+4], [%rd3], 8;\ncp.async.wait_all;\n"),
          CUDA_ERROR_MISALIGNED_ADDRESS, 0, "not a multiple of 8");
    fails(COPIES("cp.async.ca.shared.global [%r10], [%rd3+2], 4;\ncp.async.wait_all;\n"),
          CUDA_ERROR_MISALIGNED_ADDRESS, 0, "not a multiple of 4");
    fails(COPIES("cp.async.ca.shared.global [%r10], [%rd3+8], 16, 1;\ncp.async.wait_all;\n"),
          CUDA_ERROR_MISALIGNED_ADDRESS, 0, "a load of 1 bytes");
    fails(COPIES("mov.u32 %r5, 9;\ncp.async.ca.shared.global [%r10], [%rd3], 8, %r5;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 1, "a copy of 8 bytes cannot read 9 bytes");
}

Test(async, what_makes_no_sense_is_refused) {
    static const char *const cases[][2] = {
        {COPIES("cp.async.cg.shared.global [%r10], [%rd3], 8;\n"),
         "the copy size must be 16 bytes"},
        {COPIES("cp.async.ca.shared.global [%r10], [%rd3], 12;\n"), "must be 4, 8 or 16 bytes"},
        {COPIES("cp.async.ca.shared.global [%r10], [%rd3], %r5;\n"), "must be 4, 8 or 16 bytes"},
        {COPIES("cp.async.ca.shared.global [%r10], [%rd3], 4, 8;\n"),
         "cannot read more bytes than it writes"},
        {COPIES("cp.async.shared.global [%r10], [%rd3], 4;\n"), "'.shared'"},
        {COPIES("cp.async.ca.global.shared [%rd3], [%r10], 4;\n"), "'.global'"},
        {COPIES("cp.async.ca.shared.global [%r10], [%rd3];\n"), "a number of bytes"},
        {COPIES("cp.async.wait_group %r5;\n"), "a number of groups"},
        {COPIES("cp.async.wait_all 0;\n"), "no operands"},
        {COPIES("cp.async.commit_group 0;\n"), "no operands"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:11:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}
