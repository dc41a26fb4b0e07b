/*
 * Lines: for every pattern of a warp's addresses, a load gives each lane the bytes at its address,
 * a store puts them there, and an error is found in the right lane.
 *
 * Warps with adjacent, equal or other addresses, and partial warps, take different paths through
 * ops_memory.h.
 */
#include "test/test_soft.h"

#include <stdio.h>
#include <string.h>

TestSuite(lines, .fini = test_soft_close);

enum { LANES = 32, BYTES = 4096, PATTERNS = 11, MASKS = 4 };

static uint32_t mix(uint32_t x) {
    x = (x ^ x >> 15) * 0x85ebca6bu;
    return x ^ x >> 13;
}

/* The element that a lane of a pattern is at. */
static uint32_t place(unsigned pattern, uint32_t lane, uint32_t elements) {
    switch (pattern) {
    case 0:
        return lane;
    case 1:
        return lane + 5;
    case 2:
        return 7;
    case 3:
        return 2 * lane;
    case 4:
        return 31 - lane;
    case 5:
        return lane % 16; /* two halves */
    case 6:
        return lane / 16 * 11;
    case 7:
        return lane == 31 ? 3 : lane; /* all but one */
    case 8:
        return lane == 17 ? 9 : 8;
    case 9:
        return elements - 32 + lane; /* up to the end */
    default:
        return mix(pattern * 100 + lane) % elements;
    }
}

/* Which lanes go: all, or those for which a bit of the lane's number is set. */
static bool goes(unsigned mask, uint32_t lane) {
    static const uint32_t masks[MASKS] = {UINT32_MAX, 0xaaaaaaaa, 0x00fffe00, 0x80000001};
    return masks[mask] >> lane & 1;
}

static const struct form {
    const char *type;   /* of the load and the store */
    const char *data;   /* their register or registers */
    const char *result; /* what makes %rd20 and %rd21 of it */
    unsigned bytes;     /* of the access */
    bool is_signed;
} forms[] = {
    {"u8", "%r20", "cvt.u64.u32 %rd20, %r20;", 1, false},
    {"s8", "%r20", "cvt.s64.s32 %rd20, %r20;", 1, true},
    {"s8", "%h2", "cvt.u64.u16 %rd20, %h2; cvt.s64.s16 %rd20, %h2;", 1, true},
    {"u16", "%r20", "cvt.u64.u32 %rd20, %r20;", 2, false},
    {"b16", "%h2", "cvt.u64.u16 %rd20, %h2;", 2, false},
    {"s16", "%r20", "cvt.s64.s32 %rd20, %r20;", 2, true},
    {"u32", "%r20", "cvt.u64.u32 %rd20, %r20;", 4, false},
    {"u64", "%rd20", "", 8, false},
    {"v2.u32", "{%r20, %r21}", "mov.b64 %rd20, {%r20, %r21};", 8, false},
    {"v2.u64", "{%rd20, %rd21}", "", 16, false},
    {"v4.u32", "{%r20, %r21, %r22, %r23}",
     "mov.b64 %rd20, {%r20, %r21}; mov.b64 %rd21, {%r22, %r23};", 16, false},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* The memory of the test: bytes, then each lane's place and whether it goes, then its results. */
struct memory {
    uint8_t bytes[BYTES];
    uint32_t at[LANES], goes[LANES];
    uint64_t result[LANES][2];
};

/* A kernel with s in shared memory around a body. */
static const char *around(const char *body) {
    static const char kernel[] = TEST_KERNEL_WITH(".shared .align 16 .b8 s[4096];", "BODY");
    static char text[4000];
    const char *at = strstr(kernel, "BODY");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - kernel), kernel, body, at + 4);
    return text;
}

/* What shared memory begins with, and where it ends up: the memory's bytes. */
static const char fill[] = "mov.u32 %r10, %r1;\n"
                           "FILL: mul.lo.u32 %r11, %r10, 4; cvt.u64.u32 %rd11, %r11;\n"
                           "add.u64 %rd11, %rd1, %rd11; ld.global.u32 %r12, [%rd11];\n"
                           "add.u32 %r13, %r8, %r11; st.shared.u32 [%r13], %r12;\n"
                           "add.u32 %r10, %r10, 32; setp.lt.u32 %p2, %r10, 1024;\n"
                           "@%p2 bra FILL; bar.sync 0;\n";
static const char copy[] = "bar.sync 0; mov.u32 %r10, %r1;\n"
                           "COPY: mul.lo.u32 %r11, %r10, 4; cvt.u64.u32 %rd11, %r11;\n"
                           "add.u64 %rd11, %rd1, %rd11; add.u32 %r13, %r8, %r11;\n"
                           "ld.shared.u32 %r12, [%r13]; st.global.u32 [%rd11], %r12;\n"
                           "add.u32 %r10, %r10, 32; setp.lt.u32 %p2, %r10, 1024;\n"
                           "@%p2 bra COPY;\n";

/* Each lane that goes loads from its place, and stores what it has loaded as far into the second
 * half. */
static const char *make_text(const struct form *form, const char *space) {
    char body[2000];
    bool shared = strcmp(space, ".shared") == 0;
    const char *base = shared ? "%r9" : "%rd9";
    snprintf(body, sizeof body,
             "ld.global.u32 %%r5, [%%rd2+%d]; ld.global.u32 %%r6, [%%rd2+%d];\n"
             "setp.ne.u32 %%p1, %%r6, 0; cvt.u64.u32 %%rd8, %%r5; add.u64 %%rd9, %%rd1, %%rd8;\n"
             "mov.u32 %%r8, s; add.u32 %%r9, %%r8, %%r5;\n"
             "%smov.u64 %%rd20, 0; mov.u64 %%rd21, 0;\n"
             "@!%%p1 bra PAST; ld%s.%s %s, [%s]; %s st%s.%s [%s+%d], %s;\n"
             "PAST: mul.wide.u32 %%rd12, %%r1, 16; add.u64 %%rd12, %%rd1, %%rd12;\n"
             "st.global.v2.u64 [%%rd12+%d], {%%rd20, %%rd21};\n%s",
             (int)offsetof(struct memory, at), (int)offsetof(struct memory, goes),
             shared ? fill : "", space, form->type, form->data, base, form->result, space,
             form->type, base, BYTES / 2, form->data, (int)offsetof(struct memory, result),
             shared ? copy : "");
    return around(body);
}

