/*
 * Forms of instructions that current compilers no longer write: without .sync, without a space,
 * with narrow parameters. ptxas accepts each of them.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

TestSuite(forms, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 64 };

/* A kernel of an old target, as k(out): d1 is out, d2 the place of the thread's word, r1 its
 * number. */
#define OLD(declarations, body)                                                                    \
    ".version 6.3\n.target sm_30\n.address_size 64\n" declarations "\n"                            \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .b16 h<9>; .reg .b32 r<30>; .reg .b64 d<9>; .reg .f32 f<9>; .reg .pred p<9>;\n"          \
    "ld.param.u64 d1, [out]; mov.u32 r1, %tid.x; mad.wide.u32 d2, r1, 4, d1;\n" body "ret;\n}\n"

/* The members are those who execute together. */
Test(forms, shfl_without_sync) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(OLD("", "shfl.bfly.b32 r2, r1, 1, 31; shfl.up.b32 r3|p1, r1, 4, 0;\n"
                     "@!p1 mov.u32 r3, 100; mad.lo.u32 r2, r3, 1000, r2;\n"
                     "st.global.u32 [d2], r2;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t up = i % 32 < 4 ? 100 : i - 4;
        cr_assert_eq(out[i], up * 1000 + (i ^ 1), "thread %u: %u", i, out[i]);
    }
}

Test(forms, vote_without_sync) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(OLD("", "setp.lt.u32 p1, r1, 40; and.b32 r2, r1, 1; setp.eq.u32 p2, r2, 0;\n"
                     "mov.u32 r4, 0; @p2 bra EVEN;\n"
                     "vote.ballot.b32 r4, !p1; bra DONE;\n"
                     "EVEN: vote.ballot.b32 r4, p1;\n"
                     "DONE: vote.all.pred p3, p1; vote.any.pred p4, p1; vote.uni.pred p5, p1;\n"
                     "selp.u32 r5, 1, 0, p3; @p4 or.b32 r5, r5, 2; @p5 or.b32 r5, r5, 4;\n"
                     "xor.b32 r4, r4, r5; st.global.u32 [d2], r4;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t yes = i < 32 ? UINT32_MAX : 0xff, half = i % 2 == 0 ? 0x55555555 : 0xaaaaaaaa;
        uint32_t votes = i % 2 == 0 ? yes & half : ~yes & half;
        cr_assert_eq(out[i], votes ^ (i < 32 ? 7u : 2u), "thread %u: 0x%x", i, out[i]);
    }
}

Test(forms, without_sync_only_for_old_targets) {
    char log[2048];
    test_refused(".version 6.4\n.target sm_70\n.address_size 64\n.entry k() {\n"
                 ".reg .u32 a; shfl.up.b32 a, 1, 1, 0; ret; }",
                 log, sizeof log);
    cr_assert(strstr(log, "ptx:5:") != NULL && strstr(log, "needs .sync") != NULL, "%s", log);
    cr_assert_eq(cuModuleUnload(test_load(".version 6.3\n.target sm_70\n.address_size 64\n"
                                          ".entry k() {\n.reg .u32 a;\n"
                                          "shfl.up.b32 a, 1, 1, 0; ret; }")),
                 CUDA_SUCCESS);
}

Test(forms, a_name_says_its_space_where_the_instruction_does_not) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(OLD(".shared .u32 s[2]; .global .u32 g[2] = {5, 6};\n",
                 ".local .u32 l[2]; setp.eq.u32 p1, r1, 0; @p1 st.u32 [s], 0;\n"
                 "@p1 st.u32 [s+4], 0; bar.sync 0; st.u32 [l], r1; st.u32 [l+4], r1+1;\n"
                 "ld.u32 r2, [l+4]; ld.u32 r3, [g+4];\n"
                 "atom.add.u32 r4, [s], 1; red.add.u32 [s+4], 2; bar.sync 0; ld.u32 r5, [s];\n"
                 "ld.u32 r6, [s+4]; mad.lo.u32 r2, r2, r3, r5; add.u32 r2, r2, r6;\n"
                 "st.u32 [d2], r2;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], (i + 1) * 6 + 3 * THREADS, "thread %u: %u", i, out[i]);
    }
    char log[2048];
    test_refused(OLD("", ".local .u32 l; atom.add.u32 r2, [l], 1;\n"), log, sizeof log);
    cr_assert(strstr(log, "local memory") != NULL, "%s", log);
}

