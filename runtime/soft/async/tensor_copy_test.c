/*
 * Boxes of tensors: into shared memory and back, compared with a copy made here element by element.
 */
#include "base/tensor_map.h"
#include "test/test_tensor.h"

#include <stdlib.h>
#include <string.h>

static void begin(void) {
    setenv("TOLLENS_SOFT_WORKERS", "1", 1);
    setenv("TOLLENS_SOFT_BUDGET", "20000000", 1);
    test_capture(stderr);
    test_soft_open();
}

TestSuite(tensor_copy, .init = begin, .fini = test_soft_close);

#define BOX(copies)                                                                                \
    TEST_KERNEL_WITH(                                                                              \
        ".shared .align 1024 .b8 s[2048]; .shared .align 8 .b64 m;",                               \
        "setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], 1;\n"                         \
        "fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r11, s; mov.u32 %r10, m;\n"     \
        "mov.b32 %r20, XCOORD; mov.b32 %r21, YCOORD;\n" copies)

static void run_load(const char *x, const char *y, struct test_box *data, const char *expected) {
    char text[4096], *at;
    static const char load[] =
        BOX("@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 2048;\n"
            "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[s], [%rd1, {%r20, %r21}], [%r10];\n"
            "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"
            "mov.u32 %r5, %r3;\n"
            "BACK: mad.lo.u32 %r6, %r5, 4, %r11; ld.shared.u32 %r7, [%r6];\n"
            "mad.wide.u32 %rd3, %r5, 4, %rd1; st.global.u32 [%rd3+128], %r7;\n"
            "add.u32 %r5, %r5, 64; setp.lt.u32 %p3, %r5, 512; @%p3 bra BACK;\n");
    snprintf(text, sizeof text, "%s", load);
    at = strstr(text, "XCOORD");
    memcpy(at, x, 6);
    at = strstr(text, "YCOORD");
    memcpy(at, y, 6);
    CUresult result = test_run(text, 1, 64, data, sizeof *data);
    cr_assert_eq(result, CUDA_SUCCESS, "%d: %s", (int)result, test_log());
    const char *said = test_captured(stderr);
    cr_assert(expected[0] != '\0' ? strstr(said, expected) != NULL : said[0] == '\0', "%s", said);
}

Test(tensor_copy, a_box_comes_with_its_swizzle_and_what_is_outside_as_zeros_or_nan) {
    static const struct {
        const char *x, *y;
        int column, row;
    } places[] = {{"     0", "     0", 0, 0},
                  {"    16", "    20", 16, 20},
                  {"    -4", "    -5", -4, -5},
                  {"    40", "    37", 40, 37}};
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    static struct test_box data;
    CUdeviceptr tensor = test_tensor_of(host);
    for (int fill = 0; fill < 2; fill++) {
        for (unsigned i = 0; i < 4; i++) {
            int swizzle = i % 2 == 0 ? 3 : 0;
            memset(&data, 0, sizeof data);
            cr_assert_eq(test_encode_box(&data.map, tensor, TEST_BOX_COLUMNS, swizzle, fill),
                         CUDA_SUCCESS);
            run_load(places[i].x, places[i].y, &data, "");
            test_check_box(&data, places[i].column, places[i].row, 16u << swizzle,
                           fill ? 0x7ff77ff7 : 0);
        }
    }
    cuMemFree_v2(tensor);
}

Test(tensor_copy, a_box_outside_the_tensor_is_noted) {
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    static struct test_box data;
    CUdeviceptr tensor = test_tensor_of(host);
    cr_assert_eq(test_encode_box(&data.map, tensor, TEST_BOX_COLUMNS, 0, 0), CUDA_SUCCESS);
    run_load("    48", "     0", &data, "box outside tensor");
    test_check_box(&data, 48, 0, 16, 0);
    cuMemFree_v2(tensor);
}

