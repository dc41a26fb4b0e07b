/*
 * Linking: variables and their initial values, names declared before or after their use, and a
 * module's attributes of its kernels.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(link, .init = test_soft_open, .fini = test_soft_close);

/* Initial data of every kind, as the kernel finds it. */
Test(link, initial_data) {
    uint32_t out[13] = {[12] = 1};
    TEST_RUN(
        TEST_KERNEL_WITH(
            ".global .u32 word = 0x12345678; .const .s16 halves[3] = {-1, 2};"
            " .visible .global .f32 float = 1.5; .global .f64 double = 0d4000000000000000;"
            " .global .align 8 .b8 bytes[8] = {1, 2, 3}; .weak .global .u64 wide = -2;"
            " .global .u32 table[2][3] = {{1, 2, 3}, {4, 5}}; .global .v2 .u32 pair = {7, 8};"
            " .common .global .u32 common[4]; .extern .global .u32 outside; .global "
            ".attribute(.managed) .u32 managed = 9;"
            " .global .u8 chars[] = {104, 105, 0}; .global .u32 sum = 2 + 3 * 4;",
            "ld.global.u32 %r5, [word]; st.global.u32 [%rd1], %r5;\n"
            "ld.const.s16 %r5, [halves]; ld.const.s16 %r6, [halves+2];\n"
            "ld.const.u16 %r7, [halves+4]; mad.lo.s32 %r5, %r5, 100, %r6;\n"
            "add.u32 %r5, %r5, %r7; st.global.u32 [%rd1+4], %r5;\n"
            "ld.global.f32 %f1, [float]; st.global.f32 [%rd1+8], %f1;\n"
            "ld.global.f64 %fd1, [double]; cvt.rn.f32.f64 %f1, %fd1;\n"
            "st.global.f32 [%rd1+12], %f1; ld.global.u64 %rd5, [bytes];\n"
            "cvt.u32.u64 %r5, %rd5; st.global.u32 [%rd1+16], %r5;\n"
            "ld.global.u64 %rd5, [wide]; cvt.u32.u64 %r5, %rd5; st.global.u32 [%rd1+20], %r5;\n"
            "ld.global.u32 %r5, [table+12]; ld.global.u32 %r6, [table+20];\n"
            "mad.lo.u32 %r5, %r6, 100, %r5; st.global.u32 [%rd1+24], %r5;\n"
            "ld.global.v2.u32 {%r5, %r6}, [pair]; mad.lo.u32 %r5, %r6, 100, %r5;\n"
            "st.global.u32 [%rd1+28], %r5; ld.global.u32 %r5, [common+12];\n"
            "st.global.u32 [%rd1+32], %r5; ld.global.u32 %r5, [managed];\n"
            "st.global.u32 [%rd1+36], %r5; ld.global.u8 %r5, [chars+1];\n"
            "st.global.u32 [%rd1+40], %r5; ld.global.u32 %r5, [sum];\n"
            "st.global.u32 [%rd1+44], %r5; ld.global.u32 %r5, [outside];\n"
            "st.global.u32 [%rd1+48], %r5;\n"),
        1, 1, out);
    static const uint32_t expected[13] = {
        0x12345678, (uint32_t)-98, 0x3fc00000, 0x40000000, 0x00030201, (uint32_t)-2,
        4,          807,           0,          9,          105,        14};
    for (int i = 0; i < 13; i++) cr_assert_eq(out[i], expected[i], "%d: 0x%x", i, out[i]);
}

/* Addresses as data: of variables, with and without an offset, generic or not, of constants, of
 * functions, of what is declared first and defined later, and byte by byte. */
