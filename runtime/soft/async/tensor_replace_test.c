/*
 * Tensor maps that a kernel makes or changes: tensormap.replace, tensormap.cp_fenceproxy.
 */
#include "test/test_soft.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(tensor_replace, .init = begin, .fini = test_soft_close);

enum { COLUMNS = 16, ROWS = 8, BOX_COLUMNS = 8, BOX_ROWS = 4, BOX = BOX_COLUMNS * BOX_ROWS };

/* The map, a tensor of ROWS x COLUMNS words, and the box that comes. */
struct data {
    CUtensorMap map;
    uint32_t tensor[ROWS * COLUMNS], box[BOX];
};

/* A warp: makes the map, copies the box at column 4, row 6 by the map at %rd1, writes it out. */
#define REPLACE(make)                                                                              \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                             \
    ".shared .align 128 .b8 t[128]; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;\n"     \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<9>; .local .align 128 .b8 u[128];\n"       \
    "ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0;\n"                    \
    "mul.lo.u32 %r4, %r3, 4; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; mov.u32 %r6, t;\n"             \
    "add.u32 %r7, %r6, %r4; mov.u32 %r8, 4; mov.u32 %r9, 6; add.u64 %rd2, %rd1, 128;\n"            \
    "mov.u64 %rd3, 64; mov.u32 %r10, 16;\n"                                                        \
    "@%p1 mbarrier.init.shared.b64 [m], 1; fence.mbarrier_init.release.cluster; bar.sync "         \
    "0;\n" make "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128; bar.warp.sync -1;\n"      \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"                                     \
    "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "           \
    "[s], [%rd1, {%r8, %r9}], [m];\n"                                                              \
    "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"                     \
    "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd4, %rd1;\n"                                       \
    "ld.shared.u32 %r12, [%r5]; st.global.u32 [%rd4+640], %r12; ret;\n}\n"

#define FIELD(where, words) "@%p1 tensormap.replace.tile." words where "\n"
/* All fields, of a map whose address is in a register or a variable. */
#define ALL_FIELDS(space, at)                                                                      \
    "@%p1 tensormap.replace.tile.global_address" space ".b1024.b64 " at ", %rd2;\n"                \
    "@%p1 tensormap.replace.tile.rank" space ".b1024.b32 " at ", 1;\n"                             \
    "@%p1 tensormap.replace.tile.box_dim" space ".b1024.b32 " at ", 0, 8;\n"                       \
    "@%p1 tensormap.replace.tile.box_dim" space ".b1024.b32 " at ", 1, 4;\n"                       \
    "@%p1 tensormap.replace.tile.global_dim" space ".b1024.b32 " at ", 0, %r10;\n"                 \
    "@%p1 tensormap.replace.tile.global_dim" space ".b1024.b32 " at ", 1, 8;\n"                    \
    "@%p1 tensormap.replace.tile.global_stride" space ".b1024.b64 " at ", 0, %rd3;\n"              \
    "@%p1 tensormap.replace.tile.element_stride" space ".b1024.b32 " at ", 0, 1;\n"                \
    "@%p1 tensormap.replace.tile.element_stride" space ".b1024.b32 " at ", 1, 1;\n"                \
    "@%p1 tensormap.replace.tile.elemtype" space ".b1024.b32 " at ", 7;\n"                         \
    "@%p1 tensormap.replace.tile.interleave_layout" space ".b1024.b32 " at ", 0;\n"                \
    "@%p1 tensormap.replace.tile.swizzle_mode" space ".b1024.b32 " at ", 1;\n"                     \
    "@%p1 tensormap.replace.tile.fill_mode" space ".b1024.b32 " at ", 1;\n"
#define COPY_MAP                                                                                   \
    "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"  \
    ".sync.aligned [%rd1], [t], 128;\n"

static void fill(struct data *data) {
    memset(data, 0, sizeof *data);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) data->tensor[i] = i + 1;
}

/* With the swizzle of 32 bytes: the chunks of each other line of 128 change places. A box of 128
 * bytes has one line, so nothing moves. Below row 7 and there is NaN. */
static void check_box(const struct data *data) {
    for (uint32_t i = 0; i < BOX; i++) {
        uint32_t row = 6 + i / BOX_COLUMNS, column = 4 + i % BOX_COLUMNS;
        uint32_t wanted = row < ROWS ? row * COLUMNS + column + 1 : 0x7ff77ff7;
        cr_assert_eq(data->box[i], wanted, "%u: %u, not %u", i, data->box[i], wanted);
    }
}

