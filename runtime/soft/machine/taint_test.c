/*
 * Tainted values: a load of memory that was never written is reported if its value decides
 * something, and only then.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(taint, .init = begin, .fini = test_soft_close);

/* %r5 is 4 bytes of shared memory that nothing has written, in every lane; %r7 is 7. */
#define WITH_UNWRITTEN(body)                                                                       \
    TEST_KERNEL_WITH(".shared .align 16 .b8 s[256];"                                               \
                     ".func (.param .b32 r) same(.param .b32 a) { .reg .b32 %r;"                   \
                     " ld.param.u32 %r, [a]; st.param.b32 [r], %r; ret; }",                        \
                     "mov.u32 %r7, 7; setp.lt.u32 %p1, %r3, 16; setp.ge.u32 %p2, %r3, 64;\n"       \
                     "ld.shared.u32 %r5, [s];\n" body "\n")

static uint32_t out[64];

/* The number of reports of a kernel of one block of 64 threads. */
static int reports(const char *ptx) {
    const size_t before = strlen(test_captured(stderr));
    int count = 0;
    memset(out, 0, sizeof out);
    TEST_RUN(ptx, 1, 64, out);
    const char *at = test_captured(stderr) + before;
    while ((at = strstr(at, "uninitialised read in kernel k")) != NULL) count++, at++;
    return count;
}

static const struct use {
    const char *what, *ptx;
} decides[] = {
    {"a store", WITH_UNWRITTEN("st.global.u32 [%rd2], %r5;")},
    {"a store after arithmetic", WITH_UNWRITTEN("add.u32 %r6, %r5, %r7; mul.lo.u32 %r8, %r6, 3;\n"
                                                "cvt.rn.f32.u32 %f1, %r8; st.global.f32 [%rd2], "
                                                "%f1;")},
    {"a branch", WITH_UNWRITTEN("setp.eq.u32 %p3, %r5, 1; @%p3 bra END; st.global.u32 [%rd2], 1;\n"
                                "END: st.global.u32 [%rd2], 2;")},
    {"a guard", WITH_UNWRITTEN("setp.eq.u32 %p3, %r5, 1; @%p3 st.global.u32 [%rd2], 1;")},
    {"an address", WITH_UNWRITTEN("cvt.u64.u32 %rd5, %r5; and.b64 %rd5, %rd5, 124;\n"
                                  "add.u64 %rd5, %rd1, %rd5; ld.global.u32 %r6, [%rd5];")},
    {"another lane's value", WITH_UNWRITTEN("shfl.sync.idx.b32 %r6, %r5, 0, 31, -1;")},
    {"a vote", WITH_UNWRITTEN("setp.eq.u32 %p3, %r5, 1; vote.sync.any.pred %p4, %p3, -1;")},
    {"an atomic", WITH_UNWRITTEN("red.global.add.u32 [%rd1], %r5;")},
    {"an argument", WITH_UNWRITTEN("{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r5;\n"
                                   "call (q), same, (p); ld.param.b32 %r6, [q]; }\n"
                                   "st.global.u32 [%rd2], %r6;")},
    {"the selected operand",
     WITH_UNWRITTEN("selp.u32 %r6, %r5, %r7, %p1; st.global.u32 [%rd2], %r6;")},
    {"a selection", WITH_UNWRITTEN("setp.eq.u32 %p3, %r5, 1; selp.u32 %r6, 1, 2, %p3;\n"
                                   "st.global.u32 [%rd2], %r6;")},
    {"a part of a pair", WITH_UNWRITTEN("mov.b64 %rd5, {%r7, %r5}; st.global.u64 [%rd1], %rd5;")},
    {"a component of a vector",
     WITH_UNWRITTEN("ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [s+16];\n"
                    "st.global.u32 [%rd2], %r12;")},
    {"a store after guards that all lanes pass",
     WITH_UNWRITTEN("@!%p2 add.u32 %r6, %r5, %r7; @!%p2 mul.lo.u32 %r8, %r6, 3;\n"
                    "@!%p2 st.global.u32 [%rd2], %r8;")},
    {"a part that a guard leaves", WITH_UNWRITTEN("@%p1 mov.u32 %r5, 1; st.global.u32 [%rd2], "
                                                  "%r5;")},
};