Test(link, addresses_as_data) {
    uint32_t out[8] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(
            ".extern .global .u32 later[2]; .global .u32 words[4] = {10, 20, 30, 40};"
            " .const .u32 fixed[2] = {50, 60}; .global .b8 one[4] = {111, 110, 101, 0};"
            " .global .b8 two[4] = {116, 119, 111, 0};"
            " .global .u64 p[6] = {words, words+8, generic(words)+4, generic(fixed), later, 0};"
            " .global .align 8 .u64 names[2] = {generic(one), generic(two)};"
            " .global .align 8 .u8 parts[8] = {0xFF(words), 0xFF00(words), 0xFF0000(words),"
            " 0xFF000000(words), 0xFF00000000(words), 0xFF0000000000(words),"
            " 0xFF000000000000(words), 0xFF00000000000000(words)};"
            " .visible .global .u32 later[2] = {70, 80};",
            "ld.global.u64 %rd5, [p]; ld.global.u32 %r5, [%rd5]; st.global.u32 [%rd1], %r5;\n"
            "ld.global.u64 %rd5, [p+8]; ld.global.u32 %r5, [%rd5];\n"
            "st.global.u32 [%rd1+4], %r5; ld.global.u64 %rd5, [p+16]; ld.u32 %r5, [%rd5];\n"
            "st.global.u32 [%rd1+8], %r5; ld.global.u64 %rd5, [p+24];\n"
            "ld.u32 %r5, [%rd5+4]; st.global.u32 [%rd1+12], %r5;\n"
            "ld.global.u64 %rd5, [p+32]; ld.global.u32 %r5, [%rd5+4];\n"
            "st.global.u32 [%rd1+16], %r5; ld.global.u64 %rd5, [names+8];\n"
            "ld.u8 %r5, [%rd5+1]; st.global.u32 [%rd1+20], %r5;\n"
            "ld.global.u64 %rd5, [parts]; ld.global.u32 %r5, [%rd5+12];\n"
            "st.global.u32 [%rd1+24], %r5;\n"),
        1, 1, out);
    static const uint32_t expected[7] = {10, 30, 20, 60, 80, 119, 40};
    for (int i = 0; i < 7; i++) cr_assert_eq(out[i], expected[i], "%d: %u", i, out[i]);
}

Test(link, what_has_no_address_is_refused) {
    static const char *const cases[][2] = {
        {TEST_KERNEL_WITH(".extern .global .u32 x[]; .global .u64 p = x;", ""),
         "'x' is declared but not defined"},
        {TEST_KERNEL_WITH(".extern .func f(); .global .u64 p = f;", ""),
         "'f' is declared but not defined"},
        {TEST_KERNEL_WITH(".extern .global .u32 x[];", "ld.global.u32 %r5, [x];\n"),
         "'x' is declared but not defined"},
        {TEST_KERNEL_WITH(".extern .func f();", "call f;\n"), "'f' is declared but not defined"},
        {TEST_KERNEL_WITH(".extern .func __cudaCDP2LaunchDeviceV2();",
                          "call __cudaCDP2LaunchDeviceV2;\n"),
         "kernels that launch kernels (CUDA dynamic parallelism) are not supported: "
         "'__cudaCDP2LaunchDeviceV2' is called"},
        {TEST_KERNEL_WITH(".extern .func cudaGraphSetConditional();",
                          "call cudaGraphSetConditional;\n"),
         "conditional nodes of graphs are not supported: 'cudaGraphSetConditional' is called"},
        {TEST_KERNEL_WITH(".func f(); .alias g, f;", ""), "'g' is not a function"},
        {TEST_KERNEL_WITH(".func f(); .func g(); .alias g, f;", ""),
         "'f' is not a function defined"},
        {TEST_KERNEL_WITH(".func f() { ret; } .func f() { ret; }", ""), "declared twice"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX, "%zu", i);
        cr_assert(strstr(log, cases[i][1]) != NULL, "%zu: %s", i, log);
    }
}

/* A device of 8 GiB: one variable of 9 GB, and two of 5 GB. */
Test(link, braces_of_data_follow_the_dimensions) {
    static const char *const cases[][2] = {
        {TEST_KERNEL_WITH(".global .u32 x[2] = {{1}, {2}};", ""), "expected a value, not a brace"},
        {TEST_KERNEL_WITH(".global .u32 x[2][2] = {{{1}}, {2}};", ""),
         "expected a value, not a brace"},
        {TEST_KERNEL_WITH(".global .u32 x[2][2] = {{1, 2, 3}, {2}};", ""),
         "more initial values than the variable can hold"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX, "%zu", i);
        cr_assert(strstr(log, cases[i][1]) != NULL, "%zu: %s", i, log);
    }
}

/* Several threads check the functions of a long text, so that one of them may find a later error
 * before another finds the first. */
