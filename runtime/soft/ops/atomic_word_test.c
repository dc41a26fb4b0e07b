/*
 * Atomics on words: every operation, in each space, with the lanes' words adjacent, equal or
 * scattered, for whole and partial warps. The oracle executes one lane after the other.
 */
#include "test/test_soft.h"

#include <assert.h>
#include <string.h>

TestSuite(atomic_word, .init = test_soft_open, .fini = test_soft_close);

enum { LANES = 32, WORDS = 48, UNTOUCHED = 0x5eed };

/* What a kernel has, in global memory. Words of 32 bits have the low half of each number. */
struct scene {
    uint64_t memory[WORDS];
    uint64_t index[LANES], b[LANES], c[LANES], result[LANES];
    uint64_t mask;
};

static const struct operation {
    const char *name, *type;
    unsigned bytes;
} operations[] = {
    {"add", "u32", 4}, {"add", "s32", 4}, {"add", "u64", 8},  {"add", "f32", 4},  {"add", "f64", 8},
    {"min", "u32", 4}, {"min", "s32", 4}, {"min", "u64", 8},  {"min", "s64", 8},  {"max", "u32", 4},
    {"max", "s32", 4}, {"max", "u64", 8}, {"max", "s64", 8},  {"inc", "u32", 4},  {"dec", "u32", 4},
    {"and", "b32", 4}, {"and", "b64", 8}, {"or", "b32", 4},   {"or", "b64", 8},   {"xor", "b32", 4},
    {"xor", "b64", 8}, {"cas", "b32", 4}, {"exch", "b32", 4}, {"exch", "b64", 8}, {"cas", "b64", 8},
};

static const struct space {
    const char *name, *address;
    bool is_shared;
} spaces[] = {
    {".shared", "cvt.u32.u64 %r10, %rd5; mov.u32 %r11, s; add.u32 %r10, %r10, %r11;\n", true},
    {".global", "add.u64 %rd10, %rd1, %rd5;\n", false},
    {"", "mov.u64 %rd11, s; cvta.shared.u64 %rd11, %rd11; add.u64 %rd10, %rd11, %rd5;\n", true},
    {"", "add.u64 %rd10, %rd1, %rd5;\n", false},
};

static float float_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

static uint64_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t sum_of_floats(const struct operation *operation, uint64_t old, uint64_t b) {
    double x, y;
    if (operation->bytes == 4) return bits_of(float_of(old) + float_of(b));
    memcpy(&x, &old, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&old, &x, sizeof x);
    return old;
}

static bool is_less(const struct operation *operation, uint64_t x, uint64_t y) {
    if (operation->type[0] == 'u') return x < y;
    return operation->bytes == 8 ? (int64_t)x < (int64_t)y : (int32_t)x < (int32_t)y;
}

static uint64_t right_value(const struct operation *o, uint64_t old, uint64_t b, uint64_t c) {
    if (strcmp(o->name, "add") == 0) {
        return o->type[0] == 'f' ? sum_of_floats(o, old, b) : old + b;
    }
    if (strcmp(o->name, "min") == 0) return is_less(o, b, old) ? b : old;
    if (strcmp(o->name, "max") == 0) return is_less(o, old, b) ? b : old;
    if (strcmp(o->name, "inc") == 0) return old >= b ? 0 : old + 1;
    if (strcmp(o->name, "dec") == 0) return old == 0 || old > b ? b : old - 1;
    if (strcmp(o->name, "and") == 0) return old & b;
    if (strcmp(o->name, "or") == 0) return old | b;
    if (strcmp(o->name, "xor") == 0) return old ^ b;
    if (strcmp(o->name, "exch") == 0) return b;
    return old == b ? c : old;
}

static uint64_t *word_at(struct scene *scene, uint64_t index, unsigned bytes) {
    return (uint64_t *)(void *)((uint8_t *)scene->memory + index * bytes);
}

static void scene_execute(struct scene *scene, const struct operation *operation, bool silent) {
    for (unsigned lane = 0; lane < LANES; lane++) {
        if ((scene->mask >> lane & 1) == 0) continue;
        uint64_t old = 0, b = 0, c = 0;
        memcpy(&b, &scene->b[lane], operation->bytes);
        memcpy(&c, &scene->c[lane], operation->bytes);
        memcpy(&old, word_at(scene, scene->index[lane], operation->bytes), operation->bytes);
        uint64_t new = right_value(operation, old, b, c);
        memcpy(word_at(scene, scene->index[lane], operation->bytes), &new, operation->bytes);
        if (!silent) memcpy(&scene->result[lane], &old, operation->bytes);
    }
}

