/*
 * malloc and free in kernels.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(heap, .init = begin, .fini = test_soft_close);

/* As nvcc declares and calls them: %rd10 = malloc(%rd11), and free(%rd10). */
#define HEAP(body)                                                                                 \
    TEST_KERNEL_WITH(".extern .func (.param .b64 func_retval0) malloc (.param .b64 param_0); "     \
                     ".extern .func free (.param .b64 param_0);",                                  \
                     body)
#define MALLOC                                                                                     \
    "{ .param .b64 p; .param .b64 r; st.param.b64 [p], %rd11;\n"                                   \
    "call.uni (r), malloc, (p); ld.param.b64 %rd10, [r]; }\n"
#define FREE "{ .param .b64 p; st.param.b64 [p], %rd10; call.uni free, (p); }\n"

/* Each thread has a block of its own; of the first 32 the odd ones take none. */
Test(heap, each_thread_takes_and_gives_back) {
    uint32_t out[96] = {0};
    TEST_RUN(HEAP("setp.lt.u32 %p1, %r3, 32; and.b32 %r5, %r3, 1; setp.eq.and.u32 %p1, %r5, 1, "
                  "%p1;\n"
                  "mov.u64 %rd11, 24; @%p1 mov.u64 %rd11, 0;\n" MALLOC
                  "setp.eq.u64 %p2, %rd10, 0; mov.u32 %r6, 1000000; @%p2 bra END;\n"
                  "st.u32 [%rd10+20], %r3; bar.warp.sync 0x55555555; ld.u32 %r6, [%rd10+20];\n"
                  "and.b64 %rd12, %rd10, 15; cvt.u32.u64 %r7, %rd12; add.u32 %r6, %r6, %r7;\n"
                  "END:\n" FREE "st.global.u32 [%rd2], %r6;\n"),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i % 2 ? 1000000 : i, "%u", i);
    cr_assert_str_eq(test_captured(stderr), "");
}

/* What one kernel allocates remains for later kernels, until one of them frees it. */
Test(heap, blocks_outlive_their_kernel) {
    uint64_t out[32] = {0};
    TEST_RUN(HEAP("mad.wide.u32 %rd2, %r1, 8, %rd1; mov.u64 %rd11, 64;\n" MALLOC
                  "st.global.u32 [%rd10+60], %r3; st.global.u64 [%rd2], %rd10;\n"),
             1, 32, out);
    TEST_RUN(HEAP("mad.wide.u32 %rd2, %r1, 8, %rd1; ld.global.u64 %rd10, [%rd2];\n"
                  "ld.global.u32 %r5, [%rd10+60]; cvt.u64.u32 %rd11, %r5;\n"
                  "st.global.u64 [%rd2], %rd11;\n" FREE),
             1, 32, out);
    for (uint32_t i = 0; i < 32; i++) cr_assert_eq(out[i], i);
}

/* The limit is the context's; what is freed may be taken again. */
Test(heap, its_size_is_limited) {
    uint64_t out[3] = {0};
    cr_assert_eq(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096), CUDA_SUCCESS);
    TEST_RUN(HEAP("mov.u64 %rd11, 4096;\n" MALLOC
                  "st.global.u64 [%rd1], %rd10; mov.u64 %rd12, %rd10; mov.u64 %rd11, 1;\n" MALLOC
                  "st.global.u64 [%rd1+8], %rd10;\n"
                  "mov.u64 %rd10, %rd12;\n" FREE "mov.u64 %rd11, 4000;\n" MALLOC
                  "st.global.u64 [%rd1+16], %rd10;\n"),
             1, 1, out);
    cr_assert(out[0] != 0 && out[1] == 0 && out[2] != 0);
}

Test(heap, a_new_context_has_an_empty_heap) {
    uint64_t out[1] = {0};
    for (int i = 0; i < 3; i++) {
        TEST_RUN(HEAP("mov.u64 %rd11, 8000000;\n" MALLOC "st.global.u64 [%rd1], %rd10;\n"), 1, 1,
                 out);
        cr_assert(out[0] != 0, "%d", i);
        test_soft_close();
        test_soft_open();
    }
}

