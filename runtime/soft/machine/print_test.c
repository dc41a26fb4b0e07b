/*
 * printf and assert in kernels: the output, its order, and when it appears.
 */
#include "test/test_soft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_soft_open();
}

TestSuite(print, .init = begin, .fini = test_soft_close);

#define EXTERNS                                                                                    \
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);"                         \
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"       \
    " .param .b64 s);"

/* Adds a variable that holds bytes. */
static size_t put_bytes(char *text, size_t at, const char *name, const void *bytes, size_t count) {
    at += (size_t)sprintf(text + at, ".global .align 8 .b8 %s[] = {0", name);
    at -= 1;
    for (size_t i = 0; i < count; i++) {
        at +=
            (size_t)sprintf(text + at, "%s%u", i > 0 ? "," : "", ((const unsigned char *)bytes)[i]);
    }
    return at + (size_t)sprintf(text + at, "};\n");
}

/* A kernel in which each thread prints once, and stores what vprintf gives. */
static const char *print_kernel(const char *format, const void *arguments, size_t bytes) {
    static char text[20000];
    size_t at =
        (size_t)sprintf(text, ".version 8.0\n.target sm_90\n.address_size 64\n%s\n", EXTERNS);
    at = put_bytes(text, at, "format", format, strlen(format) + 1);
    at = put_bytes(text, at, "arguments", bytes > 0 ? arguments : "", bytes > 0 ? bytes : 1);
    sprintf(text + at, "%s",
            ".visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<5>;\n"
            "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd1;\n"
            "mov.u64 %rd2, format; mov.u64 %rd3, arguments; cvta.global.u64 %rd2, %rd2;\n"
            "cvta.global.u64 %rd3, %rd3;\n"
            "{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %rd2;\n"
            "st.param.b64 [q], %rd3; call.uni (r), vprintf, (p, q); ld.param.b32 %r2, [r]; }\n"
            "st.global.u32 [%rd1], %r2; ret; }\n");
    return text;
}

static void check_print(const char *format, const void *arguments, size_t bytes, int count,
                        const char *expected) {
    uint32_t out[1] = {99};
    test_capture(stdout);
    TEST_RUN(print_kernel(format, arguments, bytes), 1, 1, out);
    const char *printed = test_captured(stdout);
    cr_assert_str_eq(printed, expected, "%s gave '%s', not '%s'", format, printed, expected);
    cr_assert_eq((int)out[0], count, "%s: %d", format, (int)out[0]);
}

/* One number of each kind, held against the host's own printf. */
Test(print, numbers) {
    static const char *const ints[] = {
        "%d", "%i",  "%5d|",  "%-5d|", "%05d|", "%+d",  "% d", "%.3d", "%u", "%x",   "%X",   "%#x",
        "%o", "%#o", "%8.4x", "%-8u|", "%hd",   "%hhd", "%hu", "%hhx", "%c", "%3c|", "%-3c|"};
    static const int values[] = {0, 1, -1, 65, 12345, -2147483647 - 1, 2147483647, 70000};
    for (size_t f = 0; f < sizeof ints / sizeof ints[0]; f++) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            char expected[100];
            if (strchr(ints[f], 'c') != NULL && values[v] != 65) continue;
            snprintf(expected, sizeof expected, ints[f], values[v]);
            check_print(ints[f], &values[v], 4, 1, expected);
        }
    }
    static const char *const longs[] = {"%lld",  "%llu",    "%llx",     "%ld", "%lu",
                                        "%#llo", "%20lld|", "%-20llx|", "%zu"};
    static const long long long_values[] = {0, -1, 0x123456789abcdef, -0x7fffffffffffffff - 1};
    for (size_t f = 0; f < sizeof longs / sizeof longs[0]; f++) {
        for (size_t v = 0; v < sizeof long_values / sizeof long_values[0]; v++) {
            char expected[100];
            snprintf(expected, sizeof expected, longs[f], long_values[v]);
            check_print(longs[f], &long_values[v], 8, 1, expected);
        }
    }
    static const char *const floats[] = {"%f",  "%e",      "%g",    "%E",      "%G",
                                         "%a",  "%A",      "%.3f",  "%10.2e|", "%-10g|",
                                         "%+f", "%010.1f", "%#.0f", "% g",     "%.0e"};
    static const double float_values[] = {0,     -0.0,    1,        -1.5, 3.14159265358979,
                                          1e300, -1e-300, INFINITY, NAN,  123456789};
    for (size_t f = 0; f < sizeof floats / sizeof floats[0]; f++) {
        for (size_t v = 0; v < sizeof float_values / sizeof float_values[0]; v++) {
            char expected[400];
            snprintf(expected, sizeof expected, floats[f], float_values[v]);
            check_print(floats[f], &float_values[v], 8, 1, expected);
        }
    }
}