static uint64_t drawn(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20;
}

/* Few different numbers, so that comparisons are often of equal ones; as floats they are small
 * whole numbers, so that sums are exact. */
static uint64_t drawn_value(const struct operation *operation, uint64_t *seed) {
    uint64_t number = drawn(seed) % 9;
    double real = (double)number - 4;
    if (operation->type[0] != 'f') return number < 6 ? number : 0 - number;
    if (operation->bytes == 4) return bits_of((float)real);
    memcpy(&number, &real, sizeof number);
    return number;
}

enum pattern { ADJACENT, ONE, SCATTERED, BACKWARD, PATTERNS };

static uint64_t drawn_index(enum pattern pattern, unsigned lane, uint64_t first, uint64_t *seed) {
    switch (pattern) {
    case ADJACENT:
        return first + lane;
    case ONE:
        return first;
    case BACKWARD:
        return first + LANES - 1 - lane;
    default:
        return drawn(seed) % WORDS;
    }
}

static void scene_draw(struct scene *scene, const struct operation *operation, enum pattern pattern,
                       uint64_t *seed) {
    const uint64_t first = drawn(seed) % (WORDS - LANES);
    const uint64_t masks[] = {UINT32_MAX, UINT32_MAX, drawn(seed), 1ull << drawn(seed) % LANES};
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t value = drawn_value(operation, seed);
        memcpy(word_at(scene, i, operation->bytes), &value, operation->bytes);
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        scene->index[lane] = drawn_index(pattern, lane, first, seed);
        scene->b[lane] = drawn_value(operation, seed);
        scene->c[lane] = drawn_value(operation, seed);
        scene->result[lane] = UNTOUCHED;
    }
    scene->mask = masks[drawn(seed) % 4];
}

/* Fills shared memory, and reads the lane's numbers: %rd5 is the index, %rd6 and %r6 b, %rd7 and
 * %r7 c, %rd8 and %r8 the result so far, %p1 whether the lane runs. */
static const char before[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 s[384];\n"
    ".visible .entry k(.param .u64 out)\n{\n"
    ".reg .b32 %r<20>; .reg .b64 %rd<30>; .reg .pred %p1;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mov.u64 %rd3, s;\n"
    "mul.wide.u32 %rd4, %r3, 8; add.u64 %rd3, %rd3, %rd4; add.u64 %rd20, %rd1, %rd4;\n"
    "ld.global.u64 %rd21, [%rd20]; ld.global.u64 %rd22, [%rd20+128];\n"
    "st.shared.u64 [%rd3], %rd21; bar.sync 0; st.shared.u64 [%rd3+128], %rd22; bar.sync 0;\n"
    "ld.global.u64 %rd5, [%rd20+384]; ld.global.u64 %rd6, [%rd20+640];\n"
    "ld.global.u64 %rd7, [%rd20+896]; ld.global.u64 %rd8, [%rd20+1152];\n"
    "ld.global.u64 %rd9, [%rd1+1408]; shr.u64 %rd9, %rd9, %r3; and.b64 %rd9, %rd9, 1;\n"
    "setp.ne.u64 %p1, %rd9, 0; cvt.u32.u64 %r6, %rd6; cvt.u32.u64 %r7, %rd7;\n"
    "cvt.u32.u64 %r8, %rd8;\n";
static_assert(offsetof(struct scene, index) == 384 && offsetof(struct scene, b) == 640 &&
                  offsetof(struct scene, c) == 896 && offsetof(struct scene, result) == 1152 &&
                  offsetof(struct scene, mask) == 1408,
              "the text has these offsets");

static const char after[] = "st.global.u64 [%rd20+1152], %rd8; bar.sync 0;\n",
                  back[] = "ld.shared.u64 %rd21, [%rd3]; ld.shared.u64 %rd22, [%rd3+128];\n"
                           "st.global.u64 [%rd20], %rd21; st.global.u64 [%rd20+128], %rd22;\n";

/* The kernel of one operation in one space. */
static void write_kernel(char text[4000], const struct operation *operation,
                         const struct space *space, bool silent) {
    const bool narrow = operation->bytes == 4, swaps = strcmp(operation->name, "cas") == 0;
    const char *r = narrow ? "%r" : "%rd", *address = space->name[1] == 's' ? "%r10" : "%rd10";
    char result[20] = "", third[20] = "";
    if (!silent) snprintf(result, sizeof result, "%s8, ", r);
    if (swaps) snprintf(third, sizeof third, ", %s7", r);
    snprintf(text, 4000,
             "%smul.lo.u64 %%rd5, %%rd5, %u;\n%s@%%p1 %s%s.%s.%s %s[%s], %s6%s;\n%s%s%sret;\n}\n",
             before, operation->bytes, space->address, silent ? "red" : "atom", space->name,
             operation->name, operation->type, result, address, r, third,
             narrow ? "cvt.u64.u32 %rd8, %r8;\n" : "", after, space->is_shared ? back : "");
}

static void compare(const struct operation *operation, const struct space *space, bool silent) {
    char text[4000];
    write_kernel(text, operation, space, silent);
    uint64_t seed =
        (uint64_t)(operation - operations) * 8 + (uint64_t)(space - spaces) * 2 + silent;
    for (enum pattern pattern = ADJACENT; pattern < PATTERNS; pattern++) {
        struct scene scene[1], right;
        scene_draw(scene, operation, pattern, &seed);
        right = *scene;
        scene_execute(&right, operation, silent);
        TEST_RUN(text, 1, LANES, scene);
        for (unsigned i = 0; i < WORDS; i++) {
            cr_assert_eq(scene->memory[i], right.memory[i], "%s.%s%s, pattern %d: word %u",
                         operation->name, operation->type, space->name, (int)pattern, i);
        }
        for (unsigned i = 0; i < LANES; i++) {
            cr_assert_eq(scene->result[i], right.result[i], "%s.%s%s, pattern %d: lane %u",
                         operation->name, operation->type, space->name, (int)pattern, i);
        }
    }
}

Test(atomic_word, operations_agree_with_lanes_in_order) {
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++) {
            bool has_red = operations[o].name[0] != 'c' && operations[o].name[0] != 'e';
            compare(&operations[o], &spaces[s], false);
            if (has_red) compare(&operations[o], &spaces[s], true);
        }
    }
}