/* Parameters of a byte, of a half-word, and of a bit. */
Test(forms, narrow_parameters) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        OLD(".func (.param .b16 r) half(.param .b8 a, .param .s16 b) { .reg .b16 %h<3>;"
            " ld.param.s8 %h1, [a]; ld.param.s16 %h2, [b]; sub.s16 %h1, %h2, %h1;"
            " st.param.b16 [r], %h1; ret; }\n"
            ".func (.reg .u16 r, .reg .pred q) odd(.reg .u16 a, .reg .pred q0) { .reg .u16 one;"
            " and.b16 one, a, 1; setp.eq.xor.u16 q, one, 1, q0; add.u16 r, a, 100; ret; }\n",
            "cvt.u16.u32 h1, r1; neg.s16 h2, h1;\n"
            "{ .param .b8 a; .param .b16 b; .param .b16 r; st.param.b8 [a], h1;\n"
            "st.param.b16 [b], h2; call (r), half, (a, b); ld.param.s16 r2, [r]; }\n"
            "setp.gt.u32 p1, r1, 31; call (h3, p2), odd, (h1, p1); cvt.u32.u16 r3, h3;\n"
            "setp.ne.u32 p3, r3, 105; @p3 call (h3, p2), odd, (h3, p2); cvt.u32.u16 r3, h3;\n"
            "selp.u32 r4, 1000, 0, p2; mad.lo.u32 r2, r2, 10000, r3; add.u32 r2, r2, r4;\n"
            "st.global.u32 [d2], r2;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        bool odd = i % 2 == 1, flag = odd != (i > 31);
        uint32_t word = i + 100;
        if (i != 5) {
            flag = (word % 2 == 1) != flag;
            word += 100;
        }
        uint32_t wanted = (uint32_t)(-2 * (int32_t)i * 10000) + word + (flag ? 1000 : 0);
        cr_assert_eq(out[i], wanted, "thread %u: %u, not %u", i, out[i], wanted);
    }
}

/* Parameters by an address in a register: one for all lanes but one, which does not run; and
 * another byte in each lane. */
Test(forms, parameters_at_an_address) {
    uint32_t out[2 * 32] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r4, %r3, 7; setp.lt.u32 %p1, %r3, 32; @%p1 mov.b32 %r4, 1;\n"
                         "mov.u64 %rd3, out; cvt.u64.u32 %rd4, %r4; add.u64 %rd3, %rd3, %rd4;\n"
                         "mov.b32 %r6, 77; setp.ne.u32 %p2, %r3, 9;\n"
                         "@%p2 ld.param.s8 %r6, [%rd3];\n"
                         "shl.b32 %r7, %r4, 3; shr.u64 %rd5, %rd1, %r7; cvt.u32.u64 %r8, %rd5;\n"
                         "cvt.s32.s8 %r8, %r8; @!%p2 mov.b32 %r8, 0; sub.s32 %r6, %r6, %r8;\n"
                         "st.global.u32 [%rd2], %r6;\n"),
             1, 2 * 32, out);
    for (uint32_t i = 0; i < 2 * 32; i++) {
        cr_assert_eq(out[i], i == 9 ? 77u : 0u, "thread %u: %d", i, (int)out[i]);
    }
}

/* The flag of a difference is set where nothing is borrowed, as a sum after it finds; and a
 * difference after a sum borrows where that carried nothing. ptxas 13.0 makes such code of it. */
Test(forms, sums_and_differences_share_the_carry) {
    static const uint32_t wanted[] = {1, 0, 0, 1, UINT32_MAX, 0, 0, UINT32_MAX};
    uint32_t out[8] = {0};
    TEST_RUN(OLD("", "sub.cc.u32 r2, 7, 7; addc.u32 r2, 0, 0; st.global.u32 [d1], r2;\n"
                     "sub.cc.u32 r2, 7, 8; addc.u32 r2, 0, 0; st.global.u32 [d1+4], r2;\n"
                     "add.cc.u32 r2, 7, 7; addc.u32 r2, 0, 0; st.global.u32 [d1+8], r2;\n"
                     "add.cc.u32 r2, 7, -7; addc.u32 r2, 0, 0; st.global.u32 [d1+12], r2;\n"
                     "add.cc.u32 r2, 7, 7; subc.u32 r2, 0, 0; st.global.u32 [d1+16], r2;\n"
                     "add.cc.u32 r2, 7, -7; subc.u32 r2, 0, 0; st.global.u32 [d1+20], r2;\n"
                     "sub.cc.u32 r2, 7, 7; subc.u32 r2, 0, 0; st.global.u32 [d1+24], r2;\n"
                     "sub.cc.u32 r2, 7, 8; subc.u32 r2, 0, 0; st.global.u32 [d1+28], r2;\n"),
             1, 1, out);
    for (unsigned i = 0; i < 8; i++) cr_assert_eq(out[i], wanted[i], "%u: %u", i, out[i]);
}

