/*
 * Registers of 128 bits: moved, loaded, stored and swapped as a whole.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    test_capture(stderr);
    test_soft_open();
}

TestSuite(wide, .init = begin, .fini = test_soft_close);

/* A kernel in which %rd3 is the place of the thread's 16 bytes in out. */
#define WIDE(body)                                                                                 \
    ".version 8.3\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 s[2048];\n"              \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b128 %q<10>; .reg .pred %p<5>;\n"                  \
    ".local .align 16 .b8 l[32];\n"                                                                \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd3, %r1, 16, %rd1;\n" body      \
    "ret;\n}\n"

/* Halves change places on the way through every space; odd threads go another way. */
Test(wide, they_are_moved_as_a_whole) {
    uint64_t out[64 * 2];
    for (uint64_t i = 0; i < 128; i++) out[i] = i << 40 | i;
    TEST_RUN(WIDE("mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 16, %r2; and.b32 %r3, %r1, 1;\n"
                  "setp.ne.u32 %p1, %r3, 0;\n"
                  "ld.global.b128 %q1, [%rd3]; st.shared.b128 [%r2], %q1;\n"
                  "ld.volatile.shared.b128 %q2, [%r2]; mov.b128 {%rd4, %rd5}, %q2;\n"
                  "mov.b128 %q3, {%rd5, %rd4}; mov.b128 %q4, %q1; @!%p1 mov.b128 %q4, %q3;\n"
                  "st.local.b128 [l+16], %q4; ld.local.b128 %q5, [l+16]; mov.b128 {_, %rd6}, %q5;\n"
                  "mov.b128 {%rd7, _}, %q5; add.u64 %rd6, %rd6, 1; mov.b128 %q6, {%rd7, %rd6};\n"
                  "st.relaxed.gpu.b128 [%rd3], %q6; ld.relaxed.sys.global.b128 %q7, [%rd3];\n"
                  "st.b128 [%rd3], %q7;\n"),
             1, 64, out);
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t low = 2 * i << 40 | 2 * i, high = (2 * i + 1) << 40 | (2 * i + 1);
        cr_assert_eq(out[2 * i], i % 2 ? low : high, "%u", (unsigned)i);
        cr_assert_eq(out[2 * i + 1], (i % 2 ? high : low) + 1, "%u", (unsigned)i);
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(wide, they_are_swapped_as_a_whole) {
    uint64_t out[32 * 2];
    for (uint64_t i = 0; i < 64; i++) out[i] = i;
    TEST_RUN(
        WIDE("mov.u64 %rd4, 100; mov.u64 %rd5, 200; mov.b128 %q1, {%rd4, %rd5};\n"
             "mov.u64 %rd6, 10; mov.u64 %rd7, 11; mov.b128 %q2, {%rd6, %rd7};\n"
             "atom.global.cas.b128 %q3, [%rd3], %q2, %q1;\n"
             "mov.b128 {%rd8, %rd9}, %q3; add.u64 %rd8, %rd8, 1000; mov.b128 %q3, {%rd8, %rd9};\n"
             "setp.lt.u32 %p1, %r1, 3; @%p1 atom.relaxed.gpu.exch.b128 %q4, [%rd3], %q3;\n"
             "@%p1 atom.exch.b128 _, [%rd3], %q4; @%p1 st.global.b128 [%rd3], %q3;\n"),
        1, 32, out);
    for (uint64_t i = 0; i < 32; i++) {
        uint64_t low = i < 3 ? 2 * i + 1000 : i == 5 ? 100 : 2 * i;
        cr_assert_eq(out[2 * i], low, "%u: %u", (unsigned)i, (unsigned)out[2 * i]);
        cr_assert_eq(out[2 * i + 1], i == 5 ? 200 : 2 * i + 1, "%u", (unsigned)i);
    }
}

/* The previous value is unused, but still has its own place: the swapped register does not
 * change. */
Test(wide, what_is_not_asked_for_overwrites_nothing) {
    uint64_t out[32 * 2];
    for (uint64_t i = 0; i < 64; i++) out[i] = ~i;
    TEST_RUN(WIDE("mov.u64 %rd4, 3; mov.u64 %rd5, 4; mov.b128 %q1, {%rd4, %rd5};\n"
                  "setp.lt.u32 %p1, %r1, 20; @%p1 atom.global.exch.b128 _, [%rd3], %q1;\n"
                  "st.global.b128 [%rd3], %q1;\n"),
             1, 32, out);
    for (unsigned i = 0; i < 32; i++) {
        cr_assert(out[2 * i] == 3 && out[2 * i + 1] == 4, "%u: %llx", i,
                  (unsigned long long)out[2 * i]);
    }
}

/* All threads of all blocks count with one cell, of which both halves go up. */
Test(wide, nobody_comes_in_between) {
    uint64_t out[2] = {0, 500};
    TEST_RUN(WIDE("mov.u64 %rd4, 0; mov.b128 %q1, {%rd4, %rd4};\n"
                  "TRY: mov.b128 {%rd5, %rd6}, %q1; add.u64 %rd7, %rd5, 1; add.u64 %rd8, %rd6, 2;\n"
                  "mov.b128 %q2, {%rd7, %rd8}; atom.acq_rel.gpu.global.cas.b128 %q3, [%rd1], %q1, "
                  "%q2;\n"
                  "mov.b128 {%rd9, %rd10}, %q3; mov.b128 %q1, %q3;\n"
                  "setp.ne.u64 %p1, %rd9, %rd5; setp.ne.or.u64 %p1, %rd10, %rd6, %p1;\n"
                  "@%p1 bra TRY;\n"),
             20, 64, out);
    cr_assert_eq(out[0], 20 * 64);
    cr_assert_eq(out[1], 500 + 2 * 20 * 64);
}

Test(wide, half_a_place_is_no_place) {
    uint64_t out[64] = {0};
    cr_assert_eq(test_run(WIDE("ld.global.b128 %q1, [%rd3+8];\n"), 1, 1, out, sizeof out),
                 CUDA_ERROR_MISALIGNED_ADDRESS);
    test_soft_close();
    test_soft_open();
    cr_assert_eq(test_run(WIDE("atom.exch.b128 %q1, [%rd3+512], %q2;\n"), 1, 1, out, sizeof out),
                 CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "of 16 bytes at 0x") != NULL);
}

Test(wide, what_is_not_offered_is_refused) {
    static const char *const cases[][2] = {
        {WIDE("add.b128 %q1, %q2, %q3;\n"), "'.b128' is not valid here"},
        {WIDE("mov.b128 %q1, 5;\n"), "expected a register of 128 bits"},
        {WIDE("mov.b128 %q1, {%rd1};\n"),
         "128 bits can only be packed from or unpacked into two elements"},
        {WIDE("mov.b128 %q1, %rd1;\n"), "64 bits, and 128"},
        {WIDE("mov.b64 %q1, %rd1;\n"), "128 bits, and 64"},
        {WIDE("ld.global.v2.b128 {%q1, %q2}, [%rd1];\n"), "is not valid here"},
        {WIDE("atom.global.add.b128 %q1, [%rd1], %q2;\n"), "is not valid here"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:10:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}
