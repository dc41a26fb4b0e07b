/*
 * Bulk copies: into shared memory, counted by an mbarrier, and out of it, in groups.
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

TestSuite(bulk, .init = begin, .fini = test_soft_close);

/* A kernel with an mbarrier m at %r10 that the first thread (%p1) makes for one arrival, and 2048
 * bytes s at %r11. */
#define BULK(body)                                                                                 \
    TEST_KERNEL_WITH(".shared .align 16 .b8 s[2048]; .shared .align 8 .b64 m;",                    \
                     "mov.u32 %r10, m; mov.u32 %r11, s; mad.lo.u32 %r12, %r3, 4, %r11;\n"          \
                     "setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], 1;\n"            \
                     "fence.mbarrier_init.release.cluster; bar.sync 0;\n" body)
enum { BULK_LINE = TEST_BODY_LINE + 3 };

#define WAIT                                                                                       \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 256;\n"                                     \
    "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"
#define BACK "ld.shared.u32 %r5, [%r12]; add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5;\n"

static void fill(uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) words[i] = (uint32_t)i * 3;
}

Test(bulk, an_mbarrier_is_told_what_has_come) {
    static const char *const texts[] = {
        BULK("mov.u32 %r5, 256; @%p1 cp.async.bulk.shared::cluster.global"
             ".mbarrier::complete_tx::bytes [%r11], [%rd1], %r5, [%r10];\n" WAIT BACK),
        BULK("mov.u64 %rd5, 0; @!%p1 bra WAIT; cp.async.bulk.shared::cluster.global"
             ".mbarrier::complete_tx::bytes.L2::cache_hint [s], [%rd1], 128, [m], %rd5;\n"
             "mov.u16 %h1, 1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
             ".multicast::cluster.L2::cache_hint [s+128], [%rd1+128], 128, [m], %h1, %rd5;\n"
             "WAIT:\n" WAIT BACK),
        /* Through another place in shared memory. */
        BULK("ld.global.u32 %r5, [%rd2]; st.shared.u32 [%r12+1024], %r5; fence.proxy.async;\n"
             "bar.sync 0; cp.async.bulk.prefetch.L2.global [%rd1], 256;\n"
             "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
             "[%r11], [%r11+1024], 256, [%r10];\n" WAIT BACK),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[64];
        fill(out, 64);
        TEST_RUN(texts[t], 1, 64, out);
        for (uint32_t i = 0; i < 64; i++) {
            cr_assert_eq(out[i], 3 * i + 1, "%zu: %u: %u", t, i, out[i]);
        }
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Each thread of a warp may copy a row of its own. */
Test(bulk, each_thread_copies_for_itself) {
    uint32_t out[32 * 4];
    fill(out, 128);
    TEST_RUN(BULK("mad.lo.u32 %r13, %r3, 16, %r11; mad.wide.u32 %rd3, %r3, 16, %rd1;\n"
                  "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 512; bar.warp.sync -1;\n"
                  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                  "[%r13], [%rd3], 16, [m];\n"
                  "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"
                  "xor.b32 %r13, %r3, 31; mad.lo.u32 %r13, %r13, 16, %r11;\n"
                  "ld.shared.v4.u32 {%r20,%r21,%r22,%r23}, [%r13];\n"
                  "st.global.v4.u32 [%rd3], {%r20,%r21,%r22,%r23};\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 128; i++) {
        cr_assert_eq(out[i], 3 * ((i / 4 ^ 31) * 4 + i % 4), "%u: %u", i, out[i]);
    }
}

/* Who has not waited reads what was there before. */
Test(bulk, what_was_not_waited_for_is_not_there) {
    uint32_t out[64];
    fill(out, 64);
    TEST_RUN(BULK("mov.u32 %r5, 6; st.shared.u32 [%r12], %r5; bar.sync 0;\n"
                  "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                  "[s], [%rd1], 256, [m];\n"
                  "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 256;\n"
                  "mbarrier.try_wait.parity.shared.b64 %p2, [m], 0;\n" BACK),
             1, 64, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], 7, "%u: %u", i, out[i]);
}

/* Into global memory: two groups of which the later one may be pending, and is. */
Test(bulk, groups_are_waited_for) {
#define GROUPS(wait)                                                                               \
    BULK("st.shared.u32 [%r12], %r3; fence.proxy.async.shared::cta; bar.sync 0; @!%p1 exit;\n"     \
         "mov.u64 %rd5, 0; mov.u32 %r6, 7;\n"                                                      \
         "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 128;\n"                         \
         "cp.async.bulk.commit_group; cp.async.bulk.global.shared::cta.bulk_group"                 \
         ".L2::cache_hint [%rd1+128], [%r11+128], 128, %rd5;\n"                                    \
         "cp.async.bulk.commit_group;\n" wait                                                      \
         "ld.global.u32 %r8, [%rd1+124]; ld.global.u32 %r9, [%rd1+252];\n"                         \
         "cp.async.bulk.wait_group 0;\n"                                                           \
         "st.global.v2.u32 [%rd1], {%r8,%r9};\n")
    static const struct {
        const char *text;
        uint32_t first, second;
    } cases[] = {
        {GROUPS(""), 93, 189},
        {GROUPS("cp.async.bulk.wait_group 2;\n"), 93, 189},
        {GROUPS("cp.async.bulk.wait_group 1;\n"), 31, 189},
        {GROUPS("cp.async.bulk.wait_group.read 1;\n"), 31, 189},
        {GROUPS("cp.async.bulk.wait_group 0;\n"), 31, 63},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint32_t out[64];
        fill(out, 64);
        TEST_RUN(cases[c].text, 1, 64, out);
        cr_assert_eq(out[0], cases[c].first, "%zu: %u", c, out[0]);
        cr_assert_eq(out[1], cases[c].second, "%zu: %u", c, out[1]);
        for (uint32_t i = 2; i < 64; i++) cr_assert_eq(out[i], i, "%zu: %u: %u", c, i, out[i]);
    }
    cr_assert_str_eq(test_captured(stderr), "");
#undef GROUPS
}

/* Shared memory is gone when its block is: a copy that is not waited for is lost, and reported. */
Test(bulk, who_exits_without_waiting_loses_the_copy) {
    uint32_t out[64];
    fill(out, 64);
    TEST_RUN(BULK("st.shared.u32 [%r12], %r3; bar.sync 0;\n"
                  "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 128;\n"
                  "@%p1 cp.async.bulk.commit_group;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) cr_assert_eq(out[i], 3 * i, "%u: %u", i, out[i]);
    const char *told = test_captured(stderr);
    cr_assert(strstr(told, "copy not waited for in kernel k in block (0,0,0), thread (0,0,0), at "
                           "PTX line 13: ") != NULL,
              "%s", told);
    cr_assert(strstr(told, "lanes 0x00000001 of warp 0 exit before") != NULL, "%s", told);
}

/* Runs a text that must fail, with 64 threads; what is said is of one line of it. */
static void fails(const char *ptx, CUresult expected, unsigned line, const char *words) {
    uint32_t out[64] = {0};
    char place[40];
    CUresult result = test_run(ptx, 1, 64, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    snprintf(place, sizeof place, "at PTX line %u: ", BULK_LINE + line);
    cr_assert(strstr(told, place) != NULL && strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

#define LOAD "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
#define STORE "@%p1 cp.async.bulk.global.shared::cta.bulk_group "

Test(bulk, what_cannot_be_copied_is_told_of) {
    fails(BULK(LOAD "[s+8], [%rd1], 256, [m];\n"), CUDA_ERROR_MISALIGNED_ADDRESS, 0,
          "not a multiple of 16");
    fails(BULK(LOAD "[s], [%rd1+4], 128, [m];\n"), CUDA_ERROR_MISALIGNED_ADDRESS, 0,
          "not a multiple of 16");
    fails(BULK("mov.u32 %r5, 24;\n" LOAD "[s], [%rd1], %r5, [m];\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 1, "a bulk copy of 24 bytes");
    fails(BULK(LOAD "[s+1920], [%rd1], 256, [m];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "a store of 256 bytes at offset 0x780 is outside the 2056 bytes of shared memory");
    fails(BULK("\n" LOAD "[s], [%rd1+16], 256, [m];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 1,
          "a load of 256 bytes at 0x");
    fails(BULK(LOAD "[s], [%rd1], 256, [m+8];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0, "outside");
    fails(BULK(LOAD "[s], [%rd1], 256, [s+1024];\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 0,
          "never initialised");
    fails(BULK("mov.u16 %h1, 3; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx"
               "::bytes.multicast::cluster [s], [%rd1], 256, [m], %h1;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "to the blocks 0x3 of a cluster of 1");
    fails(BULK(STORE "[%rd1], [s+4], 128;\n"), CUDA_ERROR_MISALIGNED_ADDRESS, 0, "a load of 128");
    fails(BULK(STORE "[%rd1+128], [s], 256;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "a store of 256 bytes at 0x");
    /* A phase does not wait for bytes that it does not expect; they are too many for the next. */
    fails(BULK(LOAD "[s], [%rd1], 256, [m];\n@%p1 mbarrier.arrive.shared.b64 _, [m];\n"
                    "mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 trap;\n"
                    "mbarrier.try_wait.parity.shared.b64 %p2, [m], 1; "
                    "mbarrier.try_wait.parity.shared.b64 %p2, [m], 1;\n"
                    "@%p1 mbarrier.arrive.shared.b64 _, [m];\n"
                    "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 1;\n@!%p2 bra LOOP;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 5, "(0 of 1 arrivals and -256 bytes missing)");
}

Test(bulk, what_makes_no_sense_is_refused) {
    static const char *const cases[][2] = {
        {BULK("cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, [m];\n"),
         "'.shared'"},
        {BULK("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, "
              "[m];\n"),
         ".version 8.6"},
        {BULK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], "
              "16;\n"),
         "expected 4 operands"},
        {BULK("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16, [m];\n"),
         "expected 3 operands"},
        {BULK("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], %rd2;\n"),
         "64 bits, and 32"},
        {BULK("cp.async.bulk.wait_group %r5;\n"), "a number of groups"},
        {BULK("cp.async.bulk.wait_all;\n"), "'.wait_all'"},
        {BULK("fence.proxy.async.local;\n"), "'.local'"},
        {BULK("fence.proxy;\n"), "missing"},
        {BULK("cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
              "[s], [%rd1, {%r1, %r2}], [m], {%h1};\n"),
         "im2col copies have 3 to 5 dimensions, not 2"},
        {BULK("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
              "[s], [%rd1, {%r1, %r2, %r3, %r4}], [m], {%h1};\n"),
         "expected 2 im2col offsets"},
        {BULK("cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::"
              "bytes "
              "[s], [%rd1, {%r1, %r2, %r3}], [m], {%h1, %h2};\n"),
         "'.im2col::w' is unknown or not supported by this device"},
        {BULK("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
              "[s], [%rd1, {%r1}], [m];\n"),
         "a tensor map and 2 coordinates"},
        {BULK("tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], 1;\n"),
         "'.swizzle_atomicity'"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_assert(strstr(log, "ptx:12:") == log && strstr(log, cases[i][1]) != NULL, "%s", log);
    }
}
