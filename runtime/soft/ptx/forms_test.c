/*
 * Forms of instructions that current compilers no longer write: without .sync, without a space,
 * with narrow parameters. ptxas accepts each of them. And the newest: targets from sm_100 on.
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

/* ---- sm_100 and later: what they add, where it is refused, and which texts a device takes. The
 * results of single precision are in float.table; ptxas 13.0 accepts and refuses the same. ---- */

static void single_open(void) {
    setenv("TOLLENS_SOFT_COMPUTE", "120", 1);
    test_soft_open();
}

TestSuite(single, .init = single_open, .fini = test_soft_close);

/* A kernel like TEST_KERNEL, of a version and a target; the body is line 7. */
#define SINGLE(version, target, body)                                                              \
    ".version " version "\n.target " target "\n.address_size 64\n.shared .align 64 .b8 s[128];\n"  \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<30>; .reg .u64 %u<4>; .reg .f32 %f<20>; "    \
    ".reg .f64 %g<20>; .reg .b128 %q<2>; .reg .pred %p<2>; ld.param.u64 %d0, [out];\n" body        \
    "\nret; }\n"

/* The rest of a vector is aligned to 32 bytes, and a register of the address may be loaded. */
Test(single, vectors_of_32_bytes_are_loaded_and_stored) {
    uint32_t out[4][8];
    for (uint32_t i = 0; i < 32; i++) out[i / 8][i % 8] = 0x01010101u * i;
    TEST_RUN(SINGLE("8.8", "sm_100",
                    "ld.global.nc.L1::no_allocate.v8.b32 {%r1, %r2, %r3, %r4, %r5, _, %r7, %r8}, "
                    "[%d0];\n"
                    "ld.relaxed.gpu.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d0+32];\n"
                    "mov.u64 %d9, %d0; ld.v4.b64 {%d9, %d10, %d11, %d12}, [%d9];\n"
                    "st.global.v8.u32 [%d0], {%r8, %r7, 6, %r5, %r4, %r3, %r2, %r1};\n"
                    "st.release.gpu.global.v4.b64 [%d0+64], {%d4, %d3, %d2, %d1};\n"
                    "st.v4.b64 [%d0+96], {%d12, %d11, %d10, %d9};\n"),
             1, 1, out);
    static const uint32_t right[4][8] = {{7, 6, 0, 4, 3, 2, 1, 0},
                                         {8, 9, 10, 11, 12, 13, 14, 15},
                                         {14, 15, 12, 13, 10, 11, 8, 9},
                                         {6, 7, 4, 5, 2, 3, 0, 1}};
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t byte = right[i / 8][i % 8];
        cr_assert_eq(out[i / 8][i % 8], i == 2 ? 6 : 0x01010101u * byte, "word %u", i);
    }
}

Test(single, a_vector_of_32_bytes_is_aligned) {
    uint32_t out[16] = {0};
    CUresult result =
        test_run(SINGLE("8.8", "sm_100", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0+16];"), 1, 1,
                 out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_MISALIGNED_ADDRESS, "%d", (int)result);
}

Test(single, sources_may_be_the_result) {
    float out[4] = {1.5f, -2.0f, 0.25f, 4.0f};
    TEST_RUN(SINGLE("8.7", "sm_120",
                    "ld.global.v2.b64 {%d1, %d2}, [%d0]; fma.rn.f32x2 %d1, %d1, %d2, %d1;\n"
                    "add.f32x2 %d2, %d2, %d2; st.global.v2.b64 [%d0], {%d1, %d2};"),
             1, 1, out);
    cr_assert(out[0] == 1.875f && out[1] == -10.0f && out[2] == 0.5f && out[3] == 8.0f);
}