/* A lane that goes straight to the end of a branch need not wait there for those who vote with it
 * inside: it may exit, and then is no member any more. */
Test(forms, members_that_wait_for_the_others_go_on_alone) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r4, %r3, 31; setp.eq.u32 %p1, %r4, 0; mov.u32 %r5, 0;\n"
                         "setp.ne.u32 %p2, 1, 2; @%p1 bra OUT;\n"
                         "vote.sync.ballot.b32 %r5, %p2, 0xffffffff;\n"
                         "OUT: st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i % 32 == 0 ? 0 : 0xfffffffe, "thread %u: 0x%x", i, out[i]);
    }
}

/* The two that one lane votes with elsewhere, after the point where it should have met them. */
Test(forms, members_meet_at_another_place) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r4, %r3, 31; setp.eq.u32 %p1, %r4, 0; mov.u32 %r5, 0;\n"
                         "@%p1 bra OUT;\n"
                         "shfl.sync.idx.b32 %r5, %r3, 0, 31, 0xffffffff;\n"
                         "bra END;\n"
                         "OUT: add.u32 %r6, %r3, 1000;\n"
                         "shfl.sync.idx.b32 %r5, %r6, 0, 31, 0xffffffff;\n"
                         "END: st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i / 32 * 32 + 1000, "thread %u: %u", i, out[i]);
    }
}

Test(forms, products_and_sums_without_a_rounding) {
    float out[2] = {0, 0};
    TEST_RUN(OLD("", "mov.f32 f1, 2.0; mad.f32 f2, f1, 3.0, 0.5; st.global.f32 [d1], f2;\n"
                     "mad.ftz.sat.f32 f2, f1, 0.25, 0.25; st.global.f32 [d1+4], f2;\n"
                     "pmevent 3; pmevent.mask 5;\n"),
             1, 1, out);
    cr_assert(out[0] == 6.5f && out[1] == 0.75f, "%g %g", (double)out[0], (double)out[1]);
}

/* The older name of a fence between the names of one place. */
Test(forms, membar_proxy_alias) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL("st.global.u32 [%rd2], %r1; membar.proxy.alias; ld.global.u32 %r5, [%rd2];\n"
                    "fence.proxy.alias; add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], i + 1, "thread %u: %u", i, out[i]);
    char log[2048];
    test_refused(OLD("", "membar.proxy.alias;\n"), log, sizeof log);
    cr_assert(strstr(log, "needs .target sm_70") != NULL, "%s", log);
}

/* What a range is called is no name: a parameter, a variable, a label, a function or a register
 * may have it. */
Test(forms, the_stem_of_a_range_is_free) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(".version 6.3\n.target sm_30\n.address_size 64\n.global .u32 g = 3;\n"
             ".func (.reg .u32 o) f(.reg .u32 i) { add.u32 o, i, 5; ret; }\n"
             ".visible .entry k(.param .u64 p)\n{\n"
             ".reg .pred p<5>; .reg .u32 f<9>, s<2>, L<3>, r, r<3>; .reg .u64 g<4>;\n"
             ".shared .u32 s[64]; ld.param.u64 g1, [p]; mov.u32 r, %tid.x; mov.u64 g2, g;\n"
             "mul.wide.u32 g3, r, 4; add.u64 g1, g1, g3; ld.global.u32 f1, [g];\n"
             "mov.u32 f2, s; mad.lo.u32 f2, r, 4, f2; st.shared.u32 [f2], r;\n"
             "ld.shared.u32 s1, [f2]; setp.lt.u32 p1, r, 10; @p1 bra L; add.u32 s1, s1, 100;\n"
             "L: call (r2), f, (s1); add.u32 r2, r2, f1; st.global.u32 [g1], r2; ret;\n}\n",
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i + 8 + (i < 10 ? 0 : 100), "thread %u: %u", i, out[i]);
    }
    char log[2048];
    test_refused(OLD("", ".reg .b32 q<5>; .reg .f32 q<3>;\n"), log, sizeof log);
    cr_assert(strstr(log, "declared twice") != NULL, "%s", log);
    test_refused(OLD("", ".reg .b32 q1; .reg .f32 q<3>;\n"), log, sizeof log);
    cr_assert(strstr(log, "declared twice") != NULL, "%s", log);
}