Test(tensor_replace, a_map_is_made_of_zeros) {
    static const char *const texts[] = {
        REPLACE("st.shared.u32 [%r7], 0; bar.warp.sync -1;\n" ALL_FIELDS(".shared::cta", "[t]")
                    COPY_MAP),
        REPLACE("st.shared.u32 [%r7], 0; bar.warp.sync -1; cvta.shared.u64 %rd5, 0;\n"
                "cvt.u64.u32 %rd6, %r6; add.u64 %rd5, %rd5, %rd6;\n" ALL_FIELDS("", "[%rd5]")
                    COPY_MAP),
        REPLACE(ALL_FIELDS(".global", "[%rd1]")),
        /* What was interleaved before. */
        REPLACE(FIELD(".global.b1024.b32 [%rd1], 1;", "interleave_layout")
                    ALL_FIELDS(".global", "[%rd1]")),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct data data;
        fill(&data);
        CUresult result = test_run(texts[i], 1, 32, &data, sizeof data);
        cr_assert_eq(result, CUDA_SUCCESS, "%zu: %d: %s", i, (int)result, test_log());
        check_box(&data);
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* Of a map that a call has made one field is changed; the types have numbers of their own. */
Test(tensor_replace, one_field_of_a_map_is_changed) {
    static const struct {
        const char *text;
        uint32_t first;
    } cases[] = {
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 1, 1;", "global_dim")), 0},
        {REPLACE("add.u64 %rd5, %rd2, 16;\n" FIELD(".global.b1024.b64 [%rd1], %rd5;",
                                                   "global_address")),
         105},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 11;", "elemtype")), 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct data data;
        CUdeviceptr buffer = 0;
        const cuuint64_t sizes[2] = {COLUMNS, ROWS}, strides[1] = {COLUMNS * 4};
        const cuuint32_t box[2] = {BOX_COLUMNS, BOX_ROWS}, steps[2] = {1, 1};
        fill(&data);
        cr_assert_eq(cuMemAlloc_v2(&buffer, sizeof data), CUDA_SUCCESS);
        cr_assert_eq(cuTensorMapEncodeTiled(&data.map, 2, 2, (void *)(uintptr_t)(buffer + 128),
                                            sizes, strides, box, steps, 0, 0, 0, 0),
                     CUDA_SUCCESS);
        cuMemcpyHtoD_v2(buffer, &data, sizeof data);
        void *arguments[] = {&buffer};
        cr_assert_eq(cuLaunchKernel(test_function(test_load(cases[i].text), "k"), 1, 1, 1, 32, 1, 1,
                                    0, NULL, arguments, NULL),
                     CUDA_SUCCESS);
        cr_assert_eq(cuCtxSynchronize(), CUDA_SUCCESS, "%zu: %s", i, test_log());
        cuMemcpyDtoH_v2(&data, buffer, sizeof data);
        cr_assert_eq(data.box[0], cases[i].first, "%zu: %u", i, data.box[0]);
        cuMemFree_v2(buffer);
    }
}

Test(tensor_replace, what_makes_no_map_is_refused) {
    static const struct {
        const char *text, *said;
        CUresult result;
    } cases[] = {
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 0, 0;", "global_dim")),
         "0 is no size of a dimension", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 14;", "elemtype")),
         "14 is no element type that is modelled", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 3;", "interleave_layout")), "3 is no interleave",
         CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 4;", "swizzle_mode")),
         "4 is no swizzle of compute capability 9.0", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 2;", "fill_mode")), "2 is no fill mode",
         CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 70000;", "rank")),
         "is not valid: a rank of 255, not 1 to 5", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1+128], 1;", "rank")),
         "is none: no call of this driver made it", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1+16], 1;", "rank")), "not a multiple of 64",
         CUDA_ERROR_MISALIGNED_ADDRESS},
        {REPLACE("mov.u64 %rd5, u; cvta.local.u64 %rd5, %rd5;\n" FIELD(".b1024.b32 [%rd5], 1;",
                                                                       "rank")),
         "is neither in global nor in shared memory", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE("mov.u64 %rd5, %rd1; @%p1 add.u64 %rd5, %rd5, 128; tensormap.cp_fenceproxy.global"
                 ".shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [t], 128;\n"),
         "lane 1 copies another tensor map than lane 0", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {REPLACE("st.shared.u32 [%r7], 0; cvta.shared.u64 %rd5, 0; cvt.u64.u32 %rd6, %r6;\n"
                 "add.u64 %rd1, %rd5, %rd6;\n"),
         "is in shared or local memory, where no copy reads it", CUDA_ERROR_ILLEGAL_INSTRUCTION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct data data;
        fill(&data);
        cr_assert_eq(test_run(cases[i].text, 1, 32, &data, sizeof data), cases[i].result, "%zu: %s",
                     i, test_log());
        cr_assert(strstr(test_log(), cases[i].said) != NULL, "%zu: %s", i, test_log());
        test_soft_close();
        test_soft_open();
    }
}

Test(tensor_replace, what_is_no_instruction_is_refused) {
    static const char *const cases[][2] = {
        {REPLACE(FIELD(".global.b1024.b64 [%rd1], %rd2;", "rank")), "'.b64'"},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], %r8;", "global_address")), "'.b32'"},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 5, 1;", "box_dim")),
         "expected a dimension, 0 to 4"},
        {REPLACE(FIELD(".global.b1024.b64 [%rd1], %r8, %rd2;", "global_stride")),
         "expected a dimension, 0 to 3"},
        {REPLACE(FIELD(".global.b1024.b32 [%rd1], 1, 1;", "rank")), "expected 2 operands, not 3"},
        {REPLACE("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                 ".aligned [%rd1], [t], 64;\n"),
         "expected two addresses and 128"},
        {REPLACE("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 64;\n"),
         "expected an address and 128"},
    };
    char log[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(test_refused(cases[i][0], log, sizeof log), CUDA_ERROR_INVALID_PTX, "%zu", i);
        cr_assert(strstr(log, cases[i][1]) != NULL, "%zu: %s", i, log);
    }
}