/* Out of shared memory, as copies and as sums; what is outside the tensor is not written. */
Test(tensor_copy, a_box_is_written_and_added) {
    static const char *const texts[] = {
        BOX("mov.u32 %r5, %r3;\n"
            "FILL: mad.lo.u32 %r6, %r5, 4, %r11; add.u32 %r7, %r5, 7; cvt.rn.f32.u32 %f1, %r7;\n"
            "st.shared.f32 [%r6], %f1; add.u32 %r5, %r5, 64; setp.lt.u32 %p3, %r5, 512;\n"
            "@%p3 bra FILL; fence.proxy.async; bar.sync 0; @!%p1 exit;\n"
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r20, %r21}], [s];\n"
            "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
        BOX("mov.u32 %r5, %r3;\n"
            "FILL: mad.lo.u32 %r6, %r5, 4, %r11; add.u32 %r7, %r5, 7; cvt.rn.f32.u32 %f1, %r7;\n"
            "st.shared.f32 [%r6], %f1; add.u32 %r5, %r5, 64; setp.lt.u32 %p3, %r5, 512;\n"
            "@%p3 bra FILL; fence.proxy.async; bar.sync 0; @!%p1 exit;\n"
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group "
            "[%rd1, {%r20, %r21}], [s];\n"
            "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"),
    };
    static float host[TEST_ROWS * TEST_COLUMNS];
    for (int sums = 0; sums < 2; sums++) {
        static struct test_box data;
        char text[4096];
        static uint32_t unused[TEST_ROWS * TEST_COLUMNS];
        CUdeviceptr tensor = test_tensor_of(unused);
        for (uint32_t i = 0; i < TEST_ROWS * TEST_COLUMNS; i++) host[i] = 1000;
        cuMemcpyHtoD_v2(tensor, host, sizeof host);
        cr_assert_eq(test_encode_box(&data.map, tensor, TEST_BOX_COLUMNS, 0, 0), CUDA_SUCCESS);
        snprintf(text, sizeof text, "%s", texts[sums]);
        memcpy(strstr(text, "XCOORD"), "    28", 6);
        memcpy(strstr(text, "YCOORD"), "     4", 6);
        TEST_RUN(text, 1, 64, *(uint8_t(*)[sizeof data])(void *)&data);
        cuMemcpyDtoH_v2(host, tensor, sizeof host);
        for (int r = 0; r < TEST_ROWS; r++) {
            for (int c = 0; c < TEST_COLUMNS; c++) {
                int row = r - 4, column = c - 28;
                bool inside = row >= 0 && row < TEST_BOX_ROWS && column >= 0;
                float value = (float)(row * TEST_BOX_COLUMNS + column + 7);
                float wanted = !inside ? 1000 : sums ? 1000 + value : value;
                float got = host[r * TEST_COLUMNS + c];
                cr_assert(!(got < wanted) && !(got > wanted), "%d, %d: %g", r, c, (double)got);
            }
        }
        cuMemFree_v2(tensor);
    }
    cr_assert_str_eq(test_captured(stderr), "");
}

/* A copy of a box of a rank into 144 bytes of shared memory, the last of the block. */
#define LOAD_SMALL(dimensions, zeros)                                                              \
    TEST_KERNEL_WITH(".shared .align 128 .b8 m[128]; .extern .shared .align 128 .b8 s[];",         \
                     "mov.u32 %r10, m; mov.u32 %r5, 0; mbarrier.init.shared.b64 [m], 1;\n"         \
                     "mbarrier.arrive.expect_tx.shared.b64 _, [m], 144;\n"                         \
                     "cp.async.bulk.tensor." dimensions                                            \
                     ".shared::cluster.global.tile.mbarrier::complete_tx::bytes "                  \
                     "[s], [%rd1, {" zeros "}], [%r10];\n"                                         \
                     "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n")

static CUresult load_small(struct test_box *data, unsigned rank) {
    static const char two[] = LOAD_SMALL("2d", "%r5, %r5");
    static const char four[] = LOAD_SMALL("4d", "%r5, %r5, %r5, %r5");
    CUdeviceptr buffer = 0;
    CUfunction function = test_function(test_load(rank == 2 ? two : four), "k");
    cr_assert_eq(cuMemAlloc_v2(&buffer, sizeof *data), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(buffer, data, sizeof *data), CUDA_SUCCESS);
    void *arguments[] = {&buffer};
    cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 144, NULL, arguments, NULL),
                 CUDA_SUCCESS);
    return cuCtxSynchronize();
}

