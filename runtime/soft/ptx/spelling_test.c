/*
 * Spellings of other compilers and authors, for the same instructions. ptxas accepts each of them.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

TestSuite(spelling, .init = test_soft_open, .fini = test_soft_close);

/* A kernel of an old target: k(out), and a body whose last word is a store. */
#define OLD(declarations, body)                                                                    \
    ".version 6.3\n.target sm_30\n.address_size 64\n" declarations "\n"                            \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .b16 h<9>; .reg .b32 r<30>; .reg .b64 d<9>; .reg .f32 f<9>; .reg .f64 x<9>;"             \
    ".reg .pred p<9>;\n"                                                                           \
    "ld.param.u64 d1, [out]; mov.u32 r1, %tid.x; mad.wide.u32 d2, r1, 4, d1;\n" body "ret;\n}\n"

/* Runs one thread, and demands a word. */
static void gives(const char *text, uint32_t wanted) {
    uint32_t out[1] = {0};
    TEST_RUN(text, 1, 1, out);
    cr_assert_eq(out[0], wanted, "%s\ngives 0x%x, and not 0x%x", text, out[0], wanted);
}

Test(spelling, floating_point_numbers_may_begin_or_end_with_their_point) {
    gives(OLD("", "mov.f32 f1, .5; st.global.f32 [d1], f1;\n"), 0x3f000000);
    gives(OLD("", "mov.f32 f1, 2.; st.global.f32 [d1], f1;\n"), 0x40000000);
    gives(OLD("", "mov.f32 f1, -.25e1; st.global.f32 [d1], f1;\n"), 0xc0200000);
    gives(OLD("", "add.f32 f1, 1.,.5; st.global.f32 [d1], f1;\n"), 0x3fc00000);
    gives(OLD("", "mov.f32 f1, 5e-1; st.global.f32 [d1], f1;\n"), 0x3f000000);
    gives(OLD(".global .f32 t[] = {1., .5,-2.};\n", "ld.global.f32 f1, [t+8];\n"
                                                    "st.global.f32 [d1], f1;\n"),
          0xc0000000);
}

Test(spelling, expressions_stand_where_numbers_do) {
    gives(OLD("", "mov.u32 r2, (1 << 4) | 3; st.global.u32 [d1], r2;\n"), 19);
    gives(OLD("", "mov.u32 r2, 2 * (3 + 4); st.global.u32 [d1], r2;\n"), 14);
    gives(OLD("", "mov.s64 d3, (.s64)-5; cvt.u32.u64 r2, d3; st.global.u32 [d1], r2;\n"),
          (uint32_t)-5);
    gives(OLD(".global .u32 t[4] = {1, 2, 3, 4};\n",
              "mov.u64 d3, t; ld.global.u32 r2, [d3+4*2]; ld.global.u32 r3, [d3+(8-4)];\n"
              "mad.lo.u32 r2, r2, 10, r3; st.global.u32 [d1], r2;\n"),
          32);
    gives(OLD("", "add.cc.u32 r2, 0xffffffffffffffffU, 1; addc.u32 r2, 0, 0;\n"
                  "st.global.u32 [d1], r2;\n"),
          1);
}

Test(spelling, a_register_and_a_number_are_their_sum) {
    gives(OLD("", "mov.u32 r2, 5; st.global.u32 [d1], r2+7;\n"), 12);
    gives(OLD("", "mov.u32 r2, 5; mov.u32 r3, r2+2*3; st.global.u32 [d1], r3;\n"), 11);
    gives(OLD("", "mov.u32 r2, 5; mul.lo.u32 r3, r2+1, r2+-2; st.global.u32 [d1], r3;\n"), 18);
    gives(OLD("", "mov.u64 d3, 9; add.u64 d3, d3 + 8, 0; st.global.b32 [d1], d3;\n"), 17);
    gives(OLD("", "mov.u16 h1, 65535; mov.u16 h2, h1+3; cvt.u32.u16 r2, h2;\n"
                  "st.global.u32 [d1], r2;\n"),
          2);
    gives(OLD("", "mov.u32 r2, 5; setp.eq.u32 p1, r2+1, 6; selp.u32 r3, r2+2, 0, p1;\n"
                  "st.global.u32 [d1], r3;\n"),
          7);
    char log[2048];
    test_refused(OLD("", "add.f32 f1, f2+1, f3;\n"), log, sizeof log);
    cr_assert(strstr(log, "only an integer register") != NULL, "%s", log);
}