Test(single, other_forms_are_refused_with_their_line) {
    static const struct {
        const char *text, *what;
    } cases[] = {
        {SINGLE("8.8", "sm_90", "add.rn.f32x2 %d1, %d2, %d3;"), "needs .target sm_100"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %u1, %u2, %u3;"), "type .u64, and .f32x2"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %g1, %g2, %g3;"), "type .f64, and .f32x2"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %d1, %d2, 0;"), "expected a register"},
        {SINGLE("8.7", "sm_120", "add.rn.sat.f32x2 %d1, %d2, %d3;"), "'.f32x2' is not valid"},
        {SINGLE("8.7", "sm_120", "fma.f32x2 %d1, %d2, %d3, %d4;"), "is not valid here"},
        {SINGLE("8.7", "sm_120", "mul.rn.f32.f16 %f1, %h1, %f2;"), "'.f16' is not valid"},
        {SINGLE("8.7", "sm_120", "add.f32.f16 %f1, %f2, %f3;"), "register of 32 bits, and 16"},
        {SINGLE("9.0", "sm_90", "min.f32 %f1, %f2, %f3, %f4;"), "needs .target sm_100"},
        {SINGLE("8.7", "sm_120", "min.f32 %f1, %f2, %f3, %f4;"), "and .version 8.8"},
        {SINGLE("8.8", "sm_120", "min.abs.f32 %f1, %f2, %f3;"), "needs 4 operands here, not 3"},
        {SINGLE("8.8", "sm_120", "min.xorsign.abs.f32 %f1, %f2, %f3, %f4;"), "needs 3 operands"},
        {SINGLE("8.7", "sm_120", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), ".version 8.8"},
        {SINGLE("8.8", "sm_90", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), "sm_100"},
        {SINGLE("8.8", "sm_120", "ld.shared.v4.b64 {%d1, %d2, %d3, %d4}, [s];"), "16 bytes"},
        {SINGLE("8.8", "sm_120", "ldu.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), "16 bytes"},
        {SINGLE("8.8", "sm_120",
                "ld.global.v8.u16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%d0];"),
         "'.u16' is not valid"},
        {SINGLE("8.8", "sm_120",
                "st.global.v8.b32 [%d0], {%d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8};"),
         "a register of 64 bits, and 32"},
        {SINGLE("8.8", "sm_120", "wgmma.fence.sync.aligned;"), "is of .target sm_90a alone"},
        {SINGLE("8.8", "sm_120a", "wgmma.fence.sync.aligned;"), "is of .target sm_90a alone"},
        {SINGLE("8.8", "sm_120", "setmaxnreg.inc.sync.aligned.u32 64;"), "a target such as"},
        /* not modelled, or of a suffix */
        {SINGLE("8.8", "sm_120a", "tcgen05.wait::ld.sync.aligned;"), "unknown or not supported"},
        {SINGLE("8.8", "sm_120",
                "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;"),
         "unknown or not supported"},
        {SINGLE("8.8", "sm_120", "st.async.mmio.release.sys.global.b32 [%d0], %r1;"), "not valid"},
        {SINGLE("8.8", "sm_120", "st.bulk.weak.shared::cta [%d0], %d1, 0;"),
         "'.bulk' is not valid"},
        {SINGLE("8.8", "sm_120", "st.global.v4.b64 [%d0], {%d1, _, %d3, %d4};"), "a register or a"},
        {SINGLE("8.8", "sm_120", "multimem.red.add.f32 [%d0], %f1;"), "unknown or not supported"},
        {SINGLE("8.8", "sm_120", "cvt.rn.satfinite.tf32.f32 %r1, %f1;"), "is not valid here"},
        {SINGLE("8.8", "sm_120a", "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;"), "e2m1x2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char log[1024] = "";
        cr_expect_eq(test_refused(cases[i].text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, cases[i].what) != NULL && strstr(log, "ptx:7:") != NULL, "%zu: %s", i,
                  log);
    }
}

/* As ptxas 13.0: the first PTX version of each target; and a suffix is for few devices. */
Test(single, the_targets_are_those_of_ptxas) {
    static const struct {
        const char *text, *what; /* what: NULL: it is taken */
    } cases[] = {
        {SINGLE("8.6", "sm_100", ""), NULL},
        {SINGLE("8.5", "sm_100", ""), "target sm_100 needs PTX 8.6"},
        {SINGLE("8.7", "sm_103", ""), "target sm_103 needs PTX 8.8"},
        {SINGLE("8.8", "sm_103", ""), NULL},
        {SINGLE("8.8", "sm_110", ""), "target sm_110 needs PTX 9.0"},
        {SINGLE("9.0", "sm_110", ""), NULL},
        {SINGLE("8.6", "sm_120", ""), "target sm_120 needs PTX 8.7"},
        {SINGLE("8.7", "sm_120", ""), NULL},
        {SINGLE("8.7", "sm_121", ""), "target sm_121 needs PTX 8.8"},
        {SINGLE("8.8", "sm_121", ""), "the PTX is for sm_121, and the device has"},
        {SINGLE("8.7", "sm_120a", ""), NULL},
        {SINGLE("8.7", "sm_120f", ""), "target sm_120f needs PTX 8.8"},
        {SINGLE("8.8", "sm_120f", ""), NULL},
        {SINGLE("8.6", "sm_100a", ""), "sm_100a, which is for devices of compute capability 10.0"},
        {SINGLE("8.8", "sm_100f", ""), "sm_100f, which is for the family of compute capability"},
        {SINGLE("8.0", "sm_90a", ""), "sm_90a, which is for devices of compute capability 9.0"},
        {SINGLE("7.8", "sm_90a", ""), "target sm_90a needs PTX 8.0"},
        {SINGLE("9.0", "sm_90f", ""), "unknown target 'sm_90f'"},
        {SINGLE("9.0", "sm_80a", ""), "unknown target 'sm_80a'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char log[1024] = "";
        if (cases[i].what == NULL) {
            cr_expect(test_load(cases[i].text) != NULL);
            continue;
        }
        cr_expect_eq(test_refused(cases[i].text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, cases[i].what) != NULL, "%zu: %s", i, log);
    }
}

/* A fat binary of two texts; one has a suffix. Layout: lower/fatbin.h. */
Test(single, a_text_of_another_device_is_passed_over) {
    static const char *const texts[] = {".version 8.0\n.target sm_80\n.entry old() { ret; }\n",
                                        ".version 8.0\n.target sm_90a\n.entry new() { ret; }\n"};
    static const uint32_t architectures[] = {80, 90};
    unsigned char image[512] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    size_t at = 16;
    for (int i = 0; i < 2; i++) {
        const uint32_t header = 64, bytes = 64;
        const uint16_t kind = 1;
        memcpy(image + at, &kind, 2);
        memcpy(image + at + 4, &header, 4);
        memcpy(image + at + 8, &bytes, 4);
        memcpy(image + at + 28, &architectures[i], 4);
        cr_assert(strlen(texts[i]) < bytes);
        memcpy(image + at + 64, texts[i], strlen(texts[i]));
        at += header + bytes;
    }
    const uint64_t all = at - 16;
    memcpy(image + 8, &all, 8);
    CUmodule module = NULL;
    CUfunction function = NULL;
    cr_assert_eq(cuModuleLoadData(&module, image), CUDA_SUCCESS, "%s", test_log());
    cr_assert_eq(cuModuleGetFunction(&function, module, "old"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&function, module, "new"), CUDA_ERROR_NOT_FOUND);
}