Test(print, arguments_lie_at_multiples_of_their_size) {
    static const struct { /* static: what lies between its members is zero */
        int a;
        double b;
        char c[4];
        long long d;
        int e, f;
        double g;
    } arguments = {-3, 2.5, {'x'}, 1ll << 40, 7, 8, -0.5};
    check_print("%d %g %c %lld %*d %.2f%%\n", &arguments, sizeof arguments, 7,
                "-3 2.5 x 1099511627776       8 -0.50%\n");
}

Test(print, widths_and_precisions_may_be_arguments) {
    static const int one[] = {8, 42}, other[] = {-8, 42, 3, 5};
    check_print("%*d|", one, sizeof one, 2, "      42|");
    check_print("%*d|%.*d|", other, sizeof other, 4, "42      |005|");
    static const struct {
        int width, precision;
        double value;
    } both = {9, 2, 3.14159};
    check_print("%*.*f|", &both, sizeof both, 3, "     3.14|");
    static const struct {
        int precision, pad;
        double value;
    } negative = {-1, 0, 3.5};
    check_print("%.*f|", &negative, sizeof negative, 2, "3.500000|");
}

Test(print, what_is_no_conversion_is_printed_as_it_stands) {
    check_print("", NULL, 0, 0, "");
    check_print("100%%", NULL, 0, 0, "100%");
    check_print("a\tb\"\\\n", NULL, 0, 0, "a\tb\"\\\n");
    check_print("%y and %5!", NULL, 0, 0, "%y and %5!");
    check_print("the end %", NULL, 0, 0, "the end ");
}

Test(print, pointers) {
    static const uint64_t value = 0x7f0012345678;
    char expected[40];
    snprintf(expected, sizeof expected, "%p|%20p|", (void *)(uintptr_t)value,
             (void *)(uintptr_t)value);
    static const uint64_t twice[] = {0x7f0012345678, 0x7f0012345678};
    check_print("%p|%20p|", twice, sizeof twice, 2, expected);
}

/* Strings lie in any memory a generic address reaches; here in global and in local memory. */
#define PRINT_STRINGS                                                                              \
    TEST_KERNEL_WITH(EXTERNS ".global .b8 format[] = {91, 37, 115, 93, 91, 37, 54, 115, 93, 91,"   \
                             " 37, 46, 49, 115, 93, 10, 0};"                                       \
                             " .global .b8 word[] = {97, 98, 99, 0};",                             \
                     ".local .align 8 .b8 args[24]; .local .b8 own[2];\n"                          \
                     "mov.u64 %rd5, own; cvta.local.u64 %rd5, %rd5; add.u32 %r5, %r1, 65;\n"       \
                     "st.local.u8 [own], %r5; st.local.u8 [own+1], 0;\n"                           \
                     "mov.u64 %rd6, word; cvta.global.u64 %rd6, %rd6;\n"                           \
                     "st.local.u64 [args], %rd5; st.local.u64 [args+8], %rd6;\n"                   \
                     "st.local.u64 [args+16], %rd6; mov.u64 %rd7, args;\n"                         \
                     "cvta.local.u64 %rd7, %rd7; mov.u64 %rd8, format;\n"                          \
                     "{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %rd8;\n"    \
                     "st.param.b64 [q], %rd7; call.uni (r), vprintf, (p, q); }\n")

Test(print, strings) {
    uint32_t out[3] = {0};
    test_capture(stdout);
    TEST_RUN(PRINT_STRINGS, 1, 3, out);
    cr_assert_str_eq(test_captured(stdout), "[A][   abc][a]\n[B][   abc][a]\n[C][   abc][a]\n");
}

