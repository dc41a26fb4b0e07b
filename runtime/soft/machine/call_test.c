/*
 * Functions: arguments, results, and the separate registers and memory of each call. The lanes of a
 * warp diverge into and out of calls; each must compute what it would alone.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

TestSuite(call, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 70 };

Test(call, scalars_there_and_back) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".func (.param .b32 r) mad(.param .b32 a, .param .b64 b, .param .f32 c) {"
                         " .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<2>;"
                         " ld.param.u32 %r1, [a]; ld.param.u64 %rd1, [b]; ld.param.f32 %f1, [c];"
                         " cvt.u32.u64 %r2, %rd1; cvt.rzi.u32.f32 %r3, %f1;"
                         " mad.lo.u32 %r4, %r1, %r2, %r3; st.param.b32 [r], %r4; ret; }",
                         "cvt.rn.f32.u32 %f1, %r1; cvt.u64.u32 %rd5, %r1;\n"
                         "{ .param .b32 p0; .param .b64 p1; .param .f32 p2; .param .b32 q;\n"
                         "st.param.b32 [p0], 7; st.param.b64 [p1], %rd5; st.param.f32 [p2], %f1;\n"
                         "call.uni (q), mad, (p0, p1, p2); ld.param.b32 %r5, [q]; }\n"
                         "and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0;\n"
                         "{ .param .b32 p0; .param .b64 p1; .param .f32 p2; .param .b32 q;\n"
                         "st.param.b32 [p0], %r5; st.param.b64 [p1], 2; mov.u32 %r7, %r5;\n"
                         "st.param.f32 [p2], 0f41200000; @%p1 call (q), mad, (p0, p1, p2);\n"
                         "ld.param.b32 %r8, [q]; @%p1 mov.u32 %r7, %r8; }\n"
                         "st.global.u32 [%rd2], %r7;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i % 2 ? 8 * i : 16 * i + 10, "thread %u: %u", i, out[i]);
    }
}

/* A structure of 24 bytes, read and written in parts of every width. */
Test(call, structures_by_value) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .align 8 .b8 r[24]) f(.param .align 8 .b8 a[24]) {"
                 " .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<5>;"
                 " ld.param.v2.u32 {%r1, %r2}, [a]; ld.param.u64 %rd1, [a+8];"
                 " ld.param.s16 %r3, [a+16]; ld.param.u8 %h1, [a+18]; ld.param.s8 %h2, [a+19];"
                 " ld.param.v4.u8 {%h3, %h4, %h5, %h6}, [a+20];"
                 " add.u32 %r1, %r1, %r2; add.u64 %rd1, %rd1, 1; add.u32 %r3, %r3, 1;"
                 " add.u16 %h2, %h2, %h1; st.param.v2.b32 [r], {%r2, %r1};"
                 " st.param.b64 [r+8], %rd1; st.param.b16 [r+16], %r3; st.param.b8 [r+18], %h2;"
                 " st.param.b8 [r+19], %h1; st.param.v4.b8 [r+20], {%h6, %h5, %h4, %h3}; ret; }",
                 "mul.wide.u32 %rd3, %r1, 20; add.u64 %rd2, %rd1, %rd3;\n"
                 "{ .param .align 8 .b8 p[24]; .param .align 8 .b8 q[24];\n"
                 "st.param.b32 [p], %r1; st.param.b32 [p+4], 1000; mul.wide.u32 %rd5, %r1, -3;\n"
                 "st.param.b64 [p+8], %rd5; neg.s32 %r5, %r1; st.param.b16 [p+16], %r5;\n"
                 "st.param.b8 [p+18], %r1; st.param.b8 [p+19], %r5;\n"
                 "st.param.b32 [p+20], 0x04030201;\n"
                 "call.uni (q), f, (p);\n"
                 "ld.param.v2.b32 {%r6, %r7}, [q]; ld.param.b64 %rd6, [q+8];\n"
                 "ld.param.b32 %r8, [q+16]; ld.param.b32 %r9, [q+20]; }\n"
                 "st.global.u32 [%rd2], %r6; st.global.u32 [%rd2+4], %r7;\n"
                 "cvt.u32.u64 %r10, %rd6; st.global.u32 [%rd2+8], %r10;\n"
                 "st.global.u32 [%rd2+12], %r8; st.global.u32 [%rd2+16], %r9;\n"),
             1, THREADS / 5, out);
    for (uint32_t i = 0; i < THREADS / 5; i++) {
        const uint32_t *word = &out[5 * i];
        uint32_t half = (uint32_t)(uint16_t)(1 - (int32_t)i), byte = (i + (uint8_t)-i) & 0xff;
        cr_assert(word[0] == 1000 && word[1] == 1000 + i, "%u %u", word[0], word[1]);
        cr_assert_eq(word[2], i * 0xfffffffdu + 1, "thread %u: 0x%x", i, word[2]);
        cr_assert_eq(word[3], half | byte << 16 | i << 24, "thread %u: 0x%x", i, word[3]);
        cr_assert_eq(word[4], 0x01020304, "thread %u: 0x%x", i, word[4]);
    }
}

