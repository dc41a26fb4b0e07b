/*
 * Random programs: arbitrary branches, branch tables, loops, calls, returns and exits, without
 * joint operations of lanes. Each thread must compute what it computes alone in its own block,
 * whatever paths its neighbours take.
 */
#include "test/test_soft.h"

#include <stdarg.h>

TestSuite(random_flow, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 96, FUNCTIONS = 3, BLOCKS = 9, PROGRAMS = 60 };

struct text {
    char bytes[60000];
    size_t length;
};

static uint32_t state;

static uint32_t pick(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof text->bytes - text->length;
    int length = vsnprintf(text->bytes + text->length, room, format, arguments);
    va_end(arguments);
    cr_assert(length >= 0 && (size_t)length < room, "the program does not fit");
    text->length += (size_t)length;
}

/* %r1 is a hash of the way so far, %r2 the fuel, which every block burns. */
static void put_call(struct text *text, uint32_t number) {
    if (pick(2) == 0) {
        put(text,
            "{ .param .align 4 .b8 p[8]; .param .align 4 .b8 q[8]; st.param.b32 [p], %%r1; "
            "st.param.b32 [p+4], %%r2; call (q), f%u, (p); ld.param.v2.b32 {%%r1, %%r2}, "
            "[q]; }\n",
            number);
        return;
    }
    /* One of two functions, by the hash. */
    put(text, "shr.u32 %%r5, %%r1, %u; and.b32 %%r5, %%r5, 1; setp.eq.u32 %%p2, %%r5, 0;\n",
        pick(30));
    put(text, "mov.u64 %%rd5, f%u; mov.u64 %%rd6, f%u; selp.b64 %%rd5, %%rd5, %%rd6, %%p2;\n",
        number, pick(FUNCTIONS));
    put(text, "{ .param .align 4 .b8 p[8]; .param .align 4 .b8 q[8]; st.param.v2.b32 [p], {%%r1, "
              "%%r2};\nP: .callprototype (.param .align 4 .b8 _[8]) _ (.param .align 4 .b8 _[8]);\n"
              "call (q), %%rd5, (p), P; ld.param.b32 %%r1, [q]; ld.param.b32 %%r2, [q+4]; }\n");
}

static void put_block(struct text *text, uint32_t block, bool in_function) {
    put(text, "B%u: mad.lo.u32 %%r1, %%r1, %u, %u; xor.b32 %%r3, %%r1, %%r2;\n", block,
        2 * pick(1000) + 1, block + 1);
    put(text, "shr.u32 %%r4, %%r1, 15; xor.b32 %%r1, %%r1, %%r4; sub.s32 %%r2, %%r2, 1;\n");
    put(text, "setp.le.s32 %%p1, %%r2, 0; @%%p1 bra END;\n");
    uint32_t bit = pick(32), there = pick(BLOCKS), elsewhere = pick(BLOCKS);
    put(text, "shr.u32 %%r4, %%r1, %u; and.b32 %%r4, %%r4, 3; setp.lt.u32 %%p1, %%r4, %u;\n", bit,
        1 + pick(3));
    switch (pick(8)) {
    case 0:
        put(text, "T%u: .branchtargets B%u, B%u, END, B%u; brx.idx %%r4, T%u;\n", block, there,
            elsewhere, pick(BLOCKS), block);
        break;
    case 1:
    case 2:
        put_call(text, pick(FUNCTIONS));
        break;
    case 3:
        put(text, "@!%%p1 bra B%u; @%%p1 bra B%u;\n", there, elsewhere);
        break;
    case 4:
        /* Every way out is rare, or nothing would happen. */
        put(text, "and.b32 %%r4, %%r3, 31; setp.eq.u32 %%p1, %%r4, 7; @%%p1 %s;\n",
            in_function ? "bra END" : "bra OUT");
        break;
    case 5:
        put(text, "@%%p1 add.u32 %%r1, %%r1, 77; @!%%p1 bra B%u;\n", there);
        break;
    case 6:
        /* Others get their turn, and lanes that wait for these are let go alone in the end. */
        put(text, "@%%p1 nanosleep.u32 1; @!%%p1 bra B%u;\n", there);
        break;
    default:
        put(text, "@%%p1 bra B%u;\n", there);
        break;
    }
}

static void put_body(struct text *text, bool in_function) {
    for (uint32_t b = 0; b < BLOCKS; b++) put_block(text, b, in_function);
}

static const char *make_program(uint32_t seed) {
    static struct text text;
    static const char registers[] = "{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<5>;\n";
    state = seed;
    text.length = 0;
    put(&text, ".version 8.0\n.target sm_90\n.address_size 64\n");
    for (int f = 0; f < FUNCTIONS; f++) {
        put(&text, ".func (.param .align 4 .b8 r[8]) f%d(.param .align 4 .b8 a[8]);\n", f);
    }
    for (int f = 0; f < FUNCTIONS; f++) {
        put(&text, ".func (.param .align 4 .b8 r[8]) f%d(.param .align 4 .b8 a[8]) %s", f,
            registers);
        put(&text, "ld.param.v2.b32 {%%r1, %%r2}, [a];\n");
        put_body(&text, true);
        put(&text, "END: st.param.b32 [r], %%r1; st.param.b32 [r+4], %%r2; ret; }\n");
    }
    put(&text, ".visible .entry k(.param .u64 out) %s", registers);
    put(&text, "ld.param.u64 %%rd1, [out]; mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x;\n"
               "mov.u32 %%r3, %%tid.x; mad.lo.u32 %%r1, %%r1, %%r2, %%r3;\n"
               "mad.wide.u32 %%rd2, %%r1, 4, %%rd1; and.b32 %%r2, %%r1, 31;\n"
               "add.u32 %%r2, %%r2, 40; mul.lo.u32 %%r1, %%r1, 0x9e3779b9;\n");
    put_body(&text, false);
    put(&text, "END: st.global.u32 [%%rd2], %%r1; ret;\n"
               "OUT: not.b32 %%r1, %%r1; st.global.u32 [%%rd2], %%r1; exit; }\n");
    return text.bytes;
}

static void check_program(uint32_t seed) {
    uint32_t together[THREADS] = {0}, alone[THREADS] = {0};
    const char *ptx = make_program(seed);
    TEST_RUN(ptx, THREADS, 1, alone);
    TEST_RUN(ptx, 1, THREADS, together);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(together[i], alone[i], "program %u, thread %u: 0x%x, and alone 0x%x", seed, i,
                     together[i], alone[i]);
    }
}

Test(random_flow, each_thread_comes_to_what_it_would_alone) {
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) check_program(seed);
}
