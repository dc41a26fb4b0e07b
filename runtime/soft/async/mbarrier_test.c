/*
 * Mbarriers: when a phase completes, which threads wait for it, and invalid uses.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(mbarrier, .init = begin, .fini = test_soft_close);

/* A kernel with an mbarrier m at %r10 and, as a generic address, %rd10, which the first thread
 * makes for count arrivals, and 1024 bytes s at %r11. */
#define OBJECT(count, body)                                                                        \
    TEST_KERNEL_WITH(".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 m;",                    \
                     "mov.u32 %r10, m; mov.u32 %r11, s; cvta.shared.u64 %rd10, m;\n"               \
                     "setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], " count ";\n"    \
                     "bar.sync 0;\n" body)
enum { OBJECT_LINE = TEST_BODY_LINE + 3 };

/* Warps exchange words five times; each phase is what holds them together. */
#define EXCHANGE(wait)                                                                             \
    OBJECT("128", "mad.lo.u32 %r12, %r3, 4, %r11; xor.b32 %r13, %r3, 96; mov.u32 %r14, %r3;\n"     \
                  "mad.lo.u32 %r13, %r13, 4, %r11; mov.u32 %r15, 0;\n"                             \
                  "LOOP: st.shared.u32 [%r12], %r14;\n"                                            \
                  "mbarrier.arrive.shared.b64 %rd3, [%r10]; mov.u32 %r16, 0;\n"                    \
                  "ONE: " wait "@!%p2 bra ONE;\n"                                                  \
                  "ld.shared.u32 %r14, [%r13]; add.u32 %r14, %r14, 1;\n"                           \
                  "mbarrier.arrive.release.cta.b64 %rd3, [%rd10]; mov.u32 %r16, 1;\n"              \
                  "TWO: " wait "@!%p2 bra TWO;\n"                                                  \
                  "add.u32 %r15, %r15, 1; setp.lt.u32 %p3, %r15, 5; @%p3 bra LOOP;\n"              \
                  "st.global.u32 [%rd2], %r14;\n")