static const struct use does_not[] = {
    {"no use", WITH_UNWRITTEN("st.global.u32 [%rd2], %r7;")},
    {"arithmetic alone", WITH_UNWRITTEN("add.u32 %r6, %r5, %r7; setp.eq.u32 %p3, %r6, 1;\n"
                                        "mov.u32 %r8, %r6; st.global.u32 [%rd2], %r7;")},
    {"the other operand", WITH_UNWRITTEN("selp.u32 %r6, %r5, %r7, %p2; st.global.u32 [%rd2], "
                                         "%r6;")},
    {"the other operand, negated", WITH_UNWRITTEN("not.pred %p3, %p2;\n"
                                                  "selp.u32 %r6, %r7, %r5, %p3;\n"
                                                  "st.global.u32 [%rd2], %r6;")},
    {"a new value", WITH_UNWRITTEN("mov.u32 %r5, 5; st.global.u32 [%rd2], %r5;")},
    {"a new value by two guards", WITH_UNWRITTEN("@%p1 mov.u32 %r5, 1; @!%p1 mov.u32 %r5, 2;\n"
                                                 "st.global.u32 [%rd2], %r5;")},
    {"a guard that never holds", WITH_UNWRITTEN("@%p2 st.global.u32 [%rd2], %r5;")},
    {"a branch that is not taken", WITH_UNWRITTEN("@!%p2 bra END; st.global.u32 [%rd2], %r5;\n"
                                                  "END: st.global.u32 [%rd2], %r7;")},
    {"another component", WITH_UNWRITTEN("st.shared.u32 [s+16], 3;\n"
                                         "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [s+16];\n"
                                         "st.global.u32 [%rd2], %r7;")},
    {"a function's own registers", WITH_UNWRITTEN("{ .param .b32 p; .param .b32 q;\n"
                                                  "st.param.b32 [p], %r7; call (q), same, (p);\n"
                                                  "ld.param.b32 %r6, [q]; }\n"
                                                  "st.global.u32 [%rd2], %r6;")},
};

Test(taint, what_decides_is_reported_once) {
    for (size_t i = 0; i < sizeof decides / sizeof *decides; i++) {
        cr_assert_eq(reports(decides[i].ptx), 1, "%s: %s", decides[i].what, test_captured(stderr));
    }
}

Test(taint, what_decides_nothing_is_not) {
    for (size_t i = 0; i < sizeof does_not / sizeof *does_not; i++) {
        cr_assert_eq(reports(does_not[i].ptx), 0, "%s: %s", does_not[i].what,
                     test_captured(stderr));
    }
}

/* The report is of the load, and says what depends on it. */
Test(taint, the_load_and_the_use_are_named) {
    cr_assert_eq(reports(WITH_UNWRITTEN("add.u32 %r6, %r5, 1;\nst.global.u32 [%rd2], %r6;")), 1);
    const char *said = test_captured(stderr);
    cr_assert(strstr(said, "ld.shared.u32 %r5, [s]") != NULL, "%s", said);
    cr_assert(strstr(said, "PTX line 12 depends on it") != NULL, "%s", said);
}

/* Only those lanes count that select the value. */
Test(taint, lanes_are_told_apart) {
    cr_assert_eq(reports(WITH_UNWRITTEN("setp.eq.u32 %p3, %r3, 37; selp.u32 %r6, %r5, %r7, %p3;\n"
                                        "st.global.u32 [%rd2], %r6;")),
                 1);
    cr_assert(strstr(test_captured(stderr), "thread (37,0,0), at PTX") != NULL, "%s",
              test_captured(stderr));
}

/* Results are those of a warp without tainted values. */
Test(taint, tainted_warps_compute_the_same) {
    cr_assert_eq(reports(WITH_UNWRITTEN(
                     "mov.u32 %r8, 0; mov.u32 %r9, 0;\n"
                     "LOOP: add.u32 %r9, %r9, 1; @%p1 add.u32 %r8, %r8, %r9;\n"
                     "@!%p1 mad.lo.u32 %r8, %r9, 2, %r8; setp.lt.u32 %p3, %r9, %r3;\n"
                     "@%p3 bra LOOP; selp.u32 %r8, %r5, %r8, %p2; st.global.u32 [%rd2], %r8;")),
                 0);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t steps = i > 0 ? i : 1, sum = steps * (steps + 1) / 2;
        cr_assert_eq(out[i], i < 16 ? sum : 2 * sum, "%u: %u", i, out[i]);
    }
}

/* More values than can be tainted are reported at once, not lost. */
Test(taint, a_full_list_reports) {
    static char ptx[40000];
    size_t at = (size_t)sprintf(ptx, "%s",
                                ".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".shared .b32 s;\n.visible .entry k(.param .u64 out)\n{\n"
                                ".reg .b32 %r<400>;\nld.shared.u32 %r0, [s];\n");
    for (int i = 1; i < 400; i++) {
        at += (size_t)sprintf(ptx + at, "add.u32 %%r%d, %%r0, %d;\n", i, i);
    }
    for (int i = 1; i < 400; i++) {
        at += (size_t)sprintf(ptx + at, "xor.b32 %%r%d, %%r%d, %%r%d;\n", i - 1, i, i - 1);
    }
    sprintf(ptx + at, "ret;\n}\n");
    cr_assert_eq(reports(ptx), 1, "%s", test_captured(stderr));
}
