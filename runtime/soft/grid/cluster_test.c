/*
 * Clusters: their barrier, their special registers and their size limits.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(cluster, .init = begin, .fini = test_soft_close);

/* Warps exchange words five times between arriving and waiting. */
#define EXCHANGE(arrive, wait)                                                                     \
    TEST_KERNEL_WITH(".shared .u32 s[128];",                                                       \
                     "mov.u32 %r10, s; mad.lo.u32 %r11, %r3, 4, %r10; mov.u32 %r13, %r3;\n"        \
                     "xor.b32 %r12, %r3, 96; mad.lo.u32 %r12, %r12, 4, %r10; mov.u32 %r14, 0;\n"   \
                     "LOOP: st.shared.u32 [%r11], %r13;\n" arrive ";" wait ";\n"                   \
                     "ld.shared.u32 %r15, [%r12]; add.u32 %r13, %r15, 1;\n" arrive ";\n"           \
                     "add.u32 %r14, %r14, 1;\n" wait ";\n"                                         \
                     "setp.lt.u32 %p1, %r14, 5; @%p1 bra LOOP; st.global.u32 [%rd2], %r13;\n")

Test(cluster, its_barrier_holds_the_warps_together) {
    static const char *const texts[] = {
        EXCHANGE("barrier.cluster.arrive", "barrier.cluster.wait"),
        EXCHANGE("barrier.cluster.arrive.aligned", "barrier.cluster.wait.aligned"),
        EXCHANGE("barrier.cluster.arrive.release.aligned", "barrier.cluster.wait.acquire.aligned"),
        EXCHANGE("barrier.cluster.arrive.relaxed", "barrier.cluster.wait.acquire"),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[256] = {0};
        TEST_RUN(texts[t], 2, 128, out);
        for (uint32_t i = 0; i < 256; i++) {
            cr_assert_eq(out[i], (i % 128 ^ 96) + 5, "%zu: %u: %u", t, i, out[i]);
        }
    }
}

/* Threads that exit are waited for no longer; lanes of a warp may come one by one. */
Test(cluster, its_barrier_counts_threads) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL("and.b32 %r5, %r3, 3; setp.eq.u32 %p1, %r5, 0; @%p1 exit;\n"
                         "setp.eq.u32 %p1, %r5, 1; @%p1 bra ONE;\n"
                         "barrier.cluster.arrive; mov.u32 %r6, 2; bra MEET;\n"
                         "ONE: mov.u32 %r6, 1; barrier.cluster.arrive; barrier.cluster.wait;\n"
                         "st.global.u32 [%rd2], %r6; exit;\n"
                         "MEET: barrier.cluster.wait; st.global.u32 [%rd2], %r6;\n"),
             1, 64, out);
    for (uint32_t i = 0; i < 64; i++) {
        cr_assert_eq(out[i], i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : 2, "%u: %u", i, out[i]);
    }
}

/* What is known of a cluster of one, in each of two by three blocks. */
Test(cluster, registers_tell_of_one_block) {
    uint32_t out[12] = {0};
    CUdeviceptr buffer = 0;
    CUmodule module = test_load(TEST_KERNEL_WITH(
        ".shared .align 16 .u32 s[4];",
        "mov.pred %p1, %is_explicit_cluster; selp.u32 %r5, 1, 0, %p1;\n"
        "mov.u32 %r6, %cluster_ctarank; add.u32 %r5, %r5, %r6;\n"
        "mov.u32 %r6, %cluster_ctaid.y; add.u32 %r5, %r5, %r6;\n"
        "mov.u32 %r6, %cluster_nctarank; mad.lo.u32 %r5, %r6, 10, %r5;\n"
        "mov.u32 %r6, %cluster_nctaid.z; mad.lo.u32 %r5, %r6, 100, %r5;\n"
        "mov.u32 %r6, %clusterid.x; mad.lo.u32 %r5, %r6, 1000, %r5;\n"
        "mov.u32 %r6, %clusterid.y; mad.lo.u32 %r5, %r6, 10000, %r5;\n"
        "mov.u32 %r6, %nclusterid.x; mad.lo.u32 %r5, %r6, 100000, %r5;\n"
        "mov.u32 %r6, %nclusterid.y; mad.lo.u32 %r5, %r6, 1000000, %r5;\n"
        "mov.u32 %r6, %aggr_smem_size; mad.lo.u32 %r5, %r6, 10000000, %r5;\n"
        "mov.u32 %r10, s; cvta.shared.u64 %rd10, s; mov.u32 %r11, 77; st.shared.u32 [s+4], %r11;\n"
        "mapa.shared::cluster.u32 %r12, s+4, 0; ld.shared::cluster.u32 %r13, [%r12];\n"
        "mapa.u64 %rd11, %rd10, 0; ld.u32 %r14, [%rd11+4]; sub.u32 %r14, %r14, %r13;\n"
        "getctarank.shared::cluster.u32 %r15, %r10; getctarank.u64 %r16, %rd10;\n"
        "add.u32 %r14, %r14, %r15; add.u32 %r14, %r14, %r16; add.u32 %r13, %r13, %r14;\n"
        "isspacep.shared::cluster %p2, %rd10; @!%p2 add.u32 %r13, %r13, 1;\n"
        "mov.u32 %r6, %ctaid.y; mov.u32 %r7, %nctaid.x; mov.u32 %r8, %ctaid.x;\n"
        "mad.lo.u32 %r6, %r6, %r7, %r8; mad.wide.u32 %rd2, %r6, 8, %rd1;\n"
        "st.global.v2.u32 [%rd2], {%r5, %r13};\n"));
    cr_assert_eq(cuMemAlloc_v2(&buffer, sizeof out), CUDA_SUCCESS);
    void *arguments[] = {&buffer};
    cr_assert_eq(
        cuLaunchKernel(test_function(module, "k"), 2, 3, 1, 1, 1, 1, 0, NULL, arguments, NULL),
        CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyDtoH_v2(out, buffer, sizeof out), CUDA_SUCCESS);
    for (uint32_t block = 0; block < 6; block++) {
        uint32_t expected = 163200110 + block % 2 * 1000 + block / 2 * 10000;
        cr_assert_eq(out[2 * block], expected, "%u: %u", block, out[2 * block]);
        cr_assert_eq(out[2 * block + 1], 77, "%u: %u", block, out[2 * block + 1]);
    }
}

