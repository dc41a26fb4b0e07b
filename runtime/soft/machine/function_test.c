/*
 * Functions: addresses, local and shared memory, branch tables, names; and invalid calls.
 */
#include "memory/space.h"
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

TestSuite(function, .init = test_soft_open, .fini = test_soft_close);

enum { THREADS = 70 };

/* Lanes pick functions by address, from tables in global and constant memory and from registers. */
#define FOUR_FUNCTIONS                                                                             \
    ".func (.param .b32 r) f0(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a];"                \
    " add.u32 %r, %r, 100; st.param.b32 [r], %r; ret; }"                                           \
    ".func (.param .b32 r) f1(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a];"                \
    " mul.lo.u32 %r, %r, 3; st.param.b32 [r], %r; ret; }"                                          \
    ".func (.param .b32 r) f2(.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p;"                    \
    " ld.param.u32 %r1, [a]; setp.lt.u32 %p, %r1, 40; @%p ret; st.param.b32 [r], %r1; ret; }"      \
    ".func (.param .b32 r) f3(.param .b32 a) { .reg .b32 %r; ld.param.u32 %r, [a];"                \
    " not.b32 %r, %r; st.param.b32 [r], %r; ret; }"                                                \
    ".global .u64 table[4] = {f0, f1, f2, f3}; .const .u64 constant[2] = {f3, f0};"

#define CALL_RD5                                                                                   \
    "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"                                     \
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                                       \
    "call (q), %rd5, (p), P; ld.param.b32 %r6, [q]; }\n"

/* Of the first module, and no address of a function is the first of all. */
Test(function, addresses_of_functions_are_where_code_is) {
    uint64_t out[2] = {0};
    TEST_RUN(TEST_KERNEL_WITH(FOUR_FUNCTIONS, "mov.u64 %rd5, f0; st.global.u64 [%rd1], %rd5;\n"
                                              "mov.u64 %rd5, f3; st.global.u64 [%rd1+8], %rd5;\n"),
             1, 1, out);
    const uint64_t code = soft_space_windows()->code;
    for (unsigned i = 0; i < 2; i++) {
        cr_assert(out[i] > code && out[i] - code < 1ull << SOFT_WINDOW_SHIFT, "%llx, %llx",
                  (unsigned long long)out[i], (unsigned long long)code);
    }
}

Test(function, functions_by_address) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(FOUR_FUNCTIONS,
                              "and.b32 %r5, %r1, 3; mov.u64 %rd6, table;\n"
                              "setp.eq.u32 %p1, %r5, 2; setp.lt.u32 %p2, %r1, 40;\n"
                              "mad.wide.u32 %rd6, %r5, 8, %rd6; ld.global.u64 %rd5, [%rd6];\n"
                              "and.pred %p1, %p1, %p2; @%p1 bra END;\n" CALL_RD5
                              "END: activemask.b32 %r7; popc.b32 %r7, %r7;\n"
                              "@%p1 mov.u32 %r6, 9; mad.lo.u32 %r6, %r7, 100000, %r6;\n"
                              "st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t together = i < 64 ? 32 : THREADS - 64;
        uint32_t result = i % 4 == 0   ? i + 100
                          : i % 4 == 1 ? 3 * i
                          : i % 4 == 2 ? (i < 40 ? 9 : i)
                                       : ~i;
        cr_assert_eq(out[i], together * 100000 + result, "thread %u: %u", i, out[i]);
    }
    TEST_RUN(TEST_KERNEL_WITH(FOUR_FUNCTIONS, "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;\n"
                                              "mov.u64 %rd7, f1; ld.const.u64 %rd8, [constant+8];\n"
                                              "selp.b64 %rd5, %rd7, %rd8, %p1;\n" CALL_RD5
                                              "mov.u64 %rd9, f0; setp.eq.u64 %p2, %rd9, %rd8;\n"
                                              "@!%p2 mov.u32 %r6, 0; st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i % 2 ? i + 100 : 3 * i, "thread %u: %u", i, out[i]);
    }
}

Test(function, targets_may_be_listed) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL_WITH(FOUR_FUNCTIONS,
                              "mov.u64 %rd5, f3; { .param .b32 p; .param .b32 q;\n"
                              "T: .calltargets f0, f3;\n"
                              "st.param.b32 [p], %r1; call (q), %rd5, (p), T;\n"
                              "ld.param.b32 %r6, [q]; } st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], ~i, "lane %u: 0x%x", i, out[i]);
}

