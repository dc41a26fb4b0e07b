/*
 * Stores and reductions of texels (sust.p, sured.p): the format is the surface's.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <string.h>

static CUdeviceptr unused;

static void open_device(void) {
    api_context(0);
    OK(cuMemAlloc_v2(&unused, 4));
}

TestSuite(surface, .init = open_device);

enum { WIDTH = 8, HEIGHT = 4, BYTES_MAX = WIDTH * HEIGHT * 16 };

struct surface {
    CUarray array;
    CUsurfObject object;
    size_t row_bytes;
};

static struct surface surface_of(CUarray_format format, unsigned channels, size_t channel_bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {WIDTH,  HEIGHT,   0,
                                           format, channels, CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    struct surface surface = {.row_bytes = WIDTH * channels * channel_bytes};
    static const uint8_t zeros[BYTES_MAX];
    OK(cuArray3DCreate_v2(&surface.array, &shape));
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = zeros,
                          .srcPitch = surface.row_bytes,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = surface.array,
                          .WidthInBytes = surface.row_bytes,
                          .Height = HEIGHT};
    OK(cuMemcpy2D_v2(&copy));
    resource.res.array.hArray = surface.array;
    OK(cuSurfObjectCreate(&surface.object, &resource));
    return surface;
}

/* Runs one instruction in one thread: %o is the object, %x and %y the coordinates, %v0 to %v3 the
 * values, %w the first two as one. */
