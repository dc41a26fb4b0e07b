/*
 * Clusters of several blocks: how they find each other's shared memory, which accesses are allowed,
 * and the reports about the others.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(cluster_memory, .init = begin, .fini = test_soft_close);

/* As TEST_KERNEL_WITH, in clusters; %r20 is the block's rank, %r21 how many there are. */
#define CLUSTERS(extent, declarations, body)                                                       \
    ".version 8.6\n.target sm_90a\n.address_size 64\n" declarations "\n"                           \
    ".visible .entry k(.param .u64 out)\n.reqnctapercluster " extent "\n{\n"                       \
    ".reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .pred %p<20>;\n"                  \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; " \
    "mad.lo.u32 %r1, %r1, %r2, %r3; mad.wide.u32 %rd2, %r1, 4, %rd1;\n"                            \
    "mov.u32 %r20, %cluster_ctarank; mov.u32 %r21, %cluster_nctarank;\n" body "ret;\n}\n"
#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

/* The rank of the next block, in %r22. */
#define NEXT "add.u32 %r22, %r20, 1; setp.eq.u32 %p1, %r22, %r21; @%p1 mov.u32 %r22, 0;\n"

static CUresult run(const char *ptx, const unsigned grid[3], unsigned threads, void *out,
                    size_t bytes) {
    CUdeviceptr buffer = 0;
    CUfunction function = test_function(test_load(ptx), "k");
    cr_assert_eq(cuMemAlloc_v2(&buffer, bytes), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(buffer, out, bytes), CUDA_SUCCESS);
    void *arguments[] = {&buffer};
    CUresult result = cuLaunchKernel(function, grid[0], grid[1], grid[2], threads, 1, 1, 0, NULL,
                                     arguments, NULL);
    if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS) cuMemcpyDtoH_v2(out, buffer, bytes);
    return result;
}

#define RUN(ptx, blocks, threads, out)                                                             \
    do {                                                                                           \
        CUresult run_result = test_run(ptx, blocks, threads, out, sizeof out);                     \
        cr_assert_eq(run_result, CUDA_SUCCESS, "%d: %s", (int)run_result, test_log());             \
        cr_assert_str_eq(test_captured(stderr), "");                                               \
    } while (0)

/* Each block of a grid of 4x6x2 in clusters of 2x3x1 writes what it knows of its place. */
#define PLACES(extent)                                                                             \
    CLUSTERS(extent, "",                                                                           \
             "mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mov.u32 %r7, %nctaid.x;\n"             \
             "mov.u32 %r8, %nctaid.y; mad.lo.u32 %r6, %r6, %r8, %r5;\n"                            \
             "mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r6, %r7, %r5;\n"                             \
             "mad.wide.u32 %rd2, %r6, 64, %rd1;\n"                                                 \
             "mov.u32 %r30, %clusterid.x; mov.u32 %r31, %clusterid.y;\n"                           \
             "mov.u32 %r32, %clusterid.z; mov.u32 %r33, %nclusterid.x;\n"                          \
             "mov.u32 %r34, %nclusterid.y; mov.u32 %r35, %nclusterid.z;\n"                         \
             "mov.u32 %r36, %cluster_ctaid.x; mov.u32 %r37, %cluster_ctaid.y;\n"                   \
             "mov.u32 %r38, %cluster_ctaid.z; mov.u32 %r39, %cluster_nctaid.x;\n"                  \
             "mov.u32 %r40, %cluster_nctaid.y; mov.u32 %r41, %cluster_nctaid.z;\n"                 \
             "mov.pred %p1, %is_explicit_cluster; selp.u32 %r42, 1, 0, %p1;\n"                     \
             "st.global.v4.u32 [%rd2], {%r30,%r31,%r32,%r33};\n"                                   \
             "st.global.v4.u32 [%rd2+16], {%r34,%r35,%r36,%r37};\n"                                \
             "st.global.v4.u32 [%rd2+32], {%r38,%r39,%r40,%r41};\n"                                \
             "st.global.v2.u32 [%rd2+48], {%r42,%r20}; st.global.u32 [%rd2+56], %r21;\n")