/* Each call has its own local variables, and may use its caller's by a pointer. Here a reversal of
 * the digits of a number by a recursion that keeps one of them at each depth. */
Test(function, local_memory_of_many_calls) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func digits(.param .b32 n, .param .b64 to) {"
                 " .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;"
                 " .local .align 4 .b8 own[8]; mov.u64 %rd1, own; cvta.local.u64 %rd2, %rd1;"
                 " ld.param.u32 %r1, [n]; ld.param.u64 %rd3, [to]; rem.u32 %r2, %r1, 10;"
                 " st.local.u32 [own+4], %r2; div.u32 %r3, %r1, 10; st.u32 [%rd2], 0;"
                 " setp.eq.u32 %p, %r3, 0; @%p bra LAST;"
                 " { .param .b32 p0; .param .b64 p1; st.param.b32 [p0], %r3;"
                 "   st.param.b64 [p1], %rd2; call.uni digits, (p0, p1); }"
                 " LAST: ld.local.u32 %r4, [%rd1]; ld.local.u32 %r5, [own+4];"
                 " mad.lo.u32 %r4, %r4, 16, %r5; st.u32 [%rd3], %r4; ret; }",
                 ".local .u32 result; mov.u64 %rd5, result; cvta.local.u64 %rd5, %rd5;\n"
                 "mul.lo.u32 %r5, %r1, %r1;\n"
                 "{ .param .b32 p0; .param .b64 p1; st.param.b32 [p0], %r5;\n"
                 "st.param.b64 [p1], %rd5; call.uni digits, (p0, p1); }\n"
                 "ld.local.u32 %r6, [result]; st.global.u32 [%rd2], %r6;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = 0, shift = 0;
        for (uint32_t n = i * i; n > 0 || shift == 0; n /= 10, shift += 4) {
            expected |= n % 10 << shift;
        }
        cr_assert_eq(out[i], expected, "thread %u: 0x%x, not 0x%x", i, out[i], expected);
    }
}

Test(function, local_memory_ends_with_its_call) {
    uint32_t out[32] = {0};
    test_capture(stderr);
    CUresult result =
        test_run(TEST_KERNEL_WITH(".func (.param .b64 r) f() { .reg .b64 %rd<3>; .local .u32 own;"
                                  " mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], 5;"
                                  " st.param.b64 [r], %rd1; ret; }",
                                  "{ .param .b64 q; call.uni (q), f; ld.param.b64 %rd5, [q]; }\n"
                                  "ld.u32 %r5, [%rd5];\nst.global.u32 [%rd2], %r5;\n"),
                 1, 32, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "PTX line 10: ld.u32 %r5, [%rd5]") != NULL);
}

/* A frame is used again for the next call, and its variables are as unwritten as ever. */
Test(function, local_memory_begins_unwritten) {
    static const char ptx[] = TEST_KERNEL_WITH(
        ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p; .local .u32 own;"
        " ld.param.u32 %r1, [a]; setp.ne.u32 %p, %r1, 0; @%p st.local.u32 [own], %r1;"
        " ld.local.u32 %r2, [own]; st.param.b32 [r], %r2; ret; }",
        "{ .param .b32 p; .param .b32 q; st.param.b32 [p], 5; call.uni (q), f, (p);\n"
        "setp.ne.u32 %p1, %r3, 9; selp.u32 %r5, 6, 0, %p1; st.param.b32 [p], %r5;\n"
        "call.uni (q), f, (p); ld.param.b32 %r6, [q]; } st.global.u32 [%rd2], %r6;\n");
    uint32_t out[32] = {0};
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    TEST_RUN(ptx, 1, 32, out);
    cr_assert(out[8] == 6 && out[10] == 6);
    cr_assert(strstr(test_captured(stderr), "uninitialised read in kernel k, in function f, in "
                                            "block (0,0,0), thread (9,0,0), at PTX line 4: "
                                            "ld.local.u32 %r2, [own]: ") != NULL,
              "%s", test_captured(stderr));
}

