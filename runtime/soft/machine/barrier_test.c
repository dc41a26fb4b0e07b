/*
 * The barriers of a CTA: which threads wait, and the results of bar.red.
 */
#include "test/test_soft.h"

#include <stdio.h>
#include <string.h>

TestSuite(barrier, .init = test_soft_open, .fini = test_soft_close);

/* Warps exchange words five times at each barrier; without it, one would read what is not there yet
 * or no longer. */
Test(barrier, all_sixteen_hold_the_warps_together) {
    uint32_t out[128] = {0};
    TEST_RUN(TEST_KERNEL_WITH(".shared .u32 s[128];",
                              "mov.u32 %r10, s; mad.lo.u32 %r11, %r3, 4, %r10; mov.u32 %r20, 0;\n"
                              "xor.b32 %r12, %r3, 96; mad.lo.u32 %r12, %r12, 4, %r10;\n"
                              "mov.u32 %r13, %r3;\n"
                              "NUMBER: mov.u32 %r14, 0;\n"
                              "LOOP: st.shared.u32 [%r11], %r13; bar.sync %r20;\n"
                              "ld.shared.u32 %r15, [%r12]; add.u32 %r13, %r15, 1;\n"
                              "bar.sync %r20, 128;\n"
                              "add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 5; @%p1 bra LOOP;\n"
                              "add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, 16;\n"
                              "@%p1 bra NUMBER; st.global.u32 [%rd2], %r13;\n"),
             1, 128, out);
    for (uint32_t i = 0; i < 128; i++) cr_assert_eq(out[i], i + 80, "%u: %u", i, out[i]);
}

/* Producer warps arrive and go on; consumers wait for them. Full and empty are two barriers. */
Test(barrier, producers_arrive_and_consumers_wait) {
    uint32_t out[128] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".shared .u32 s[64];",
                         "mov.u32 %r10, s; and.b32 %r11, %r3, 63; mad.lo.u32 %r11, %r11, 4, %r10;\n"
                         "setp.lt.u32 %p1, %r3, 64; mov.u32 %r12, 0; mov.u32 %r13, 0;\n"
                         "@%p1 bra CONSUME;\n"
                         "PRODUCE: bar.sync 2, 128; mad.lo.u32 %r14, %r12, 1000, %r3;\n"
                         "st.shared.u32 [%r11], %r14; membar.cta; bar.arrive 1, 128;\n"
                         "add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 10; @%p2 bra PRODUCE;\n"
                         "mov.u32 %r13, 7; bra END;\n"
                         "CONSUME: bar.arrive 2, 128; bar.sync 1, 128;\n"
                         "ld.shared.u32 %r14, [%r11]; add.u32 %r13, %r13, %r14;\n"
                         "add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 10; @%p2 bra CONSUME;\n"
                         "END: st.global.u32 [%rd2], %r13;\n"),
        1, 128, out);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t expected = i < 64 ? 45000 + 10 * (i + 64) : 7;
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

Test(barrier, two_halves_of_a_block_use_two_barriers) {
    uint32_t out[256] = {0};
    TEST_RUN(TEST_KERNEL_WITH(".shared .u32 s[256];",
                              "mov.u32 %r10, s; mad.lo.u32 %r11, %r3, 4, %r10;\n"
                              "shr.u32 %r12, %r3, 7; add.u32 %r12, %r12, 3;\n"
                              "st.shared.u32 [%r11], %r3; bar.sync %r12, 128;\n"
                              "xor.b32 %r13, %r3, 127; mad.lo.u32 %r13, %r13, 4, %r10;\n"
                              "ld.shared.u32 %r14, [%r13]; st.global.u32 [%rd2], %r14;\n"),
             1, 256, out);
    for (uint32_t i = 0; i < 256; i++) cr_assert_eq(out[i], i ^ 127, "thread %u: %u", i, out[i]);
}