Test(cluster_memory, registers_tell_of_the_place) {
    enum { WORDS = 16, BLOCKS = 48 };
    static uint32_t out[BLOCKS][WORDS];
    static const struct {
        const char *ptx;
        uint32_t x, y, z;
    } cases[] = {{PLACES("2, 3, 1"), 2, 3, 1}, {PLACES("1, 2, 2"), 1, 2, 2}};
    const unsigned grid[3] = {4, 6, 2};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const uint32_t cx = cases[c].x, cy = cases[c].y, cz = cases[c].z;
        CUresult result = run(cases[c].ptx, grid, 1, out, sizeof out);
        cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, test_log());
        for (uint32_t b = 0; b < BLOCKS; b++) {
            const uint32_t x = b % 4, y = b / 4 % 6, z = b / 24;
            const uint32_t rank = (z % cz * cy + y % cy) * cx + x % cx;
            const uint32_t expected[] = {x / cx, y / cy, z / cz, 4 / cx, 6 / cy,
                                         2 / cz, x % cx, y % cy, z % cz, cx,
                                         cy,     cz,     1,      rank,   cx * cy * cz};
            for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
                cr_assert_eq(out[b][i], expected[i], "block %u, %zu: %u", b, i, out[b][i]);
            }
        }
    }
}

#define READ(how)                                                                                  \
    CLUSTERS("4, 1, 1", ".shared .align 16 .u32 s[64];",                                           \
             "mov.u32 %r10, s; mad.lo.u32 %r11, %r3, 4, %r10;\n"                                   \
             "mul.lo.u32 %r12, %r1, 7; st.shared.u32 [%r11], %r12;\n" SYNC NEXT how SYNC           \
             "st.global.u32 [%rd2], %r25;\n")

/* The words of the next block, by each kind of address; and back by stores and atomics. */
Test(cluster_memory, blocks_read_and_write_each_other) {
    static const char *const texts[] = {
        READ("mapa.shared::cluster.u32 %r23, s, %r22; mad.lo.u32 %r24, %r3, 4, %r23;\n"
             "ld.shared::cluster.u32 %r25, [%r24];\n"),
        READ(
            "cvta.shared.u64 %rd5, s; mapa.u64 %rd6, %rd5, %r22; mad.wide.u32 %rd6, %r3, 4, %rd6;\n"
            "ld.u32 %r25, [%rd6];\n"),
        READ("mov.u64 %rd5, s; mapa.shared::cluster.u64 %rd6, %rd5, %r22;\n"
             "mad.wide.u32 %rd6, %r3, 4, %rd6; ld.shared::cluster.u32 %r25, [%rd6];\n"),
        READ(
            "cvta.shared.u64 %rd5, s; mapa.u64 %rd6, %rd5, %r22; mad.wide.u32 %rd6, %r3, 4, %rd6;\n"
            "cvta.to.shared.u64 %rd7, %rd6; ld.shared::cluster.u32 %r25, [%rd7];\n"),
        READ("mapa.shared::cluster.u32 %r23, s, %r22; mad.lo.u32 %r24, %r3, 4, %r23;\n"
             "cvt.u64.u32 %rd5, %r24; cvta.shared::cluster.u64 %rd6, %rd5; ld.u32 %r25, [%rd6];\n"),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[8 * 64] = {0};
        RUN(texts[t], 8, 64, out);
        for (uint32_t i = 0; i < 512; i++) {
            uint32_t block = i / 64, from = block / 4 * 4 + (block + 1) % 4;
            cr_assert_eq(out[i], (from * 64 + i % 64) * 7, "%zu: %u: %u", t, i, out[i]);
        }
    }
}