Test(function, a_report_names_the_function) {
    uint32_t out[32] = {0};
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    CUresult result =
        test_run(TEST_KERNEL_WITH(".func inner() { .local .b8 own[16]; .reg .b64 %rd;"
                                  " mov.u64 %rd, own; st.local.u32 [%rd+16], 1; ret; }"
                                  ".func outer() { call inner; ret; }",
                                  "call.uni outer;\n"),
                 1, 32, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_ILLEGAL_ADDRESS);
    const char *told = test_captured(stderr);
    cr_assert(strstr(told, "in kernel k, in function inner, in block (0,0,0), thread (0,0,0), at "
                           "PTX line 4: st.local.u32 [%rd+16], 1: ") != NULL,
              "%s", told);
}

/* Barriers and exchanges inside functions join lanes that came by different calls. */
Test(function, lanes_exchange_inside_functions) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .b32 r) swap(.param .b32 a) { .reg .b32 %r<3>;"
                 " ld.param.u32 %r1, [a]; bar.warp.sync -1;"
                 " shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.param.b32 [r], %r2; ret; }"
                 ".func (.param .b32 r) swap_later(.param .b32 a) { .reg .b32 %r<3>;"
                 " .param .b32 p; .param .b32 q; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 500;"
                 " st.param.b32 [p], %r1; call (q), swap, (p); ld.param.b32 %r2, [q];"
                 " st.param.b32 [r], %r2; ret; }",
                 "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;\n"
                 "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; @%p1 bra EVEN;\n"
                 "call (q), swap_later, (p); bra BOTH; EVEN: call (q), swap, (p);\n"
                 "BOTH: ld.param.b32 %r6, [q]; } st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) {
        cr_assert_eq(out[i], i % 2 ? i - 1 : i + 501, "lane %u: %u", i, out[i]);
    }
}

Test(function, a_lock_inside_a_function) {
    uint32_t out[2] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func lock(.param .b64 at) { .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p;"
                 " ld.param.u64 %rd1, [at]; SPIN: atom.global.cas.b32 %r1, [%rd1], 0, 1;"
                 " setp.ne.u32 %p, %r1, 0; @%p bra SPIN; ret; }"
                 ".func unlock(.param .b64 at) { .reg .b32 %r<3>; .reg .b64 %rd<2>;"
                 " ld.param.u64 %rd1, [at]; membar.gl; atom.global.exch.b32 %r1, [%rd1], 0; ret; }",
                 "{ .param .b64 p; st.param.b64 [p], %rd1; call lock, (p); }\n"
                 "ld.volatile.global.u32 %r6, [%rd1+4]; add.u32 %r6, %r6, 1;\n"
                 "st.volatile.global.u32 [%rd1+4], %r6;\n"
                 "{ .param .b64 p; st.param.b64 [p], %rd1; call unlock, (p); }\n"),
             2, 64, out);
    cr_assert_eq(out[1], 128, "%u", out[1]);
}