static void fails(const char *ptx, CUresult expected, const char *words) {
    uint64_t out[64] = {0};
    CUresult result = test_run(ptx, 1, 1, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    cr_assert(strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

Test(heap, wrong_uses_are_told_of) {
    fails(HEAP("mov.u64 %rd11, 20;\n" MALLOC "st.u32 [%rd10+20], %r1;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, "a store of 4 bytes at 0x");
    fails(
        HEAP("mov.u64 %rd11, 20;\n" MALLOC "ld.u32 %r5, [%rd10];\n" FREE "ld.u32 %r5, [%rd10];\n"),
        CUDA_ERROR_ILLEGAL_ADDRESS, "freed");
    fails(HEAP("mov.u64 %rd11, 20;\n" MALLOC FREE FREE), CUDA_ERROR_LAUNCH_FAILED,
          "which is not a block of the heap: 0 bytes into allocation");
    fails(HEAP("mov.u64 %rd11, 20;\n" MALLOC "add.u64 %rd10, %rd10, 4;\n" FREE),
          CUDA_ERROR_LAUNCH_FAILED, "which is not a block of the heap: 4 bytes into allocation");
    fails(HEAP("mov.u64 %rd10, %rd1;\n" FREE), CUDA_ERROR_LAUNCH_FAILED,
          "which is not a block of the heap");
}

/* Nothing was written there yet. */
Test(heap, what_was_never_written_is_told_of) {
    uint64_t out[1] = {0};
    TEST_RUN(HEAP("mov.u64 %rd11, 20;\n" MALLOC "ld.u32 %r5, [%rd10];\n" FREE
                  "st.global.u32 [%rd1], %r5;\n"),
             1, 1, out);
    cr_assert(strstr(test_captured(stderr), "uninitialised read") != NULL);
}

/* The host cannot free such a block, and can copy from it no more than from any other place. */
Test(heap, the_host_cannot_free_it) {
    uint64_t out[1] = {0};
    TEST_RUN(HEAP("mov.u64 %rd11, 64;\n" MALLOC "st.global.u64 [%rd1], %rd10;\n"), 1, 1, out);
    cr_assert_eq(cuMemFree_v2((CUdeviceptr)out[0]), CUDA_ERROR_INVALID_VALUE);
}

/* ---- with checks ---- */

static void watch(void) {
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race,leak", 1);
    begin();
}

TestSuite(heap_watched, .init = watch);

/* What a thread has freed it, or another one, may take again: that is no race. */
Test(heap_watched, taking_and_giving_back_is_no_race) {
    uint64_t out[64] = {0};
    for (int i = 0; i < 2; i++) {
        TEST_RUN(HEAP("mad.wide.u32 %rd2, %r1, 8, %rd1; mov.u32 %r5, 0; AGAIN: mov.u64 %rd11, "
                      "64;\n" MALLOC
                      "st.global.u32 [%rd10], %r3; st.global.u64 [%rd2], %rd10;\n" FREE
                      "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 40; @%p1 bra AGAIN;\n"),
                 1, 64, out);
    }
    test_soft_close();
    cr_assert(strstr(test_captured(stderr), "race") == NULL, "%s", test_captured(stderr));
    cr_assert(strstr(test_captured(stderr), "malloc") == NULL, "%s", test_captured(stderr));
}

/* Two threads and one block, which nothing orders. */
Test(heap_watched, a_race_in_a_block_is_told_of) {
    uint64_t out[1] = {0};
    TEST_RUN(HEAP("setp.ne.u32 %p1, %r3, 0; @%p1 bra WRITE; mov.u64 %rd11, 64;\n" MALLOC
                  "st.global.u64 [%rd1], %rd10;\n"
                  "WRITE: bar.sync 0; ld.global.u64 %rd10, [%rd1]; st.global.u32 [%rd10], %r3;\n"),
             1, 64, out);
    const char *told = strstr(test_captured(stderr), "data race in kernel k");
    cr_assert(told != NULL && strstr(told, "of 64 bytes") != NULL, "%s", test_captured(stderr));
}

/* Until the context ends a later kernel may free it. */
Test(heap_watched, what_is_never_freed_is_told_of) {
    uint64_t out[32] = {0};
    TEST_RUN(HEAP("mad.wide.u32 %rd2, %r1, 8, %rd1; mov.u64 %rd11, 64;\n" MALLOC
                  "st.global.u64 [%rd2], %rd10; setp.eq.u32 %p1, %r3, 5; @%p1 bra END;\n" FREE
                  "END: ret;\n"),
             1, 32, out);
    cr_assert(strstr(test_captured(stderr), "malloc") == NULL, "%s", test_captured(stderr));
    test_soft_close();
    const char *told = strstr(test_captured(stderr), "leak: 64 bytes of a kernel's malloc at 0x");
    cr_assert(told != NULL, "%s", test_captured(stderr));
    cr_assert(strstr(told, "made by") == NULL, "%s", told);
    cr_assert(strstr(strstr(told, "malloc") + 1, "malloc") == NULL, "%s", told);
}