/* Registers outside functions, parameters inside them, and declarations that nothing ends. */
Test(forms, modules_of_the_first_versions) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(".version 1.3\n.target sm_10, map_f64_to_f32\n.reg .u32 %ra<3>, n;\n.reg .pred %q;\n"
             ".entry other { .reg .f32 f<3>; mov.u32 n, 1; div.f32 f1, f2, f0; cos.f32 f1, f1; }\n"
             ".entry k\n{\n.reg .u32 %r<4>; .reg .u64 %rd<5>; .param .u64 p;\n"
             "cvt.s32.u16 %r1, %tid.x; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r1, 4;\n"
             "add.u64 %rd1, %rd1, %rd2; mul.lo.u32 n, %r1, %r1; mov.u32 %ra2, 7;\n"
             "setp.gt.u32 %q, n, 50; @%q add.u32 n, n, %ra2; st.global.s32 [%rd1+0], n; exit;\n}\n",
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i * i + (i * i > 50 ? 7 : 0), "thread %u: %u", i, out[i]);
    }
    TEST_RUN(
        ".version 2.1\n.target sm_20\n"
        ".visible .func (.param .s32 r) twice (.param .s32 a)\n"
        ".extern .func (.param .s32 r) vprintf (.param .b64 a, .param .b64 b)\n"
        ".file 1 \"a.cu\"\n"
        ".visible .func (.param .s32 r) twice (.param .s32 a)\n{\n.reg .u32 %r<3>;\n"
        "ld.param.u32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.s32 [r], %r1; ret;\n}\n"
        ".entry k (.param .u64 p)\n{\n.reg .u32 %r<5>; .reg .u64 %rd<5>;\n"
        ".param .s32 x; .param .s32 y; mov.u32 %r1, %tid.x; st.param.u32 [x], %r1;\n"
        "call (y), twice, (x); ld.param.s32 %r2, [y]; ld.param.u64 %rd1, [p];\n"
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.s32 [%rd1+0], %r2; exit;\n}\n",
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) cr_assert_eq(out[i], 2 * i, "thread %u: %u", i, out[i]);
}

Test(forms, what_was_of_old_versions_ended_with_them) {
    char log[2048];
    test_refused(".version 3.0\n.target sm_20\n.reg .u32 n;\n.entry k() { ret; }\n", log,
                 sizeof log);
    cr_assert(strstr(log, "ptx:3:1:") != NULL && strstr(log, "2.3") != NULL, "%s", log);
    test_refused(".version 1.4\n.target sm_13\n.entry k { .param .u64 p; ret; }\n", log,
                 sizeof log);
    cr_assert(strstr(log, "ptx:3:12:") != NULL && strstr(log, "in its parameter list") != NULL,
              "%s", log);
    test_refused(".version 2.3\n.target sm_20\n.reg .u32 n;\n.func f() { add.u32 n, n, 1; ret; }\n"
                 ".entry k() { call f; ret; }\n",
                 log, sizeof log);
    cr_assert(strstr(log, "ptx:4:21:") != NULL && strstr(log, "only kernels") != NULL, "%s", log);
}

/* Eight bits and bfloat16: only registers of .b8 are taken, and cuda_bf16.hpp writes them. */
Test(forms, cvt_between_eight_bits_and_bf16) {
    uint32_t out[4] = {0};
    TEST_RUN(TEST_KERNEL(".reg .b8 %b<3>; mov.b16 %h1, 0xc070; cvt.rzi.s8.bf16 %b1, %h1;\n"
                         "cvt.s32.s8 %r4, %b1; st.global.u32 [%rd1], %r4;\n"
                         "cvt.rn.bf16.s8 %h2, %b1; cvt.u32.u16 %r4, %h2;\n"
                         "st.global.u32 [%rd1+4], %r4;\n"
                         "mov.b16 %h1, 0x4348; cvt.rni.u8.bf16 %b2, %h1; cvt.u32.u8 %r4, %b2;\n"
                         "st.global.u32 [%rd1+8], %r4; cvt.rn.bf16.u8 %h2, %b2;\n"
                         "cvt.u32.u16 %r4, %h2; st.global.u32 [%rd1+12], %r4;\n"),
             1, 1, out);
    cr_assert((int32_t)out[0] == -3 && out[1] == 0xc040, "%d 0x%x", (int32_t)out[0], out[1]);
    cr_assert(out[2] == 200 && out[3] == 0x4348, "%u 0x%x", out[2], out[3]);
}