/* Frames are kept from call to call and block to block; what depends on the block must follow. */
Test(function, special_registers_and_constants_in_functions) {
    uint32_t out[40 * 32] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".func (.param .b32 r) place(.param .b32 a) { .reg .b32 %r<9>;"
                         " ld.param.u32 %r1, [a]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;"
                         " mad.lo.u32 %r2, %r2, 1000, %r3; add.u32 %r2, %r2, %r1;"
                         " st.param.b32 [r], %r2; ret; }",
                         "mov.u32 %r7, 0; mov.u32 %r8, 0;\n"
                         "LOOP: { .param .b32 p; .param .b32 q; st.param.b32 [p], %r8;\n"
                         "call (q), place, (p); ld.param.b32 %r6, [q]; } add.u32 %r7, %r7, %r6;\n"
                         "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 4; @%p1 bra LOOP;\n"
                         "st.global.u32 [%rd2], %r7;\n"),
        40, 32, out);
    for (uint32_t i = 0; i < 40 * 32; i++) {
        uint32_t expected = 4 * (1000 * (i / 32) + i % 32) + 6;
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

/* Dynamic shared memory has the largest alignment of the declarations that a kernel reaches, also
 * through a function, and the padding counts as static. */
Test(function, dynamic_shared_memory_is_aligned) {
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".extern .shared .align 1024 .b8 wide[]; .extern .shared .align 4 .b8 narrow[];\n"
        ".func (.reg .b32 %at) where() { mov.u32 %at, wide; ret; }\n"
        ".visible .entry calls(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
        " .shared .align 8 .b8 own[32]; ld.param.u64 %rd1, [out]; st.shared.u32 [own], 1;\n"
        " call (%r1), where; st.shared.u32 [%r1], 2; st.global.u32 [%rd1], %r1; ret; }\n"
        ".visible .entry alone(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
        " .shared .align 8 .b8 own_too[40]; ld.param.u64 %rd1, [out];\n"
        " st.shared.u32 [own_too], 1; mov.u32 %r1, narrow; st.shared.u32 [%r1], 2;\n"
        " st.global.u32 [%rd1], %r1; ret; }\n";
    static const struct {
        const char *name;
        uint32_t at;
        int fixed;
    } kernels[] = {{"calls", 1024, 1024}, {"alone", 48, 40}};
    CUmodule module = test_load(text);
    for (int k = 0; k < 2; k++) {
        CUfunction function = test_function(module, kernels[k].name);
        int bytes = 0;
        uint32_t at = 0;
        CUdeviceptr out = 0;
        void *parameters[] = {&out};
        cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
        cr_assert_eq(bytes, kernels[k].fixed, "%d", bytes);
        cr_assert_eq(cuMemAlloc_v2(&out, 4), CUDA_SUCCESS);
        cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 4096, NULL, parameters, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(cuMemcpyDtoH_v2(&at, out, 4), CUDA_SUCCESS);
        cr_assert_eq(at, kernels[k].at, "%u", at);
    }
}

/* Shared memory: all callers share a function's variable; a kernel's own takes no space in another
 * kernel; dynamic memory begins after the static memory of the launched kernel. */
Test(function, shared_memory_of_functions_and_kernels) {
    static const char functions[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".shared .align 4 .b8 common[256]; .shared .align 4 .b8 of_one[40000];\n"
        ".shared .align 4 .b8 of_two[44000]; .extern .shared .align 16 .b8 dynamic[];\n"
        ".func put(.param .b32 i, .param .b32 value) { .reg .b32 %r<5>; mov.u32 %r3, common;\n"
        " ld.param.u32 %r1, [i]; ld.param.u32 %r2, [value]; mad.lo.u32 %r3, %r1, 4, %r3;\n"
        " st.shared.u32 [%r3], %r2; mov.u32 %r4, dynamic; mad.lo.u32 %r4, %r1, 4, %r4;\n"
        " add.u32 %r2, %r2, 1; st.shared.u32 [%r4], %r2; ret; }\n";
#define KERNEL(name)                                                                               \
    ".visible .entry " name "(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"             \
    " ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 8, %rd1;\n"           \
    " st.shared.u32 [of_" name "], 7; { .param .b32 i; .param .b32 v; st.param.b32 [i], %r1;\n"    \
    " mul.lo.u32 %r2, %r1, 3; st.param.b32 [v], %r2; call put, (i, v); }\n"                        \
    " bar.sync 0; xor.b32 %r3, %r1, 1; mov.u32 %r4, common; mad.lo.u32 %r4, %r3, 4, %r4;\n"        \
    " ld.shared.u32 %r5, [%r4]; mov.u32 %r6, dynamic; mad.lo.u32 %r6, %r3, 4, %r6;\n"              \
    " ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+4], %r7;\n"         \
    " ret; }\n"
    static const char *const names[] = {"one", "two"};
    char text[8000];
    strcpy(text, functions);
    strcat(text, KERNEL("one") KERNEL("two"));
    CUmodule module = test_load(text);
    for (int k = 0; k < 2; k++) {
        CUfunction function = test_function(module, names[k]);
        CUdeviceptr out = 0;
        uint32_t words[128];
        int bytes = 0;
        cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
        cr_assert_eq(bytes, k == 0 ? 40256 : 44256, "%d", bytes);
        cr_assert_eq(cuMemAlloc_v2(&out, sizeof words), CUDA_SUCCESS);
        void *parameters[] = {&out};
        cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 256, NULL, parameters, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(cuMemcpyDtoH_v2(words, out, sizeof words), CUDA_SUCCESS);
        for (uint32_t i = 0; i < 64; i++) {
            cr_assert_eq(words[2 * i], 3 * (i ^ 1), "thread %u: %u", i, words[2 * i]);
            cr_assert_eq(words[2 * i + 1], 3 * (i ^ 1) + 1, "thread %u", i);
        }
    }
}

Test(function, a_stack_that_grows_by_alloca) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(TEST_KERNEL_WITH(
                 ".func (.param .b32 r) sum(.param .b32 n) { .reg .b32 %r<9>; .reg .b64 %rd<9>;"
                 " .reg .pred %p; ld.param.u32 %r1, [n]; mul.wide.u32 %rd1, %r1, 4;"
                 " stacksave.u64 %rd7; alloca.u64 %rd2, %rd1, 16; mov.u32 %r2, 0;"
                 " mov.u64 %rd3, %rd2;"
                 " FILL: setp.ge.u32 %p, %r2, %r1; @%p bra FULL; st.local.u32 [%rd3], %r2;"
                 " add.u64 %rd3, %rd3, 4; add.u32 %r2, %r2, 1; bra FILL;"
                 " FULL: mov.u32 %r3, 0; mov.u32 %r2, 0; cvta.local.u64 %rd4, %rd2;"
                 " SUM: setp.ge.u32 %p, %r2, %r1; @%p bra DONE; ld.u32 %r4, [%rd4];"
                 " add.u64 %rd4, %rd4, 4; add.u32 %r3, %r3, %r4; add.u32 %r2, %r2, 1; bra SUM;"
                 " DONE: stackrestore.u64 %rd7; alloca.u64 %rd5, 4; and.b64 %rd6, %rd2, 15;"
                 " setp.ne.u64 %p, %rd6, 0; @%p mov.u32 %r3, -1; setp.gt.u64 %p, %rd5, %rd2;"
                 " @%p mov.u32 %r3, -2; st.param.b32 [r], %r3; ret; }",
                 "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), sum, (p);\n"
                 "ld.param.b32 %r5, [q]; } st.global.u32 [%rd2], %r5;\n"),
             1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(out[i], i * (i - 1) / 2, "thread %u: %d", i, (int)out[i]);
    }
}

/* A table of branches: on to several places, back into a loop, and to one place by many indices. */
Test(function, branches_by_table) {
    uint32_t out[THREADS] = {0};
    TEST_RUN(
        TEST_KERNEL("mov.u32 %r6, 0; mov.u32 %r7, %r1;\n"
                    "AGAIN: rem.u32 %r5, %r7, 5;\n"
                    "T: .branchtargets A, B, C, B, D;\n"
                    "brx.idx %r5, T;\n"
                    "A: add.u32 %r6, %r6, 1; bra END;\n"
                    "B: add.u32 %r6, %r6, 10; bra END;\n"
                    "C: add.u32 %r6, %r6, 100; sub.u32 %r7, %r7, 1; bra AGAIN;\n"
                    "D: add.u32 %r6, %r6, 1000; shr.u32 %r7, %r7, 1; setp.gt.u32 %p1, %r7, 9;\n"
                    "U: .branchtargets END, AGAIN;\n"
                    "selp.u32 %r8, 1, 0, %p1; brx.idx %r8, U;\n"
                    "END: activemask.b32 %r9; popc.b32 %r9, %r9;\n"
                    "mad.lo.u32 %r6, %r9, 100000, %r6; st.global.u32 [%rd2], %r6;\n"),
        1, THREADS, out);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t n = i, sum = 0;
        for (;;) {
            if (n % 5 == 0) {
                sum += 1;
                break;
            } else if (n % 5 == 1 || n % 5 == 3) {
                sum += 10;
                break;
            } else if (n % 5 == 2) {
                sum += 100, n--;
            } else {
                sum += 1000, n /= 2;
                if (n <= 9) break;
            }
        }
        uint32_t expected = (i < 64 ? 32 : THREADS - 64) * 100000 + sum;
        cr_assert_eq(out[i], expected, "thread %u: %u, not %u", i, out[i], expected);
    }
}