/* Every path of a call with divergence before, inside and after it. */
#define PATHS                                                                                      \
    ".func (.param .b32 r) paths(.param .b32 a) { .reg .b32 %r<9>; .reg .pred %p<5>;"              \
    " ld.param.u32 %r1, [a]; st.param.b32 [r], 0; setp.lt.u32 %p1, %r1, 10; @%p1 ret;"             \
    " and.b32 %r2, %r1, 3; setp.eq.u32 %p2, %r2, 0; @!%p2 bra OTHER; mov.u32 %r3, 0;"              \
    " LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %r1; @%p3 bra LOOP;"                        \
    " st.param.b32 [r], %r3; ret;"                                                                 \
    " OTHER: setp.eq.u32 %p4, %r2, 1; @%p4 bra ONE; add.u32 %r4, %r1, 1000;"                       \
    " st.param.b32 [r], %r4; bra END; ONE: st.param.b32 [r], 1; END: ret; }"

static uint32_t paths(uint32_t a) {
    return a < 10 ? 0 : a % 4 == 0 ? a : a % 4 == 1 ? 1 : a + 1000;
}

Test(call, lanes_return_by_different_ways) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(PATHS, "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
                                     "call (q), paths, (p); ld.param.b32 %r5, [q]; }\n"
                                     "activemask.b32 %r6; popc.b32 %r6, %r6;\n"
                                     "shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6;\n"
                                     "st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i] & 0xffff, paths(i), "thread %u: %u", i, out[i] & 0xffff);
        cr_assert_eq(out[i] >> 16, i < 64 ? 32 : THREADS - 64, "they go on together");
    }
}

Test(call, lanes_call_from_different_places) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(PATHS, "rem.u32 %r5, %r1, 3; setp.eq.u32 %p1, %r5, 0;\n"
                                     "setp.eq.u32 %p2, %r5, 1; mov.u32 %r6, 5; @%p1 bra END;\n"
                                     "@%p2 bra ONE; add.u32 %r7, %r1, 7;\n"
                                     "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r7;\n"
                                     "call (q), paths, (p); ld.param.b32 %r6, [q]; } bra END;\n"
                                     "ONE: { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
                                     "call (q), paths, (p); ld.param.b32 %r8, [q];\n"
                                     "st.param.b32 [p], %r8; call (q), paths, (p);\n"
                                     "ld.param.b32 %r6, [q]; }\n"
                                     "END: st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = i % 3 == 0 ? 5 : i % 3 == 1 ? paths(paths(i)) : paths(i + 7);
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

/* Some lanes leave the kernel from inside a function; the others come back. */
Test(call, lanes_exit_inside_a_function) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".func inner(.param .b32 a) { .reg .b32 %r<5>; .reg .pred %p<3>;"
                         " ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 7; setp.eq.u32 %p1, %r2, 3;"
                         " @%p1 exit; setp.gt.u32 %p2, %r2, 5; @%p2 bra GONE; ret; GONE: exit; }"
                         ".func outer(.param .b32 a) { .reg .b32 %r<5>; .reg .pred %p<3>;"
                         " ld.param.u32 %r1, [a]; setp.lt.u32 %p1, %r1, 20; @%p1 bra END;"
                         " { .param .b32 p; st.param.b32 [p], %r1; call inner, (p); } END: ret; }",
                         "st.global.u32 [%rd2], 1;\n"
                         "{ .param .b32 p; st.param.b32 [p], %r1; call.uni outer, (p); }\n"
                         "st.global.u32 [%rd2], 2; bar.sync 0; st.global.u32 [%rd2], 3;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        bool gone = i >= 20 && (i % 8 == 3 || i % 8 > 5);
        cr_assert_eq(out[i], gone ? 1 : 3, "thread %u: %u", i, out[i]);
    }
    /* All lanes of a warp may, in any number of calls. */
    TEST_RUN(TEST_KERNEL_WITH(".func f() { exit; } .func g() { call f; ret; }",
                              "st.global.u32 [%rd2], 4; call g; st.global.u32 [%rd2], 5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], 4, "thread %u: %u", i, out[i]);
}

/* A recursion whose depth and branches differ by lane. */
Test(call, recursion) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .b32 r) fib(.param .b32 n) { .reg .b32 %r<9>; .reg .pred %p<2>;"
                 " ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 2; @%p1 bra END;"
                 " sub.u32 %r2, %r1, 1; sub.u32 %r3, %r1, 2;"
                 " { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2;"
                 "   call.uni (q), fib, (p); ld.param.b32 %r4, [q]; }"
                 " { .param .b32 p; .param .b32 q; st.param.b32 [p], %r3;"
                 "   call.uni (q), fib, (p); ld.param.b32 %r5, [q]; }"
                 " add.u32 %r1, %r4, %r5; END: st.param.b32 [r], %r1; ret; }",
                 "rem.u32 %r5, %r1, 13;\n"
                 "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r5;\n"
                 "call.uni (q), fib, (p); ld.param.b32 %r6, [q]; }\n"
                 "st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    static const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], fib[i % 13], "%u: %u", i, out[i]);
}

