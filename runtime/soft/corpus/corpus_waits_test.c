/*
 * The corpus's programs whose threads wait: for copies, and for other blocks.
 */
#include "corpus_scene.h"

#include "corpus.h"

#include <stdlib.h>
#include <string.h>

TestSuite(corpus_waits, .fini = test_soft_close);

#define SAME(what, i, got, expected)                                                               \
    cr_assert_eq(got, expected, "%s: %s %u: %d, not %d", corpus_version(), what, (unsigned)(i),    \
                 (int)(got), (int)(expected))

static int32_t in[13 * 128];

static void fill(void) {
    for (uint32_t i = 0; i < 13 * 128; i++) in[i] = (int32_t)(corpus_mix(i) % 2001) - 1000;
}

static void check_rows(CUmodule module, const char *kernel, uint32_t rows) {
    int32_t out[128];
    CUdeviceptr from = corpus_put(in, sizeof in), to = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, kernel, 1, 128, 0, &from, &to, &rows);
    corpus_get(to, out, sizeof out);
    for (uint32_t t = 0; t < 128; t++) {
        int32_t sum = 0;
        for (uint32_t row = 0; row < rows; row++) sum += in[row * 128 + 127 - t];
        SAME(kernel, t, out[t], sum);
    }
}

static void check_copies(CUmodule module) {
    int32_t out[128];
    uint32_t count = 1234, rows = 7;
    fill();
    check_rows(module, "two_buffers", 13);
    check_rows(module, "two_buffers", 1);
    check_rows(module, "by_a_group", 13);
    check_rows(module, "by_a_barrier", 13);

    /* Not one word more than there is may be read. */
    CUdeviceptr from = corpus_put(in, count * 4), to = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "partial_rows", 1, 128, 0, &from, &to, &count);
    corpus_get(to, out, sizeof out);
    for (uint32_t t = 0; t < 128; t++) {
        int32_t sum = 0;
        for (uint32_t begin = 0; begin < count; begin += 512) {
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t at = begin + (4 * t + i * 129) % 512;
                sum += at < count ? in[at] : 0;
            }
        }
        SAME("partial_rows", t, out[t], sum);
    }

    from = corpus_put(in, sizeof in);
    CORPUS_LAUNCH(module, "producer_and_consumers", 1, 128, 0, &from, &to, &rows);
    corpus_get(to, out, sizeof out);
    for (uint32_t t = 0; t < 96; t++) {
        int32_t sum = 0;
        for (uint32_t row = 0; row < rows; row++) sum = 3 * sum + in[row * 96 + 95 - t];
        SAME("producer_and_consumers", t, out[t], sum);
    }
}

CORPUS_TEST(corpus_waits, copies_go_on_meanwhile,
            { cr_assert_eq(corpus_each("copies", check_copies), 3); })

/* More blocks than there are host threads, so that blocks are set aside at the barrier. */
static void check_cooperative(CUmodule module) {
    enum { BLOCKS = 12, THREADS = 64, COUNT = BLOCKS * THREADS };
    int32_t out[COUNT], sum = 0, all = 0;
    uint32_t steps = 5, blocks = 40;
    fill();
    for (uint32_t i = 0; i < COUNT; i++) sum += in[i];
    CUdeviceptr data = corpus_put(in, sizeof out), sums = corpus_put(NULL, 4 * BLOCKS);
    CUdeviceptr result = corpus_put(NULL, 4);
    CORPUS_LAUNCH_COOPERATIVE(module, "sum_all", BLOCKS, THREADS, &data, &sums, &result);
    corpus_get(result, &all, 4);
    SAME("sum_all", 0, all, sum);
    CORPUS_LAUNCH_COOPERATIVE(module, "rotate", BLOCKS, THREADS, &data, &steps);
    corpus_get(data, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("rotate", i, out[i], in[(i + steps) % COUNT] + (int32_t)steps);
    }
    data = corpus_put(NULL, 4 * blocks);
    CORPUS_LAUNCH(module, "from_the_end", blocks, THREADS, 0, &data);
    corpus_get(data, out, 4 * blocks);
    for (uint32_t i = 0; i < blocks; i++) SAME("from_the_end", i, out[i], (int32_t)(blocks - i));
}

CORPUS_TEST(corpus_waits, blocks_wait_for_each_other,
            { cr_assert_eq(corpus_each("cooperative", check_cooperative), 3); })