/* All threads of four blocks count in the first one's memory; its own sees the sum. */
Test(cluster_memory, atomics_reach_another_block) {
    uint32_t out[4 * 64] = {0};
    RUN(CLUSTERS("4, 1, 1", ".shared .align 16 .u32 s[4];",
                 "mov.u32 %r5, 0; setp.lt.u32 %p2, %r3, 4; mov.u32 %r10, s;\n"
                 "mad.lo.u32 %r11, %r3, 4, %r10; @%p2 st.shared.u32 [%r11], %r5;\n" SYNC
                 "mapa.shared::cluster.u32 %r23, s, 0; cvt.u64.u32 %rd5, %r23;\n"
                 "cvta.shared::cluster.u64 %rd6, %rd5;\n"
                 "atom.shared::cluster.add.u32 %r24, [%r23], 1;\n"
                 "red.relaxed.cluster.shared::cluster.max.u32 [%r23+4], %r1;\n"
                 "atom.add.u32 %r24, [%rd6+8], %r20; red.add.u32 [%rd6+12], 2;\n" SYNC
                 "ld.shared::cluster.v4.u32 {%r30,%r31,%r32,%r33}, [%r23];\n"
                 "mad.lo.u32 %r30, %r31, 1000, %r30; mad.lo.u32 %r30, %r32, 1000000, %r30;\n"
                 "add.u32 %r30, %r30, %r33; st.global.u32 [%rd2], %r30;\n" SYNC),
        4, 64, out);
    for (uint32_t i = 0; i < 256; i++) {
        cr_assert_eq(out[i], 256u + 255u * 1000 + 384u * 1000000 + 512, "%u: %u", i, out[i]);
    }
}

/* Which block an address is of, and in which spaces it is. */
Test(cluster_memory, an_address_names_its_block) {
    uint32_t out[4] = {0};
    RUN(CLUSTERS("4, 1, 1", ".shared .align 16 .u32 s[4];",
                 NEXT "mapa.shared::cluster.u32 %r23, s, %r22; cvta.shared.u64 %rd5, s;\n"
                      "mapa.u64 %rd6, %rd5, %r22; mapa.u64 %rd7, %rd6, %r20;\n"
                      "getctarank.shared::cluster.u32 %r30, %r23; getctarank.u64 %r31, %rd6;\n"
                      "getctarank.u64 %r32, %rd5; getctarank.u64 %r33, %rd7; mov.u32 %r40, 0;\n"
                      "isspacep.shared %p2, %rd6; @%p2 or.b32 %r40, %r40, 1;\n"
                      "isspacep.shared::cluster %p2, %rd6; @%p2 or.b32 %r40, %r40, 2;\n"
                      "isspacep.shared::cta %p2, %rd5; @%p2 or.b32 %r40, %r40, 4;\n"
                      "isspacep.shared::cluster %p2, %rd5; @%p2 or.b32 %r40, %r40, 8;\n"
                      "isspacep.shared::cluster %p2, %rd1; @%p2 or.b32 %r40, %r40, 16;\n"
                      "setp.eq.u64 %p2, %rd5, %rd7; @%p2 or.b32 %r40, %r40, 32;\n"
                      "mad.lo.u32 %r30, %r31, 10, %r30; mad.lo.u32 %r30, %r32, 100, %r30;\n"
                      "mad.lo.u32 %r30, %r33, 1000, %r30; mad.lo.u32 %r30, %r40, 10000, %r30;\n"
                      "st.global.u32 [%rd2], %r30;\n"),
        4, 1, out);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t next = (i + 1) % 4;
        uint32_t expected = next + 10 * next + 100 * i + 1000 * i + 10000 * (2 + 4 + 8 + 32);
        cr_assert_eq(out[i], expected, "%u: %u", i, out[i]);
    }
}

/* A ring of blocks at remote mbarriers: each waits for the one before it, which has written. */
#define RING(begins, write, sends)                                                                 \
    CLUSTERS("4, 1, 1", ".shared .align 16 .b8 s[64]; .shared .align 8 .b64 m;",                   \
             "setp.eq.u32 %p2, %r3, 0; @%p2 mbarrier.init.shared.b64 [m], 1;\n"                    \
             "@%p2 fence.mbarrier_init.release.cluster;\n" begins SYNC NEXT                        \
             "mapa.shared::cluster.u32 %r23, s, %r22; mapa.shared::cluster.u32 %r24, m, %r22;\n"   \
             "add.u32 %r25, %r1, 100; mov.u32 %r26, 5;\n" write sends                              \
             "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [m], 0;\n"       \
             "@!%p3 bra WAIT; ld.shared.u32 %r27, [s]; st.global.u32 [%rd2], %r27;\n" SYNC)
#define EXPECT(bytes) "@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [m], " bytes ";\n"