/* Blocks in their order, lanes in theirs, and only those that call. */
Test(print, lines_come_in_order) {
    static const char ptx[] = TEST_KERNEL_WITH(
        EXTERNS ".global .b8 format[] = {37, 100, 32, 0};",
        ".local .align 8 .b8 args[8]; st.local.u32 [args], %r1; mov.u64 %rd7, args;\n"
        "cvta.local.u64 %rd7, %rd7; mov.u64 %rd8, format; and.b32 %r5, %r1, 3;\n"
        "setp.eq.u32 %p1, %r5, 1;\n"
        "{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %rd8;\n"
        "st.param.b64 [q], %rd7; @%p1 call (r), vprintf, (p, q); }\n");
    char expected[2000];
    size_t at = 0;
    for (unsigned i = 1; i < 3 * 40; i += 4) at += (size_t)sprintf(expected + at, "%u ", i);
    uint32_t out[120] = {0};
    test_capture(stdout);
    TEST_RUN(ptx, 3, 40, out);
    cr_assert_str_eq(test_captured(stdout), expected);
}

/* Nothing comes out before the host waits, and then all that was printed before. */
Test(print, it_comes_out_when_the_host_waits) {
    CUmodule module = test_load(PRINT_STRINGS);
    CUfunction function = test_function(module, "k");
    CUdeviceptr out = 0;
    CUstream stream = NULL;
    void *parameters[] = {&out};
    test_capture(stdout);
    cr_assert_eq(cuMemAlloc_v2(&out, 4), CUDA_SUCCESS);
    cr_assert_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL),
                     CUDA_SUCCESS);
        while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
        }
        cr_assert_str_eq(test_captured(stdout), "", "not yet: %s", test_captured(stdout));
        printf("host %d\n", i);
        fflush(stdout);
        cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
        cr_assert(strstr(test_captured(stdout), "host") != NULL);
        test_capture(stdout);
        printf("behind %d\n", i);
        cr_assert_str_eq(test_captured(stdout), i == 0 ? "behind 0\n" : "behind 1\n");
        test_capture(stdout);
    }
}

/* A failed kernel's lines come out all the same. */
Test(print, a_failed_kernel_has_its_say) {
    uint32_t out[1] = {0};
    test_capture(stdout);
    test_capture(stderr);
    CUresult result = test_run(TEST_KERNEL_WITH(EXTERNS ".global .b8 format[] = {104, 105, 10, 0};",
                                                "mov.u64 %rd8, format;\n"
                                                "{ .param .b64 p; .param .b64 q; .param .b32 r;\n"
                                                "st.param.b64 [p], %rd8; st.param.b64 [q], 0;\n"
                                                "call.uni (r), vprintf, (p, q); }\ntrap;\n"),
                               1, 1, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_LAUNCH_FAILED);
    cr_assert_str_eq(test_captured(stdout), "hi\n");
}

Test(print, a_missing_format_is_minus_one) {
    uint32_t out[1] = {0};
    test_capture(stdout);
    TEST_RUN(TEST_KERNEL_WITH(EXTERNS, "{ .param .b64 p; .param .b64 q; .param .b32 r;\n"
                                       "st.param.b64 [p], 0; st.param.b64 [q], 0;\n"
                                       "call.uni (r), vprintf, (p, q);\n"
                                       "ld.param.b32 %r5, [r]; } st.global.u32 [%rd2], %r5;\n"),
             1, 1, out);
    cr_assert_eq((int)out[0], -1);
    cr_assert_str_eq(test_captured(stdout), "");
}

Test(print, wrong_addresses_fail_as_loads_do) {
    uint32_t out[1] = {0};
    test_capture(stderr);
    CUresult result =
        test_run(TEST_KERNEL_WITH(EXTERNS, "{ .param .b64 p; .param .b64 q; .param .b32 r;\n"
                                           "st.param.b64 [p], 64; st.param.b64 [q], 0;\n"
                                           "call.uni (r), vprintf, (p, q); }\n"),
                 1, 1, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "a null pointer") != NULL, "%s", test_captured(stderr));
}

