/*
 * Targets of sm_100 and later: what they add, where it is refused, and which texts a device takes.
 * The results of single precision are in newer.table; ptxas 13.0 accepts and refuses the same.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void single_open(void) {
    setenv("TOLLENS_SOFT_COMPUTE", "120", 1);
    test_soft_open();
}

TestSuite(single, .init = single_open, .fini = test_soft_close);

/* A kernel like TEST_KERNEL, of a version and a target; the body is line 7. */
#define SINGLE(version, target, body)                                                              \
    ".version " version "\n.target " target "\n.address_size 64\n.shared .align 64 .b8 s[128];\n"  \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<30>; .reg .u64 %u<4>; .reg .f32 %f<20>; "    \
    ".reg .f64 %g<20>; .reg .b128 %q<2>; .reg .pred %p<2>; ld.param.u64 %d0, [out];\n" body        \
    "\nret; }\n"

/* The rest of a vector is aligned to 32 bytes, and a register of the address may be loaded. */
Test(single, vectors_of_32_bytes_are_loaded_and_stored) {
    uint32_t out[4][8];
    for (uint32_t i = 0; i < 32; i++) out[i / 8][i % 8] = 0x01010101u * i;
    TEST_RUN(SINGLE("8.8", "sm_100",
                    "ld.global.nc.L1::no_allocate.v8.b32 {%r1, %r2, %r3, %r4, %r5, _, %r7, %r8}, "
                    "[%d0];\n"
                    "ld.relaxed.gpu.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d0+32];\n"
                    "mov.u64 %d9, %d0; ld.v4.b64 {%d9, %d10, %d11, %d12}, [%d9];\n"
                    "st.global.v8.u32 [%d0], {%r8, %r7, 6, %r5, %r4, %r3, %r2, %r1};\n"
                    "st.release.gpu.global.v4.b64 [%d0+64], {%d4, %d3, %d2, %d1};\n"
                    "st.v4.b64 [%d0+96], {%d12, %d11, %d10, %d9};\n"),
             1, 1, out);
    static const uint32_t right[4][8] = {{7, 6, 0, 4, 3, 2, 1, 0},
                                         {8, 9, 10, 11, 12, 13, 14, 15},
                                         {14, 15, 12, 13, 10, 11, 8, 9},
                                         {6, 7, 4, 5, 2, 3, 0, 1}};
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t byte = right[i / 8][i % 8];
        cr_assert_eq(out[i / 8][i % 8], i == 2 ? 6 : 0x01010101u * byte, "word %u", i);
    }
}

Test(single, a_vector_of_32_bytes_is_aligned) {
    uint32_t out[16] = {0};
    CUresult result =
        test_run(SINGLE("8.8", "sm_100", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0+16];"), 1, 1,
                 out, sizeof out);
    cr_assert_eq(result, CUDA_ERROR_MISALIGNED_ADDRESS, "%d", (int)result);
}

Test(single, sources_may_be_the_result) {
    float out[4] = {1.5f, -2.0f, 0.25f, 4.0f};
    TEST_RUN(SINGLE("8.7", "sm_120",
                    "ld.global.v2.b64 {%d1, %d2}, [%d0]; fma.rn.f32x2 %d1, %d1, %d2, %d1;\n"
                    "add.f32x2 %d2, %d2, %d2; st.global.v2.b64 [%d0], {%d1, %d2};"),
             1, 1, out);
    cr_assert(out[0] == 1.875f && out[1] == -10.0f && out[2] == 0.5f && out[3] == 8.0f);
}

