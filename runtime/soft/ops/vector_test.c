/*
 * Registers of two and four components: declared, moved, packed, loaded, stored and passed, as
 * ptxas takes them.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(vector, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 40, WORDS = 8 };

/* %rd2 is where the thread's eight words begin. */
#define EACH(declarations, body)                                                                   \
    TEST_KERNEL_WITH(declarations, "mad.wide.u32 %rd2, %r1, 32, %rd1;\n" body)

Test(vector, components_are_registers) {
    uint32_t out[THREADS][WORDS] = {{0}};
    TEST_RUN(EACH("", ".reg .v4 .u32 v, %w<3>; .reg .v2 .f32 f; .reg .align 8 .v2 .b16 h;\n"
                      "mov.u32 v.x, %r1; add.u32 v.y, v.x, 1; mul.lo.u32 v.b, v.r, v.g;\n"
                      "mad.lo.u32 %w2.a, v.x, v.y, v.z; setp.gt.u32 %p1, v.x, 7;\n"
                      "@%p1 add.u32 %w2.w, %w2.w, 100; mov.u32 v.w, %w2.w;\n"
                      "mov.f32 f.x, 0f3fc00000; mov.f32 f.y, f.x; add.f32 f.x, f.x, f.y;\n"
                      "mov.b32 {h.x, h.y}, v.y; mov.u16 h.y, h.x;\n"
                      "st.global.v4.u32 [%rd2], v; st.global.v2.f32 [%rd2+16], f;\n"
                      "st.global.v2.b16 [%rd2+24], h; st.global.u32 [%rd2+28], %w2.a;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t last = 2 * i * (i + 1) + (i > 7 ? 100 : 0);
        uint32_t right[WORDS] = {i,          i + 1,      i * (i + 1),        last,
                                 0x40400000, 0x3fc00000, (i + 1) * 0x10001u, last};
        cr_assert_arr_eq(out[i], right, sizeof right, "thread %u", i);
    }
}

/* All components are read before one is written. */
Test(vector, whole_vectors_move) {
    uint32_t out[THREADS][WORDS] = {{0}};
    TEST_RUN(EACH("", ".reg .v4 .b32 v, w; .reg .v2 .b64 d;\n"
                      "mov.v4.u32 v, {%r1, 5, 6, 7}; mov.v4.b32 w, v;\n"
                      "mov.v4.s32 {w.y, w.z, w.w, w.x}, w; mov.v4.u32 {%r10, _, %r11, _}, v;\n"
                      "mov.v2.u32 {%r10, %r11}, {%r11, %r10};\n"
                      "mov.v2.b64 d, {%rd1, %rd2}; sub.u64 d.x, d.y, d.x; mov.b64 {%r12, _}, d.x;\n"
                      "mov.v4.f32 {%f1, %f2, %f3, %f4}, {1.0, 2.0, 3.0, 4.0};\n"
                      "st.global.v4.b32 [%rd2], w; st.global.v2.u32 [%rd2+16], {%r10, %r11};\n"
                      "st.global.u32 [%rd2+24], %r12; st.global.f32 [%rd2+28], %f3;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t right[WORDS] = {7, i, 5, 6, 6, i, 32 * i, 0x40400000};
        cr_assert_arr_eq(out[i], right, sizeof right, "thread %u", i);
    }
}

Test(vector, whole_vectors_are_loaded_and_packed) {
    uint32_t out[THREADS][WORDS] = {{0}};
    for (uint32_t i = 0; i < THREADS * WORDS; i++) out[i / WORDS][i % WORDS] = 0x01020304u * i;
    TEST_RUN(EACH("", ".reg .v4 .f32 v; .reg .v2 .b32 x; .reg .v4 .b8 c; .reg .v4 .u16 s;\n"
                      "ld.global.v4.f32 v, [%rd2]; ld.global.v4.u8 s, [%rd2+16];\n"
                      "mov.b64 %rd3, {v.x, v.y}; mov.b64 x, %rd3; mov.b32 %r10, v.z;\n"
                      "mov.b32 c, %r10; mov.b32 %r11, {c.w, c.z, c.y, c.x};\n"
                      "mov.b64 %rd4, s; mov.b64 {%r12, %r13}, %rd4;\n"
                      "st.global.v4.b32 [%rd2], {x.y, x.x, %r11, %r10};\n"
                      "st.global.v2.u32 [%rd2+16], {%r12, %r13};\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t word[WORDS];
        for (uint32_t k = 0; k < WORDS; k++) word[k] = 0x01020304u * (WORDS * i + k);
        uint32_t low = word[4] & 0xff, next = word[4] >> 8 & 0xff;
        uint32_t right[WORDS] = {
            word[1], word[0],          __builtin_bswap32(word[2]),
            word[2], low | next << 16, (word[4] >> 16 & 0xff) | word[4] >> 24 << 16,
            word[6], word[7]};
        cr_assert_arr_eq(out[i], right, sizeof right, "thread %u", i);
    }
}

/* Runs a body for one thread with %rd1 at 28 bytes, numbers from 1 on, and %rd3 at its result. */
static CUresult run_at_the_end(const char *body, uint32_t result[4]) {
    char text[2000];
    CUdeviceptr data = 0, out = 0;
    uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7};
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_50\n.address_size 64\n"
             ".visible .entry k(.param .u64 data, .param .u64 out)\n{\n"
             ".reg .b32 %%r<10>; .reg .b64 %%rd<10>; .reg .b64 %%wide<3>;\n"
             "ld.param.u64 %%rd1, [data]; ld.param.u64 %%rd3, [out];\n%s\nret;\n}\n",
             body);
    CUfunction function = test_function(test_load(text), "k");
    cr_assert_eq(cuMemAlloc_v2(&data, sizeof numbers), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&out, 16), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(data, numbers, sizeof numbers), CUDA_SUCCESS);
    cr_assert_eq(cuMemsetD8_v2(out, 0xff, 16), CUDA_SUCCESS);
    void *parameters[] = {&data, &out};
    test_capture(stderr);
    cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
                 CUDA_SUCCESS);
    CUresult ended = cuCtxSynchronize();
    if (ended == CUDA_SUCCESS) cr_assert_eq(cuMemcpyDtoH_v2(result, out, 16), CUDA_SUCCESS);
    return ended;
}