/* Names are looked up from the inside out, as inline assembly in braces relies on. */
Test(function, inner_names_hide_outer_ones) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r5, 1; .reg .b32 x; mov.u32 x, 2;\n"
                         "{ .reg .b32 x; .reg .b64 %rx<9>; mov.u32 x, 30; mov.u64 %rx5, 400;\n"
                         "  { .reg .b64 x; mov.u64 x, %rx5; bra L; L: cvt.u32.u64 %r7, x; }\n"
                         "  { .reg .pred %r<2>; setp.eq.u32 %r1, x, 30; @%r1 bra L; mov.u32 x, 9;\n"
                         "    L: add.u32 %r7, %r7, x; } bra L; L: }\n"
                         "add.u32 %r6, %r5, x; add.u32 %r6, %r6, %r7; bra L; L:\n"
                         "st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], 433, "lane %u: %u", i, out[i]);
}

Test(function, an_alias_is_the_function_it_names) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL_WITH(".func (.param .b32 r) other(.param .b32 a);"
                              ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r;"
                              " ld.param.u32 %r, [a]; add.u32 %r, %r, 9; st.param.b32 [r], %r;"
                              " ret; } .alias other, f;",
                              "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
                              "call (q), other, (p); ld.param.b32 %r5, [q]; }\n"
                              "st.global.u32 [%rd2], %r5;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i + 9, "lane %u: %u", i, out[i]);
}