static void check(const struct form *form, const char *space, unsigned pattern, unsigned mask) {
    static struct memory memory, expected;
    memset(&memory, 0, sizeof memory);
    for (uint32_t i = 0; i < BYTES; i++) memory.bytes[i] = (uint8_t)mix(i + pattern);
    for (uint32_t i = 0; i < LANES; i++) {
        memory.at[i] = place(pattern, i, BYTES / 2 / form->bytes) * form->bytes;
        memory.goes[i] = goes(mask, i);
    }
    expected = memory;
    for (uint32_t i = 0; i < LANES; i++) {
        if (!goes(mask, i)) continue;
        uint64_t *result = expected.result[i];
        memcpy(result, memory.bytes + memory.at[i], form->bytes);
        unsigned shift = 64 - 8 * (form->bytes % 8);
        if (form->is_signed) result[0] = (uint64_t)((int64_t)(result[0] << shift) >> shift);
        memcpy(expected.bytes + BYTES / 2 + memory.at[i], memory.bytes + memory.at[i], form->bytes);
    }
    CUresult code = test_run(make_text(form, space), 1, LANES, &memory, sizeof memory);
    cr_assert_eq(code, CUDA_SUCCESS, "%s: %s", make_text(form, space), test_log());
    for (uint32_t i = 0; i < LANES; i++) {
        cr_assert(memory.result[i][0] == expected.result[i][0] &&
                      memory.result[i][1] == expected.result[i][1],
                  "%s.%s, pattern %u, mask %u, lane %u: 0x%llx 0x%llx", space, form->type, pattern,
                  mask, i, (unsigned long long)memory.result[i][0],
                  (unsigned long long)memory.result[i][1]);
    }
    cr_assert(memcmp(memory.bytes, expected.bytes, BYTES) == 0,
              "%s.%s, pattern %u, mask %u: stores", space, form->type, pattern, mask);
}

static void check_all(const char *space) {
    for (unsigned f = 0; f < FORMS; f++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            check(&forms[f], space, pattern, pattern % MASKS);
            check(&forms[f], space, pattern, 0);
        }
    }
}

Test(lines, global_memory) {
    check_all(".global");
}

Test(lines, shared_memory) {
    check_all(".shared");
}

Test(lines, generic_addresses) {
    check_all("");
}

/* One lane of a line is wrong: that lane is reported, and no other. */
static void must_blame(const char *access, const char *lane_address, const char *expected) {
    char body[500];
    uint32_t out[64] = {0};
    snprintf(body, sizeof body,
             "mul.lo.u32 %%r5, %%r1, 4; mov.u32 %%r6, s; add.u32 %%r6, %%r6, %%r5;\n"
             "add.u32 %%r6, %%r6, 3968; setp.eq.u32 %%p1, %%r1, 21; mov.u64 %%rd9, %%rd2;\n%s %s\n",
             lane_address, access);
    test_capture(stderr);
    cr_assert(test_run(around(body), 1, 32, out, sizeof out) != CUDA_SUCCESS, "%s", access);
    cr_assert(strstr(test_captured(stderr), expected) != NULL, "%s: %s", access,
              test_captured(stderr));
}

Test(lines, one_lane_beyond_global_memory) {
    must_blame("st.global.u32 [%rd9], %r1;", "@%p1 add.u64 %rd9, %rd9, 4096;", "thread (21,0,0)");
}

Test(lines, one_lane_beyond_shared_memory) {
    must_blame("ld.shared.u32 %r7, [%r6];", "@%p1 add.u32 %r6, %r6, 4096;", "thread (21,0,0)");
}

Test(lines, one_lane_misaligned) {
    must_blame("ld.global.u32 %r7, [%rd9];", "@%p1 add.u64 %rd9, %rd9, 2;", "thread (21,0,0)");
}

Test(lines, the_last_lane_of_a_line_outside) {
    must_blame("st.shared.u32 [%r6+4], %r1;", "", "thread (31,0,0)");
}

Test(lines, a_lane_that_does_not_go_may_be_anywhere) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("setp.eq.u32 %p1, %r1, 21; mov.u64 %rd9, %rd2;\n"
                         "@%p1 mov.u64 %rd9, 12345; @!%p1 st.global.u32 [%rd9], %r1;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i == 21 ? 0 : i);
}

/* Of a line some was never written: each such lane is noted, as without lines. */
Test(lines, what_was_never_written) {
    uint32_t out[32] = {0};
    test_capture(stderr);
    TEST_RUN(TEST_KERNEL_WITH(".shared .align 16 .b8 s[64];",
                              "mov.u32 %r6, s; add.u32 %r6, %r6, %r1; setp.ne.u32 %p1, %r1, 9;\n"
                              "@%p1 st.shared.u8 [%r6], %r1; ld.shared.u8 %r7, [%r6];\n"
                              "st.global.u32 [%rd2], %r7;\n"),
             1, 32, out);
    cr_assert(strstr(test_captured(stderr), "uninitialised read") != NULL &&
                  strstr(test_captured(stderr), "thread (9,0,0)") != NULL,
              "%s", test_captured(stderr));
}