static void fails(const char *ptx, CUresult expected, const char *words) {
    uint32_t out[64] = {0};
    CUresult result = test_run(ptx, 1, 64, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    cr_assert(strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

Test(cluster, a_wrong_use_of_its_barrier_is_told_of) {
    fails(TEST_KERNEL("barrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.wait;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, "lanes 0xffffffff wait without having arrived");
    fails(TEST_KERNEL("setp.eq.u32 %p1, %r3, 3; barrier.cluster.arrive;\n"
                      "@%p1 barrier.cluster.arrive;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION,
          "at PTX line 10: barrier.cluster.arrive: lanes "
          "0x00000008 arrive a second time");
    fails(TEST_KERNEL("setp.ge.u32 %p1, %r3, 32; @%p1 bra OTHER;\n"
                      "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                      "OTHER: bar.sync 0;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT,
          "at PTX line 11: barrier.cluster.wait: deadlock: lanes 0xffffffff of warp 0 wait at the "
          "barrier of the cluster");
    fails(TEST_KERNEL("mov.u32 %r5, 1; mapa.shared::cluster.u32 %r6, %r5, %r5;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, "block 1 of a cluster of 1");
}

#define ENTRY(attributes)                                                                          \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 "                \
    "out)\n" attributes "\n{\nret;\n}\n"

static CUresult launch(CUfunction function, unsigned grid, unsigned cluster) {
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {cluster, 1, 1}};
    CUlaunchConfig config = {.gridDimX = grid,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 32,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = cluster > 0};
    CUdeviceptr none = 0;
    void *arguments[] = {&none};
    CUresult result = cuLaunchKernelEx(&config, function, arguments, NULL);
    return result != CUDA_SUCCESS ? result : cuCtxSynchronize();
}

Test(cluster, a_launch_says_how_large_it_is) {
    CUfunction any = test_function(test_load(ENTRY("")), "k");
    static const struct {
        unsigned grid, cluster;
        CUresult result;
    } rows[] = {
        {2, 1, CUDA_SUCCESS},
        {2, 2, CUDA_SUCCESS},
        {24, 8, CUDA_SUCCESS},
        {3, 2, CUDA_ERROR_INVALID_VALUE},
        {16, 16, CUDA_ERROR_INVALID_CLUSTER_SIZE},
        {9, 9, CUDA_ERROR_INVALID_CLUSTER_SIZE},
        {17, 17, CUDA_ERROR_INVALID_CLUSTER_SIZE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUresult result = launch(any, rows[i].grid, rows[i].cluster);
        cr_assert_eq(result, rows[i].result, "%zu: %d", i, (int)result);
    }
    cr_assert_eq(
        cuFuncSetAttribute(
            any, (CUfunction_attribute)CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
        CUDA_SUCCESS);
    cr_assert_eq(launch(any, 16, 16), CUDA_SUCCESS);
    cr_assert_eq(launch(any, 17, 17), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

Test(cluster, a_kernel_says_how_large_it_is) {
    char log[2048];
    uint32_t out[1] = {0};
    CUfunction pairs = test_function(test_load(ENTRY(".reqnctapercluster 2, 1, 1")), "k");
    cr_assert_eq(launch(pairs, 4, 0), CUDA_SUCCESS);
    cr_assert_eq(launch(pairs, 4, 2), CUDA_SUCCESS);
    cr_assert_eq(launch(pairs, 4, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(launch(pairs, 3, 0), CUDA_ERROR_INVALID_VALUE);
    int value = 0;
    cr_assert_eq(cuFuncGetAttribute(
                     &value, (CUfunction_attribute)CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, pairs),
                 CUDA_SUCCESS);
    cr_assert_eq(value, 2);
    CUfunction explicit =
        test_function(test_load(ENTRY(".explicitcluster .maxclusterrank 4")), "k");
    cr_assert_eq(launch(explicit, 4, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cr_assert_eq(launch(explicit, 4, 1), CUDA_SUCCESS);
    cr_assert_eq(launch(explicit, 4, 4), CUDA_SUCCESS);
    cr_assert_eq(launch(explicit, 8, 8), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    TEST_RUN(ENTRY(".explicitcluster .reqnctapercluster 1, 1, 1"), 1, 1, out);
    cr_assert_eq(test_refused(ENTRY(".reqnctapercluster 4, 4, 2"), log, sizeof log),
                 CUDA_ERROR_INVALID_PTX);
    cr_assert(strstr(log, "a cluster of 4x4x2 blocks: a cluster has at most 16") != NULL, "%s",
              log);
}
