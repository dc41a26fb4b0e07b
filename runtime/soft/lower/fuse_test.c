/*
 * Fusing: two loads and the fma of the loaded values give the same results as one by one, for all
 * addresses, lanes and numbers, also if other instructions read the loaded values.
 */
#include "test/test_soft.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TestSuite(fuse, .fini = test_soft_close);

enum { LANES = 32, WORDS = 64 };

/* The numbers, then each lane's result. */
struct memory {
    uint32_t words[WORDS], result[LANES];
};

static float number(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7fffffff : bits;
}

/* The words that a lane loads, of a pattern: a line, one place, neither. */
static uint32_t word_of(unsigned pattern, uint32_t lane) {
    return pattern == 0 ? lane + 3 : pattern == 1 ? 17 : (lane * 7 + 5) % WORDS;
}

static const char *const steps[] = {"mov.u32 %r10, %r3; add.u32 %r10, %r10, 3;",
                                    "and.b32 %r10, %r3, 0; add.u32 %r10, %r10, 17;",
                                    "mad.lo.u32 %r10, %r3, 7, 5; and.b32 %r10, %r10, 63;"};

static void run(const char *space, unsigned one, unsigned other, const char *guard,
                const char *between, struct memory *memory) {
    static const char kernel[] = TEST_KERNEL_WITH(".shared .align 16 .b8 s[256];", "BODY");
    static char text[6000];
    char body[3000];
    bool shared = strcmp(space, "shared") == 0;
    snprintf(body, sizeof body,
             "ld.global.u32 %%r5, [%%rd2]; mov.u32 %%r8, s; shl.b32 %%r6, %%r3, 2;\n"
             "add.u32 %%r7, %%r8, %%r6; st.shared.u32 [%%r7], %%r5;\n"
             "ld.global.u32 %%r5, [%%rd2+128]; st.shared.u32 [%%r7+128], %%r5; bar.sync 0;\n"
             "mov.f32 %%f9, 0f3F000000; mov.f32 %%f1, %%f9; setp.lt.u32 %%p1, %%r3, 20;\n"
             "%s shl.b32 %%r10, %%r10, 2; add.u32 %%r11, %%r8, %%r10; cvt.u64.u32 %%rd11, %%r10;\n"
             "add.u64 %%rd11, %%rd1, %%rd11;\n"
             "%s shl.b32 %%r10, %%r10, 2; add.u32 %%r12, %%r8, %%r10; cvt.u64.u32 %%rd12, %%r10;\n"
             "add.u64 %%rd12, %%rd1, %%rd12;\n%s\n"
             "ld.%s.f32 %%f2, [%s]; ld.%s.f32 %%f3, [%s]; fma.rn.f32 %%f1, %%f3, %%f2, %%f1;\n"
             "%s\nPAST: st.global.f32 [%%rd2+256], %%f1;\n",
             steps[one], steps[other], guard, space, shared ? "%r11" : "%rd11", space,
             shared ? "%r12" : "%rd12", between);
    const char *at = strstr(kernel, "BODY");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - kernel), kernel, body, at + 4);
    CUresult result = test_run(text, 1, LANES, memory, sizeof *memory);
    cr_assert_eq(result, CUDA_SUCCESS, "%s: %s", text, test_log());
}

static void fill(struct memory *memory, bool special) {
    static const uint32_t numbers[] = {0x7f800000, 0x7fc12345, 0xff800000, 0,         0x80000000,
                                       0x00000001, 0x7f7fffff, 0xffa00001, 0x3f800000};
    memset(memory, 0, sizeof *memory);
    for (uint32_t i = 0; i < WORDS; i++) {
        memory->words[i] = special && i % 3 == 0 ? numbers[i / 3 % 9] : bits_of((float)i / 4 - 7);
    }
}

static void check(const char *space, bool special) {
    struct memory memory;
    for (unsigned one = 0; one < 3; one++) {
        for (unsigned other = 0; other < 3; other++) {
            for (int some = 0; some < 2; some++) {
                fill(&memory, special);
                run(space, one, other, some ? "@!%p1 bra PAST;" : "", "", &memory);
                for (uint32_t i = 0; i < LANES; i++) {
                    float x = number(memory.words[word_of(one, i)]);
                    float y = number(memory.words[word_of(other, i)]);
                    bool goes = !some || i < 20;
                    uint32_t expected = goes ? bits_of(fmaf(x, y, 0.5f)) : bits_of(0.5f);
                    cr_assert_eq(memory.result[i], expected, "%s %u %u, some %d, lane %u: 0x%x",
                                 space, one, other, some, i, memory.result[i]);
                }
            }
        }
    }
}

