/*
 * Asynchronous stores and reductions: into shared memory, counted by an mbarrier, and out of it.
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

TestSuite(reduce, .init = begin, .fini = test_soft_close);

/* A kernel with an mbarrier m that the first thread (%p1) makes for one arrival, and 2048 bytes s
 * at %r11, of which each thread's four at %r12 are its number. */
#define REDUCE(body)                                                                               \
    ".version 8.1\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 s[2048];\n"              \
    ".visible .entry k(.param .u64 out)\n{\n.shared .align 8 .b64 m;\n"                            \
    ".reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .pred %p<9>;\n"                    \
    "ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mad.wide.u32 %rd2, %r3, 4, %rd1;\n"            \
    "mov.u32 %r11, s; mad.lo.u32 %r12, %r3, 4, %r11; st.shared.u32 [%r12], %r3;\n"                 \
    "setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0;\n" body            \
    "ret;\n}\n"

/* Out of shared memory: 64 numbers, by every operation, onto what is there. */
Test(reduce, out_of_shared_memory) {
    static const char *const texts[] = {
        REDUCE("@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 256;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
        REDUCE("mov.u64 %rd5, 0; @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group"
               ".L2::cache_hint.max.s32 [%rd1], [%r11], 256, %rd5;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"),
        REDUCE("@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64 [%rd1], [s], 256;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
        REDUCE("@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%rd1], [s], 256;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
        REDUCE("cvt.rn.f32.u32 %f1, %r3; st.shared.f32 [%r12], %f1; bar.sync 0;\n"
               "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [s], 256;\n"
               "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
    };
    for (uint32_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[64];
        for (uint32_t i = 0; i < 64; i++) out[i] = t == 4 ? 0x41200000 /* 10 */ : i % 2 ? 40 : 7;
        TEST_RUN(texts[t], 1, 64, out);
        for (uint32_t i = 0; i < 64; i++) {
            uint32_t old = i % 2 ? 40 : 7;
            float sum = 10 + (float)i;
            uint32_t expected = t == 0 ? old + i : t == 1 ? (old > i ? old : i) : old ^ i;
            if (t == 3) expected = old >= i ? 0 : old + 1;
            if (t == 4) memcpy(&expected, &sum, sizeof sum);
            cr_assert_eq(out[i], expected, "%u: %u: %u, not %u", t, i, out[i], expected);
        }
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Two elements of sixteen bits beside each other are two sums. */
Test(reduce, of_halves) {
    uint32_t out[64];
    for (uint32_t i = 0; i < 64; i++) out[i] = 0x3c004000; /* 2, 1 */
    TEST_RUN(REDUCE("mov.u32 %r5, 0x4200bc00; st.shared.u32 [%r12], %r5; bar.sync 0;\n"
                    "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 "
                    "[%rd1], [s], 256;\n"
                    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], 0x44003c00, "%u: 0x%x", i, out[i]);
}

#define WAIT                                                                                       \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 256;\n"                                     \
    "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"

/* Into shared memory, from other places there and from registers. */
Test(reduce, into_shared_memory) {
    static const char *const texts[] = {
        REDUCE("st.shared.u32 [%r12+1024], 5; bar.sync 0;\n"
               "@%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
               ".add.u32 [s], [%r11+1024], 256, [m];\n" WAIT
               "ld.shared.u32 %r5, [%r12]; st.global.u32 [%rd2], %r5;\n"),
        REDUCE("mov.u32 %r5, 5; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx"
               "::bytes.add.u32 [%r12], %r5, [m];\n" WAIT
               "ld.shared.u32 %r5, [%r12]; st.global.u32 [%rd2], %r5;\n"),
        REDUCE("add.u32 %r5, %r3, 5; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
               "[%r12], %r5, [m];\n" WAIT
               "ld.shared.u32 %r5, [%r12]; st.global.u32 [%rd2], %r5;\n"),
        REDUCE("and.b32 %r6, %r3, 3; setp.eq.u32 %p3, %r6, 0; add.u32 %r5, %r3, 5;\n"
               "add.u32 %r6, %r3, 6; add.u32 %r7, %r3, 7; add.u32 %r8, %r3, 8;\n"
               "@%p3 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r12], "
               "{%r5,%r6,%r7,%r8}, [m];\n" WAIT
               "ld.shared.u32 %r5, [%r12]; st.global.u32 [%rd2], %r5;\n"),
    };
    for (uint32_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[64] = {0};
        TEST_RUN(texts[t], 1, 64, out);
        for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i + 5, "%u: %u: %u", t, i, out[i]);
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Who does not wait reads what was there before. */
Test(reduce, nothing_comes_before_it_is_waited_for) {
    uint32_t out[64] = {0};
    TEST_RUN(
        REDUCE("mov.u32 %r5, 5; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
               "[%r12], %r5, [m];\n"
               "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 "
               "[%r12], %r5, [m]; ld.shared.u32 %r5, [%r12]; st.global.u32 [%rd2], %r5;\n"),
        1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], i);
}

static void fails(const char *ptx, CUresult expected, const char *words) {
    uint32_t out[64] = {0};
    CUresult result = test_run(ptx, 1, 64, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    cr_assert(strstr(told, "at PTX line 12: ") != NULL && strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

#define STORE "st.async.shared::cluster.mbarrier::complete_tx::bytes."

Test(reduce, wrong_addresses_are_told_of) {
    fails(REDUCE(STORE "b64 [%r11+4], %rd1, [m];\n"), CUDA_ERROR_MISALIGNED_ADDRESS,
          "not a multiple of 8");
    fails(REDUCE(STORE "b32 [%r11+2056], %r3, [m];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, "outside");
    fails(REDUCE(STORE "b32 [%r11], %r3, [s+8];\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION,
          "is no longer valid");
    fails(REDUCE("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 512;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, "a store of 512 bytes at 0x");
}

Test(reduce, what_makes_no_sense_is_refused) {
    static const char *const cases[][2] = {
        {REDUCE(STORE "v4.b32 [s], {%r1,%r2}, [m];\n"), "expected 4 registers"},
        {REDUCE(STORE "v4.b64 [s], {%rd1,%rd1,%rd1,%rd1}, [m];\n"), "'.b64' is not valid here"},
        {REDUCE(STORE "b32 [s], %rd1, [m];\n"), "64 bits, and 32"},
        {REDUCE(STORE "b32 [s], %r1;\n"), "an mbarrier"},
        {REDUCE("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u64 "
                "[s], %rd1, [m];\n"),
         "'.u64' is not valid here"},
        {REDUCE("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f32 [%rd1], [s], 16;\n"),
         "'.f32' is not valid here"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:12:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}