Test(spelling, an_index_counts_elements) {
    gives(OLD(".const .u16 t[4] = {10, 20, 30, 40};\n",
              "ld.const.u16 r2, t[2]; st.global.u32 [d1], r2;\n"),
          30);
    gives(OLD(".global .u64 t[3] = {1, 2, 3};\n",
              "mov.u64 d3, t[1+1]; ld.global.u32 r2, [d3]; st.global.u32 [d1], r2;\n"),
          3);
    gives(OLD("", ".local .u32 l[4]; mov.u32 r2, 7; st.local.u32 l[3], r2;\n"
                  "ld.local.u32 r3, [l+12]; st.global.u32 [d1], r3;\n"),
          7);
    /* Of vectors it counts the components. */
    gives(OLD(".global .v2 .u32 t[2] = {{1, 2}, {3, 4}};\n",
              "ld.global.u32 r2, t[2]; st.global.u32 [d1], r2;\n"),
          3);
    char log[2048];
    test_refused(OLD(".global .u32 t[2][2];\n", "ld.global.u32 r2, t[1];\n"), log, sizeof log);
    cr_assert(strstr(log, "one dimension") != NULL, "%s", log);
    test_refused(OLD(".global .u32 t[2];\n", "ld.global.u32 r2, t;\n"), log, sizeof log);
    cr_assert(strstr(log, "address in brackets") != NULL, "%s", log);
}

Test(spelling, initial_data_follows_vectors_and_open_dimensions) {
    gives(OLD(".global .v4 .u8 t[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};\n",
              "ld.global.u32 r2, [t+4]; st.global.u32 [d1], r2;\n"),
          0x08070605);
    gives(OLD(".global .v2 .u32 t = {6, 7};\n", "ld.global.u32 r2, [t+4];\n"
                                                "st.global.u32 [d1], r2;\n"),
          7);
    /* A row that is cut short is a row. */
    gives(OLD(".global .u32 t[][3] = {{1}, {2}};\n", "ld.global.u32 r2, [t+12];\n"
                                                     "st.global.u32 [d1], r2;\n"),
          2);
    gives(OLD(".global .v2 .u16 t[] = {{1, 2}, {3, 4}, {5, 6}};\n",
              "ld.global.u32 r2, [t+8]; st.global.u32 [d1], r2;\n"),
          0x00060005);
    gives(OLD(".global .b128 t = -2;\n", "ld.global.u32 r2, [t+12]; st.global.u32 [d1], r2;\n"),
          UINT32_MAX);
}

Test(spelling, parameters_and_labels_may_begin_like_registers) {
    uint32_t out[1] = {0};
    TEST_RUN(".version 6.3\n.target sm_30\n.address_size 64\n"
             ".entry k(.param .u64 %out) { .reg .u64 %p; .reg .u32 $a, _b, c$1;\n"
             "ld.param.u64 %p, [%out]; mov.u32 $a, 1; bra %L; mov.u32 $a, 9;\n"
             "%L: mov.u32 _b, $a; add.u32 c$1, _b, 2; st.global.u32 [%p], c$1; ret; }",
             1, 1, out);
    cr_assert_eq(out[0], 3);
    char log[2048];
    test_refused(OLD("", "add.u32 r2, r1, %r9;\nadd.u32 r2, r1, %r8;\n"), log, sizeof log);
    cr_assert(strstr(log, "'%r9' is neither a declared register") != NULL, "%s", log);
}

Test(spelling, white_space_and_comments_stand_anywhere) {
    gives("/* first */ // of all\r\n\r\n.version 6.3\r\n.target sm_30,texmode_independent\r\n"
          ".address_size 64\r\n.visible.entry k(.param.u64 out){\r\n"
          ".reg.u32 r<3>;.reg.u64 d;.reg.pred p;\r\n"
          "ld .param .u64 d,[ out + 0 ];setp.eq.u32 p,1,1;\r\n"
          "@ ! p mov.u32/* a move */r1,1;@p\tmov.u32 r1,2;L/* a label */:\r\n"
          "st.global.u32\t[d],r1;@p ret;trap;}",
          2);
}

Test(spelling, special_registers_that_nobody_fills_are_zero) {
    gives(OLD("", "mov.u32 r2, %envreg0; mov.u32 r3, %envreg17; add.u32 r2, r2, r3;\n"
                  "mov.u32 r3, %envreg31; or.b32 r2, r2, r3; mov.u32 r3, %pm3;\n"
                  "or.b32 r2, r2, r3; mov.u64 d3, %pm7_64; cvt.u32.u64 r3, d3; or.b32 r2, r2, r3;\n"
                  "st.global.u32 [d1], r2+1;\n"),
          1);
}