/* Compilers widen a load of the last three words to a vector of four. */
Test(vector, a_load_over_the_end_of_an_allocation_is_a_note) {
    static const char *const loads[] = {
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];",
        "ld.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];",
        "ld.global.v2.b64 {%wide1, %wide2}, [%rd1+16];\n"
        "mov.b64 {%r1, %r2}, %wide1; mov.b64 {%r3, %r4}, %wide2;",
    };
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        char body[400];
        uint32_t result[4], right[] = {5, 6, 7, 0};
        snprintf(body, sizeof body, "%s\nst.global.v4.u32 [%%rd3], {%%r1, %%r2, %%r3, %%r4};",
                 loads[i]);
        cr_assert_eq(run_at_the_end(body, result), CUDA_SUCCESS, "%s", test_log());
        cr_assert_arr_eq(result, right, sizeof right, "%s", loads[i]);
        const char *said = test_captured(stderr);
        cr_assert(strstr(said, "vector over the end in kernel k") != NULL, "%s", said);
        cr_assert(strstr(said, "has the first 12") != NULL, "%s", said);
        cr_assert(strstr(said, "uninitialised read in kernel k") != NULL, "%s", said);
    }
}

/* No finding if nothing uses what is after the end. */
Test(vector, what_a_load_over_the_end_adds_may_stay_unused) {
    uint32_t result[4];
    cr_assert_eq(run_at_the_end("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];\n"
                                "add.u32 %r4, %r4, 1; mov.u32 %r4, 9;\n"
                                "st.global.v4.u32 [%rd3], {%r1, %r2, %r3, %r4};",
                                result),
                 CUDA_SUCCESS);
    cr_assert(result[0] == 5 && result[2] == 7 && result[3] == 9);
    cr_assert(strstr(test_captured(stderr), "vector over the end") != NULL);
    cr_assert_null(strstr(test_captured(stderr), "uninitialised read"));
}

static void must_not_be_forgiven(const char *body, CUresult right) {
    uint32_t result[4];
    cr_assert_eq(run_at_the_end(body, result), right, "%s", body);
    cr_assert_null(strstr(test_captured(stderr), "vector over the end"));
}

