/*
 * Integers to integers, from registers of every width into registers of every width: common pairs
 * have a micro-operation of their own, and a register may hold more than the type names.
 * Source: PTX ISA 9.0, section 9.7.9.21 (cvt) and section 9.4.1 (operand size exceeding
 * instruction-type size).
 */
#include "test/test_soft.h"

#include <stdio.h>

static void begin(void) {
    test_capture(stderr);
    test_soft_open();
}

TestSuite(convert, .init = begin, .fini = test_soft_close);

struct type {
    const char *name;
    unsigned bits;
    bool is_signed;
};

static const struct type types[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                    {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                    {"u64", 64, false}, {"s64", 64, true}};
enum { TYPES = 8, FIRST = 16, LAST = 64, MOST = 400, THREADS = 40 };

static struct form {
    const struct type *to, *from;
    unsigned wide_to, wide_from; /* bits of the registers */
} forms[MOST];

static size_t list_forms(void) {
    size_t count = 0;
    for (unsigned f = 0; f < TYPES * TYPES; f++) {
        const struct type *to = &types[f / TYPES], *from = &types[f % TYPES];
        for (unsigned d = FIRST; d <= LAST; d *= 2) {
            for (unsigned a = FIRST; a <= LAST; a *= 2) {
                if (d < to->bits || a < from->bits) continue;
                forms[count++] = (struct form){to, from, d, a};
            }
        }
    }
    return count;
}

/* The low bits of a number, extended to 64 as the type says. */
static uint64_t extended(uint64_t x, const struct type *type) {
    unsigned shift = 64 - type->bits;
    return type->is_signed ? (uint64_t)((int64_t)(x << shift) >> shift) : x << shift >> shift;
}

static uint64_t expected(const struct form *form, uint64_t x) {
    uint64_t y = extended(extended(x, form->from), form->to);
    return form->wide_to == 64 ? y : y & ((1ull << form->wide_to) - 1);
}

/* Thread i converts number i in each form and writes the results to its own part of out. */
static char *write_kernel(size_t count) {
    static char text[MOST * 160];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        ".version 8.3\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b16 %%r16_<3>; .reg .b32 %%r32_<3>;\n"
        ".reg .b64 %%r64_<3>; .reg .b64 %%at; .reg .b32 %%thread;\n"
        "ld.param.u64 %%at, [out]; mov.u32 %%thread, %%tid.x;\n"
        "mad.wide.u32 %%at, %%thread, %zu, %%at;\nld.global.u64 %%r64_0, [%%at];\n"
        "cvt.u32.u64 %%r32_0, %%r64_0; cvt.u16.u64 %%r16_0, %%r64_0;\n",
        (count + 1) * 8);
    for (size_t i = 0; i < count; i++) {
        const struct form *form = &forms[i];
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "cvt.%s.%s %%r%u_1, %%r%u_0; st.global.b%u [%%at+%zu], %%r%u_1;\n",
                               form->to->name, form->from->name, form->wide_to, form->wide_from,
                               form->wide_to, (i + 1) * 8, form->wide_to);
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "ret;\n}\n");
    cr_assert(at < sizeof text);
    return text;
}

/* A full warp, and one of which eight lanes run. */
Test(convert, integers_are_taken_from_and_put_into_registers_of_any_width) {
    static uint64_t out[THREADS * (MOST + 1)];
    size_t count = list_forms(), row = count + 1;
    uint64_t x = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < THREADS; i++, x = x * 6364136223846793005 + 1442695040888963407) {
        out[i * row] = i == 0 ? 0x8080808080808080 : i == 1 ? 0x7f7f7f7f7f7f7f7f : x ^ x >> 29;
    }
    CUresult result = test_run(write_kernel(count), 1, THREADS, out, THREADS * row * 8);
    cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, test_log());
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t f = 0; f < count; f++) {
            uint64_t source = out[i * row], wanted = expected(&forms[f], source);
            cr_assert_eq(out[i * row + f + 1], wanted,
                         "cvt.%s.%s from %u bits into %u, of %#llx: %#llx, not %#llx",
                         forms[f].to->name, forms[f].from->name, forms[f].wide_from,
                         forms[f].wide_to, (unsigned long long)source,
                         (unsigned long long)out[i * row + f + 1], (unsigned long long)wanted);
        }
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* 1 and what is far below its last bit: up, down and to zero differ from to the nearest. */
Test(convert, arithmetic_rounds_as_it_is_told) {
    uint32_t out[8] = {0};
    TEST_RUN(TEST_KERNEL("mov.f64 %fd1, 0d3FF0000000000000; mov.f64 %fd2, 0d3C30000000000000;\n"
                         "add.rn.f64 %fd3, %fd1, %fd2; cvt.u32.u64 %r10, %rd1;\n"
                         "mov.b64 {%r10, %r20}, %fd3; add.rp.f64 %fd3, %fd1, %fd2;\n"
                         "mov.b64 {%r11, %r20}, %fd3; sub.rz.f64 %fd3, %fd1, %fd2;\n"
                         "mov.b64 {%r12, %r20}, %fd3; st.global.v2.u32 [%rd1], {%r10, %r11};\n"
                         "st.global.u32 [%rd1+8], %r12;\n"
                         "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f30800000;\n"
                         "sub.rn.f32 %f3, %f1, %f2; sub.rm.f32 %f4, %f1, %f2;\n"
                         "add.rp.f32 %f5, %f1, %f2; st.global.f32 [%rd1+12], %f3;\n"
                         "st.global.v2.f32 [%rd1+16], {%f4, %f5};\n"
                         "mov.f32 %f1, 0f3FE00000; cvt.rmi.f32.f32 %f3, %f1;\n"
                         "cvt.rpi.f32.f32 %f4, %f1; st.global.v2.f32 [%rd1+24], {%f3, %f4};\n"),
             1, 1, out);
    const uint32_t wanted[8] = {0,          1,          UINT32_MAX, 0x3f800000,
                                0x3f7fffff, 0x3f800001, 0x3f800000, 0x40000000};
    for (int i = 0; i < 8; i++) cr_assert_eq(out[i], wanted[i], "%d: 0x%x", i, out[i]);
}