Test(link, the_first_wrong_function_of_a_long_text_is_reported) {
    enum { FUNCTIONS = 3000, WRONG = 1700, ROOM = 120 };
    static char text[FUNCTIONS * ROOM + 200];
    char log[2048];
    size_t used = (size_t)sprintf(text, ".version 8.0\n.target sm_90\n.address_size 64\n");
    for (int i = 0; i < FUNCTIONS; i++) {
        used += (size_t)sprintf(text + used,
                                ".visible .func f%d() { .reg .b32 %%r<3>; .reg .b64 %%d; "
                                "add.u32 %%r1, %%r1, %s; ret; }\n",
                                i, i >= WRONG ? "%d" : "%r2");
    }
    cr_assert(used > (size_t)128 * 1024 && used < sizeof text);
    cr_assert_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(log, "ptx:1704:") == log && strstr(log, "64 bits") != NULL, "%s", log);
}

Test(link, variables_larger_than_the_device_are_refused) {
    char log[2048];
    cr_assert_eq(
        test_refused(TEST_KERNEL_WITH(".common .global .b8 z[9000000000];", ""), log, sizeof log),
        CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert(strstr(log, "out of memory for the variable 'z' of 9000000000 bytes") != NULL);
    cr_assert_eq(test_refused(TEST_KERNEL_WITH(".global .b8 y[5000000000], z[5000000000];", ""),
                              log, sizeof log),
                 CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert(strstr(log, "variable 'z' of 5000000000 bytes") != NULL, "%s", log);
}

/* What a kernel says of its blocks is kept when it is launched; the rest of what may be said of a
 * function is taken note of, or not. */
#define BOUNDED(directives)                                                                        \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() " directives " { ret; }\n"

Test(link, blocks_that_a_kernel_does_not_take_are_refused) {
    static const struct {
        const char *ptx;
        unsigned block[3];
        CUresult expected;
    } cases[] = {
        {BOUNDED(".maxntid 128"), {128, 1, 1}, CUDA_SUCCESS},
        {BOUNDED(".maxntid 128"), {16, 4, 2}, CUDA_SUCCESS},
        {BOUNDED(".maxntid 128"), {129, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {BOUNDED(".maxntid 16, 4, 2 .minnctapersm 2 .maxnreg 32"), {128, 1, 1}, CUDA_SUCCESS},
        {BOUNDED(".maxntid 16, 4, 2"), {16, 16, 1}, CUDA_ERROR_INVALID_VALUE},
        {BOUNDED(".reqntid 32, 2"), {32, 2, 1}, CUDA_SUCCESS},
        {BOUNDED(".reqntid 32, 2"), {64, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {BOUNDED(".reqntid 32, 2"), {32, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {BOUNDED(".pragma \"nounroll\";"), {1024, 1, 1}, CUDA_SUCCESS},
        {BOUNDED(".pragma \"nounroll\";"), {1024, 2, 1}, CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUfunction function = test_function(test_load(cases[i].ptx), "k");
        CUresult result = cuLaunchKernel(function, 1, 1, 1, cases[i].block[0], cases[i].block[1],
                                         cases[i].block[2], 0, NULL, NULL, NULL);
        cr_assert_eq(result, cases[i].expected, "%zu: %d", i, (int)result);
        cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    }
}

Test(link, what_else_may_be_said_of_functions_and_statements) {
    uint32_t out[32] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".pragma \"nounroll\"; .func g() .noreturn { exit; }"
                         " .weak .func (.param .b32 r) f(.param .b32 a);"
                         " .weak .func (.param .b32 r) f(.param .b32 a)"
                         " { .reg .b32 %r; .pragma \"nounroll\"; ld.param.u32 %r, [a];"
                         " add.u32 %r, %r, 1; st.param.b32 [r], %r; ret.uni; bra.uni END; END: }",
                         ".pragma \"nounroll\"; .loc 1 1 1\n{ .param .b32 p; .param .b32 q;\n"
                         "st.param.b32 [p], %r1; call.uni (q), f, (p); ld.param.b32 %r5, [q]; }\n"
                         "st.global.u32 [%rd2], %r5; setp.lt.u32 %p1, %r1, 16; @%p1 call g;\n"
                         "st.global.u32 [%rd2], 7;\n"),
        1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i < 16 ? i + 1 : 7, "%u: %u", i, out[i]);
}
