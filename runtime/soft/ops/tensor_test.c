/*
 * Instructions of a whole warp on matrices: what they check, and what is refused. What they compute
 * is the instruction table's business.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_CHECK", "memory,init", 1);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(tensor, .init = begin, .fini = test_soft_close);

#define MMA_S8 "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r10, %r11}, {%r12}, {%r13}, "

/* Every lane of the warp gets the number of products of ones. */
#define MULTIPLY                                                                                   \
    "mov.u32 %r12, 0x01010101; mov.u32 %r13, 0x01010101; mov.u32 %r14, 100;\n" MMA_S8              \
    "{%r14, %r14};\nst.global.u32 [%rd2], %r10;\n"

static void says(const char *ptx, unsigned threads, CUresult expected, const char *words) {
    static uint32_t out[256];
    char part[200];
    CUresult result = test_run(ptx, 1, threads, out, sizeof out);
    const char *said = test_captured(stderr);
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, said);
    for (; *words != '\0'; words += strcspn(words, "|"), words += *words == '|') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(words, "|"), words);
        cr_assert(strstr(said, part) != NULL, "'%s' is not in: %s", part, said);
    }
    test_soft_close();
    test_soft_open();
}

Test(tensor, a_warp_multiplies) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL(MULTIPLY), 1, 64, out);
    for (int i = 0; i < 64; i++) cr_assert_eq(out[i], 116, "%d: %u", i, out[i]);
}

/* Half a warp stays in a loop for so long that the other half continues alone. At the product they
 * wait for each other. */
Test(tensor, lanes_that_come_one_after_another_are_waited_for) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r20, 0; setp.lt.u32 %p1, %r3, 16; @%p1 bra END;\n"
                         "LOOP: add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, 30000;\n"
                         "@%p2 bra LOOP;\nEND:\n" MULTIPLY),
             1, 32, out);
    for (int i = 0; i < 32; i++) cr_assert_eq(out[i], 116, "%d: %u", i, out[i]);
}

Test(tensor, a_guard_holds_for_all_lanes_or_none) {
    uint32_t out[64] = {0};
    TEST_RUN(TEST_KERNEL("mov.u32 %r10, 7; mov.u32 %r12, 0; mov.u32 %r13, 0;\n"
                         "setp.lt.u32 %p1, %r3, 32;\n"
                         "@%p1 " MMA_S8 "{%r3, %r3};\nst.global.u32 [%rd2], %r10;\n"),
             1, 64, out);
    for (unsigned i = 0; i < 64; i++) cr_assert_eq(out[i], i < 32 ? i : 7, "%u: %u", i, out[i]);
}

Test(tensor, a_warp_must_be_whole) {
    says(TEST_KERNEL(MULTIPLY), 16, CUDA_ERROR_ILLEGAL_INSTRUCTION,
         "lanes 0x0000ffff|without lanes 0xffff0000|mma.sync.aligned.m8n8k16");
    says(TEST_KERNEL("setp.eq.u32 %p1, %r3, 40; @%p1 exit;\n" MULTIPLY), 64,
         CUDA_ERROR_ILLEGAL_INSTRUCTION, "lanes 0xfffffeff|without lanes 0x00000100");
    says(TEST_KERNEL("setp.lt.u32 %p1, %r3, 16; mov.u32 %r12, 0;\n@%p1 " MMA_S8 "{%r12, %r12};\n"),
         32, CUDA_ERROR_ILLEGAL_INSTRUCTION, "lanes 0x0000ffff|without lanes 0xffff0000");
    /* At two places in the code lanes wait in vain. */
    says(TEST_KERNEL(
             "mov.u32 %r12, 0; mov.u32 %r13, 0; setp.lt.u32 %p1, %r3, 16;\n@%p1 bra OTHER;\n" MMA_S8
             "{%r12, %r12};\nbra END;\nOTHER: " MMA_S8 "{%r12, %r12};\nEND:\n"),
         32, CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock|wait at a .sync operation");
}

#define SHARED ".shared .align 16 .b8 s[512];"
#define ROW_OF_LANE "mov.u32 %r5, s; shl.b32 %r6, %r3, 4; add.u32 %r5, %r5, %r6;\n"
#define WRITTEN ROW_OF_LANE "st.shared.v4.u32 [%r5], {%r3, %r3, %r3, %r3};\nbar.sync 0;\n"
#define LDMATRIX "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, "

/* Row i of the 32 holds i in every word: each thread has a word of rows t/4, 8 + t/4 and so on. */
Test(tensor, ldmatrix_reads_the_rows_that_lanes_name) {
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL_WITH(SHARED, WRITTEN LDMATRIX "[%r5];\n"
                                                       "add.u32 %r10, %r10, %r13;\n"
                                                       "st.global.u32 [%rd2], %r10;\n"),
             1, 32, out);
    for (unsigned i = 0; i < 32; i++) cr_assert_eq(out[i], i / 4 + i / 4 + 24, "%u", i);
    cr_assert_str_eq(test_captured(stderr), "");
}

