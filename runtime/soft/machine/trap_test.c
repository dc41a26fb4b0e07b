/*
 * Faults: each gives the right code, is sticky in its context, and is reported exactly: the kernel,
 * the instruction, its line, the block and thread, the address and the nearest allocation.
 */
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char report_path[] = "/tmp/tollens_trap_XXXXXX";

/* Reports go to a file besides stderr; both are looked at. */
static void begin(void) {
    int file = mkstemp(report_path);
    cr_assert(file >= 0);
    close(file);
    setenv("TOLLENS_SOFT_REPORT", report_path, 1);
    setenv("TOLLENS_SOFT_BUDGET", "1000000", 1);
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    test_capture(stderr);
    test_soft_open();
}

static void end(void) {
    test_soft_close();
    unlink(report_path);
}

TestSuite(trap, .init = begin, .fini = end);

static const char *reported(void) {
    static char text[1 << 16];
    FILE *file = fopen(report_path, "r");
    cr_assert(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void forget_reports(void) {
    cr_assert_eq(truncate(report_path, 0), 0);
}

/* The context is lost: every call in it returns the error. A new context works. */
static void check_sticky(CUresult expected) {
    CUdeviceptr more = 0;
    CUstream stream = NULL;
    CUmodule module = NULL;
    cr_assert_eq(cuCtxSynchronize(), expected);
    cr_assert_eq(cuMemAlloc_v2(&more, 4), expected);
    cr_assert_eq(cuStreamCreate(&stream, 0), expected);
    cr_assert_eq(cuStreamQuery(NULL), expected);
    cr_assert_eq(cuModuleLoadData(&module, TEST_KERNEL("")), expected);
    test_soft_close();
    test_soft_open();
    uint32_t out[32] = {0};
    TEST_RUN(TEST_KERNEL("st.global.u32 [%rd2], 3;\n"), 1, 32, out);
    cr_assert_eq(out[31], 3);
}

/* Runs a body that must fail, on one block of 64 threads with 64 words, and checks what is said.
 * words: parts of the report, separated by '|'. line: of the body, from 0. */
static void fails(const char *ptx, CUresult expected, unsigned line, const char *instruction,
                  const char *thread, const char *words) {
    uint32_t out[64] = {0};
    char part[400];
    CUresult result = test_run(ptx, 1, 64, out, sizeof out);
    const char *json = reported();
    cr_assert_eq(result, expected, "%d, not %d: %s", (int)result, (int)expected, json);
    snprintf(part, sizeof part, "\"result\": %d, \"kernel\": \"k\"", (int)expected);
    cr_assert(strstr(json, part) != NULL, "%s lacks %s", json, part);
    snprintf(part, sizeof part,
             "\"ptx_line\": %u, \"instruction\": \"%s\", \"block\": [0, 0, 0], "
             "\"thread\": [%s, 0, 0]",
             TEST_BODY_LINE + line, instruction, thread);
    cr_assert(strstr(json, part) != NULL, "%s lacks %s", json, part);
    snprintf(part, sizeof part, " in kernel k in block (0,0,0), thread (%s,0,0)", thread);
    cr_assert(strstr(test_captured(stderr), part) != NULL, "%s", test_captured(stderr));
    cr_assert(strstr(test_log(), part) != NULL, "%s", test_log());
    for (const char *begin_of = words; *begin_of != '\0';) {
        size_t length = strcspn(begin_of, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, begin_of);
        cr_assert(strstr(json, part) != NULL, "%s lacks %s", json, part);
        begin_of += length + (begin_of[length] == '|');
    }
    check_sticky(expected);
    forget_reports();
}

Test(trap, global_memory_out_of_bounds) {
    fails(TEST_KERNEL("ld.global.u32 %r5, [%rd1+256];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "ld.global.u32 %r5, [%rd1+256]", "0",
          "\"kind\": \"illegal address\"|a load of 4 bytes at 0x|256 bytes|\"lanes\": 1");
    fails(TEST_KERNEL("add.u32 %r5, %r1, 1;\nst.global.u32 [%rd2+4], %r5;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "st.global.u32 [%rd2+4], %r5", "63", "a store of 4 bytes");
    fails(TEST_KERNEL("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1+256];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 0, "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1+256]", "0",
          "a load of 16 bytes");
    fails(TEST_KERNEL("ld.global.u8 %r5, [%rd1+-1];\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "ld.global.u8 %r5, [%rd1+-1]", "0", "a load of 1 bytes|1 byte");
    fails(TEST_KERNEL("mov.u64 %rd5, 0; st.u64 [%rd5], %rd1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "st.u64 [%rd5], %rd1", "0", "\"address\": 0,");
    fails(TEST_KERNEL("atom.global.add.u32 %r5, [%rd2+128], 1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "atom.global.add.u32 %r5, [%rd2+128], 1", "32", "0x");
    fails(TEST_KERNEL("red.global.add.u64 [%rd1+256], 1;\n"), CUDA_ERROR_ILLEGAL_ADDRESS, 0,
          "red.global.add.u64 [%rd1+256], 1", "0", "8 bytes");
}

/* Freed memory is reported as freed, with its size. */
Test(trap, global_memory_after_its_end) {
    CUdeviceptr freed = 0;
    char ptx[2000];
    uint32_t out[1] = {0};
    cr_assert_eq(cuMemAlloc_v2(&freed, 1000), CUDA_SUCCESS);
    cr_assert_eq(cuMemFree_v2(freed), CUDA_SUCCESS);
    strcpy(ptx, TEST_KERNEL("mov.u64 %rd5, ADDRESS____________; ld.global.u32 %r5, [%rd5+8];\n"));
    char *place = strstr(ptx, "ADDRESS");
    int length = sprintf(place, "%llu", (unsigned long long)freed);
    place[length] = ';';
    memset(place + length + 1, ' ', strlen("ADDRESS____________;") - (size_t)length - 1);
    cr_assert_eq(test_run(ptx, 1, 1, out, sizeof out), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(reported(), "freed") != NULL, "%s", reported());
    cr_assert(strstr(reported(), "1000 bytes") != NULL, "%s", reported());
    check_sticky(CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(trap, shared_memory_out_of_bounds) {
    fails(TEST_KERNEL_WITH(".shared .align 4 .b8 s[128];",
                           "mov.u32 %r5, s; mad.lo.u32 %r5, %r3, 4, %r5;\n"
                           "st.shared.u32 [%r5], %r3;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "st.shared.u32 [%r5], %r3", "32",
          "offset 0x80 is outside the 128 bytes of shared memory|\"address\": 128,");
    fails(TEST_KERNEL_WITH(".shared .u32 s;", "ld.shared.u32 %r5, [s+-4];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 0, "ld.shared.u32 %r5, [s+-4]", "0", "4 bytes of shared");
    fails(TEST_KERNEL_WITH(".shared .u32 s;", "mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;\n"
                                              "st.u32 [%rd5+4], %r3;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "st.u32 [%rd5+4], %r3", "0", "shared memory");
    fails(TEST_KERNEL_WITH(".extern .shared .align 4 .b8 dynamic[];",
                           "ld.shared.u32 %r5, [dynamic];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 0, "ld.shared.u32 %r5, [dynamic]", "0", "0 bytes of shared");
}

/* What says .global must mean it. */
Test(trap, addresses_of_another_space) {
    fails(TEST_KERNEL_WITH(".shared .align 8 .b8 s[64];",
                           "mov.u64 %rd5, s; cvta.shared.u64 %rd5, %rd5;\n"
                           "st.global.u32 [%rd5+8], %r3;\n"),
          CUDA_ERROR_INVALID_ADDRESS_SPACE, 1, "st.global.u32 [%rd5+8], %r3", "0",
          "\"kind\": \"wrong address space\"|offset 0x8 of shared memory");
    fails(TEST_KERNEL(".local .align 8 .b8 l[24];\nmov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5;\n"
                      "ld.global.u64 %rd6, [%rd5];\n"),
          CUDA_ERROR_INVALID_ADDRESS_SPACE, 2, "ld.global.u64 %rd6, [%rd5]", "0",
          "offset 0x0 of local memory");
}

Test(trap, local_memory_out_of_bounds) {
    fails(TEST_KERNEL(".local .align 8 .b8 l[24];\nadd.u32 %r5, %r3, 0; mul.lo.u32 %r5, %r5, 4;\n"
                      "mov.u32 %r6, l; add.u32 %r6, %r6, %r5;\nst.local.u32 [%r6], %r5;\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 3, "st.local.u32 [%r6], %r5", "8", "local memory");
    fails(TEST_KERNEL(".local .align 8 .b8 l[24];\nmov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5;\n"
                      "ld.u64 %rd6, [%rd5+32];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 2, "ld.u64 %rd6, [%rd5+32]", "0", "local memory");
}

Test(trap, constants_and_parameters_out_of_bounds) {
    fails(TEST_KERNEL_WITH(".const .u32 table[4] = {1, 2, 3, 4};",
                           "mov.u64 %rd5, table; add.u64 %rd5, %rd5, 16;\n"
                           "ld.const.u32 %r5, [%rd5];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "ld.const.u32 %r5, [%rd5]", "0",
          "variable table of 16 bytes");
    fails(TEST_KERNEL("mov.u64 %rd5, out;\nld.param.u32 %r5, [%rd5+8];\n"),
          CUDA_ERROR_ILLEGAL_ADDRESS, 1, "ld.param.u32 %r5, [%rd5+8]", "0",
          "8 bytes of parameter memory");
}

/* Goal: a finding in an inlined function names the program's own line too. */
Test(trap, an_inlined_line_names_its_calls) {
    uint32_t out[64] = {0};
    const char *ptx = TEST_KERNEL(".file 1 \"/a/program.cu\"\n.file 2 \"/b/header.h\"\n"
                                  ".loc 1 30 1\n.loc 1 20 3\n"
                                  ".loc 2 8 5, function_name $L__info_string0, inlined_at 1 20 3\n"
                                  "add.u32 %r5, %r1, 1;\n"
                                  ".loc 2 4 7, function_name $L__info_string0+9, inlined_at 2 8 5\n"
                                  "setp.eq.u32 %p1, %r3, 40;\n@%p1 trap;\n");
    cr_assert_eq(test_run(ptx, 1, 64, out, sizeof out), CUDA_ERROR_LAUNCH_FAILED);
    cr_assert(strstr(reported(), "\"source\": \"/b/header.h:4\", \"inlined_at\": "
                                 "\"/b/header.h:8, /a/program.cu:20\"") != NULL,
              "%s", reported());
    cr_assert(strstr(test_captured(stderr),
                     ", /b/header.h:4, inlined at /b/header.h:8, /a/program.cu:20 in block") !=
              NULL);
}

/* Kernels may only read .const variables. An H200 carries such a store out without an error, so the
 * launch goes on here too. */
#define WITH_CONSTANT(store)                                                                       \
    TEST_KERNEL_WITH(".const .u32 table[4] = {1, 2, 3, 4};",                                       \
                     "mov.u64 %rd5, table; cvta.const.u64 %rd5, %rd5;\n" store "\n")

Test(trap, stores_to_constant_memory_are_findings) {
    static const char *const kernels[] = {WITH_CONSTANT("st.u32 [%rd5+4], %r3;"),
                                          WITH_CONSTANT("red.add.u32 [%rd5+4], %r3;"),
                                          WITH_CONSTANT("st.global.u32 [%rd5+4], %r3;")};
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        uint32_t out[1] = {0};
        char part[100];
        forget_reports();
        TEST_RUN(kernels[i], 1, 1, out);
        cr_assert(strstr(reported(), "store to constant memory") != NULL, "%s", kernels[i]);
        snprintf(part, sizeof part, "\"ptx_line\": %d, ", TEST_BODY_LINE + 1);
        cr_assert(strstr(reported(), part) != NULL, "%s", reported());
        cr_assert(strstr(reported(), "4 bytes into the constant variable table") != NULL, "%s",
                  reported());
    }
}

Test(trap, copies_to_constant_memory_are_none) {
    uint32_t out[1] = {0}, value = 9;
    CUmodule module = NULL;
    CUdeviceptr table = 0;
    cr_assert_eq(cuModuleLoadData(&module, TEST_KERNEL_WITH(".const .u32 table[4];", "")),
                 CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetGlobal_v2(&table, NULL, module, "table"), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(table, &value, 4), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyDtoH_v2(out, table, 4), CUDA_SUCCESS);
    cr_assert_eq(out[0], 9);
    cr_assert_str_eq(reported(), "");
}

Test(trap, misaligned_addresses) {
    fails(TEST_KERNEL("ld.global.u32 %r5, [%rd1+2];\n"), CUDA_ERROR_MISALIGNED_ADDRESS, 0,
          "ld.global.u32 %r5, [%rd1+2]", "0",
          "\"kind\": \"misaligned address\"|not a multiple of 4");
    fails(TEST_KERNEL("st.global.v4.u32 [%rd1+8], {%r1, %r1, %r1, %r1};\n"),
          CUDA_ERROR_MISALIGNED_ADDRESS, 0, "st.global.v4.u32 [%rd1+8], {%r1, %r1, %r1, %r1}", "0",
          "not a multiple of 16");
    fails(TEST_KERNEL_WITH(".shared .align 8 .b8 s[64];",
                           "mov.u32 %r5, s; add.u32 %r5, %r5, %r3;\nst.shared.u16 [%r5], %r1;\n"),
          CUDA_ERROR_MISALIGNED_ADDRESS, 1, "st.shared.u16 [%r5], %r1", "1", "not a multiple of 2");
    fails(TEST_KERNEL("atom.global.cas.b64 %rd5, [%rd1+4], 0, 1;\n"), CUDA_ERROR_MISALIGNED_ADDRESS,
          0, "atom.global.cas.b64 %rd5, [%rd1+4], 0, 1", "0", "8");
}

Test(trap, trap_instructions) {
    fails(TEST_KERNEL("setp.eq.u32 %p1, %r3, 40;\n@%p1 trap;\n"), CUDA_ERROR_LAUNCH_FAILED, 1,
          "trap", "40", "\"kind\": \"launch failure\"|trap was executed|\"lanes\": 1");
    fails(TEST_KERNEL("trap;\n"), CUDA_ERROR_LAUNCH_FAILED, 0, "trap", "0", "\"lanes\": 32");
    fails(TEST_KERNEL("setp.eq.u32 %p1, %r3, 40;\n@%p1 brkpt;\n"), CUDA_ERROR_LAUNCH_FAILED, 1,
          "brkpt", "40", "brkpt was executed without a debugger|\"lanes\": 1");
}

Test(trap, member_masks_without_the_lane_itself) {
    fails(TEST_KERNEL("shfl.sync.idx.b32 %r5, %r1, 0, 31, 0xffff;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "shfl.sync.idx.b32 %r5, %r1, 0, 31, 0xffff", "16",
          "\"kind\": \"illegal instruction\"|member mask 0x0000ffff|lanes 0xffff0000|"
          "\"lanes\": 16");
    fails(TEST_KERNEL("bar.warp.sync 0;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 0, "bar.warp.sync 0",
          "0", "0x00000000");
    fails(TEST_KERNEL("vote.sync.any.pred %p1, %p1, 1;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 0,
          "vote.sync.any.pred %p1, %p1, 1", "1", "0x00000001");
}

Test(trap, barriers_that_make_no_sense) {
    fails(TEST_KERNEL("mov.u32 %r5, 16; add.u32 %r5, %r5, 0;\nbar.sync %r5;\n"),
          CUDA_ERROR_ILLEGAL_INSTRUCTION, 1, "bar.sync %r5", "0", "barrier 16");
    fails(TEST_KERNEL("mov.u32 %r5, 33;\nbar.sync 0, %r5;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 1,
          "bar.sync 0, %r5", "0", "33 threads");
    fails(TEST_KERNEL("and.b32 %r5, %r3, 1;\nbar.sync %r5;\n"), CUDA_ERROR_ILLEGAL_INSTRUCTION, 1,
          "bar.sync %r5", "0", "different barriers");
}

Test(trap, deadlocks) {
    /* One warp waits for two, the other has gone. */
    fails(TEST_KERNEL("setp.ge.u32 %p1, %r3, 32; @%p1 exit;\nbar.sync 1, 64;\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 1, "bar.sync 1, 64", "0",
          "\"kind\": \"no end\"|deadlock|warp 0 wait at a barrier|1 of 2 warps have exited");
    /* The lanes of a warp wait at two barriers. */
    fails(TEST_KERNEL("setp.eq.u32 %p1, %r3, 5; @%p1 bra OTHER;\nbarrier.sync 1, 64; bra END;\n"
                      "OTHER: barrier.sync 2, 64;\nEND:\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 1, "barrier.sync 1, 64", "0", "deadlock|lanes 0xffffffdf");
    /* Lanes wait for each other at operations that do not belong together. */
    fails(TEST_KERNEL("setp.eq.u32 %p1, %r3, 5; @%p1 bra OTHER;\nbar.warp.sync -1; bra END;\n"
                      "OTHER: vote.sync.any.pred %p2, %p1, -1;\nEND:\n"),
          CUDA_ERROR_LAUNCH_TIMEOUT, 1, "bar.warp.sync -1", "0", "deadlock|a .sync operation");
    /* A barrier for more threads than there are. */
    fails(TEST_KERNEL("bar.sync 0, 96;\n"), CUDA_ERROR_LAUNCH_TIMEOUT, 0, "bar.sync 0, 96", "0",
          "deadlock");
}

/* The budget ends a kernel that never ends. Any of its threads may be reported. */
Test(trap, endless_loops) {
    static const char *const texts[] = {
        TEST_KERNEL("LOOP: add.u32 %r5, %r5, 1; bra LOOP;\n"),
        TEST_KERNEL("LOOP: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0;\n"
                    "@%p1 bra LOOP;\n"),
        TEST_KERNEL("LOOP: nanosleep.u32 10; bra LOOP;\n"),
        TEST_KERNEL("setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;\nLOOP: bra LOOP;\n"
                    "WAIT: bar.sync 0;\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint32_t out[64] = {0};
        CUresult result = test_run(texts[i], 2, 64, out, sizeof out);
        cr_assert_eq(result, CUDA_ERROR_LAUNCH_TIMEOUT, "%zu: %d", i, (int)result);
        cr_assert(strstr(reported(), "budget") != NULL, "%s", reported());
        cr_assert(strstr(reported(), "\"kernel\": \"k\"") != NULL, "%s", reported());
        cr_assert(strstr(reported(), "\"ptx_line\": 9") != NULL ||
                      strstr(reported(), "\"ptx_line\": 10") != NULL,
                  "%s", reported());
        check_sticky(CUDA_ERROR_LAUNCH_TIMEOUT);
        forget_reports();
    }
}

/* The first failure counts; others of the same launch are its consequences. */
Test(trap, one_report_for_one_launch) {
    uint32_t out[64] = {0};
    cr_assert_eq(
        test_run(TEST_KERNEL("st.global.u32 [%rd1+4096], %r1;\n"), 100, 64, out, sizeof out),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    const char *first = strchr(reported(), '\n');
    cr_assert(first != NULL && first[1] == '\0', "%s", reported());
}

/* Structures are copied with their padding, in pieces as large as may be: no mistake of theirs. */
Test(trap, a_read_of_some_written_bytes_is_none) {
    uint32_t out[64] = {0};
    TEST_RUN(
        TEST_KERNEL_WITH(".shared .align 16 .b8 s[16];",
                         ".local .align 8 .b8 l[8]; st.local.u8 [l], 1; ld.local.u64 %rd5, [l];\n"
                         "st.shared.u16 [s+6], 5; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [s];\n"
                         "ld.shared.u32 %r5, [s+4]; st.global.u32 [%rd2], %r6;\n"),
        1, 64, out);
    cr_assert_eq(out[0] >> 16, 5);
    cr_assert_str_eq(reported(), "");
}

/* An uninitialised read is reported once an instruction, and the launch continues. */
Test(trap, uninitialised_reads_are_findings) {
    uint32_t out[3 * 64] = {0};
    TEST_RUN(TEST_KERNEL_WITH(".shared .u32 s[64];",
                              "mov.u32 %r5, s; mad.lo.u32 %r5, %r3, 4, %r5;\n"
                              "setp.ne.u32 %p1, %r3, 7; @%p1 st.shared.u32 [%r5], %r3;\n"
                              "bar.sync 0; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd2], %r6;\n"),
             3, 64, out);
    const char *json = reported();
    cr_assert(strstr(json, "\"kind\": \"uninitialised read\", \"result\": 0") != NULL, "%s", json);
    cr_assert(strstr(json, "\"thread\": [7, 0, 0]") != NULL, "%s", json);
    cr_assert(strstr(json, "\"ptx_line\": 11") != NULL, "%s", json);
    cr_assert(strchr(json, '\n')[1] == '\0', "once: %s", json);
}

#define WRITTEN_IN_PART(stores)                                                                    \
    TEST_KERNEL_WITH(".shared .align 4 .b8 s[4];",                                                 \
                     stores " ld.shared.u32 %r5, [s];\nst.global.u32 [%rd2], %r5;\n")
#define WRITE_BYTE(at) "st.shared.u8 [s+" at "], 1;"

/* A word that a copy left short is a finding; one that may be padding is none. */
Test(trap, words_written_in_part_are_findings_if_most_of_them_is_there) {
    static const char *const kernels[] = {
        WRITTEN_IN_PART(WRITE_BYTE("0")), WRITTEN_IN_PART(WRITE_BYTE("0") WRITE_BYTE("1")),
        WRITTEN_IN_PART(WRITE_BYTE("0") WRITE_BYTE("1") WRITE_BYTE("2")),
        WRITTEN_IN_PART(WRITE_BYTE("0") WRITE_BYTE("1") WRITE_BYTE("2") WRITE_BYTE("3"))};
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        uint32_t out[1] = {0};
        forget_reports();
        TEST_RUN(kernels[i], 1, 1, out);
        const bool said = strstr(reported(), "uninitialised read") != NULL;
        cr_assert_eq(said, i == 2, "%u bytes written: %s", i + 1, reported());
        cr_assert(!said || strstr(reported(), "not all of which were ever written") != NULL);
    }
}

/* A report names the source line where the PTX tells it. */
Test(trap, the_source_line_is_named) {
    uint32_t out[64] = {0};
    CUresult result =
        test_run(TEST_KERNEL_WITH(".file 1 \"/home/me/a b.cu\"",
                                  ".loc 1 41 3\nadd.u32 %r5, %r1, 1;\n.loc 1 42 5\ntrap;\n"),
                 1, 64, out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_LAUNCH_FAILED);
    cr_assert(strstr(reported(), ".cu:42\"") != NULL, "%s", reported());
}

Test(trap, blocks_and_threads_have_three_dimensions) {
    CUmodule module = test_load(".version 8.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>;\n"
                                ".reg .pred %p<9>;\n"
                                "mov.u32 %r1, %ctaid.z; setp.ne.u32 %p1, %r1, 1; @%p1 exit;\n"
                                "mov.u32 %r1, %ctaid.y; setp.ne.u32 %p1, %r1, 2; @%p1 exit;\n"
                                "mov.u32 %r1, %tid.z; setp.ne.u32 %p1, %r1, 3; @%p1 exit;\n"
                                "mov.u32 %r1, %tid.y; setp.ne.u32 %p1, %r1, 2; @%p1 exit;\n"
                                "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 4; @%p1 exit;\n"
                                "trap;\nret;\n}\n");
    CUdeviceptr out = 0;
    void *parameters[] = {&out};
    cr_assert_eq(
        cuLaunchKernel(test_function(module, "k"), 1, 3, 2, 5, 3, 4, 0, NULL, parameters, NULL),
        CUDA_SUCCESS);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    cr_assert(strstr(reported(), "\"block\": [0, 2, 1], \"thread\": [4, 2, 3]") != NULL, "%s",
              reported());
}