static CUresult run(const struct surface *surface, const char *instruction, int x, int y,
                    const uint32_t values[4]) {
    static char text[2000];
    uint32_t v[4] = {values[0], values[1], values[2], values[3]};
    CUsurfObject object = surface->object;
    snprintf(text, sizeof text,
             ".version 8.1\n.target sm_50\n.address_size 64\n"
             ".visible .entry k(.param .u64 o, .param .u32 x, .param .u32 y, .param .u32 v0,\n"
             ".param .u32 v1, .param .u32 v2, .param .u32 v3)\n{\n"
             ".reg .b64 %%o, %%w; .reg .b32 %%x, %%y, %%v<4>;\n"
             "ld.param.u64 %%o, [o]; ld.param.u32 %%x, [x]; ld.param.u32 %%y, [y];\n"
             "ld.param.u32 %%v0, [v0]; ld.param.u32 %%v1, [v1]; ld.param.u32 %%v2, [v2];\n"
             "ld.param.u32 %%v3, [v3]; mov.b64 %%w, {%%v0, %%v1};\n%s\nret;\n}\n",
             instruction);
    void *parameters[] = {&object, &x, &y, &v[0], &v[1], &v[2], &v[3]};
    OK(cuLaunchKernel(api_function(text, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    return cuCtxSynchronize();
}

static const uint8_t *bytes_at(const struct surface *surface, unsigned x, unsigned y) {
    static uint8_t bytes[BYTES_MAX];
    CUDA_MEMCPY2D copy = {.dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = bytes,
                          .dstPitch = surface->row_bytes,
                          .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = surface->array,
                          .WidthInBytes = surface->row_bytes,
                          .Height = HEIGHT};
    OK(cuMemcpy2D_v2(&copy));
    return bytes + y * surface->row_bytes + x * (surface->row_bytes / WIDTH);
}

#define PUT(surface, instruction, x, y, ...)                                                       \
    OK(run(surface, instruction, x, y, (const uint32_t[4]){__VA_ARGS__}))

static const char put[] = "sust.p.2d.v4.b32.trap [%o, {%x, %y}], {%v0, %v1, %v2, %v3};";

Test(surface, a_texel_is_stored_in_its_format) {
    /* What is stored, and the little-endian bytes of the first two channels. */
    static const struct {
        CUarray_format format;
        unsigned channel_bytes;
        uint32_t values[2], held[2];
    } rows[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, 1, {200, 300}, {200, 255}},
        {CU_AD_FORMAT_UNSIGNED_INT16, 2, {65535, 0xffffffff}, {65535, 65535}},
        {CU_AD_FORMAT_UNSIGNED_INT32, 4, {7, 0xffffffff}, {7, 0xffffffff}},
        {CU_AD_FORMAT_SIGNED_INT8, 1, {(uint32_t)-5, 128}, {0xfb, 0x7f}},
        {CU_AD_FORMAT_SIGNED_INT8, 1, {(uint32_t)-129, 0x80000000}, {0x80, 0x80}},
        {CU_AD_FORMAT_SIGNED_INT16, 2, {32768, (uint32_t)-40000}, {0x7fff, 0x8000}},
        {CU_AD_FORMAT_SIGNED_INT32, 4, {(uint32_t)-1, 5}, {0xffffffff, 5}},
        {CU_AD_FORMAT_FLOAT, 4, {0x3f800001, 0x7fc00001}, {0x3f800001, 0x7fc00001}},
        /* 1.5; and 1 + 3/2048, which is cut off. */
        {CU_AD_FORMAT_HALF, 2, {0x3fc00000, 0x3f803000}, {0x3e00, 0x3c01}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct surface surface = surface_of(rows[i].format, 4, rows[i].channel_bytes);
        PUT(&surface, put, 3, 2, rows[i].values[0], rows[i].values[1], 0, 1);
        for (unsigned c = 0; c < 2; c++) {
            uint32_t held = 0;
            memcpy(&held, bytes_at(&surface, 3, 2) + c * rows[i].channel_bytes,
                   rows[i].channel_bytes);
            cr_assert_eq(held, rows[i].held[c], "row %zu, channel %u: 0x%x", i, c, held);
        }
    }
}

Test(surface, what_the_surface_has_no_channel_for_is_ignored) {
    struct surface surface = surface_of(CU_AD_FORMAT_UNSIGNED_INT8, 2, 1);
    PUT(&surface, put, 1, 1, 1, 2, 3, 4);
    const uint8_t *bytes = bytes_at(&surface, 1, 1);
    cr_assert(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 0 && bytes[3] == 0);
}

Test(surface, what_is_not_given_is_overwritten_all_the_same) {
    struct surface surface = surface_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 1);
    PUT(&surface, put, 1, 1, 1, 2, 3, 4);
    PUT(&surface, "sust.p.2d.v2.b32.trap [%o, {%x, %y}], {%v0, %v1};", 1, 1, 9, 8);
    const uint8_t *bytes = bytes_at(&surface, 1, 1);
    cr_assert(bytes[0] == 9 && bytes[1] == 8 && bytes[2] != 3 && bytes[3] != 4);
}

Test(surface, the_first_coordinate_counts_texels) {
    struct surface surface = surface_of(CU_AD_FORMAT_UNSIGNED_INT32, 2, 4);
    PUT(&surface, "sust.p.2d.v2.b32.zero [%o, {%x, %y}], {%v0, %v1};", 8, 0, 5, 6);
    PUT(&surface, "sust.p.2d.v2.b32.zero [%o, {%x, %y}], {%v0, %v1};", 0, -1, 5, 6);
    for (unsigned i = 0; i < WIDTH * 8 * HEIGHT; i++) cr_assert_eq(bytes_at(&surface, 0, 0)[i], 0);
    PUT(&surface, "sust.p.2d.v2.b32.clamp [%o, {%x, %y}], {%v0, %v1};", 99, 99, 5, 6);
    cr_assert_eq(bytes_at(&surface, 7, 3)[0], 5);
    PUT(&surface, "sust.p.2d.v2.b32.clamp [%o, {%x, %y}], {%v0, %v1};", -3, 1, 4, 6);
    cr_assert_eq(bytes_at(&surface, 0, 1)[0], 4);
    PUT(&surface, "sust.p.2d.v2.b32.trap [%o, {%x, %y}], {%v0, %v1};", 7, 1, 3, 6);
    cr_assert_eq(bytes_at(&surface, 7, 1)[0], 3);
    test_capture(stderr);
    REFUSED(run(&surface, put, 8, 1, (const uint32_t[4]){1}), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "texel 8 is outside") != NULL, "%s",
              test_captured(stderr));
}

static uint32_t word_at(const struct surface *surface, unsigned x, unsigned y) {
    uint32_t word = 0;
    memcpy(&word, bytes_at(surface, x, y), sizeof word);
    return word;
}

Test(surface, reductions_are_of_the_surfaces_integers) {
    struct surface words = surface_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 4),
                   numbers = surface_of(CU_AD_FORMAT_SIGNED_INT32, 1, 4),
                   pairs = surface_of(CU_AD_FORMAT_UNSIGNED_INT32, 2, 4);
    PUT(&words, "sured.p.add.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, 100);
    PUT(&words, "sured.p.add.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, (uint32_t)-1);
    cr_assert_eq(word_at(&words, 5, 1), 99);
    PUT(&words, "sured.p.or.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, 0x100);
    PUT(&words, "sured.p.and.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, 0x103);
    cr_assert_eq(word_at(&words, 5, 1), 0x103);
    PUT(&words, "sured.p.max.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, (uint32_t)-1);
    cr_assert_eq(word_at(&words, 5, 1), (uint32_t)-1);
    PUT(&numbers, "sured.p.max.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, (uint32_t)-1);
    cr_assert_eq(word_at(&numbers, 5, 1), 0);
    PUT(&numbers, "sured.p.min.2d.b32.trap [%o, {%x, %y}], %v0;", 5, 1, (uint32_t)-9);
    cr_assert_eq(word_at(&numbers, 5, 1), (uint32_t)-9);
    PUT(&pairs, "sured.p.max.2d.b64.trap [%o, {%x, %y}], %w;", 2, 3, 7, 1);
    PUT(&pairs, "sured.p.max.2d.b64.trap [%o, {%x, %y}], %w;", 2, 3, 9, 0);
    cr_assert_eq(word_at(&pairs, 2, 3), 7);
    PUT(&words, "sured.p.add.2d.b32.zero [%o, {%x, %y}], %v0;", 8, 1, 1);
    PUT(&words, "sured.p.add.2d.b32.clamp [%o, {%x, %y}], %v0;", 8, 1, 77);
    cr_assert_eq(word_at(&words, 7, 1), 77);
}

Test(surface, reductions_of_other_formats_are_refused) {
    static const struct {
        CUarray_format format;
        unsigned channels, channel_bytes;
        const char *said;
    } rows[] = {{CU_AD_FORMAT_FLOAT, 1, 4, "1 channels of 32 bits, floating-point numbers"},
                {CU_AD_FORMAT_UNSIGNED_INT32, 2, 4, "2 channels of 32 bits"},
                {CU_AD_FORMAT_UNSIGNED_INT8, 4, 1, "4 channels of 8 bits"}};
    test_capture(stderr);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct surface surface =
            surface_of(rows[i].format, rows[i].channels, rows[i].channel_bytes);
        REFUSED(run(&surface, "sured.p.add.2d.b32.trap [%o, {%x, %y}], %v0;", 1, 1,
                    (const uint32_t[4]){1}),
                CUDA_ERROR_ILLEGAL_INSTRUCTION);
        cr_assert(strstr(test_captured(stderr), rows[i].said) != NULL, "%s", test_captured(stderr));
        OK(cuDevicePrimaryCtxReset_v2(0));
        api_context(0);
    }
}