Test(function, wrong_calls_fail_when_they_are_made) {
    static const struct {
        const char *ptx;
        CUresult result;
        const char *words;
    } cases[] = {
        {TEST_KERNEL_WITH(".func f() { call f; ret; }", "call f;\n"),
         CUDA_ERROR_HARDWARE_STACK_ERROR, "stack overflow in kernel k, in function f"},
        {TEST_KERNEL_WITH(".func f() { .local .b8 l[60000]; .reg .b32 %r; st.local.u32 [l], 1;"
                          " call f; ld.local.u32 %r, [l]; ret; }",
                          "call f;\n"),
         CUDA_ERROR_HARDWARE_STACK_ERROR, "too much memory: call of f at depth"},
        {TEST_KERNEL_WITH(FOUR_FUNCTIONS, "mov.u64 %rd5, 0;\n" CALL_RD5), CUDA_ERROR_INVALID_PC,
         "invalid function in kernel k in block (0,0,0), thread (0,0,0) and others, at PTX line "
         "12: call (q), %rd5, (p), P: a call to 0x0, which is not the address of a function"},
        {TEST_KERNEL_WITH(FOUR_FUNCTIONS, "mov.u64 %rd5, f1; setp.eq.u32 %p1, %r1, 21;\n"
                                          "@%p1 add.u64 %rd5, %rd5, 4;\n" CALL_RD5),
         CUDA_ERROR_INVALID_PC, "thread (21,0,0), at PTX line 13"},
        {TEST_KERNEL_WITH(".func f(.param .b32 a, .param .b32 b) { ret; }" FOUR_FUNCTIONS,
                          "mov.u64 %rd5, f;\n" CALL_RD5),
         CUDA_ERROR_LAUNCH_FAILED, "do not match the function f"},
        {TEST_KERNEL_WITH(".func (.param .b32 r) f(.reg .pred a) { st.param.b32 [r], 1; ret; }",
                          "mov.u64 %rd5, f;\n" CALL_RD5),
         CUDA_ERROR_LAUNCH_FAILED, "do not match the function f"},
        {TEST_KERNEL_WITH(".func (.param .b32 r) f(.param .b64 a) { st.param.b32 [r], 1; ret; }",
                          "mov.u64 %rd5, f;\n" CALL_RD5),
         CUDA_ERROR_LAUNCH_FAILED, "do not match the function f"},
        {TEST_KERNEL("T: .branchtargets A, B;\nbrx.idx %r1, T; A: B:\n"), CUDA_ERROR_LAUNCH_FAILED,
         "target 2 of a table with 2 targets"},
        {TEST_KERNEL("mov.u64 %rd5, 2000000; alloca.u64 %rd6, %rd5;\n"),
         CUDA_ERROR_HARDWARE_STACK_ERROR, "an alloca of 2000000 bytes"},
        {TEST_KERNEL("mov.u64 %rd5, 8; stackrestore.u64 %rd5;\n"), CUDA_ERROR_HARDWARE_STACK_ERROR,
         "that was never reached"},
        {TEST_KERNEL("mov.u64 %rd5, 8; alloca.u64 %rd6, %rd5; st.local.u32 [%rd6+8], 1;\n"),
         CUDA_ERROR_ILLEGAL_ADDRESS, "local memory"},
    };
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[32] = {0};
        CUresult result = test_run(cases[i].ptx, 1, 32, out, sizeof out);
        cr_assert_eq(result, cases[i].result, "%zu: %d: %s", i, (int)result, test_log());
        cr_assert(strstr(test_captured(stderr), cases[i].words) != NULL, "%zu: %s", i,
                  test_captured(stderr));
        test_soft_close();
        test_soft_open();
    }
}

