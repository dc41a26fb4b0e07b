/*
 * Counting: how many PTX instructions the warps of a launch execute, which is what
 * TOLLENS_SOFT_BUDGET limits and what bench-soft divides by time.
 */
#include "grid/grid.h"
#include "test/test_soft.h"

TestSuite(count, .fini = test_soft_close);

/* What TEST_KERNEL puts before and after a body. */
enum { AROUND = 7 };

static void must_execute(const char *ptx, unsigned warps, uint64_t each) {
    static uint32_t out[256];
    uint64_t before = soft_launch_executed();
    cr_assert_eq(test_run(ptx, 1, 32 * warps, out, sizeof out), CUDA_SUCCESS, "%s", test_log());
    uint64_t executed = soft_launch_executed() - before;
    cr_assert_eq(executed, warps * (AROUND + each), "%llu instructions, not %llu:\n%s",
                 (unsigned long long)executed, (unsigned long long)(warps * (AROUND + each)), ptx);
}

Test(count, straight_lines) {
    must_execute(TEST_KERNEL(""), 1, 0);
    must_execute(TEST_KERNEL("add.u32 %r5, %r1, 1; add.u32 %r5, %r1, 2;\n"), 3, 2);
    /* A guard is a part of its instruction, also where no lane passes it. */
    must_execute(TEST_KERNEL("setp.eq.u32 %p1, %r1, 99999; @%p1 add.u32 %r5, %r1, 1;\n"), 1, 2);
    must_execute(TEST_KERNEL("bar.sync 0; bar.sync 0;\n"), 4, 2);
}

/* What precedes a loop counts once. */
Test(count, loops) {
    must_execute(TEST_KERNEL("mov.u32 %r5, 0; mov.u32 %r6, 7; mov.u32 %r7, 7;\n"
                             "LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 10;\n"
                             "@%p1 bra LOOP; mov.u32 %r6, 8;\n"),
                 2, 3 + 10 * 3 + 1);
    must_execute(TEST_KERNEL("mov.u32 %r5, 0;\n"
                             "OUTER: mov.u32 %r6, 0;\n"
                             "INNER: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 4;\n"
                             "@%p1 bra INNER; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3;\n"
                             "@%p1 bra OUTER;\n"),
                 1, 1 + 3 * (1 + 4 * 3 + 3));
}

/* A path counts once for each part of a warp that goes along it. */
Test(count, parted_lanes) {
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 5; @%p1 bra SKIP;\n"
                             "add.u32 %r5, %r1, 1; add.u32 %r5, %r1, 2;\n"
                             "SKIP: add.u32 %r5, %r1, 3;\n"),
                 1, 2 + 2 + 1);
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 5; @%p1 bra LESS;\n"
                             "add.u32 %r5, %r1, 1; add.u32 %r5, %r1, 2; bra DONE;\n"
                             "LESS: add.u32 %r5, %r1, 3;\n"
                             "DONE: add.u32 %r5, %r1, 4;\n"),
                 1, 2 + 3 + 1 + 1);
    /* Lane i runs i + 1 iterations; the loop is as long as its longest lane. */
    must_execute(TEST_KERNEL("mov.u32 %r5, 0;\n"
                             "LOOP: add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r3;\n"
                             "@%p1 bra LOOP; mov.u32 %r6, 8;\n"),
                 1, 1 + 32 * 3 + 1);
    /* Half of the lanes leave early, and the others alone go on to the end. */
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 16; @%p1 exit; add.u32 %r5, %r1, 1;\n"), 1, 3);
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 16; @%p1 bra MORE; exit;\n"
                             "MORE: add.u32 %r5, %r1, 1;\n"),
                 1, 2 + 1 + 1);
    must_execute(TEST_KERNEL("and.b32 %r5, %r3, 1;\n"
                             "T: .branchtargets A, B; brx.idx %r5, T;\n"
                             "A: add.u32 %r6, %r1, 1; bra DONE;\n"
                             "B: add.u32 %r6, %r1, 2; add.u32 %r6, %r1, 2; bra DONE;\n"
                             "DONE: add.u32 %r6, %r1, 3;\n"),
                 1, 2 + 2 + 3 + 1);
    must_execute(TEST_KERNEL("mov.u32 %r5, 1;\n"
                             "T: .branchtargets A, B; brx.idx %r5, T;\n"
                             "A: add.u32 %r6, %r1, 1; bra DONE;\n"
                             "B: add.u32 %r6, %r1, 2; add.u32 %r6, %r1, 2;\n"
                             "DONE: add.u32 %r6, %r1, 3;\n"),
                 1, 2 + 2 + 1);
}

/* Some lanes at an operation wait for others and some do not: each part executes it, although all
 * have passed its guard together, and they reconverge after it. */
Test(count, lanes_of_which_some_wait) {
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 8; mov.u32 %r5, 0xffff00ff;\n"
                             "setp.ge.u32 %p3, %r3, 8; setp.lt.and.u32 %p3, %r3, 16, %p3;\n"
                             "selp.u32 %r5, 0xff00, %r5, %p3; @%p1 bra LESS;\n"
                             "@!%p1 vote.sync.all.pred %p2, %p1, %r5; bra DONE;\n"
                             "LESS: vote.sync.all.pred %p2, %p1, %r5;\n"
                             "DONE: add.u32 %r5, %r1, 4;\n"),
                 1, 6 + 2 + 1 + 1 + 1);
}

/* An operation for which lanes wait in two places is executed in both. */
Test(count, lanes_that_gather) {
    must_execute(TEST_KERNEL("setp.lt.u32 %p1, %r3, 5; @%p1 bra LESS;\n"
                             "bar.warp.sync -1; bra DONE;\n"
                             "LESS: bar.warp.sync -1;\n"
                             "DONE: add.u32 %r5, %r1, 4;\n"),
                 1, 2 + 2 + 1 + 1);
}

Test(count, calls) {
    must_execute(TEST_KERNEL_WITH(".func f() { .reg .u32 %a; mov.u32 %a, 1; add.u32 %a, %a, 1;"
                                  " ret; }",
                                  "call f; add.u32 %r5, %r1, 1; call f;\n"),
                 2, 3 + 2 * 3);
    must_execute(TEST_KERNEL_WITH(".func f() { .reg .u32 %a; mov.u32 %a, 1; add.u32 %a, %a, 1;"
                                  " ret; }",
                                  "setp.lt.u32 %p1, %r3, 5; @%p1 call f; add.u32 %r5, %r1, 1;\n"),
                 1, 3 + 3);
}