/* As on a GPU: without a cooperative launch there is nothing to count with, and the code traps. */
Test(corpus_waits, a_grid_s_barrier_needs_a_cooperative_launch) {
    uint32_t steps = 1;
    CUdeviceptr data = 0;
    void *arguments[] = {&data, &steps};
    test_soft_open();
    test_capture(stderr);
    char *text = test_fixture("corpus", "cooperative_80.ptx");
    CUfunction function = test_function(test_load(text), "rotate");
    free(text);
    cr_assert_eq(cuMemAlloc_v2(&data, 4 * 128), CUDA_SUCCESS);
    cr_assert_eq(cuMemsetD8_v2(data, 0, 4 * 128), CUDA_SUCCESS);
    cr_assert_eq(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    cr_assert(strstr(test_captured(stderr), "trap") != NULL, "%s", test_captured(stderr));
}

/* The loop of cooperative_groups, in which %rd3 is the counter in the workspace, for two warps. */
#define SPIN(head, body)                                                                           \
    TEST_KERNEL("mov.u32 %r5, %envreg2; mov.u32 %r6, %envreg1; mov.b64 %rd3, {%r5, %r6};\n"        \
                "mov.u32 %r7, %ctaid.x; mov.u32 %r9, 0;\n" head                                    \
                "barrier.sync 0; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;\n"                        \
                "atom.add.release.gpu.u32 %r8, [%rd3+4], 1;\n"                                     \
                "AGAIN: ld.acquire.gpu.u32 %r8, [%rd3+4];\n" body                                  \
                "setp.lt.u32 %p2, %r8, 4; @%p2 bra AGAIN;\n"                                       \
                "DONE: barrier.sync 0;\n")

static CUresult run_spin(const char *ptx) {
    CUdeviceptr out = 0;
    CUfunction function = test_function(test_load(ptx), "k");
    cr_assert_eq(cuMemAlloc_v2(&out, 4096), CUDA_SUCCESS);
    void *parameters[] = {&out};
    test_capture(stderr);
    cr_assert_eq(cuLaunchCooperativeKernel(function, 4, 1, 1, 64, 1, 1, 0, NULL, parameters),
                 CUDA_SUCCESS);
    return cuCtxSynchronize();
}

Test(corpus_waits, a_grid_s_barrier_that_a_block_never_reaches_is_a_deadlock) {
    test_soft_open();
    cr_assert_eq(run_spin(SPIN("", "")), CUDA_SUCCESS, "%s", test_log());
    /* A block that comes late is waited for. */
    cr_assert_eq(run_spin(SPIN("setp.ne.u32 %p3, %r7, 2; @%p3 bra NOW;\n"
                               "LATE: add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 3000000;\n"
                               "@%p3 bra LATE;\nNOW:\n",
                               "")),
                 CUDA_SUCCESS, "%s", test_log());
    cr_assert_eq(run_spin(SPIN("setp.eq.u32 %p3, %r7, 1; @%p3 exit;\n", "")),
                 CUDA_ERROR_LAUNCH_TIMEOUT);
    const char *told = test_captured(stderr);
    cr_assert_not_null(strstr(told, "deadlock: a block waits at the grid's barrier, as do all 3"));
    cr_assert_not_null(strstr(told, "1 of 4 have ended"));
}

/* A block may pass one barrier and wait at the next in a single turn; with a seed, the others may
 * then have no turn for long. */
Test(corpus_waits, a_grid_s_barriers_in_a_loop_are_no_deadlock) {
    static const char spin[] =
        TEST_KERNEL("mov.u32 %r5, %envreg2; mov.u32 %r6, %envreg1; mov.b64 %rd3, {%r5, %r6};\n"
                    "mov.u32 %r9, 0;\n"
                    "NEXT: add.u32 %r9, %r9, 2;\n"
                    "atom.add.release.gpu.u32 %r8, [%rd3+4], 1;\n"
                    "AGAIN: ld.acquire.gpu.u32 %r8, [%rd3+4];\n"
                    "setp.lt.u32 %p2, %r8, %r9; @%p2 bra AGAIN;\n"
                    "setp.lt.u32 %p3, %r9, 20000; @%p3 bra NEXT;\n");
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_SEED", "3", 1);
    test_soft_open();
    CUdeviceptr out = 0;
    CUfunction function = test_function(test_load(spin), "k");
    void *parameters[] = {&out};
    cr_assert_eq(cuMemAlloc_v2(&out, 4096), CUDA_SUCCESS);
    cr_assert_eq(cuLaunchCooperativeKernel(function, 2, 1, 1, 1, 1, 1, 0, NULL, parameters),
                 CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS, "%s", test_log());
}

/* The largest number of blocks that fit at once runs; one more is refused. */
Test(corpus_waits, a_cooperative_launch_is_no_larger_than_what_fits) {
    int32_t last[1024] = {0}, steps = 1, most = 0, processors = 0;
    test_soft_open();
    char *text = test_fixture("corpus", "cooperative_80.ptx");
    CUfunction function = test_function(test_load(text), "rotate");
    free(text);
    cr_assert_eq(cuOccupancyMaxActiveBlocksPerMultiprocessor(&most, function, 1024, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
                 CUDA_SUCCESS);
    unsigned blocks = (unsigned)(most * processors);
    CUdeviceptr data = 0;
    void *arguments[] = {&data, &steps};
    cr_assert_eq(cuMemAlloc_v2(&data, sizeof last * blocks), CUDA_SUCCESS);
    cr_assert_eq(cuMemsetD8_v2(data, 0, sizeof last * blocks), CUDA_SUCCESS);
    cr_assert_eq(
        cuLaunchCooperativeKernel(function, blocks + 1, 1, 1, 1024, 1, 1, 0, NULL, arguments),
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    cr_assert_eq(cuLaunchCooperativeKernel(function, blocks, 1, 1, 1024, 1, 1, 0, NULL, arguments),
                 CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyDtoH_v2(last, data + sizeof last * (blocks - 1), sizeof last),
                 CUDA_SUCCESS);
    for (int i = 0; i < 1024; i++) cr_assert_eq(last[i], 1);
}
