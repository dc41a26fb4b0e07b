/*
 * Cores: an instruction gives the same bits at every processor level, for full and partial warps,
 * with one worker and with several.
 *
 * The levels are different code of the same bodies, vectorised or not; this test detects a compiler
 * that contracts, reorders or rounds differently in one of them.
 */
#include "core.h"
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* %r10 to %r12 are any bits, %f10 to %f12 the same as numbers, %rd10 to %rd12 and %fd10 to %fd12
 * wide ones. Results go to %r20, or %rd20. */
static const char *const narrow[] = {
    "add.s32 %r20, %r10, %r11;",
    "mul.hi.s32 %r20, %r10, %r11;",
    "mad.lo.u32 %r20, %r10, %r11, %r12;",
    "div.s32 %r20, %r10, %r11;",
    "rem.u32 %r20, %r10, %r12;",
    "sad.s32 %r20, %r10, %r11, %r12;",
    "shl.b32 %r20, %r10, %r11;",
    "shr.s32 %r20, %r10, %r11;",
    "shf.l.clamp.b32 %r20, %r10, %r11, %r12;",
    "popc.b32 %r20, %r10;",
    "clz.b32 %r20, %r10;",
    "brev.b32 %r20, %r10;",
    "bfind.s32 %r20, %r10;",
    "bfe.s32 %r20, %r10, %r11, %r12;",
    "bfi.b32 %r20, %r10, %r11, %r12, %r10;",
    "prmt.b32 %r20, %r10, %r11, %r12;",
    "lop3.b32 %r20, %r10, %r11, %r12, 0xca;",
    "dp4a.s32.u32 %r20, %r10, %r11, %r12;",
    "min.s32 %r20, %r10, %r11;",
    "add.rn.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "add.rz.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "sub.ftz.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "mul.rn.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "mul.rp.ftz.sat.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "fma.rn.f32 %f20, %f10, %f11, %f12; mov.b32 %r20, %f20;",
    "fma.rm.f32 %f20, %f10, %f11, %f12; mov.b32 %r20, %f20;",
    "div.rn.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "div.full.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "sqrt.rn.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "rcp.rn.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "rsqrt.approx.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "ex2.approx.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "lg2.approx.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "sin.approx.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "cos.approx.ftz.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "tanh.approx.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "min.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "max.NaN.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "abs.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "neg.ftz.f32 %f20, %f10; mov.b32 %r20, %f20;",
    "copysign.f32 %f20, %f10, %f11; mov.b32 %r20, %f20;",
    "cvt.rzi.s32.f32 %r20, %f10;",
    "cvt.rni.u32.f32 %r20, %f10;",
    "cvt.rn.f32.s32 %f20, %r10; mov.b32 %r20, %f20;",
    "cvt.rn.f32.f64 %f20, %fd10; mov.b32 %r20, %f20;",
    "cvt.rp.f32.u64 %f20, %rd10; mov.b32 %r20, %f20;",
    "cvt.rn.f16.f32 %h1, %f10; cvt.u32.u16 %r20, %h1;",
    "setp.ltu.f32 %p5, %f10, %f11; selp.b32 %r20, %r10, %r11, %p5;",
    "setp.ge.s64 %p5, %rd10, %rd11; selp.b32 %r20, %r10, %r11, %p5;",
    "slct.s32.f32 %r20, %r10, %r11, %f12;",
    "shfl.sync.bfly.b32 %r20, %r10, 2, 31, -1;",
};

