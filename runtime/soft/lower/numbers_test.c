/*
 * Numbers with a limit in instructions and directives: the last valid and the first invalid one.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(numbers, .init = test_soft_open, .fini = test_soft_close);

static void must_refuse(const char *text, const char *words) {
    char log[2000];
    CUresult result = test_refused(text, log, sizeof log);
    cr_assert_neq(result, CUDA_SUCCESS, "%s", text);
    cr_assert(strstr(log, words) != NULL, "'%s' is not in: %s", words, log);
}

Test(numbers, a_table_of_lop3_has_eight_bits) {
    test_load(TEST_KERNEL("lop3.b32 %r4, %r1, %r2, %r3, 255;\n"));
    test_load(TEST_KERNEL("lop3.b32 %r4, %r1, %r2, %r3, 0;\n"));
    must_refuse(TEST_KERNEL("lop3.b32 %r4, %r1, %r2, %r3, 256;\n"), "0 to 255");
    must_refuse(TEST_KERNEL("lop3.b32 %r4, %r1, %r2, %r3, -1;\n"), "0 to 255");
}

/* Source: PTX ISA 9.0, the release notes: the version that brought each target. */
Test(numbers, a_target_needs_the_version_that_brought_it) {
    static const struct {
        unsigned architecture, version;
    } rows[] = {{53, 42}, {60, 50},  {61, 50},  {62, 50},  {70, 60},  {72, 61},
                {75, 63}, {80, 70},  {86, 71},  {87, 74},  {88, 73},  {89, 78},
                {90, 78}, {100, 86}, {101, 86}, {103, 88}, {120, 87}, {121, 88}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200], words[80];
        /* Before a version x.0 comes one that there never was, which is as old. */
        unsigned before = rows[i].version - 1;
        snprintf(text, sizeof text, ".version %u.%u\n.target sm_%u\n.address_size 64\n",
                 before / 10, before % 10, rows[i].architecture);
        snprintf(words, sizeof words, "target sm_%u needs PTX %u.%u or newer", rows[i].architecture,
                 rows[i].version / 10, rows[i].version % 10);
        must_refuse(text, words);
        if (rows[i].architecture > 90) continue; /* newer than the device */
        snprintf(text, sizeof text, ".version %u.%u\n.target sm_%u\n.address_size 64\n",
                 rows[i].version / 10, rows[i].version % 10, rows[i].architecture);
        test_load(text);
    }
}

/* What a function says of the registers that it leaves alone is read, for the compiler's sake. */
Test(numbers, a_function_may_preserve_registers) {
    static const char *const texts[] = {
        ".version 9.0\n.target sm_90\n.address_size 64\n.func f() .abi_preserve 16\n{\nret;\n}\n",
        ".version 9.0\n.target sm_90\n.address_size 64\n.func f() .abi_preserve_control 14\n"
        "{\nret;\n}\n"};
    for (int i = 0; i < 2; i++) test_load(texts[i]);
    must_refuse(".version 9.0\n.target sm_90\n.address_size 64\n.func f() .abi_preserve 0\n"
                "{\nret;\n}\n",
                "a count must be positive");
}

/* What changes while a kernel runs is read where the text reads it, and not once. */
Test(numbers, a_clock_goes_on) {
    uint64_t out[3] = {0};
    TEST_RUN(TEST_KERNEL("mov.u64 %rd5, %clock64; mov.u64 %rd6, %globaltimer; mov.u32 %r5, 0;\n"
                         "NEXT: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 2000; @%p1 bra NEXT;\n"
                         "mov.u64 %rd7, %clock64; mov.u64 %rd8, %globaltimer;\n"
                         "sub.u64 %rd7, %rd7, %rd5; st.global.u64 [%rd1], %rd7;\n"
                         "sub.u64 %rd8, %rd8, %rd6; st.global.u64 [%rd1+8], %rd8;\n"),
             1, 1, out);
    cr_assert(out[0] > 0 && out[0] < UINT64_MAX / 2, "%llu", (unsigned long long)out[0]);
    cr_assert(out[1] > 0 && out[1] < UINT64_MAX / 2, "%llu", (unsigned long long)out[1]);
}