Test(single, other_forms_are_refused_with_their_line) {
    static const struct {
        const char *text, *what;
    } cases[] = {
        {SINGLE("8.8", "sm_90", "add.rn.f32x2 %d1, %d2, %d3;"), "needs .target sm_100"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %u1, %u2, %u3;"), "type .u64, and .f32x2"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %g1, %g2, %g3;"), "type .f64, and .f32x2"},
        {SINGLE("8.7", "sm_120", "add.rn.f32x2 %d1, %d2, 0;"), "expected a register"},
        {SINGLE("8.7", "sm_120", "add.rn.sat.f32x2 %d1, %d2, %d3;"), "'.f32x2' is not valid"},
        {SINGLE("8.7", "sm_120", "fma.f32x2 %d1, %d2, %d3, %d4;"), "is not valid here"},
        {SINGLE("8.7", "sm_120", "mul.rn.f32.f16 %f1, %h1, %f2;"), "'.f16' is not valid"},
        {SINGLE("8.7", "sm_120", "add.f32.f16 %f1, %f2, %f3;"), "register of 32 bits, and 16"},
        {SINGLE("9.0", "sm_90", "min.f32 %f1, %f2, %f3, %f4;"), "needs .target sm_100"},
        {SINGLE("8.7", "sm_120", "min.f32 %f1, %f2, %f3, %f4;"), "and .version 8.8"},
        {SINGLE("8.8", "sm_120", "min.abs.f32 %f1, %f2, %f3;"), "needs 4 operands here, not 3"},
        {SINGLE("8.8", "sm_120", "min.xorsign.abs.f32 %f1, %f2, %f3, %f4;"), "needs 3 operands"},
        {SINGLE("8.7", "sm_120", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), ".version 8.8"},
        {SINGLE("8.8", "sm_90", "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), "sm_100"},
        {SINGLE("8.8", "sm_120", "ld.shared.v4.b64 {%d1, %d2, %d3, %d4}, [s];"), "16 bytes"},
        {SINGLE("8.8", "sm_120", "ldu.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d0];"), "16 bytes"},
        {SINGLE("8.8", "sm_120",
                "ld.global.v8.u16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%d0];"),
         "'.u16' is not valid"},
        {SINGLE("8.8", "sm_120",
                "st.global.v8.b32 [%d0], {%d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8};"),
         "a register of 64 bits, and 32"},
        {SINGLE("8.8", "sm_120", "wgmma.fence.sync.aligned;"), "is of .target sm_90a alone"},
        {SINGLE("8.8", "sm_120a", "wgmma.fence.sync.aligned;"), "is of .target sm_90a alone"},
        {SINGLE("8.8", "sm_120", "setmaxnreg.inc.sync.aligned.u32 64;"), "a target such as"},
        /* not modelled, or of a suffix */
        {SINGLE("8.8", "sm_120a", "tcgen05.wait::ld.sync.aligned;"), "unknown or not supported"},
        {SINGLE("8.8", "sm_120",
                "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;"),
         "unknown or not supported"},
        {SINGLE("8.8", "sm_120", "st.async.mmio.release.sys.global.b32 [%d0], %r1;"), "not valid"},
        {SINGLE("8.8", "sm_120", "multimem.red.add.f32 [%d0], %f1;"), "unknown or not supported"},
        {SINGLE("8.8", "sm_120", "cvt.rn.satfinite.tf32.f32 %r1, %f1;"), "is not valid here"},
        {SINGLE("8.8", "sm_120a", "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;"), "e2m1x2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char log[1024] = "";
        cr_expect_eq(test_refused(cases[i].text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, cases[i].what) != NULL && strstr(log, "ptx:7:") != NULL, "%zu: %s", i,
                  log);
    }
}

/* As ptxas 13.0: the first PTX version of each target; and a suffix is for few devices. */
Test(single, the_targets_are_those_of_ptxas) {
    static const struct {
        const char *text, *what; /* what: NULL: it is taken */
    } cases[] = {
        {SINGLE("8.6", "sm_100", ""), NULL},
        {SINGLE("8.5", "sm_100", ""), "target sm_100 needs PTX 8.6"},
        {SINGLE("8.7", "sm_103", ""), "target sm_103 needs PTX 8.8"},
        {SINGLE("8.8", "sm_103", ""), NULL},
        {SINGLE("8.8", "sm_110", ""), "target sm_110 needs PTX 9.0"},
        {SINGLE("9.0", "sm_110", ""), NULL},
        {SINGLE("8.6", "sm_120", ""), "target sm_120 needs PTX 8.7"},
        {SINGLE("8.7", "sm_120", ""), NULL},
        {SINGLE("8.7", "sm_121", ""), "target sm_121 needs PTX 8.8"},
        {SINGLE("8.8", "sm_121", ""), "the PTX is for sm_121, and the device has"},
        {SINGLE("8.7", "sm_120a", ""), NULL},
        {SINGLE("8.7", "sm_120f", ""), "target sm_120f needs PTX 8.8"},
        {SINGLE("8.8", "sm_120f", ""), NULL},
        {SINGLE("8.6", "sm_100a", ""), "sm_100a, which is for devices of compute capability 10.0"},
        {SINGLE("8.8", "sm_100f", ""), "sm_100f, which is for the family of compute capability"},
        {SINGLE("8.0", "sm_90a", ""), "sm_90a, which is for devices of compute capability 9.0"},
        {SINGLE("7.8", "sm_90a", ""), "target sm_90a needs PTX 8.0"},
        {SINGLE("9.0", "sm_90f", ""), "unknown target 'sm_90f'"},
        {SINGLE("9.0", "sm_80a", ""), "unknown target 'sm_80a'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char log[1024] = "";
        if (cases[i].what == NULL) {
            cr_expect(test_load(cases[i].text) != NULL);
            continue;
        }
        cr_expect_eq(test_refused(cases[i].text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, cases[i].what) != NULL, "%zu: %s", i, log);
    }
}

/* A fat binary of two texts; one has a suffix. Layout: lower/fatbin.h. */
Test(single, a_text_of_another_device_is_passed_over) {
    static const char *const texts[] = {".version 8.0\n.target sm_80\n.entry old() { ret; }\n",
                                        ".version 8.0\n.target sm_90a\n.entry new() { ret; }\n"};
    static const uint32_t architectures[] = {80, 90};
    unsigned char image[512] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    size_t at = 16;
    for (int i = 0; i < 2; i++) {
        const uint32_t header = 64, bytes = 64;
        const uint16_t kind = 1;
        memcpy(image + at, &kind, 2);
        memcpy(image + at + 4, &header, 4);
        memcpy(image + at + 8, &bytes, 4);
        memcpy(image + at + 28, &architectures[i], 4);
        cr_assert(strlen(texts[i]) < bytes);
        memcpy(image + at + 64, texts[i], strlen(texts[i]));
        at += header + bytes;
    }
    const uint64_t all = at - 16;
    memcpy(image + 8, &all, 8);
    CUmodule module = NULL;
    CUfunction function = NULL;
    cr_assert_eq(cuModuleLoadData(&module, image), CUDA_SUCCESS, "%s", test_log());
    cr_assert_eq(cuModuleGetFunction(&function, module, "old"), CUDA_SUCCESS);
    cr_assert_eq(cuModuleGetFunction(&function, module, "new"), CUDA_ERROR_NOT_FOUND);
}