/* Adds 1 to words of shared memory of which the first 32 were written. %r4: the offset of this
 * thread's word. */
#define ADD_ONE(offset)                                                                            \
    TEST_KERNEL_WITH(".shared .align 8 .b8 s[512];",                                               \
                     "mov.u32 %r10, s; shl.b32 %r11, %r3, 2; add.u32 %r12, %r10, %r11;\n"          \
                     "st.shared.u32 [%r12], %r3; bar.sync 0;\n" offset                             \
                     "add.u32 %r10, %r10, %r4; atom.shared.add.u32 %r5, [%r10], 1;\n"              \
                     "st.global.u32 [%rd2], %r5;\n")

Test(atomic_word, one_word_that_was_not_written_is_reported) {
    uint32_t out[LANES] = {0};
    test_capture(stderr);
    TEST_RUN(ADD_ONE("setp.eq.u32 %p1, %r3, 5; selp.u32 %r4, 300, %r11, %p1;\n"), 1, LANES, out);
    const char *said = test_captured(stderr);
    cr_assert(strstr(said, "uninitialised read in kernel k") != NULL, "%s", said);
    cr_assert(strstr(said, "thread (5,0,0)") != NULL, "%s", said);
    for (uint32_t i = 0; i < LANES; i++) cr_assert_eq(out[i], i == 5 ? 0 : i, "thread %u", i);
}

Test(atomic_word, one_word_that_is_outside_ends_the_launch) {
    uint32_t out[LANES] = {0};
    CUresult result = test_run(ADD_ONE("setp.eq.u32 %p1, %r3, 7; selp.u32 %r4, 512, %r11, %p1;\n"),
                               1, LANES, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_ILLEGAL_ADDRESS, "%d: %s", (int)result, test_log());
    cr_assert(strstr(test_log(), "thread (7,0,0)") != NULL, "%s", test_log());
}

Test(atomic_word, one_word_that_is_misaligned_ends_the_launch) {
    uint32_t out[LANES] = {0};
    CUresult result = test_run(ADD_ONE("setp.eq.u32 %p1, %r3, 9; selp.u32 %r4, 38, %r11, %p1;\n"),
                               1, LANES, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_MISALIGNED_ADDRESS, "%d: %s", (int)result, test_log());
    cr_assert(strstr(test_log(), "thread (9,0,0)") != NULL, "%s", test_log());
}