/* Its bytes are 2^32 and more, which 32 bits do not hold. */
Test(tensor_copy, a_box_larger_than_shared_memory_is_refused) {
    static struct test_box data;
    CUdeviceptr tensor = 0;
    cr_assert_eq(cuMemAlloc_v2(&tensor, 4096), CUDA_SUCCESS);
    cuuint64_t sizes[5] = {256, 256, 256, 256, 256}, strides[4] = {16, 16, 16, 16};
    cuuint32_t box[5] = {256, 256, 256, 256, 256}, steps[5] = {1, 1, 1, 1, 1};
    cr_assert_eq(cuTensorMapEncodeTiled(&data.map, 0, 4, (void *)(uintptr_t)tensor, sizes, strides,
                                        box, steps, 0, 0, 0, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(load_small(&data, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_log(), "a box of 4294967296 bytes, and the block has 272") != NULL, "%s",
              test_log());
}

/* Nine rows of one chunk: each has the room of the swizzle's. */
Test(tensor_copy, a_swizzled_row_is_in_range_with_all_its_span) {
    static struct test_box data;
    CUdeviceptr tensor = 0;
    cr_assert_eq(cuMemAlloc_v2(&tensor, 4096), CUDA_SUCCESS);
    cuuint64_t sizes[2] = {16, 64}, strides[1] = {16};
    cuuint32_t box[2] = {16, 9}, steps[2] = {1, 1};
    void *address = (void *)(uintptr_t)tensor;
    cr_assert_eq(
        cuTensorMapEncodeTiled(&data.map, 0, 2, address, sizes, strides, box, steps, 0, 3, 0, 0),
        CUDA_SUCCESS);
    cr_assert_eq(load_small(&data, 2), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_log(), "a box of 1152 bytes, and the block has 272") != NULL, "%s",
              test_log());
}

/* What no call would make: a kernel may have written it. */
Test(tensor_copy, a_map_that_was_spoiled_is_refused) {
    static const char *const said[] = {
        "is not valid: the box is 12 bytes wide",
        "is not valid: a step of 0 elements along dimension 1",
        "is not valid: the box has 4000 elements along dimension 0",
        "is not valid: elements of 0 bytes of data type 7",
        "is not valid: 77 is no data type",
        "is not valid: a rank of 9",
        "is not valid: a swizzle of 5 chunks",
        "is not valid: the stride of dimension 1 is 8 bytes",
        "is not valid: the global address 0x1 ",
        "has another rank than the instruction",
        "is none: no call of this driver made it",
        "is not valid: 208 is no mode",
    };
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    for (unsigned i = 0; i < sizeof said / sizeof said[0]; i++) {
        static struct test_box data;
        struct soft_tensor_map map;
        CUdeviceptr tensor = test_tensor_of(host);
        cr_assert_eq(test_encode_box(&data.map, tensor, 4, 0, 0), CUDA_SUCCESS);
        memcpy(&map, &data.map, sizeof map);
        map.box[0] = i == 0 ? 3 : i == 2 ? 4000 : 4;
        map.steps[1] = i != 1;
        map.element_bytes = i == 3 ? 0 : 4;
        map.type = i == 4 ? 77 : 7;
        map.rank = i == 5 ? 9 : i == 9 ? 1 : 2;
        map.swizzle = i == 6 ? 5 : 1;
        if (i == 7) map.strides[1] = 8;
        if (i == 8) map.address = 1;
        if (i == 10) map.mark++;
        if (i == 11) map.im2col = 208;
        memcpy(&data.map, &map, sizeof map);
        cr_assert_eq(load_small(&data, 2), CUDA_ERROR_ILLEGAL_INSTRUCTION);
        cr_assert(strstr(test_log(), said[i]) != NULL, "%u: %s", i, test_log());
        test_soft_close();
        test_soft_open();
    }
}

Test(tensor_copy, arguments_of_a_map_are_checked) {
    CUtensorMap map;
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    CUdeviceptr tensor = test_tensor_of(host);
    cuuint64_t sizes[2] = {TEST_COLUMNS, TEST_ROWS}, strides[1] = {24};
    cuuint32_t box[2] = {8, 8}, steps[2] = {1, 1};
    void *address = (void *)(uintptr_t)tensor;
    cr_assert_eq(test_encode_box(&map, tensor, 6, 0, 0), CUDA_ERROR_INVALID_VALUE);  /* 24 bytes */
    cr_assert_eq(test_encode_box(&map, tensor, 32, 2, 0), CUDA_ERROR_INVALID_VALUE); /* 128 > 64 */
    cr_assert_eq(test_encode_box(&map, tensor + 8, 32, 3, 0), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(test_encode_box(&map, tensor, 260, 0, 0), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 7, 2, address, sizes, strides, box, steps, 0, 0, 0, 0),
        CUDA_ERROR_INVALID_VALUE);
    cr_assert(strstr(test_log(), "stride of dimension 1 is 24 bytes") != NULL, "%s", test_log());
    strides[0] = TEST_COLUMNS * 4;
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 7, 6, address, sizes, strides, box, steps, 0, 0, 0, 0),
        CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 2, 2, address, sizes, strides, box, steps, 0, 0, 0, 1),
        CUDA_ERROR_INVALID_VALUE);
    steps[1] = 9;
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 7, 2, address, sizes, strides, box, steps, 0, 0, 0, 0),
        CUDA_ERROR_INVALID_VALUE);
    steps[1] = 2;
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 7, 2, address, sizes, strides, box, steps, 0, 0, 0, 0),
        CUDA_SUCCESS);
    cr_assert_eq(cuTensorMapReplaceAddress(&map, address), CUDA_SUCCESS);
    cr_assert_eq(cuTensorMapReplaceAddress(&map, (void *)8), CUDA_ERROR_INVALID_VALUE);
    cuMemFree_v2(tensor);
}