/* Two functions call each other, the second declared before it is defined; deeper than the joins
 * that a warp begins with. */
Test(call, mutual_recursion_goes_deep) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .b32 r) odd(.param .b32 n);"
                 ".func (.param .b32 r) even(.param .b32 n) { .reg .b32 %r<5>; .reg .pred %p;"
                 " ld.param.u32 %r1, [n]; setp.eq.u32 %p, %r1, 0; st.param.b32 [r], 1; @%p ret;"
                 " sub.u32 %r1, %r1, 1; .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;"
                 " call (q), odd, (p); ld.param.b32 %r2, [q]; st.param.b32 [r], %r2; ret; }"
                 ".func (.param .b32 r) odd(.param .b32 n) { .reg .b32 %r<5>; .reg .pred %p;"
                 " ld.param.u32 %r1, [n]; setp.eq.u32 %p, %r1, 0; st.param.b32 [r], 0; @%p ret;"
                 " sub.u32 %r1, %r1, 1; .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;"
                 " call (q), even, (p); ld.param.b32 %r2, [q]; st.param.b32 [r], %r2; ret; }",
                 "mul.lo.u32 %r5, %r1, 33;\n"
                 "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r5;\n"
                 "call.uni (q), even, (p); ld.param.b32 %r6, [q]; }\n"
                 "st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i % 2 == 0, "lane %u: %u", i, out[i]);
}

/* The oldest form: parameters in registers, and literal numbers as arguments. */
Test(call, parameters_in_registers) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.reg .u32 r, .reg .u64 w) f(.reg .u32 a, .param .b32 h, .reg .u64 d)"
                 " { .reg .u32 %r<3>; ld.param.b32 %r1, [h]; cvt.u32.u64 %r2, d;"
                 " mad.lo.u32 r, a, %r1, %r2; add.u64 w, d, 4294967296; mov.u32 a, 0; ret; }",
                 "cvt.u64.u32 %rd5, %r1; call (%r5, %rd6), f, (%r1, 3, %rd5);\n"
                 "shr.u64 %rd6, %rd6, 31; call (%r6, _), f, (%r5, %r1, %rd6);\n"
                 "call (%r7, _), f, (%r6, 1, 7); add.u32 %r7, %r7, %r1;\n"
                 "st.global.u32 [%rd2], %r7;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], 4 * i * i + 2 + 7 + i, "thread %u: %u", i, out[i]);
    }
}

/* A result that is only ever written by one move of what never changes. */
Test(call, results_that_are_constants) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".func (.reg .u32 r) two() { mov.u32 r, 2; ret; }"
                         ".func (.reg .u32 r, .reg .u64 w, .reg .pred q) more(.reg .u32 a)"
                         " { mov.u32 r, %tid.x; mov.u64 w, 5; mov.pred q, 1; ret; }",
                         "call (%r5), two; call (%r6, %rd5, %p1), more, (%r1);\n"
                         "cvt.u32.u64 %r7, %rd5; mad.lo.u32 %r5, %r5, 1000, %r6;\n"
                         "@%p1 mad.lo.u32 %r5, %r7, 100000, %r5; st.global.u32 [%rd2], %r5;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], 502000 + i, "%u: %u", i, out[i]);
}