Test(mbarrier, phases_hold_the_warps_together) {
    static const char *const texts[] = {
        EXCHANGE("mbarrier.test_wait.shared.b64 %p2, [%r10], %rd3;\n"),
        EXCHANGE("mbarrier.test_wait.acquire.cta.b64 %p2, [%rd10], %rd3;\n"),
        EXCHANGE("mbarrier.test_wait.parity.shared::cta.b64 %p2, [m], %r16;\n"),
        EXCHANGE("mbarrier.try_wait.shared.b64 %p2, [%r10], %rd3;\n"),
        EXCHANGE("mbarrier.try_wait.b64 %p2, [%rd10], %rd3, 1000;\n"),
        EXCHANGE("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [m], %r16, %r3;\n"),
        EXCHANGE("mov.pred %p2, 0; @!%p2 mbarrier.try_wait.parity.b64 %p2, [%rd10], %r16;\n"),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[256] = {0};
        TEST_RUN(texts[t], 2, 128, out);
        for (uint32_t i = 0; i < 256; i++) {
            cr_assert_eq(out[i], (i % 128 ^ 96) + 5, "%zu: %u: %u", t, i, out[i]);
        }
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* One thread of a warp waits for the others, which come only after it: it must let them go. */
Test(mbarrier, lanes_wait_for_lanes_of_their_warp) {
    uint32_t out[32] = {0};
    TEST_RUN(OBJECT("31", "setp.ne.u32 %p2, %r3, 5; @%p2 bra MEET;\n"
                          "LOOP: mbarrier.test_wait.parity.shared.b64 %p3, [m], 0;\n"
                          "@!%p3 bra LOOP; ld.shared.u32 %r5, [s]; st.global.u32 [%rd2], %r5;\n"
                          "MEET: @!%p2 bra END; mov.u32 %r6, 77; st.shared.u32 [s], %r6;\n"
                          "mbarrier.arrive.shared.b64 _, [m];\n"
                          "END:\n"),
             1, 32, out);
    cr_assert_eq(out[5], 77, "%u", out[5]);
}

/* Who tests gets an answer also while another warp spins, and is waited for by that. */
Test(mbarrier, a_test_does_not_wait_for_ever) {
    uint32_t out[65] = {0};
    TEST_RUN(OBJECT("1", "setp.lt.u32 %p2, %r3, 32; @%p2 bra SPIN;\n"
                         "LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0;\n"
                         "mov.u32 %r5, 3; @!%p3 st.volatile.global.u32 [%rd1+256], %r5;\n"
                         "@!%p3 bra LOOP; bra END;\n"
                         "SPIN: ld.volatile.global.u32 %r5, [%rd1+256]; setp.eq.u32 %p3, %r5, 0;\n"
                         "@%p3 bra SPIN; @!%p1 bra END; mbarrier.arrive.shared.b64 _, [m];\n"
                         "END: st.global.u32 [%rd2], %r5;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], 3, "%u: %u", i, out[i]);
}

/* The first thread's states, as the arrivals pending in them; and the parity in the end. */
Test(mbarrier, arrivals_are_counted) {
    uint32_t out[8] = {0};
    TEST_RUN(OBJECT("5", "mbarrier.arrive.noComplete.shared.b64 %rd3, [m], 2;\n"
                         "mbarrier.pending_count.b64 %r20, %rd3;\n"
                         "mbarrier.arrive.shared.b64 %rd3, [m], 2;\n"
                         "mbarrier.pending_count.b64 %r21, %rd3;\n"
                         "mbarrier.arrive_drop.shared.b64 %rd3, [m];\n"
                         "mbarrier.pending_count.b64 %r22, %rd3;\n"
                         "mbarrier.arrive_drop.noComplete.shared.b64 %rd3, [m], 2;\n"
                         "mbarrier.pending_count.b64 %r23, %rd3; mov.u32 %r5, 2;\n"
                         "mbarrier.arrive.b64 %rd3, [%rd10], %r5;\n"
                         "mbarrier.arrive.noComplete.shared.b64 %rd4, [m], 1;\n"
                         "mbarrier.pending_count.b64 %r24, %rd4;\n"
                         "mbarrier.test_wait.shared.b64 %p2, [m], %rd3; selp.u32 %r25, 1, 0, %p2;\n"
                         "mbarrier.test_wait.shared.b64 %p2, [m], %rd4; selp.u32 %r26, 1, 0, %p2;\n"
                         "mbarrier.test_wait.parity.shared.b64 %p2, [m], 1;\n"
                         "selp.u32 %r27, 1, 0, %p2;\n"
                         "st.global.v4.u32 [%rd1], {%r20,%r21,%r22,%r23};\n"
                         "st.global.v4.u32 [%rd1+16], {%r24,%r25,%r26,%r27};\n"),
             1, 1, out);
    static const uint32_t expected[8] = {5, 3, 1, 4, 2, 1, 0, 1};
    for (int i = 0; i < 8; i++) cr_assert_eq(out[i], expected[i], "%d: %u", i, out[i]);
}

/* A phase is over when all have arrived and all bytes have come, in whichever order. */
Test(mbarrier, bytes_are_counted) {
    uint32_t out[8] = {0};
    TEST_RUN(OBJECT("2",
                    "mbarrier.arrive.expect_tx.shared.b64 _, [m], 48;\n"
                    "mbarrier.expect_tx.relaxed.cta.shared.b64 [m], 16;\n"
                    "mbarrier.arrive.shared.b64 _, [m];\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; selp.u32 %r20, 1, 0, %p2;\n"
                    "mbarrier.complete_tx.shared.b64 [m], 63;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; selp.u32 %r21, 1, 0, %p2;\n"
                    "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [m], 1;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; selp.u32 %r22, 1, 0, %p2;\n"
                    /* They may come before they are expected. */
                    "mov.u32 %r5, 100; mbarrier.complete_tx.b64 [%rd10], %r5;\n"
                    "mbarrier.arrive.shared.b64 _, [m], 1;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 1; selp.u32 %r23, 1, 0, %p2;\n"
                    "mbarrier.arrive_drop.expect_tx.shared.b64 _, [m], %r5;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 1; selp.u32 %r24, 1, 0, %p2;\n"
                    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [m], 0;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; selp.u32 %r25, 1, 0, %p2;\n"
                    "mbarrier.inval.shared.b64 [m]; mbarrier.init.b64 [%rd10], 1;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 1; selp.u32 %r26, 1, 0, %p2;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p2, [m], 0; selp.u32 %r27, 1, 0, %p2;\n"
                    "st.global.v4.u32 [%rd1], {%r20,%r21,%r22,%r23};\n"
                    "st.global.v4.u32 [%rd1+16], {%r24,%r25,%r26,%r27};\n"),
             1, 1, out);
    static const uint32_t expected[8] = {0, 0, 1, 0, 1, 1, 1, 0};
    for (int i = 0; i < 8; i++) cr_assert_eq(out[i], expected[i], "%d: %u", i, out[i]);
}

/* Producers copy, and their copies arrive; consumers wait. */
#define PRODUCE(count, arrive)                                                                     \
    OBJECT(count, "mad.lo.u32 %r12, %r3, 4, %r11; mad.wide.u32 %rd4, %r3, 4, %rd1;\n"              \
                  "setp.ge.u32 %p2, %r3, 32; mov.u32 %r5, 9; st.shared.u32 [%r12], %r5;\n"         \
                  "bar.sync 0; @%p2 bra CONSUME;\n"                                                \
                  "cp.async.ca.shared.global [%r12], [%rd4], 4;\n" arrive "bra END;\n"             \
                  "CONSUME: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0;\n"                    \
                  "@!%p3 bra CONSUME;\n"                                                           \
                  "ld.shared.u32 %r6, [%r12+-128]; st.global.u32 [%rd4], %r6;\n"                   \
                  "END:\n")

Test(mbarrier, copies_arrive) {
    static const char *const texts[] = {
        PRODUCE("32", "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"),
        PRODUCE("32", "cp.async.mbarrier.arrive.noinc.b64 [%rd10];\n"),
        /* Without .noinc the thread's own arrival comes besides. */
        PRODUCE("32", "cp.async.mbarrier.arrive.shared::cta.b64 [m];\n"
                      "mbarrier.arrive.shared.b64 _, [m];\n"),
        PRODUCE("64", "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"
                      "cp.async.mbarrier.arrive.shared.noinc.b64 [m];\n"),
        PRODUCE("32", "cp.async.mbarrier.arrive.b64 [%rd10]; cp.async.wait_all;\n"
                      "mbarrier.arrive.shared.b64 _, [m];\n"),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[64];
        for (uint32_t i = 0; i < 64; i++) out[i] = i + 100;
        TEST_RUN(texts[t], 1, 64, out);
        for (uint32_t i = 0; i < 64; i++) {
            cr_assert_eq(out[i], i % 32 + 100, "%zu: %u: %u", t, i, out[i]);
        }
    }
}

/* One test proves nothing; who does not look at its answer reads what was there before. */
Test(mbarrier, who_does_not_wait_reads_too_early) {
    uint32_t out[64];
    for (uint32_t i = 0; i < 64; i++) out[i] = i + 100;
    TEST_RUN(OBJECT("32",
                    "mad.lo.u32 %r12, %r3, 4, %r11; mov.u32 %r5, 9;\n"
                    "st.shared.u32 [%r12], %r5; cp.async.ca.shared.global [%r12], [%rd2], 4;\n"
                    "cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"
                    "mbarrier.try_wait.parity.shared.b64 %p3, [m], 0;\n"
                    "ld.shared.u32 %r6, [%r12]; st.global.u32 [%rd2+128], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 32; i < 64; i++) cr_assert_eq(out[i], 9, "%u: %u", i, out[i]);
}

/* Runs a text that must fail, with 64 threads; what is said is of one line of it. */
static void fails(const char *ptx, CUresult expected, unsigned line, const char *words) {
    uint32_t out[64] = {0};
    char place[40];
    CUresult result = test_run(ptx, 1, 64, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    snprintf(place, sizeof place, "at PTX line %u: ", OBJECT_LINE + line);
    cr_assert(strstr(told, place) != NULL && strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

Test(mbarrier, a_wait_that_cannot_end_is_told_of) {
    fails(OBJECT("64", "setp.lt.u32 %p2, %r3, 60; @%p2 mbarrier.arrive.shared.b64 _, [m];\n"
                       "LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0;\n@!%p3 bra LOOP;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 1,
          "deadlock: lanes 0xffffffff of warp 0 wait at the mbarrier at offset 0x400 (4 of 64 "
          "arrivals and 0 bytes missing)");
    fails(OBJECT("1", "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"
                      "@!%p1 bra MEET;\n"
                      "LOOP: mbarrier.test_wait.parity.shared.b64 %p3, [m], 0;\n@!%p3 bra LOOP;\n"
                      "MEET: bar.sync 0;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 2,
          "lanes 0x00000001 of warp 0 wait at the mbarrier at offset "
          "0x400 (0 of 1 arrivals and 128 bytes missing)");
}

Test(mbarrier, what_is_no_mbarrier_is_told_of) {
    fails(OBJECT("1", "mbarrier.arrive.shared.b64 _, [s];\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 0,
          "the mbarrier at offset 0x0 was never initialised");
    fails(OBJECT("1", "st.shared.u64 [s], %rd1; mbarrier.test_wait.shared.b64 %p2, [s], %rd3;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "was never initialised");
    fails(OBJECT("1", "mbarrier.inval.shared.b64 [m];\nmbarrier.arrive.shared.b64 _, [m];\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "no longer valid");
    fails(OBJECT("1", "mbarrier.init.shared.b64 [s+4], 1;\n"), CUDA_ERROR_MISALIGNED_ADDRESS, 0,
          "not a multiple of 8");
    fails(OBJECT("1", "mbarrier.init.shared.b64 [s+8192], 1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "outside");
    fails(OBJECT("1", "mbarrier.init.b64 [%rd1], 1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "an mbarrier must be in shared memory");
    fails(OBJECT("1", "mbarrier.init.b64 [%rd1+40960], 1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "allocation");
}

Test(mbarrier, counts_that_cannot_be_are_told_of) {
    fails(OBJECT("64", "mov.u32 %r5, 0; mbarrier.init.shared.b64 [s], %r5;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "cannot expect 0 arrivals");
    fails(OBJECT("64", "mbarrier.init.shared.b64 [s], 1048576;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION,
          0, "cannot expect 1048576 arrivals");
    fails(OBJECT("64", "mbarrier.arrive.shared.b64 _, [m], 65;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION,
          0, "has 64 pending arrivals, and 65 arrive");
    fails(OBJECT("64", "mbarrier.arrive.shared.b64 _, [m], 0;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION,
          0, "cannot receive 0 arrivals");
    fails(OBJECT("64", "mbarrier.arrive.noComplete.shared.b64 _, [m], 2;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "which .noComplete forbids");
    fails(OBJECT("64", "mbarrier.expect_tx.shared.b64 [m], 1048576;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "at most 1048575 bytes");
    fails(OBJECT("1048575", "cp.async.mbarrier.arrive.shared.b64 [m];\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "maximum number of pending arrivals");
    /* A copy is reported at the instruction that began it. */
    fails(OBJECT("1", "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 16;\n"
                      "@%p1 cp.async.mbarrier.arrive.noinc.shared.b64 [m];\n"
                      "LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0; @!%p3 bra LOOP;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 1, "has 0 pending arrivals, and 1 arrive");
}

Test(mbarrier, what_makes_no_sense_is_refused) {
    static const char *const cases[][2] = {
        {OBJECT("1", "mbarrier.init.shared::cluster.b64 [m], 1;\n"), "'.shared::cluster'"},
        {OBJECT("1", "mbarrier.init.shared.b64 [m];\n"), "expected 2 operands"},
        {OBJECT("1", "mbarrier.inval.shared.b64 [m], 1;\n"), "expected 1 operands"},
        {OBJECT("1", "mbarrier.arrive.shared::cluster.b64 %rd3, [m];\n"), "the state must be '_'"},
        {OBJECT("1", "mbarrier.arrive.relaxed.shared.b64 %rd3, [m];\n"), "'.shared'"},
        {OBJECT("1", "mbarrier.arrive.relaxed.cta.shared.b64 %rd3, [m];\n"), ".version 8.6"},
        {OBJECT("1", "mbarrier.arrive.noComplete.shared.b64 %rd3, [m];\n"), "a count"},
        {OBJECT("1", "mbarrier.arrive.shared.b64 %r5, [m];\n"), "32 bits, and 64"},
        {OBJECT("1", "mbarrier.arrive.expect_tx.shared.b64 %rd3, [m];\n"), "a number of bytes"},
        {OBJECT("1", "mbarrier.test_wait.shared::cluster.b64 %p2, [m], %rd3;\n"),
         "'.shared::cluster'"},
        {OBJECT("1", "mbarrier.test_wait.shared.b64 %p2, [m], %r5;\n"), "32 bits, and 64"},
        {OBJECT("1", "mbarrier.test_wait.shared.b64 %p2, [m], %rd3, 5;\n"), "a state"},
        {OBJECT("1", "mbarrier.try_wait.acquire.shared.b64 %p2, [m], %rd3;\n"), "'.shared'"},
        {OBJECT("1", "mbarrier.pending_count.shared.b64 %r5, %rd3;\n"), "'.shared'"},
        {OBJECT("1", "cp.async.mbarrier.arrive.shared::cluster.b64 [m];\n"), "'.shared::cluster'"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:12:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}