static const char *const wide[] = {
    "add.s64 %rd20, %rd10, %rd11;",
    "mul.lo.u64 %rd20, %rd10, %rd11;",
    "mul.hi.s64 %rd20, %rd10, %rd11;",
    "mad.wide.s32 %rd20, %r10, %r11, %rd12;",
    "div.u64 %rd20, %rd10, %rd11;",
    "rem.s64 %rd20, %rd10, %rd11;",
    "shr.s64 %rd20, %rd10, %r11;",
    "brev.b64 %rd20, %rd10;",
    "bfe.u64 %rd20, %rd10, %r11, %r12;",
    "max.u64 %rd20, %rd10, %rd11;",
    "add.rn.f64 %fd20, %fd10, %fd11; mov.b64 %rd20, %fd20;",
    "mul.rm.f64 %fd20, %fd10, %fd11; mov.b64 %rd20, %fd20;",
    "fma.rn.f64 %fd20, %fd10, %fd11, %fd12; mov.b64 %rd20, %fd20;",
    "div.rn.f64 %fd20, %fd10, %fd11; mov.b64 %rd20, %fd20;",
    "sqrt.rz.f64 %fd20, %fd10; mov.b64 %rd20, %fd20;",
    "rcp.approx.ftz.f64 %fd20, %fd10; mov.b64 %rd20, %fd20;",
    "rsqrt.approx.f64 %fd20, %fd10; mov.b64 %rd20, %fd20;",
    "min.f64 %fd20, %fd10, %fd11; mov.b64 %rd20, %fd20;",
    "cvt.f64.f32 %fd20, %f10; mov.b64 %rd20, %fd20;",
    "cvt.rn.f64.u64 %fd20, %rd10; mov.b64 %rd20, %fd20;",
    "cvt.rzi.s64.f64 %rd20, %fd10;",
    "cvt.s64.s32 %rd20, %r10;",
};

enum {
    NARROW = sizeof narrow / sizeof narrow[0],
    WIDE = sizeof wide / sizeof wide[0],
    BLOCKS = 6,
    THREADS = 64,
    WORDS = (NARROW + 2 * WIDE) * BLOCKS * THREADS,
    TEXT_BYTES = 200 * (NARROW + WIDE) + 4000
};

/* One instruction, for all lanes or first for the even and then for the odd ones. Exchanges between
 * lanes come in pairs two lanes apart, so that either way they find their partners. */
static size_t put(char *text, size_t at, const char *instruction, bool in_parts) {
    if (!in_parts) return at + (size_t)sprintf(text + at, "%s\n", instruction);
    static const char *const guards[] = {"@%p1", "@!%p1"};
    for (int part = 0; part < 2; part++) {
        for (const char *one = instruction; *one != '\0';) {
            size_t length = strcspn(one, ";") + 1;
            char copy[200];
            snprintf(copy, sizeof copy, "%.*s", (int)length, one);
            char *members = strstr(copy, "31, -1;");
            if (members != NULL) strcpy(members, part == 0 ? "31, 0x55555555;" : "31, 0xaaaaaaaa;");
            at += (size_t)sprintf(text + at, "%s %s ", guards[part], copy);
            one += length;
            while (*one == ' ') one++;
        }
    }
    return at + (size_t)sprintf(text + at, "\n");
}

/* All instructions on numbers made of the thread's: every fourth input is small, so that
 * conversions and shifts see something other than their limits. */
static char *make_text(bool in_parts) {
    static char text[TEXT_BYTES];
    size_t at = (size_t)sprintf(
        text, "%s",
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .f32 %f<30>;\n"
        ".reg .f64 %fd<30>; .reg .pred %p<20>;\n"
        "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
        "mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3; mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
        "mad.wide.u32 %rd3, %r1, 8, %rd1;\n"
        "and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; and.b32 %r4, %r1, 3;\n"
        "setp.eq.u32 %p2, %r4, 2; mad.lo.u32 %r10, %r1, 0x9e3779b9, 0x7f4a7c15;\n"
        "mad.lo.u32 %r11, %r10, 0x85ebca6b, 0xc2b2ae35; mad.lo.u32 %r12, %r11, 0x27d4eb2f, 77;\n"
        "xor.b32 %r10, %r10, %r12; @%p2 shr.u32 %r11, %r11, 26; @%p2 and.b32 %r12, %r12, 63;\n"
        "mov.b32 %f10, %r10; mov.b32 %f11, %r11; mov.b32 %f12, %r12;\n"
        "@%p2 cvt.rn.f32.s32 %f10, %r12; @%p2 mul.f32 %f10, %f10, 0f3EAAAAAB;\n"
        "@%p2 cvt.rn.f32.s32 %f11, %r11;\n"
        "mov.b64 %rd10, {%r12, %r10}; mov.b64 %rd11, {%r10, %r11}; mov.b64 %rd12, {%r11, %r12};\n"
        "mov.b64 %fd10, %rd10; mov.b64 %fd11, %rd11; mov.b64 %fd12, %rd12;\n"
        "@%p2 cvt.f64.f32 %fd10, %f10; @%p2 cvt.f64.f32 %fd11, %f11;\n");
    for (size_t i = 0; i < NARROW; i++) {
        at = put(text, at, narrow[i], in_parts);
        at += (size_t)sprintf(text + at, "st.global.u32 [%%rd2+%zu], %%r20;\n",
                              4 * i * BLOCKS * THREADS);
    }
    for (size_t i = 0; i < WIDE; i++) {
        at = put(text, at, wide[i], in_parts);
        at += (size_t)sprintf(text + at, "st.global.u64 [%%rd3+%zu], %%rd20;\n",
                              4 * (NARROW + 2 * i) * BLOCKS * THREADS);
    }
    sprintf(text + at, "ret;\n}\n");
    return text;
}