Test(tensor, rows_are_checked_lane_by_lane) {
    says(TEST_KERNEL_WITH(SHARED, WRITTEN LDMATRIX "[%r5+16];\n"), 32, CUDA_ERROR_ILLEGAL_ADDRESS,
         "thread (31,0,0)|a load of 16 bytes at offset 0x200 is outside the 512 bytes of shared");
    says(TEST_KERNEL_WITH(SHARED, WRITTEN LDMATRIX "[%r5+-8];\n"), 32,
         CUDA_ERROR_MISALIGNED_ADDRESS, "a load of 16 bytes|not a multiple of 16");
    says(TEST_KERNEL_WITH(SHARED, ROW_OF_LANE LDMATRIX "[%r5];\n"), 32, CUDA_SUCCESS,
         "uninitialised read|thread (0,0,0)|a load of 16 bytes");
    says(TEST_KERNEL("ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd1];\n"), 32,
         CUDA_ERROR_ILLEGAL_ADDRESS, "not in shared memory");
    says(TEST_KERNEL_WITH(SHARED, ROW_OF_LANE "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5+272], "
                                              "{%r3, %r3};\n"),
         32, CUDA_ERROR_ILLEGAL_ADDRESS, "thread (15,0,0)|a store of 16 bytes");
    /* Lanes beyond the matrices have no say. */
    says(TEST_KERNEL_WITH(SHARED, WRITTEN "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, "
                                          "[%r5+384];\n"),
         32, CUDA_SUCCESS, "");
}

#define WMMA_LOAD "wmma.load.c.sync.aligned.row.m16n16k16.global.s32 "
#define EIGHT "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}"

/* The buffer has 1024 bytes, and so has a matrix. */
Test(tensor, wmma_checks_each_piece) {
    says(TEST_KERNEL(WMMA_LOAD EIGHT ", [%rd1];\n"), 32, CUDA_SUCCESS, "");
    says(TEST_KERNEL(WMMA_LOAD EIGHT ", [%rd1+8];\n"), 32, CUDA_ERROR_ILLEGAL_ADDRESS,
         "a load of 4 bytes|allocation 2 of 1024 bytes");
    says(TEST_KERNEL(WMMA_LOAD EIGHT ", [%rd1], 20;\n"), 32, CUDA_ERROR_ILLEGAL_ADDRESS,
         "allocation 2 of 1024 bytes");
    says(TEST_KERNEL(WMMA_LOAD EIGHT ", [%rd1+2];\n"), 32, CUDA_ERROR_MISALIGNED_ADDRESS,
         "not a multiple of 4");
    says(TEST_KERNEL(WMMA_LOAD EIGHT ", [%rd2];\n"), 32, CUDA_ERROR_ILLEGAL_INSTRUCTION,
         "differ from those of lane 0");
    says(TEST_KERNEL("wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%rd1+4], " EIGHT ";\n"),
         32, CUDA_ERROR_ILLEGAL_ADDRESS, "a store of 4 bytes");
    says(TEST_KERNEL_WITH(SHARED "\n.shared .align 32 .b8 t[1024];",
                          "mov.u32 %r5, t;\n"
                          "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " EIGHT ", [%r5];\n"),
         32, CUDA_SUCCESS, "uninitialised read|a load of 4 bytes");
}

/* Each is refused by its name and at its line, and not taken for something else. */
Test(tensor, what_is_not_modelled_is_refused) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"tcgen05.wait::ld.sync.aligned;", "ptx:9:1: error|'tcgen05.wait::ld.sync.aligned'"},
        {"mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r1, %r2}, "
         "{%r1, %r2}, %r1, 0;",
         "ptx:9:4: error|mma.sp.sync.aligned.m16n8k16|'.sp'"},
        {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1}, {%r1, %r2}, {%r1}, {%r1, %r2};",
         "ptx:9:50: error|2 registers in braces"},
        {"mma.sync.aligned.m16n8k8.col.row.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r1}, "
         "{%r1, %r2};",
         "ptx:9:25: error|'.col' is not valid here"},
        {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%f1, %f2}, {%r1}, {%r1}, {%r1, %r2};",
         "ptx:9:49: error|a register of type .f32"},
        {"wmma.load.a.sync.aligned.row.m8n8k32.global.s8 {%r1}, [%rd1];",
         "ptx:9:44: error|'.s8' is not valid here"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];", "2 registers in braces"},
        {"ldmatrix.sync.aligned.m8n16.x2.shared.b8 {%r1, %r2}, [%r2];", "'.m8n16'"},
        {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], %r2;", "ptx:9:1: error"},
        {"cp.async.bulk.tensor.1d.im2col.shared::cluster.global.mbarrier::complete_tx::bytes "
         "[%r1], [%rd1, {%r1}], [%r2];",
         "ptx:9:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2000], log[2000], part[200];
        snprintf(text, sizeof text, "%s%s\nret;\n}\n",
                 ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 "
                 "out)\n{\n.reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .f32 %f<20>;\n\n\n",
                 cases[i].text);
        cr_assert_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX, "%s", text);
        for (const char *words = cases[i].words; *words != '\0';) {
            size_t length = strcspn(words, "|");
            snprintf(part, sizeof part, "%.*s", (int)length, words);
            cr_assert(strstr(log, part) != NULL, "'%s' is not in: %s", part, log);
            words += length + (words[length] == '|');
        }
    }
}