Test(function, wrong_calls_are_refused_when_the_module_is_loaded) {
#define ONE ".func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 1; ret; }"
    static const char *const cases[][2] = {
        {TEST_KERNEL("call nowhere;\n"), "'nowhere' is not declared"},
        {TEST_KERNEL_WITH(".extern .func f(.param .b32 a);", "{ .param .b32 p; call f, (p); }\n"),
         "'f' is declared but not defined"},
        {TEST_KERNEL_WITH(ONE, "call f;\n"), "has 1 parameters, and the call passes 0"},
        {TEST_KERNEL_WITH(ONE, "{ .param .b32 p; .param .b32 q; call (q, q), f, (p); }\n"),
         "returns 1 results, and the call expects 2"},
        {TEST_KERNEL_WITH(ONE, "{ .param .b64 p; .param .b32 q; call (q), f, (p); }\n"),
         "8 bytes are passed where 4 are declared"},
        {TEST_KERNEL_WITH(ONE, "{ .param .b32 p; call f, (p); }\n"),
         "returns 1 results, and the call expects 0"},
        {TEST_KERNEL_WITH(ONE, "{ .param .b32 p; .param .b16 q; call (q), f, (p); }\n"),
         "2 bytes are passed where 4 are declared"},
        {TEST_KERNEL_WITH(".extern .func vprintf(.param .b64 f, .param .b64 a);",
                          "{ .param .b64 p; .param .b64 a; call vprintf, (p, a); }\n"),
         "does not match the declaration of vprintf"},
        {TEST_KERNEL_WITH(".entry g() { ret; }", "call g;\n"), "is a kernel"},
        {TEST_KERNEL("call %r1;\n"), ".callprototype"},
        {TEST_KERNEL("call 5;\n"), "expected a function to call"},
        {TEST_KERNEL("call;\n"), "expected a function to call"},
        {TEST_KERNEL("{ .param .b32 p; st.param.b32 [p+4], 1; }\n"), "outside the parameter 'p'"},
        {TEST_KERNEL("{ .param .b32 p; mov.u64 %rd5, p; }\n"), "has no address"},
        {TEST_KERNEL("{ .param .b32 p; ld.param.b64 %rd5, [p]; }\n"), "outside the parameter 'p'"},
        {TEST_KERNEL("st.param.b32 [out], 1;\n"), "cannot write this state space"},
        {TEST_KERNEL("brx.idx %r1, out;\n"), ".branchtargets"},
        {TEST_KERNEL("T: .branchtargets NOWHERE; brx.idx %r1, T;\n"), "'NOWHERE' is not declared"},
        {TEST_KERNEL("T: .branchtargets out; brx.idx %r1, T;\n"), "expected a label"},
        {TEST_KERNEL("alloca.u64 %rd5, %rd6, 3;\n"), "power of two"},
        {TEST_KERNEL_WITH(".func f(.param .pred a) { ret; }", ""), "cannot have this type"},
        {TEST_KERNEL("stacksave.u64 %r5;\n"), "32 bits, and 64 are needed"},
        {TEST_KERNEL_WITH(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b32 a);",
                          "{ .param .b64 p; .param .b32 a; .param .b32 q;\n"
                          "call (q), vprintf, (p, a); }\n"),
         "does not match the declaration of vprintf"},
        {TEST_KERNEL_WITH(".shared .b8 big[50000];", "st.shared.u8 [big], %r1;\n"),
         "49152 bytes of shared memory"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX, "%zu", i);
        cr_assert(strstr(log, cases[i][1]) != NULL, "%zu: %s", i, log);
    }
}