/* Threads that have exited are waited for no longer, whole warps as well as lanes. */
Test(barrier, exited_threads_are_not_waited_for) {
    uint32_t out[128] = {0};
    TEST_RUN(TEST_KERNEL_WITH(".shared .u32 s[128];",
                              "setp.ge.u32 %p1, %r3, 96; @%p1 exit; rem.u32 %r5, %r3, 3;\n"
                              "setp.eq.u32 %p1, %r5, 0; @%p1 exit;\n"
                              "mov.u32 %r10, s; mad.lo.u32 %r11, %r3, 4, %r10;\n"
                              "st.shared.u32 [%r11], %r3; bar.sync 0;\n"
                              "xor.b32 %r13, %r3, 32; rem.u32 %r5, %r13, 3;\n"
                              "setp.eq.u32 %p1, %r5, 0; setp.ge.u32 %p2, %r13, 96;\n"
                              "or.pred %p1, %p1, %p2; mov.u32 %r14, 1000; @%p1 bra END;\n"
                              "mad.lo.u32 %r13, %r13, 4, %r10; ld.shared.u32 %r14, [%r13];\n"
                              "END: st.global.u32 [%rd2], %r14;\n"),
             1, 128, out);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t other = i ^ 32;
        uint32_t expected = i >= 96 || i % 3 == 0           ? 0
                            : other >= 96 || other % 3 == 0 ? 1000
                                                            : other;
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

/* That is allowed, and may be a mistake: one note per launch, of aligned barriers alone. */
static void notes(const char *ptx, unsigned count) {
    uint32_t out[64] = {0};
    unsigned seen = 0;
    test_capture(stderr);
    TEST_RUN(ptx, 2, 64, out);
    const char *told = test_captured(stderr);
    for (const char *at = told; (at = strstr(at, "exited before barrier")) != NULL; at++) seen++;
    cr_assert_eq(seen, count, "%u notes, not %u: %s", seen, count, told);
    if (count > 0) cr_assert_not_null(strstr(told, "at PTX line 9: bar.sync 0: 24 of "));
}

Test(barrier, threads_that_exited_before_an_aligned_barrier_are_a_note) {
    notes(TEST_KERNEL("setp.ge.u32 %p1, %r3, 40; @%p1 exit; bar.sync 0; bar.sync 0;\n"), 1);
    notes(TEST_KERNEL("setp.ge.u32 %p1, %r3, 40; @%p1 exit; barrier.sync 0;\n"), 0);
    notes(TEST_KERNEL("setp.ge.u32 %p1, %r3, 32; @%p1 exit; bar.sync 0, 32;\n"), 0);
    notes(TEST_KERNEL("bar.sync 0; setp.ge.u32 %p1, %r3, 40; @%p1 exit;\n"), 0);
}

/* A warp's last thread may exit while the others already wait. */
Test(barrier, the_last_one_may_exit_instead_of_coming) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL("setp.lt.u32 %p1, %r3, 40; @%p1 bra STAY; mov.u32 %r5, 0;\n"
                         "SLOW: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 9000; @%p2 bra SLOW;\n"
                         "exit;\n"
                         "STAY: bar.sync 0; mov.u32 %r5, 5; st.global.u32 [%rd2], %r5;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i < 40 ? 5 : 0, "thread %u", i);
}

Test(barrier, red_counts_and_joins_predicates) {
    static const char *const texts[] = {
        TEST_KERNEL("setp.lt.u32 %p1, %r3, 50; bar.red.popc.u32 %r5, 0, %p1;\n"
                    "bar.red.popc.u32 %r6, 3, 96, !%p1; setp.lt.u32 %p2, %r3, 96;\n"
                    "bar.red.and.pred %p3, 0, %p1; bar.red.and.pred %p4, 1, %p2;\n"
                    "setp.eq.u32 %p2, %r3, 77; bar.red.or.pred %p5, 1, %p2;\n"
                    "setp.gt.u32 %p2, %r3, 95; bar.red.or.pred %p6, 2, 96, %p2;\n"
                    "shl.b32 %r6, %r6, 8; or.b32 %r5, %r5, %r6; selp.u32 %r7, 65536, 0, %p3;\n"
                    "or.b32 %r5, %r5, %r7; selp.u32 %r7, 131072, 0, %p4; or.b32 %r5, %r5, %r7;\n"
                    "selp.u32 %r7, 262144, 0, %p5; or.b32 %r5, %r5, %r7;\n"
                    "selp.u32 %r7, 524288, 0, %p6; or.b32 %r5, %r5, %r7;\n"
                    "st.global.u32 [%rd2], %r5;\n"),
        TEST_KERNEL("setp.lt.u32 %p1, %r3, 50; barrier.red.popc.u32 %r5, 0, %p1;\n"
                    "barrier.cta.red.popc.aligned.u32 %r6, 3, 96, !%p1; setp.lt.u32 %p2, %r3, 96;\n"
                    "barrier.red.and.aligned.pred %p3, 0, %p1;\n"
                    "barrier.cta.red.and.pred %p4, 1, %p2;\n"
                    "setp.eq.u32 %p2, %r3, 77; bar.cta.red.or.pred %p5, 1, %p2;\n"
                    "setp.gt.u32 %p2, %r3, 95; barrier.red.or.pred %p6, 2, 96, %p2;\n"
                    "shl.b32 %r6, %r6, 8; or.b32 %r5, %r5, %r6; selp.u32 %r7, 65536, 0, %p3;\n"
                    "or.b32 %r5, %r5, %r7; selp.u32 %r7, 131072, 0, %p4; or.b32 %r5, %r5, %r7;\n"
                    "selp.u32 %r7, 262144, 0, %p5; or.b32 %r5, %r5, %r7;\n"
                    "selp.u32 %r7, 524288, 0, %p6; or.b32 %r5, %r5, %r7;\n"
                    "st.global.u32 [%rd2], %r5;\n"),
    };
    for (size_t t = 0; t < 2; t++) {
        uint32_t out[96] = {0};
        TEST_RUN(texts[t], 1, 96, out);
        for (uint32_t i = 0; i < 96; i++) {
            cr_assert_eq(out[i], 50 | 46 << 8 | 131072 | 262144, "thread %u: 0x%x", i, out[i]);
        }
    }
}

/* Only the threads there are count: 70 of them are two warps and six lanes, one of which exits. */
Test(barrier, red_counts_only_threads_that_there_are) {
    uint32_t out[70] = {0};
    TEST_RUN(TEST_KERNEL("setp.eq.u32 %p1, %r3, 69; @%p1 exit; setp.ge.u32 %p1, %r3, 0;\n"
                         "bar.red.popc.u32 %r5, 0, %p1; bar.red.and.pred %p2, 0, %p1;\n"
                         "@%p2 add.u32 %r5, %r5, 100; st.global.u32 [%rd2], %r5;\n"),
             1, 70, out);
    for (uint32_t i = 0; i < 69; i++) cr_assert_eq(out[i], 169, "thread %u: %u", i, out[i]);
}

/* Both sides of a branch at one barrier: the unaligned form allows it. */
Test(barrier, an_unaligned_barrier_may_be_reached_from_two_sides) {
    uint32_t out[64] = {0};
    test_capture(stderr);
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r3, 9;\n"
                         "@%p1 bra EVEN;\n"
                         "barrier.red.popc.u32 %r6, 0, %p2; add.u32 %r6, %r6, 10; bra END;\n"
                         "EVEN: barrier.red.popc.u32 %r6, 0, %p2;\n"
                         "END: st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i % 2 ? 19 : 9, "%u: %u", i, out[i]);
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(barrier, an_aligned_barrier_reached_from_two_sides_is_told_of) {
    uint32_t out[64] = {0};
    test_capture(stderr);
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 0; mov.u32 %r6, 1;\n"
                         "@%p1 bra EVEN;\n"
                         "bar.sync 0; bra END;\n"
                         "EVEN: bar.sync 0;\n"
                         "END: st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], 1, "the kernel ends all the same");
    const char *told = test_captured(stderr);
    cr_assert(strstr(told, "divergent barrier in kernel k in block (0,0,0)") != NULL, "%s", told);
    cr_assert(strstr(told, ": bar.sync 0: lanes 0x") != NULL, "%s", told);
    cr_assert(strstr(told, "0x55555555") != NULL && strstr(told, "0xaaaaaaaa") != NULL, "%s", told);
}

/* A warp that spins for another's result before the barrier does not block it. */
Test(barrier, a_warp_may_spin_in_front_of_it) {
    uint32_t out[65] = {0};
    TEST_RUN(TEST_KERNEL("setp.lt.u32 %p1, %r3, 32; @!%p1 bra TELL;\n"
                         "SPIN: ld.volatile.global.u32 %r5, [%rd1+256]; setp.eq.u32 %p2, %r5, 0;\n"
                         "@%p2 bra SPIN; bra END;\n"
                         "TELL: mov.u32 %r5, 3; st.volatile.global.u32 [%rd1+256], %r5;\n"
                         "END: bar.sync 0; st.global.u32 [%rd2], %r5;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], 3, "thread %u: %u", i, out[i]);
}

Test(barrier, wrong_numbers_are_refused_when_the_module_is_loaded) {
    static const char *const cases[][2] = {
        {TEST_KERNEL("bar.sync 16;\n"), "0 to 15"},
        {TEST_KERNEL("bar.sync -1;\n"), "0 to 15"},
        {TEST_KERNEL("barrier.red.popc.u32 %r1, 16, %p1;\n"), "0 to 15"},
        {TEST_KERNEL("bar.sync 1, 33;\n"), "multiple of 32"},
        {TEST_KERNEL("bar.arrive 1;\n"), "number of threads"},
        {TEST_KERNEL("bar.red.popc.u32 %r1, 0;\n"), "number of threads"},
        {TEST_KERNEL("bar.red.popc.s32 %r1, 0, %p1;\n"), "'.s32'"},
        {TEST_KERNEL("bar.red.popc.aligned.u32 %r1, 0, %p1;\n"), "'.aligned'"},
        {TEST_KERNEL("bar.red.and.pred %r1, 0, %p1;\n"), "32 bits, and 1"},
        {TEST_KERNEL("barrier 0;\n"), "missing"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:9:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}

/* Lanes that wait to meet others again must not wait for ever where these wait for them. */
Test(barrier, lanes_that_pass_a_barrier_by_do_not_wait_behind_it) {
    uint32_t out[64] = {0};
    /* The even lanes wait until the odd ones have exited. */
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra PAST;\n"
                         "barrier.sync 0;\n"
                         "PAST: add.u32 %r6, %r3, 5; st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i + 5, "%u: %u", i, out[i]);
    /* The odd lanes reach the same barrier through another instruction, after the join. */
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra PAST;\n"
                         "barrier.sync 0;\n"
                         "PAST: @!%p1 bra END; barrier.sync 0;\n"
                         "END: add.u32 %r6, %r3, 7; st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i + 7, "%u: %u", i, out[i]);
    /* And the same .sync operation as the rest of their warp, from after the join. */
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra PAST;\n"
                         "bar.warp.sync -1;\n"
                         "PAST: @!%p1 bra END; bar.warp.sync -1;\n"
                         "END: add.u32 %r6, %r3, 9; st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i + 9, "%u: %u", i, out[i]);
}