/* What is never fetched does not grow without end: the oldest goes. */
Test(print, too_much_loses_the_oldest) {
    static const char ptx[] = TEST_KERNEL_WITH(
        EXTERNS ".global .b8 format[] = {37, 52, 48, 57, 53, 100, 10, 0};",
        ".local .align 8 .b8 args[8]; st.local.u32 [args], %r1; mov.u64 %rd7, args;\n"
        "cvta.local.u64 %rd7, %rd7; mov.u64 %rd8, format;\n"
        "{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %rd8;\n"
        "st.param.b64 [q], %rd7; call (r), vprintf, (p, q); }\n");
    enum { THREADS = 5000, KEPT = (16 << 20) / 4096 };
    static uint32_t out[THREADS];
    test_capture(stdout);
    TEST_RUN(ptx, 20, THREADS / 20, out);
    const char *line = test_captured(stdout);
    while (*line == ' ') line++;
    long first = strtol(line, NULL, 10);
    cr_assert_eq(first, THREADS - KEPT, "%ld", first);
}

static const char assertion[] = TEST_KERNEL_WITH(
    EXTERNS ".global .b8 message[] = {120, 32, 62, 32, 48, 0}; .global .b8 file[] = {97, 46, 99,"
            " 117, 0}; .global .b8 function[] = {118, 111, 105, 100, 32, 107, 40, 41, 0};",
    "mov.u64 %rd5, message; mov.u64 %rd6, file; mov.u64 %rd7, function;\n"
    "mov.u32 %r5, %tid.y; add.u32 %r5, %r5, %r1; setp.eq.u32 %p1, %r5, 3;\n"
    "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
    "st.param.b64 [m], %rd5; st.param.b64 [f], %rd6; st.param.b32 [l], 17;\n"
    "st.param.b64 [n], %rd7; st.param.b64 [s], 1;\n"
    "@%p1 call __assertfail, (m, f, l, n, s); }\nst.global.u32 [%rd2], 5;\n");

Test(print, assertions_that_hold_say_nothing) {
    uint32_t out[3] = {0};
    test_capture(stderr);
    TEST_RUN(assertion, 1, 3, out);
    cr_assert(out[0] == 5 && out[2] == 5);
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(print, an_assertion_that_fails_ends_the_kernel) {
    CUfunction function = test_function(test_load(assertion), "k");
    CUdeviceptr out = 0;
    void *parameters[] = {&out};
    test_capture(stderr);
    cr_assert_eq(cuMemAlloc_v2(&out, 4096), CUDA_SUCCESS);
    cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 4, 2, 1, 0, NULL, parameters, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
    cr_assert_eq(cuMemFree_v2(out), CUDA_ERROR_ASSERT, "the context is lost");
    const char *told = test_captured(stderr);
    cr_assert(strstr(told, "a.cu:17: void k(): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` "
                           "failed.\n"
                           "a.cu:17: void k(): block: [0,0,0], thread: [2,1,0] Assertion `x > 0` "
                           "failed.\n") != NULL,
              "%s", told);
    cr_assert(strstr(told, "assertion failed in kernel k in block (0,0,0), thread (3,0,0) and "
                           "others") != NULL,
              "%s", told);
}

/* 600 more letters before the file's name: 511 of all are printed. */
Test(print, long_texts_of_an_assertion_are_cut) {
    enum { MORE = 600, KEPT = 511 };
    static char text[sizeof assertion + 4 * MORE], wanted[KEPT + 32];
    const char *name = strstr(assertion, "97, 46, 99");
    size_t before = (size_t)(name - assertion), used = before;
    memcpy(text, assertion, before);
    for (int i = 0; i < MORE; i++) used += (size_t)sprintf(text + used, "98, ");
    strcpy(text + used, name);
    memset(wanted + 1, 'b', KEPT);
    wanted[0] = '\n';
    strcpy(wanted + 1 + KEPT, ":17: void k(): block: ");
    uint32_t out[4] = {0};
    test_capture(stderr);
    fputs("\n", stderr);
    cr_assert_eq(test_run(text, 1, 4, out, sizeof out), CUDA_ERROR_ASSERT);
    const char *told = test_captured(stderr);
    cr_assert(strstr(told, wanted) != NULL, "%s", told);
}