Test(fuse, shared_memory) {
    check("shared", false);
}

Test(fuse, global_memory) {
    check("global", false);
}

Test(fuse, infinities_and_nans) {
    check("shared", true);
    check("global", true);
}

/* A value that is read again is still there. */
Test(fuse, what_is_read_again) {
    static const char *const again[] = {"add.f32 %f1, %f1, %f2;", "add.f32 %f1, %f1, %f3;"};
    for (unsigned k = 0; k < 2; k++) {
        struct memory memory;
        fill(&memory, false);
        run("shared", 0, 1, "", again[k], &memory);
        for (uint32_t i = 0; i < LANES; i++) {
            float x = number(memory.words[word_of(0, i)]), y = number(memory.words[word_of(1, i)]);
            cr_assert_eq(memory.result[i], bits_of(fmaf(x, y, 0.5f) + (k == 0 ? x : y)));
        }
    }
}

/* Products that follow each other, at the offsets that an unrolled loop has. */
static void check_run(const char *space, bool special) {
    /* Only what is loaded into a register of its own is not read again. */
    static const char form[] = "ld.%s.f32 %%f%d, [%s+%d]; ld.%s.f32 %%f%d, [%s+%d];\n"
                               "fma.rn.f32 %%f1, %%f%d, %%f%d, %%f1;\n";
    char more[400];
    bool shared = strcmp(space, "shared") == 0;
    const char *x = shared ? "%r11" : "%rd11", *y = shared ? "%r12" : "%rd12";
    int used = snprintf(more, sizeof more, form, space, 4, x, 4, space, 5, y, 4, 4, 5);
    snprintf(more + used, sizeof more - (size_t)used, form, space, 6, x, 4, space, 7, y, 8, 6, 7);
    for (unsigned one = 0; one < 3; one++) {
        for (unsigned other = 0; other < 3; other++) {
            struct memory memory;
            fill(&memory, special);
            run(space, one, other, "", more, &memory);
            for (uint32_t i = 0; i < LANES; i++) {
                const uint32_t *a = memory.words + word_of(one, i);
                const uint32_t *b = memory.words + word_of(other, i);
                float sum = fmaf(number(a[0]), number(b[0]), 0.5f);
                sum = fmaf(number(a[1]), number(b[1]), sum);
                sum = fmaf(number(a[1]), number(b[2]), sum);
                cr_assert_eq(memory.result[i], bits_of(sum), "%s %u %u, lane %u: 0x%x", space, one,
                             other, i, memory.result[i]);
            }
        }
    }
}

Test(fuse, products_in_a_row) {
    check_run("shared", false);
    check_run("shared", true);
    check_run("global", false);
    check_run("global", true);
}

/* A sum of zeros that goes where the next product has an address: all lanes read the first word. */
Test(fuse, a_sum_that_is_the_next_address) {
    struct memory memory = {.words = {[0] = 0x40200000}};
    for (uint32_t i = 35; i < WORDS; i++) memory.words[i] = bits_of((float)i);
    run("shared", 0, 0, "",
        "mov.f32 %f1, 0f00000000;\n"
        "ld.shared.f32 %f4, [%r11]; ld.shared.f32 %f5, [%r12]; fma.rn.f32 %r12, %f4, %f5, %f1;\n"
        "ld.shared.f32 %f6, [%r11+112]; ld.shared.f32 %f7, [%r12];\n"
        "fma.rn.f32 %f1, %f6, %f7, %f1;\n",
        &memory);
    for (uint32_t i = 0; i < LANES; i++) {
        /* words[3..34], which the first two loads read, are zero. */
        float expected = fmaf(number(memory.words[i + 31]), 2.5f, 0);
        cr_assert_eq(memory.result[i], i + 31 < 35 ? 0 : bits_of(expected), "lane %u", i);
    }
}

/* A fault of the second load is reported at the second load. */
Test(fuse, a_wrong_load) {
    uint32_t out[LANES] = {0};
    test_capture(stderr);
    cr_assert_eq(
        test_run(TEST_KERNEL("ld.global.f32 %f1, [%rd2];\n"
                             "ld.global.f32 %f2, [%rd2+4];\n"
                             "fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%rd2], %f3;\n"),
                 1, LANES, out, sizeof out),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    char line[40];
    snprintf(line, sizeof line, "PTX line %d", TEST_BODY_LINE + 1);
    cr_assert(strstr(test_captured(stderr), line) != NULL, "%s", test_captured(stderr));
    cr_assert(strstr(test_captured(stderr), "thread (31,0,0)") != NULL);
}