/* Runs it in a process with settings of its own. */
static void run_apart(const char *core, const char *workers, bool in_parts, uint32_t *out) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        setenv("TOLLENS_SOFT_CORE", core, 1);
        setenv("TOLLENS_SOFT_WORKERS", workers, 1);
        CUresult result =
            test_run(make_text(in_parts), BLOCKS, THREADS, out, WORDS * sizeof out[0]);
        const char *from = (const char *)out;
        size_t left = result == CUDA_SUCCESS ? WORDS * sizeof out[0] : 0;
        while (left > 0) {
            ssize_t written = write(ends[1], from, left);
            if (written <= 0) break;
            from += written;
            left -= (size_t)written;
        }
        _exit(0);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t read_now = 1; read_now > 0; got += (size_t)read_now) {
        read_now = read(ends[0], (char *)out + got, WORDS * sizeof out[0] - got);
        cr_assert(read_now >= 0);
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
    cr_assert_eq(got, WORDS * sizeof out[0], "core %s: the run failed", core);
}

static const char *instruction_of(size_t word) {
    size_t row = word / (BLOCKS * THREADS);
    return row < NARROW ? narrow[row] : wide[(row - NARROW) / 2];
}

static void must_agree(const uint32_t *one, const uint32_t *other, const char *what) {
    for (size_t i = 0; i < WORDS; i++) {
        cr_assert_eq(one[i], other[i], "%s: word %zu of %s is 0x%08x, and 0x%08x", what, i,
                     instruction_of(i), one[i], other[i]);
    }
}

static uint32_t expected[WORDS], got[WORDS];

Test(core, every_level_gives_the_same_bits) {
    run_apart("1", "1", false, expected);
    run_apart("3", "1", false, got);
    must_agree(expected, got, "x1 and x3");
    run_apart("4", "1", false, got);
    must_agree(expected, got, "x1 and x4");
}

Test(core, some_lanes_give_the_bits_of_all) {
    static const char *const levels[] = {"1", "3", "4"};
    run_apart("1", "1", false, expected);
    for (size_t i = 0; i < 3; i++) {
        run_apart(levels[i], "1", true, got);
        must_agree(expected, got, "all lanes of x1 and some lanes");
    }
}

Test(core, workers_make_no_difference) {
    run_apart("0", "1", false, expected);
    run_apart("0", "2", false, got);
    must_agree(expected, got, "one worker and two");
    run_apart("0", "7", false, got);
    must_agree(expected, got, "one worker and seven");
}

/* The runs above are of what they say. */
Test(core, the_level_asked_for_is_the_one_that_runs) {
    setenv("TOLLENS_SOFT_CORE", "1", 1);
    cr_assert_str_eq(soft_core()->name, "x1");
    for (int op = 0; op < SOFT_OPS; op++) {
        cr_assert(soft_core()->run[op][0] != NULL && soft_core()->run[op][1] != NULL, "%s",
                  soft_op_name((enum soft_op)op));
    }
    cr_assert_str_eq(soft_op_name(SOFT_OP_add_32), "add_32");
    cr_assert_str_eq(soft_op_name(SOFT_OPS), "?");
}
