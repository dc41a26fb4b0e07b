/*
 * Copies by im2col: the arguments of cuTensorMapEncodeIm2col, and the path of the filter.
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

TestSuite(tensor_image, .init = begin, .fini = test_soft_close);

static CUresult encode_image(CUtensorMap *map, CUdeviceptr tensor, cuuint32_t rank,
                             const int *lower, const int *upper, cuuint32_t channels,
                             cuuint32_t pixels) {
    static const cuuint64_t sizes[5] = {8, 4, 4, 4, 4}, strides[4] = {32, 128, 512, 2048};
    static const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    return cuTensorMapEncodeIm2col(map, 7, rank, (void *)(uintptr_t)tensor, sizes, strides, lower,
                                   upper, channels, pixels, steps, 0, 0, 0, 0);
}

Test(tensor_image, arguments_of_an_im2col_map_are_checked) {
    static const struct {
        cuuint32_t rank;
        int lower[3], upper[3];
        cuuint32_t channels, pixels;
        const char *said; /* NULL: it is taken */
    } cases[] = {
        {3, {-32768}, {32767}, 8, 1024, NULL},
        {4, {-128, 127}, {127, 127}, 8, 1, NULL},
        {5, {-16, 15, 0}, {15, 15, -3}, 4, 64, NULL},
        {2, {0}, {0}, 8, 8, "a rank of 2, and im2col has 3 to 5"},
        {6, {0}, {0}, 8, 8, "a rank of 6, not 1 to 5"},
        {3, {-32769}, {0}, 8, 8, "from -32769 to 0 along dimension 1, which 16 bits do not hold"},
        {4,
         {0, -129},
         {0, 0},
         8,
         8,
         "from -129 to 0 along dimension 2, and rank 4 has -128 to 127"},
        {5,
         {0, 0, 0},
         {16, 0, 0},
         8,
         8,
         "from 0 to 16 along dimension 1, and rank 5 has -16 to 15"},
        {4, {0, 1}, {0, -3}, 8, 8, "the bounding box is empty along dimension 2"},
        {3, {0}, {0}, 0, 8, "0 channels per pixel"},
        {3, {0}, {0}, 257, 8, "257 channels per pixel"},
        {3, {0}, {0}, 8, 0, "0 pixels per column"},
        {3, {0}, {0}, 8, 1025, "1025 pixels per column"},
        {3, {0}, {0}, 6, 8, "the box is 24 bytes wide"},
    };
    static uint32_t host[TEST_ROWS * TEST_COLUMNS];
    CUdeviceptr tensor = test_tensor_of(host);
    CUtensorMap map;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUresult result = encode_image(&map, tensor, cases[i].rank, cases[i].lower, cases[i].upper,
                                       cases[i].channels, cases[i].pixels);
        cr_assert_eq(result, cases[i].said == NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
                     "%zu: %s", i, test_log());
        cr_assert(cases[i].said == NULL || strstr(test_log(), cases[i].said) != NULL, "%zu: %s", i,
                  test_log());
    }
    const int corner[3] = {0};
    cr_assert_eq(encode_image(&map, tensor, 3, NULL, corner, 8, 8), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(encode_image(&map, tensor, 3, corner, NULL, 8, 8), CUDA_ERROR_INVALID_VALUE);
    cuMemFree_v2(tensor);
}

/* The way through the bounding box, as in the examples of the manual's section 5.5.4.1; a filter
 * that begins outside of it; and a map of another kind than the instruction. */
#define IMAGE(begin, offset, load)                                                                 \
    TEST_KERNEL_WITH(                                                                              \
        ".shared .align 1024 .b8 s[128]; .shared .align 8 .b64 m;",                                \
        "mov.u32 %r10, m; mbarrier.init.shared.b64 [m], 1; mov.u32 %r5, 0; mov.b32 %r6, " begin    \
        "; mov.u16 %h1, " offset ";\nmbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"          \
        "cp.async.bulk.tensor.3d.shared::cluster.global." load "\n"                                \
        "LOOP: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra LOOP;\n"                 \
        "mov.u32 %r11, s; mov.u32 %r5, 0;\n"                                                       \
        "BACK: ld.shared.u32 %r7, [%r11]; st.global.u32 [%rd1+128], %r7; add.u32 %r11, %r11, "     \
        "16;\n"                                                                                    \
        "add.u64 %rd1, %rd1, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 8; @%p3 bra BACK;\n")
