/*
 * Boxes for other blocks of a cluster: multicast copies, and addresses of other blocks.
 */
#include "test/test_tensor.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(tensor_cluster, .init = begin, .fini = test_soft_close);

/* Four blocks of a cluster, of which the second one begins the copy, wait where the mask says so,
 * and write out what came. */
struct cluster {
    CUtensorMap map;
    uint32_t words[4][TEST_BOX_WORDS];
};

#define IN_CLUSTER(mask, copy)                                                                     \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                             \
    ".shared .align 1024 .b8 s[2048]; .shared .align 8 .b64 m;\n"                                  \
    ".visible .entry k(.param .u64 out)\n.reqnctapercluster 4\n{\n"                                \
    ".reg .b16 %h<10>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .pred %p<20>;\n"                  \
    "ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mov.u32 %r20, %cluster_ctarank;\n"             \
    "mov.u32 %r10, m; mov.u32 %r11, s; mov.u32 %r4, 0; setp.eq.u32 %p1, %r3, 0;\n"                 \
    "@%p1 mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster;\n"                 \
    "mov.u32 %r5, %r3; ZERO: mad.lo.u32 %r6, %r5, 4, %r11; st.shared.u32 [%r6], 0;\n"              \
    "add.u32 %r5, %r5, 64; setp.lt.u32 %p3, %r5, 512; @%p3 bra ZERO; fence.proxy.async;\n"         \
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"                              \
    "mov.u32 %r5, " mask "; shr.u32 %r5, %r5, %r20; and.b32 %r5, %r5, 1;\n"                        \
    "setp.ne.u32 %p2, %r5, 0; and.pred %p3, %p1, %p2;\n"                                           \
    "@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [m], 2048;\n"                                    \
    "setp.eq.u32 %p4, %r20, 1; and.pred %p4, %p4, %p1; @!%p4 bra COPIED;\n" copy                   \
    "COPIED: @!%p2 bra OUT;\n"                                                                     \
    "LOOP: mbarrier.try_wait.parity.shared.b64 %p5, [m], 0; @!%p5 bra LOOP;\n"                     \
    "OUT: mad.wide.u32 %rd2, %r20, 2048, %rd1; mov.u32 %r5, %r3;\n"                                \
    "BACK: mad.lo.u32 %r6, %r5, 4, %r11; ld.shared.u32 %r7, [%r6];\n"                              \
    "mad.wide.u32 %rd3, %r5, 4, %rd2; st.global.u32 [%rd3+128], %r7;\n"                            \
    "add.u32 %r5, %r5, 64; setp.lt.u32 %p3, %r5, 512; @%p3 bra BACK;\n"                            \
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;\n}\n"

#define TO(space)                                                                                  \
    "cp.async.bulk.tensor.2d.shared::" space ".global.tile.mbarrier::complete_tx::bytes"
#define PLACE " [%rd1, {%r4, %r4}], "

static CUresult run_cluster(const char *text, struct cluster *data) {
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    CUdeviceptr tensor = test_tensor_of(host);
    memset(data, 0, sizeof *data);
    cr_assert_eq(test_encode_box(&data->map, tensor, TEST_BOX_COLUMNS, 3, 0), CUDA_SUCCESS);
    return test_run(text, 4, 64, data, sizeof *data);
}

Test(tensor_cluster, a_box_comes_to_other_blocks_of_the_cluster) {
    static const struct {
        const char *text;
        unsigned blocks;
    } cases[] = {
        {IN_CLUSTER("11", "mov.u16 %h1, 11; " TO("cluster") ".multicast::cluster [s]," PLACE
                                                            "[m], %h1;\n"),
         11},
        {IN_CLUSTER("5", "mov.u64 %rd5, 0; mov.u16 %h1, 5; " TO(
                             "cluster") ".multicast::cluster.L2::cache_hint [%r11]," PLACE
                                        "[%r10], %h1, %rd5;\n"),
         5},
        {IN_CLUSTER("8", "mapa.shared::cluster.u32 %r12, %r11, 3;\n"
                         "mapa.shared::cluster.u32 %r13, %r10, 3;\n" TO("cluster") " [%r12]," PLACE
                                                                                   "[%r13];\n"),
         8},
        {IN_CLUSTER("2", TO("cta") " [%r11]," PLACE "[%r10];\n"), 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct cluster data;
        CUresult result = run_cluster(cases[i].text, &data);
        cr_assert_eq(result, CUDA_SUCCESS, "%zu: %d: %s", i, (int)result, test_log());
        for (unsigned b = 0; b < 4; b++) {
            static struct test_box one;
            memcpy(one.words, data.words[b], sizeof one.words);
            if ((cases[i].blocks >> b & 1) != 0) {
                test_check_box(&one, 0, 0, 128, 0);
                continue;
            }
            for (int w = 0; w < TEST_BOX_WORDS; w++)
                cr_assert_eq(one.words[w], 0, "%zu: %u: %d", i, b, w);
        }
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(tensor_cluster, what_a_cluster_has_not_is_refused) {
    static const struct {
        const char *text, *said;
        CUresult result;
    } cases[] = {
        {IN_CLUSTER("0", "mov.u16 %h1, 17; " TO("cluster") ".multicast::cluster [s]," PLACE
                                                           "[m], %h1;\n"),
         "a multicast copy to the blocks 0x11 of a cluster of 4", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {IN_CLUSTER("0", "mov.u16 %h1, 0; " TO("cluster") ".multicast::cluster [s]," PLACE
                                                          "[m], %h1;\n"),
         "a multicast copy to the blocks 0x0 of a cluster of 4", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {IN_CLUSTER("0", "mapa.shared::cluster.u32 %r12, %r11, 3;\n" TO("cluster") " [%r12]," PLACE
                                                                                   "[%r10];\n"),
         "a copy into one block's shared memory and an mbarrier of another",
         CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {IN_CLUSTER("0", "mapa.shared::cluster.u32 %r12, %r11, 3;\n"
                         "mapa.shared::cluster.u32 %r13, %r10, 3;\n" TO("cta") " [%r12]," PLACE
                                                                               "[%r13];\n"),
         "of the shared memory of block 3 of the cluster; .shared::cluster is for that",
         CUDA_ERROR_ILLEGAL_ADDRESS},
        {IN_CLUSTER("0", "mapa.shared::cluster.u32 %r12, %r11, 3; add.u32 %r12, %r12, 128;\n"
                         "mapa.shared::cluster.u32 %r13, %r10, 3;\n" TO("cluster") " [%r12]," PLACE
                                                                                   "[%r13];\n"),
         "bytes of shared memory of block 3 of the cluster", CUDA_ERROR_ILLEGAL_ADDRESS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct cluster data;
        cr_assert_eq(run_cluster(cases[i].text, &data), cases[i].result, "%zu: %s", i, test_log());
        cr_assert(strstr(test_log(), cases[i].said) != NULL, "%zu: %s", i, test_log());
        test_soft_close();
        test_soft_open();
    }
}