Test(cluster_memory, mbarriers_of_another_block_are_told) {
    static const char *const texts[] = {
        RING("", "@%p2 st.shared::cluster.u32 [%r23], %r25;\n",
             "@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r24];\n"),
        RING("", "@%p2 st.shared::cluster.u32 [%r23], %r25;\n",
             "@%p2 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r24], 16;\n"
             "@%p2 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r24], 16;\n"),
        RING(EXPECT("4"), "",
             "@%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], %r25, "
             "[%r24];\n"),
        RING(EXPECT("16"), "",
             "@%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r23], "
             "{%r25,%r26,%r26,%r26}, [%r24];\n"),
        RING("mov.u32 %r6, 95; @%p2 st.shared.u32 [s], %r6;\n" EXPECT("4"), "",
             "add.u32 %r7, %r1, 5; @%p2 red.async.relaxed.cluster.shared::cluster"
             ".mbarrier::complete_tx::bytes.add.u32 [%r23], %r7, [%r24];\n"),
        RING(EXPECT("16"),
             "@%p2 st.shared.u32 [s+32], %r25; @%p2 st.shared.u32 [s+36], %r25;\n"
             "@%p2 st.shared.v2.u32 [s+40], {%r25,%r25}; fence.proxy.async;\n",
             "mov.u32 %r8, s; @%p2 cp.async.bulk.shared::cluster.shared::cta"
             ".mbarrier::complete_tx::bytes [%r23], [%r8+32], 16, [%r24];\n"),
    };
    static const char *const checks[] = {"memory,init,sync", "memory,init,sync,race"};
    for (size_t t = 0; t < 2 * sizeof texts / sizeof texts[0]; t++) {
        uint32_t out[8 * 32] = {0};
        test_soft_close();
        setenv("TOLLENS_SOFT_CHECK", checks[t % 2], 1);
        test_soft_open();
        RUN(texts[t / 2], 8, 32, out);
        for (uint32_t block = 0; block < 8; block++) {
            uint32_t before = block / 4 * 4 + (block + 3) % 4;
            for (uint32_t i = 0; i < 32; i++) {
                cr_assert_eq(out[block * 32 + i], before * 32 + 100, "%zu: %u: %u", t, block,
                             out[block * 32 + i]);
            }
        }
    }
}

/* One block reads for all of them. */
Test(cluster_memory, a_copy_goes_to_several_blocks) {
    uint32_t out[64];
    for (uint32_t i = 0; i < 64; i++) out[i] = i < 16 ? 3 * i : 0;
    RUN(CLUSTERS("4, 1, 1", ".shared .align 16 .b8 s[64]; .shared .align 8 .b64 m;",
                 "setp.eq.u32 %p2, %r3, 0; @%p2 mbarrier.init.shared.b64 [m], 1;\n"
                 "@%p2 fence.mbarrier_init.release.cluster; setp.ne.u32 %p4, %r20, 2;\n"
                 "@%p4 bra MEET; @%p2 mbarrier.arrive.shared.b64 _, [m]; bra GO;\n"
                 "MEET: @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [m], 64;\n"
                 "GO: " SYNC "mov.u32 %r10, s; mov.u32 %r11, m; mov.u16 %h1, 11;\n"
                 "setp.ne.u32 %p3, %r20, 1; @%p3 bra WAIT; @!%p2 bra WAIT;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%r10], [%rd1], 64, [%r11], %h1;\n"
                 "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [m], 0; @!%p3 bra WAIT;\n"
                 "mov.u32 %r12, 7; mad.lo.u32 %r13, %r3, 4, %r10;\n"
                 "@%p4 ld.shared.u32 %r12, [%r13];\n" SYNC "st.global.u32 [%rd2], %r12;\n"),
        4, 16, out);
    for (uint32_t i = 0; i < 64; i++) {
        cr_assert_eq(out[i], i / 16 == 2 ? 7 : 3 * (i % 16), "%u: %u", i, out[i]);
    }
}

static void fails(const char *ptx, CUresult expected, const char *words) {
    uint32_t out[256] = {0};
    CUresult result = test_run(ptx, 4, 32, out, sizeof out);
    const char *told = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, told);
    cr_assert(strstr(told, words) != NULL, "%s", told);
    test_soft_close();
    test_soft_open();
    test_capture(stderr);
}