Test(call, parameters_of_odd_sizes) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .align 2 .b8 r[2]) f(.param .b8 a[1], .param .b8 c[3]) {"
                 " .reg .b16 %h<9>; ld.param.s8 %h1, [a]; ld.param.u8 %h3, [c+2];"
                 " ld.param.b8 %h2, [c]; add.s16 %h4, %h1, %h2; mad.lo.s16 %h4, %h3, 10, %h4;"
                 " st.param.b16 [r], %h4; ret; }",
                 "cvt.u16.u32 %h1, %r1; neg.s16 %h2, %h1;\n"
                 "{ .param .b8 p0[1]; .param .b8 p2[3]; .param .align 2 .b8 q[2];\n"
                 "st.param.b8 [p0], %h2; st.param.b8 [p2], %h1; st.param.b8 [p2+2], 100;\n"
                 "call.uni (q), f, (p0, p2); ld.param.b8 %r5, [q]; ld.param.b8 %r6, [q+1]; }\n"
                 "mad.lo.u32 %r5, %r6, 256, %r5; st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], 1000, "%u: %u", i, out[i]);
}

/* The same parameters may be passed again, changed in part, or from the two sides of a branch. */
Test(call, parameters_stay_what_they_were) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .b32 r) sum(.param .align 4 .b8 a[12]) { .reg .b32 %r<5>;"
                 " ld.param.u32 %r1, [a]; ld.param.u32 %r2, [a+4]; ld.param.u32 %r3, [a+8];"
                 " add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.param.b32 [r], %r1; ret; }",
                 "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;\n"
                 "{ .param .align 4 .b8 p[12]; .param .b32 q; st.param.b32 [p], 1;\n"
                 "@%p1 bra EVEN; st.param.b32 [p+4], 10; bra BOTH;\n"
                 "EVEN: st.param.b32 [p+4], 20; BOTH: st.param.b32 [p+8], %r1;\n"
                 "LOOP: call (q), sum, (p); ld.param.b32 %r6, [q]; add.u32 %r7, %r7, %r6;\n"
                 "st.param.b32 [p+8], 5; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 3;\n"
                 "@%p2 bra LOOP; }\n"
                 "st.global.u32 [%rd2], %r7;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = 3 * (i % 2 ? 11 : 21) + i + 10;
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

/* A parameter may be read and changed by its address; the caller's is not changed by it. */
#define BY_ADDRESS(name, instructions)                                                             \
    ".func (.param .b32 r) " name "(.param .align 4 .b8 a[16], .param .b32 i) {"                   \
    " .reg .b32 %r<5>; .reg .b64 %rd<5>; mov.b64 %rd1, a; ld.param.u32 %r1, [i];"                  \
    " mad.wide.u32 %rd2, %r1, 4, %rd1; " instructions " st.param.b32 [r], %r2; ret; }"

Test(call, the_address_of_a_parameter) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(BY_ADDRESS("f", "st.local.u32 [%rd1+12], %r1; ld.local.u32 %r2, [%rd2];"
                                         " ld.param.u32 %r3, [a+8]; mad.lo.u32 %r2, %r3, 10, %r2;")
                             BY_ADDRESS("g", "ld.param.u32 %r2, [%rd2];"),
                         "and.b32 %r5, %r1, 3; mul.lo.u32 %r6, %r1, 7;\n"
                         "{ .param .align 4 .b8 p[16]; .param .b32 i; .param .b32 q;\n"
                         "st.param.b32 [p], %r6; st.param.b32 [p+4], 44; st.param.b32 [p+8], %r1;\n"
                         "st.param.b32 [p+12], 11; st.param.b32 [i], %r5;\n"
                         "call.uni (q), f, (p, i); ld.param.b32 %r7, [q];\n"
                         "call.uni (q), g, (p, i); ld.param.b32 %r8, [q]; }\n"
                         "mad.lo.u32 %r7, %r8, 10000, %r7; st.global.u32 [%rd2], %r7;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t before[4] = {7 * i, 44, i, 11}, after[4] = {7 * i, 44, i, i % 4};
        uint32_t expected = 10000 * before[i % 4] + 10 * i + after[i % 4];
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}