Test(spelling, modifiers_come_in_any_order) {
    gives(OLD(".global .align 16 .u32 t[4] = {1, 2, 3, 4};\n",
              "ld.v4.global.u32 {r2, r3, r4, r5}, [t]; ld.u32.volatile.global r6, [t+8];\n"
              "mad.lo.u32 r2, r5, 10, r6; st.u32.global [d1], r2;\n"),
          43);
    gives(OLD("", "mov.f32 f1, 0.75; add.f32.sat.ftz.rn f2, f1, f1; st.global.f32 [d1], f2;\n"),
          0x3f800000);
    /* The first type is the result's in any position. */
    gives(OLD("", "mov.f32 f1, -2.5; cvt.s32.f32.rzi r2, f1; setp.f32.lt p1, f1, 0.0;\n"
                  "selp.u32 r3, r2, 0, p1; st.global.u32 [d1], r3;\n"),
          (uint32_t)-2);
    uint32_t out[1] = {5};
    TEST_RUN(TEST_KERNEL("atom.global.gpu.acq_rel.add.u32 %r5, [%rd1], 3;\n"
                         "red.u32.add.gpu.relaxed.global [%rd1], 4; fence.gpu.acq_rel;\n"),
             1, 1, out);
    cr_assert_eq(out[0], 12);
    char log[2048];
    test_refused(OLD("", "add.f32.sat.sat f1, f2, f3;\n"), log, sizeof log);
    test_refused(OLD("", "cvt.f32.s32.rzi r2, f1;\n"), log, sizeof log);
    test_refused(OLD("", "ld.global.shared.u32 r2, [d1];\n"), log, sizeof log);
    test_refused(TEST_KERNEL("cp.async.ca.global.shared [%rd1], [%rd2], 4;\n"), log, sizeof log);
    cr_assert(strstr(log, "'.global'") != NULL, "%s", log);
    cr_assert_eq(
        cuModuleUnload(test_load(TEST_KERNEL("cp.async.shared.global.ca [%rd1], [%rd2], 4;\n"))),
        CUDA_SUCCESS);
}

Test(spelling, bytes_are_packed_and_unpacked) {
    gives(OLD("", ".reg .b8 b<4>; mov.u32 r2, 0x04030281; mov.b32 {b0, b1, b2, b3}, r2;\n"
                  "mov.b32 r3, {b3, b2, b1, b0}; st.global.u32 [d1], r3;\n"),
          0x81020304);
    gives(OLD("", ".reg .b8 b<2>; mov.u32 r2, 0xfff1fff2; cvt.u8.u32 b0, r2; mov.b16 h1, 0x1234;\n"
                  "mov.b16 {_, b1}, h1; mov.b16 h2, {b0, b1}; cvt.u32.u16 r3, h2;\n"
                  "st.global.u32 [d1], r3;\n"),
          0x12f2);
    gives(OLD("", ".reg .s8 b<2>; mov.u32 r2, -1; cvt.s8.s32 b0, r2; cvt.s8.s32 b1, 3;\n"
                  "mov.b16 h2, {b1, b0}; cvt.u32.u16 r3, h2; st.global.u32 [d1], r3;\n"),
          0xff03);
}

Test(spelling, lines_of_the_preprocessor_are_skipped) {
    gives("# 1 \"kernel.S\"\n" OLD("", "\n#line 5 \"kernel.S\"\n  # 7\n"
                                       "mov.u32 r2, 3; isspacep.param::entry p1, d1;\n"
                                       "@p1 mov.u32 r2, 4; st.global.u32 [d1], r2;\n"),
          3);
    char log[2048];
    test_refused(OLD("", "mov.u32 r2, #3;\n"), log, sizeof log);
    cr_assert(strstr(log, "code 35") != NULL, "%s", log);
}

/* Of two that are spelled alike only the first would ever be found. */
Test(spelling, no_two_modifiers_are_spelled_alike) {
    static const char *const texts[] = {
#define PTX_MODIFIER(name, text) text,
#include "modifier.def"
    };
    enum { COUNT = sizeof texts / sizeof texts[0] };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = i + 1; k < COUNT; k++) {
            cr_assert_str_neq(texts[i], texts[k], "modifier.def has %s twice", texts[i]);
        }
    }
}