#define BY_IM2COL "im2col.mbarrier::complete_tx::bytes [s], [%rd1, {%r5, %r6, %r5}], [%r10], {%h1};"
#define BY_TILE "tile.mbarrier::complete_tx::bytes [s], [%rd1, {%r5, %r6, %r5}], [%r10];"

Test(tensor_image, filters_go_through_the_images) {
    static const struct {
        const char *text, *said;
        CUresult result;
        uint32_t pixels[8];
    } cases[] = {
        /* Images of 4 pixels, numbered from 1 on; the filter goes from -1 to 2. */
        {IMAGE("1", "0", BY_IM2COL), "", CUDA_SUCCESS, {2, 3, 0, 5, 6, 7, 0, 9}},
        {IMAGE("-1", "2", BY_IM2COL), "", CUDA_SUCCESS, {2, 3, 4, 0, 6, 7, 8, 0}},
        {IMAGE("-1", "65535", BY_IM2COL), "", CUDA_SUCCESS, {0}},
        {IMAGE("3", "0", BY_IM2COL),
         "the filter begins at 3 along dimension 1, and the bounding box goes from -1 to 2",
         CUDA_ERROR_ILLEGAL_INSTRUCTION,
         {0}},
        {IMAGE("0", "0", BY_TILE),
         "is for im2col, and the instruction copies tiles",
         CUDA_ERROR_ILLEGAL_INSTRUCTION,
         {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static uint32_t host[TEST_ROWS * TEST_COLUMNS];
        static struct test_box data;
        const cuuint64_t sizes[3] = {4, 4, 4}, strides[2] = {16, 64};
        const cuuint32_t steps[3] = {1, 1, 1};
        const int lower = -1, upper = -1;
        memset(&data, 0, sizeof data);
        CUdeviceptr tensor = test_tensor_of(host);
        for (uint32_t p = 0; p < 16; p++) host[4 * (size_t)p] = p + 1;
        cuMemcpyHtoD_v2(tensor, host, sizeof host);
        cr_assert_eq(cuTensorMapEncodeIm2col(&data.map, 7, 3, (void *)(uintptr_t)tensor, sizes,
                                             strides, &lower, &upper, 4, 8, steps, 0, 0, 0, 0),
                     CUDA_SUCCESS);
        cr_assert_eq(test_run(cases[i].text, 1, 1, &data, sizeof data), cases[i].result, "%zu: %s",
                     i, test_log());
        cr_assert(strstr(test_log(), cases[i].said) != NULL, "%zu: %s", i, test_log());
        for (int p = 0; p < 8 && cases[i].result == CUDA_SUCCESS; p++) {
            cr_assert_eq(data.words[p], cases[i].pixels[p], "%zu: %d: %u", i, p, data.words[p]);
        }
        test_soft_close();
        test_soft_open();
    }
}

Test(tensor_image, offsets_have_a_range) {
    static const char *const texts[] = {
        TEST_KERNEL_WITH(".shared .align 128 .b8 s[1024]; .shared .align 8 .b64 m;",
                         "mbarrier.init.shared.b64 [m], 1; mov.u32 %r5, 0; mov.u16 %h1, 256;\n"
                         "mov.u16 %h2, 0; cp.async.bulk.tensor.4d.shared::cluster.global.im2col"
                         ".mbarrier::complete_tx::bytes [s], [%rd1, {%r5, %r5, %r5, %r5}], [m], "
                         "{%h2, %h1};\n"),
        TEST_KERNEL("mov.u32 %r5, 0; mov.u16 %h1, 256; mov.u16 %h2, 0;\n"
                    "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col "
                    "[%rd1, {%r5, %r5, %r5, %r5}], {%h2, %h1};\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        static uint32_t host[TEST_ROWS * TEST_COLUMNS];
        static struct test_box data;
        const int corner[2] = {0};
        CUdeviceptr tensor = test_tensor_of(host);
        cr_assert_eq(encode_image(&data.map, tensor, 4, corner, corner, 8, 8), CUDA_SUCCESS);
        cr_assert_eq(test_run(texts[i], 1, 1, &data, sizeof data), CUDA_ERROR_ILLEGAL_INSTRUCTION);
        cr_assert(strstr(test_log(), "an im2col offset of 256 along dimension 2, not 0 to 255") !=
                      NULL,
                  "%s", test_log());
        test_soft_close();
        test_soft_open();
    }
}