/* Where they lie is tested by the record of the cases. */
Test(tensor_copy, arguments_of_interleaved_tensors_are_checked) {
    enum { SLICES_16 = 1, SLICES_32, SWIZZLE_32 = 1 };
    static const struct {
        cuuint32_t rank;
        unsigned offset, stride;
        int interleave, swizzle;
        CUresult result;
        const char *said;
    } rows[] = {
        {3, 0, 64, SLICES_16, 0, CUDA_SUCCESS, ""},
        {3, 16, 16, SLICES_16, 3, CUDA_SUCCESS, ""},
        {3, 0, 64, SLICES_32, SWIZZLE_32, CUDA_SUCCESS, ""},
        {3, 0, 64, SLICES_32, 0, CUDA_SUCCESS, ""},
        {4, 0, 64, SLICES_16, 0, CUDA_ERROR_NOT_SUPPORTED, "several slices are not modelled"},
        {3, 16, 64, SLICES_32, SWIZZLE_32, CUDA_ERROR_INVALID_VALUE, "is not a multiple of 32"},
        {3, 0, 48, SLICES_32, SWIZZLE_32, CUDA_ERROR_INVALID_VALUE,
         "stride of dimension 1 is 48 bytes, which is not a multiple of 32"},
        {2, 0, 64, SLICES_16, 0, CUDA_ERROR_INVALID_VALUE, "rank 2, not 3 to 5"},
        {3, 0, 64, 3, 0, CUDA_ERROR_INVALID_VALUE, "3 is no interleave"},
    };
    CUtensorMap map;
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    CUdeviceptr tensor = test_tensor_of(host);
    const cuuint64_t sizes[4] = {16, 4, 4, 2};
    const cuuint32_t box[4] = {16, 2, 9, 1}, steps[4] = {1, 1, 1, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cuuint64_t strides[3] = {rows[i].stride, 1024, 4096};
        void *address = (void *)(uintptr_t)(tensor + rows[i].offset);
        CUresult result =
            cuTensorMapEncodeTiled(&map, 6, rows[i].rank, address, sizes, strides, box, steps,
                                   rows[i].interleave, rows[i].swizzle, 0, 0);
        cr_assert_eq(result, rows[i].result, "row %zu: %d", i, (int)result);
        cr_assert(strstr(test_log(), rows[i].said) != NULL, "row %zu: %s", i, test_log());
    }
    cuMemFree_v2(tensor);
}