#define BUFFER ".shared .align 16 .b8 s[64]; .shared .align 8 .b64 m;"

Test(cluster_memory, what_is_not_there_is_told_of) {
    fails(CLUSTERS("2, 1, 1", BUFFER, "mapa.shared::cluster.u32 %r23, s, 2;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, "block 2 of a cluster of 2");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   SYNC NEXT "mapa.shared::cluster.u32 %r23, s, %r22;\n"
                             "ld.shared::cluster.u32 %r24, [%r23+72];\n" SYNC),
          CUDA_ERROR_ILLEGAL_ADDRESS,
          "a load of 4 bytes at offset 0x48 is outside the 64 bytes of shared memory of block 0 of "
          "the cluster");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   SYNC NEXT "mapa.shared::cluster.u32 %r23, s, %r22;\n"
                             "st.shared.u32 [%r23], %r22;\n" SYNC),
          CUDA_ERROR_ILLEGAL_ADDRESS, ".shared::cluster is for that");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   SYNC NEXT "setp.eq.u32 %p2, %r20, 1; @%p2 exit;\n"
                             "mapa.shared::cluster.u32 %r23, s, %r22; nanosleep.u32 10;\n"
                             "LOOP: st.shared::cluster.u32 [%r23], %r22; bra LOOP;\n"),
          CUDA_ERROR_LAUNCH_FAILED, "block 1 of the cluster, which has exited");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   "mbarrier.init.shared.b64 [m], 1;\n" SYNC NEXT
                   "cvta.shared.u64 %rd5, m; mapa.u64 %rd6, %rd5, %r22;\n"
                   "mbarrier.test_wait.parity.b64 %p2, [%rd6], 0;\n" SYNC),
          CUDA_ERROR_ILLEGAL_ADDRESS, "a thread can wait only at one of its own block");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   SYNC NEXT "mapa.shared::cluster.u32 %r24, m, %r22;\n"
                             "mbarrier.arrive.shared::cluster.b64 _, [%r24];\n" SYNC),
          CUDA_ERROR_ILLEGAL_INSTRUCTION,
          "the mbarrier at offset 0x0 of block 0 of the cluster was never initialised");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   "mbarrier.init.shared.b64 [m], 1;\n" SYNC NEXT
                   "mapa.shared::cluster.u32 %r23, s, %r22; mov.u32 %r24, m;\n"
                   "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r23], %r1, "
                   "[%r24];\n" SYNC),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, "and an mbarrier of another");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   "setp.eq.u32 %p2, %r20, 1; @%p2 bra END; barrier.cluster.arrive;\n"
                   "barrier.cluster.wait;\nEND: bar.sync 0;\n"
                   "LOOP: nanosleep.u32 10; @%p2 bra LOOP;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, "instructions");
    fails(CLUSTERS("2, 1, 1", BUFFER,
                   "setp.eq.u32 %p2, %r20, 1; @!%p2 bra MEET; mbarrier.init.shared.b64 [m], 1;\n"
                   "LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0; @!%p3 bra LOOP;\n"
                   "MEET: barrier.cluster.arrive; barrier.cluster.wait;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock: lanes 0xffffffff of warp 0 wait at");
}

/* With threads that exit the others' barrier opens, in whichever block they are. */
Test(cluster_memory, its_barrier_counts_the_threads_of_all_blocks) {
    uint32_t out[4 * 64] = {0};
    RUN(CLUSTERS("4, 1, 1", BUFFER,
                 "setp.eq.u32 %p1, %r20, 3; @%p1 exit; setp.gt.u32 %p1, %r3, 40; @%p1 exit;\n"
                 "mov.u32 %r10, 0; LOOP: barrier.cluster.arrive; add.u32 %r10, %r10, 1;\n"
                 "barrier.cluster.wait; setp.lt.u32 %p2, %r10, 9; @%p2 bra LOOP;\n"
                 "st.global.u32 [%rd2], %r10;\n"),
        4, 64, out);
    for (uint32_t i = 0; i < 256; i++) {
        cr_assert_eq(out[i], i / 64 < 3 && i % 64 <= 40 ? 9 : 0, "%u: %u", i, out[i]);
    }
}