Test(vector, a_load_after_the_end_of_an_allocation_is_an_error) {
    must_not_be_forgiven("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+32];",
                         CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(vector, a_store_over_the_end_of_an_allocation_is_an_error) {
    must_not_be_forgiven("st.global.v4.u32 [%rd1+16], {%r1, %r2, %r3, %r4};",
                         CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(vector, one_wide_load_over_the_end_of_an_allocation_is_an_error) {
    must_not_be_forgiven("ld.global.u64 %rd4, [%rd1+24];", CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(vector, a_misaligned_load_over_the_end_of_an_allocation_is_an_error) {
    must_not_be_forgiven("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+20];",
                         CUDA_ERROR_MISALIGNED_ADDRESS);
}

Test(vector, functions_take_and_give_vectors) {
    uint32_t out[THREADS][WORDS] = {{0}};
    TEST_RUN(EACH(".func (.reg .v2 .u32 o) turn(.reg .v2 .u32 i, .reg .u32 k) {"
                  " add.u32 o.x, i.y, k; mov.u32 o.y, i.x; ret; }",
                  ".reg .v2 .u32 v; mov.v2.u32 v, {%r1, 1000}; call (v), turn, (v, 3);\n"
                  "call (v), turn, (v, %r1); st.global.v2.u32 [%rd2], v;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i][0], 2 * i, "thread %u: %u", i, out[i][0]);
        cr_assert_eq(out[i][1], 1003, "thread %u: %u", i, out[i][1]);
    }
}

/* The fourth component of a special register is 0. */
Test(vector, special_registers_are_vectors) {
    uint32_t out[THREADS][WORDS] = {{0}};
    TEST_RUN(EACH("", ".reg .v4 .u32 t; .reg .v4 .u16 n; mov.v4.u32 t, %tid; mov.v4.u16 n, %ntid;\n"
                      "mov.u32 %r10, %ctaid.r; mov.u32 %r11, %tid.w; mov.u32 %r12, %ntid.g;\n"
                      "st.global.v4.u32 [%rd2], t; st.global.v4.u16 [%rd2+16], n;\n"
                      "add.u32 %r10, %r10, %r11; st.global.v2.u32 [%rd2+24], {%r10, %r12};\n"),
             2, THREADS / 2, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t right[WORDS] = {i % 20, 0, 0, 0, 0x10014, 1, i / 20, 1};
        cr_assert_arr_eq(out[i], right, sizeof right, "thread %u", i);
    }
}

/* What ptxas refuses. */
Test(vector, is_refused_where_it_has_no_place) {
    static const char *const bodies[][2] = {
        {".reg .v2 .pred v;\n", "predicates"},
        {".reg .v4 .f64 v;\n", "128 bits"},
        {".reg .v2 .f32 v; mov.f32 %f1, v.z;\n", "not a component"},
        {".reg .v4 .f32 v; mov.f32 %f1, v.X;\n", "not a component"},
        {".reg .v4 .f32 v, w; mov.f32 v, w;\n", "need a .b type"},
        {".reg .v2 .b32 v; mov.u64 %rd3, v;\n", "need a .b type"},
        {".reg .v4 .f32 v; add.f32 v, v, v;\n", "a destination register"},
        {".reg .v2 .f32 v; st.global.v4.f32 [%rd2], {v, v};\n", "not allowed in braces"},
        {".reg .v4 .f32 v; ld.global.v2.f32 v, [%rd2];\n", "expected 2 registers"},
        {".reg .v4 .f32 v; ld.global.v4.u32 v, [%rd2];\n", "type .f32"},
        {".reg .v2 .b64 v; ld.global.f32 %f1, [v.x];\n", "not allowed here"},
        {".reg .v2 .b32 v; shfl.sync.up.b32 v.x|%p1, %r1, 1, 0, -1;\n", "not allowed here"},
        {".reg .v2 .b32 v; mov.v2.u32 v, {v.x, 5};\n", "a number is not allowed"},
        {".reg .v4 .f32 v; mov.v4.f32 v.x, v;\n", "two vectors of 4 elements"},
        {".reg .v4 .f32 v; .reg .v2 .f32 w; mov.v2.f32 v, w;\n", "two vectors of 2 elements"},
        {"mov.u32 %r10, %tid;\n", "need a .b type"},
        {".reg .bf16 v;\n", "a type for instructions"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024], log[2048];
        snprintf(text, sizeof text,
                 ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n"
                 ".reg .b32 %%r<20>; .reg .b64 %%rd<20>; .reg .f32 %%f<9>; .reg .pred %%p<9>;\n"
                 "mov.u64 %%rd2, 0; %s ret; }\n",
                 bodies[i][0]);
        cr_expect_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, bodies[i][1]) != NULL, "%s: %s", bodies[i][0], log);
    }
}
