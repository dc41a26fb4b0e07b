/*
 * Texture and surface objects: which can be created, what they return about themselves, and what
 * the device reports when a kernel uses one wrongly.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static CUarray array_of(size_t width, size_t height, CUarray_format format, unsigned flags) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {width, height, 0, format, 1, flags};
    CUarray array = NULL;
    OK(cuArray3DCreate_v2(&array, &shape));
    return array;
}

static CUDA_RESOURCE_DESC of_array(CUarray array) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = array;
    return resource;
}

static CUDA_RESOURCE_DESC of_row(CUdeviceptr address, size_t bytes) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = address;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = bytes;
    return resource;
}

static CUDA_RESOURCE_DESC of_rows(CUdeviceptr address, size_t width, size_t height, size_t pitch) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = address;
    resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    resource.res.pitch2D.numChannels = 1;
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    return resource;
}

static CUtexObject texture_of(CUarray array) {
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUDA_TEXTURE_DESC description = {.addressMode = {1, 1, 1}};
    CUtexObject texture = 0;
    OK(cuTexObjectCreate(&texture, &resource, &description, NULL));
    return texture;
}

static CUsurfObject surface_of(CUarray array) {
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUsurfObject surface = 0;
    OK(cuSurfObjectCreate(&surface, &resource));
    return surface;
}

Test(api_texture, objects_tell_what_they_were_made_of) {
    CUDA_TEXTURE_DESC description = {.addressMode = {0, 2, 3},
                                     .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                     .flags = CU_TRSF_NORMALIZED_COORDINATES,
                                     .maxAnisotropy = 4,
                                     .borderColor = {1, 2, 3, 4}};
    CUDA_TEXTURE_DESC told_description;
    CUDA_RESOURCE_VIEW_DESC view = {
        .format = CU_RES_VIEW_FORMAT_FLOAT_4X32 - 2, .width = 8, .height = 8};
    CUDA_RESOURCE_VIEW_DESC told_view;
    CUDA_RESOURCE_DESC told;
    CUtexObject texture = 0, plain = 0;
    CUsurfObject surface = 0;
    api_context(0);
    CUarray array = array_of(8, 8, CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC resource = of_array(array);
    OK(cuTexObjectCreate(&texture, &resource, &description, &view));
    OK(cuTexObjectCreate(&plain, &resource, &description, NULL));
    OK(cuSurfObjectCreate(&surface, &resource));
    cr_assert(texture != 0 && plain != 0 && surface != 0 && texture != plain && plain != surface);
    OK(cuTexObjectGetResourceDesc(&told, texture));
    cr_assert(told.resType == CU_RESOURCE_TYPE_ARRAY && told.res.array.hArray == array);
    OK(cuTexObjectGetTextureDesc(&told_description, texture));
    cr_assert(memcmp(&told_description, &description, sizeof description) == 0);
    OK(cuTexObjectGetResourceViewDesc(&told_view, texture));
    cr_assert(memcmp(&told_view, &view, sizeof view) == 0);
    REFUSED(cuTexObjectGetResourceViewDesc(&told_view, plain), CUDA_ERROR_INVALID_VALUE);
    OK(cuSurfObjectGetResourceDesc(&told, surface));
    cr_assert(told.res.array.hArray == array);
    REFUSED(cuTexObjectGetResourceDesc(&told, surface), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfObjectGetResourceDesc(&told, texture), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexObjectDestroy(texture));
    REFUSED(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexObjectGetTextureDesc(&told_description, texture), CUDA_ERROR_INVALID_VALUE);
    OK(cuSurfObjectDestroy(surface));
    REFUSED(cuSurfObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE);
}

Test(api_texture, handles_are_not_given_out_again_at_once) {
    CUtexObject seen[600];
    api_context(0);
    CUarray array = array_of(8, 8, CU_AD_FORMAT_FLOAT, 0);
    for (int i = 0; i < 600; i++) {
        seen[i] = texture_of(array);
        for (int k = 0; k < i; k++) cr_assert(seen[k] != seen[i], "%d and %d", k, i);
        OK(cuTexObjectDestroy(seen[i]));
    }
}

Test(api_texture, bad_descriptions_are_refused) {
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    CUdeviceptr memory = 0;
    size_t width = 0;
    api_context(0);
    OK(cuMemAlloc_v2(&memory, 65536));
    CUarray floats = array_of(8, 8, CU_AD_FORMAT_FLOAT, 0);
    CUarray words = array_of(8, 8, CU_AD_FORMAT_UNSIGNED_INT32, 0);
    const CUDA_TEXTURE_DESC plain = {.addressMode = {1, 1, 1}};
    CUDA_RESOURCE_DESC good = of_array(floats), whole = of_array(words), bad = good;
    REFUSED(cuTexObjectCreate(NULL, &good, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexObjectCreate(&texture, NULL, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexObjectCreate(&texture, &good, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    bad.flags = 1;
    REFUSED(cuTexObjectCreate(&texture, &bad, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = of_array((CUarray)(void *)&bad);
    REFUSED(cuTexObjectCreate(&texture, &bad, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    bad = good;
    bad.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    REFUSED(cuTexObjectCreate(&texture, &bad, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    bad.resType = 4;
    REFUSED(cuTexObjectCreate(&texture, &bad, &plain, NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfObjectCreate(&surface, &good), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfObjectCreate(NULL, &good), CUDA_ERROR_INVALID_VALUE);

    const CUDA_RESOURCE_DESC rows[] = {of_row(0, 1024),
                                       of_row(memory + 4, 1024),
                                       of_row(memory, 0),
                                       of_row(memory, 3),
                                       of_row(memory, (1ull << 30) + 4),
                                       of_rows(memory, 0, 8, 64),
                                       of_rows(memory, 8, 0, 64),
                                       of_rows(memory, 8, 8, 48),
                                       of_rows(memory, 32, 8, 64),
                                       of_rows(memory, 8, 65001, 64),
                                       of_rows(memory + 32, 8, 8, 64)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUresult result = cuTexObjectCreate(&texture, &rows[i], &plain, NULL);
        cr_assert(result == CUDA_ERROR_INVALID_VALUE, "row %zu: %s", i, api_code(result));
        REFUSED(cuSurfObjectCreate(&surface, &rows[i]), CUDA_ERROR_INVALID_VALUE);
    }

    const CUDA_TEXTURE_DESC descriptions[] = {
        {.addressMode = {4, 0, 0}}, {.addressMode = {0, -1, 0}},
        {.filterMode = 2},          {.mipmapFilterMode = 2},
        {.flags = 0x100},           {.flags = CU_TRSF_SEAMLESS_CUBEMAP}};
    for (size_t i = 0; i < sizeof descriptions / sizeof descriptions[0]; i++) {
        CUresult result = cuTexObjectCreate(&texture, &good, &descriptions[i], NULL);
        cr_assert(result == CUDA_ERROR_INVALID_VALUE, "row %zu: %s", i, api_code(result));
    }
    const CUDA_TEXTURE_DESC mixes = {.filterMode = CU_TR_FILTER_MODE_LINEAR};
    REFUSED(cuTexObjectCreate(&texture, &whole, &mixes, NULL), CUDA_ERROR_INVALID_VALUE);

    const CUDA_RESOURCE_VIEW_DESC views[] = {
        {.width = 4, .height = 8},
        {.width = 8, .height = 4},
        {.format = CU_RES_VIEW_FORMAT_UINT_1X8, .width = 8, .height = 8},
        {.format = 0x99, .width = 8, .height = 8},
        {.width = 8, .height = 8, .lastMipmapLevel = 1},
        {.width = 8, .height = 8, .lastLayer = 1}};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        CUresult result = cuTexObjectCreate(&texture, &good, &plain, &views[i]);
        cr_assert(result == CUDA_ERROR_INVALID_VALUE, "row %zu: %s", i, api_code(result));
    }
    OK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
    cr_assert_eq(width, 1u << 28);
    REFUSED(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 9),
            CUDA_ERROR_INVALID_DEVICE);
}

/* Integers of 8 and 16 bits that stay integers cannot be mixed; the filter is accepted, and texels
 * are sampled as points. */
Test(api_texture, integers_that_stay_integers_are_points_under_a_linear_filter) {
    static const char ptx[] = ".version 6.5\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k(.param .u64 out, .param .u64 object)\n{\n"
                              ".reg .b64 %out, %o; .reg .b32 %a, %b, %c, %d; .reg .f32 %x, %y;\n"
                              "ld.param.u64 %out, [out];\nld.param.u64 %o, [object];\n"
                              "mov.f32 %x, 0f40266666;\nmov.f32 %y, 0f3F99999A;\n" /* 2.6 and 1.2 */
                              "tex.2d.v4.u32.f32 {%a, %b, %c, %d}, [%o, {%x, %y}];\n"
                              "st.global.u32 [%out], %a;\nret;\n}\n";
    enum { WIDTH = 4, HEIGHT = 2, PITCH = 512 };
    CUDA_TEXTURE_DESC description = {.addressMode = {1, 1, 1},
                                     .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                     .flags = CU_TRSF_READ_AS_INTEGER};
    static uint8_t texels[HEIGHT][PITCH];
    CUdeviceptr rows = 0, out = 0;
    CUtexObject texture = 0;
    uint32_t got = 0;
    api_context(0);
    for (unsigned y = 0; y < HEIGHT; y++) {
        for (unsigned x = 0; x < 2 * WIDTH; x++) texels[y][x] = (uint8_t)(40 + 50 * y + 20 * x);
    }
    OK(cuMemAlloc_v2(&rows, sizeof texels));
    OK(cuMemAlloc_v2(&out, sizeof got));
    OK(cuMemcpyHtoD_v2(rows, texels, sizeof texels));
    const struct {
        CUarray_format format;
        uint32_t expected;
    } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, texels[1][2]},
                   {CU_AD_FORMAT_UNSIGNED_INT16, texels[1][4] | (uint32_t)texels[1][5] << 8}};
    CUDA_RESOURCE_DESC resource = of_rows(rows, WIDTH, HEIGHT, PITCH);
    void *parameters[] = {&out, &texture};
    CUfunction kernel = api_function(ptx, "k");
    for (int i = 0; i < 2; i++) {
        resource.res.pitch2D.format = formats[i].format;
        OK(cuTexObjectCreate(&texture, &resource, &description, NULL));
        OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        OK(cuMemcpyDtoH_v2(&got, out, sizeof got));
        cr_assert_eq(got, formats[i].expected, "%d: %u", i, got);
    }
    resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32;
    REFUSED(cuTexObjectCreate(&texture, &resource, &description, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Two halves a register. */
Test(api_texture, channels_come_as_pairs_of_halves) {
    static const char ptx[] = ".version 6.5\n.target sm_60\n.address_size 64\n"
                              ".visible .entry k(.param .u64 object, .param .u64 to)\n{\n"
                              ".reg .b64 %o, %a; .reg .b32 %x, %y; .reg .f32 %f;\n"
                              "ld.param.u64 %o, [object]; ld.param.u64 %a, [to];\n"
                              "mov.f32 %f, 0f3F000000;\n"
                              "tex.2d.v2.f16x2.f32 {%x, %y}, [%o, {%f, %f}];\n"
                              "st.global.v2.b32 [%a], {%x, %y};\nret;\n}\n";
    static const float channels[4] = {1, 0.5f, 2, -1};
    const CUDA_ARRAY3D_DESCRIPTOR shape = {1, 1, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    CUarray array = NULL;
    CUdeviceptr out = 0;
    api_context(0);
    OK(cuArray3DCreate_v2(&array, &shape));
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = channels,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = sizeof channels,
                          .Height = 1};
    OK(cuMemcpy2D_v2(&copy));
    OK(cuMemAlloc_v2(&out, 8));
    CUtexObject texture = texture_of(array);
    void *parameters[] = {&texture, &out};
    OK(cuLaunchKernel(api_function(ptx, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    cr_assert_eq(api_read(out), 0x38003c00, "0x%x", api_read(out));
    cr_assert_eq(api_read(out + 4), 0xbc004000, "0x%x", api_read(out + 4));
}

/* One thread: reads at (1, 1), stores in a row, or loads from an address. */
static const char kernels[] =
    ".version 6.5\n.target sm_50\n.address_size 64\n"
    ".visible .entry read(.param .u64 object)\n{\n"
    ".reg .b64 %o; .reg .f32 %a, %b, %c, %d;\n"
    "ld.param.u64 %o, [object];\n"
    "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [%o, {0f3F800000, 0f3F800000}];\nret;\n}\n"
    ".visible .entry put(.param .u64 object, .param .u32 at)\n{\n"
    ".reg .b64 %o; .reg .b32 %x;\n"
    "ld.param.u64 %o, [object];\nld.param.u32 %x, [at];\n"
    "sust.b.2d.b32.trap [%o, {%x, %x}], %x;\nret;\n}\n";

static CUresult run(CUfunction kernel, unsigned long long object, int at) {
    void *parameters[] = {&object, &at};
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    return cuCtxSynchronize();
}

/* A new context, for each failure ends one. */
#define FAILS(code, sentence, name, object, at)                                                    \
    do {                                                                                           \
        CUresult fails_result = run(api_function(kernels, name), object, at);                      \
        cr_assert(fails_result == (code), "%s", api_code(fails_result));                           \
        const char *fails_said = test_captured(stderr);                                            \
        cr_assert(strstr(fails_said, sentence) != NULL, "%s", fails_said);                         \
        OK(cuDevicePrimaryCtxReset_v2(0));                                                         \
        api_context(0);                                                                            \
    } while (0)

static void await_flag(void *flag) {
    while (!atomic_load((atomic_bool *)flag)) sched_yield();
}

/* Goal: as on an H200, work that was queued before the destroy keeps the object; later work gets
 * an error that says it was destroyed. */
Test(api_texture, launches_queued_before_a_destroy_keep_the_object) {
    atomic_bool flag = false;
    api_context(0);
    CUtexObject texture = texture_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, 0));
    CUsurfObject surface =
        surface_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, CUDA_ARRAY3D_SURFACE_LDST));
    int at = 0;
    void *read_parameters[] = {&texture}, *put_parameters[] = {&surface, &at};
    OK(cuLaunchHostFunc(NULL, await_flag, &flag));
    OK(cuLaunchKernel(api_function(kernels, "read"), 1, 1, 1, 1, 1, 1, 0, NULL, read_parameters,
                      NULL));
    OK(cuLaunchKernel(api_function(kernels, "put"), 1, 1, 1, 1, 1, 1, 0, NULL, put_parameters,
                      NULL));
    OK(cuTexObjectDestroy(texture));
    OK(cuSurfObjectDestroy(surface));
    atomic_store(&flag, true);
    OK(cuCtxSynchronize());
    test_capture(stderr);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "was destroyed", "read", texture, 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "was destroyed", "put", surface, 0);
}

Test(api_texture, wrong_uses_are_reported) {
    const unsigned flags = CUDA_ARRAY3D_SURFACE_LDST;
    api_context(0);
    test_capture(stderr);
    CUtexObject texture = texture_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, 0));
    OK(cuTexObjectDestroy(texture));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "was destroyed", "read", texture, 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "is not a texture or surface", "read", 0x77777ull, 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "is not a texture or surface", "read", 0ull, 0);
    CUarray array = array_of(8, 8, CU_AD_FORMAT_FLOAT, 0);
    texture = texture_of(array);
    OK(cuArrayDestroy(array));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "which was freed", "read", texture, 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "1 dimension", "read",
          texture_of(array_of(8, 0, CU_AD_FORMAT_FLOAT, 0)), 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "for textures", "read",
          surface_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, flags)), 0);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "for surfaces", "put",
          texture_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, flags)), 0);
    FAILS(CUDA_ERROR_MISALIGNED_ADDRESS, "byte 2 of a row", "put",
          surface_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, flags)), 2);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "byte 32 is outside", "put",
          surface_of(array_of(8, 64, CU_AD_FORMAT_FLOAT, flags)), 32);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "byte -4 is outside", "put",
          surface_of(array_of(8, 64, CU_AD_FORMAT_FLOAT, flags)), -4);
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, "row 16 is outside", "put",
          surface_of(array_of(8, 16, CU_AD_FORMAT_FLOAT, flags)), 16);
    cr_assert_eq(run(api_function(kernels, "put"),
                     surface_of(array_of(8, 64, CU_AD_FORMAT_FLOAT, flags)), 28),
                 CUDA_SUCCESS);
}

Test(api_texture, a_texel_that_was_never_written_is_reported) {
    float texels[64] = {0};
    api_context(0);
    test_capture(stderr);
    CUarray array = array_of(8, 8, CU_AD_FORMAT_FLOAT, 0);
    CUtexObject texture = texture_of(array);
    CUfunction read = api_function(kernels, "read");
    cr_assert_eq(run(read, texture, 0), CUDA_SUCCESS);
    size_t said = strlen(test_captured(stderr));
    cr_assert(strstr(test_captured(stderr), "uninitialised read") != NULL);
    OK(cuMemcpyHtoA_v2(array, 0, texels, sizeof texels));
    cr_assert_eq(run(read, texture, 0), CUDA_SUCCESS);
    cr_assert_eq(strlen(test_captured(stderr)), said);
}

Test(api_texture, objects_of_another_context_are_not_found_by_kernels) {
    CUcontext other = NULL;
    setenv("TOLLENS_SOFT_DEVICES", "2", 1);
    api_context(0);
    test_capture(stderr);
    CUtexObject texture = texture_of(array_of(8, 8, CU_AD_FORMAT_FLOAT, 0));
    OK(cuCtxCreate_v2(&other, 0, 1));
    cr_assert_eq(run(api_function(kernels, "read"), texture, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "of another context") != NULL);
}

Test(api_texture, a_view_is_another_format_and_some_of_the_layers) {
    enum { SIDE = 4, LAYERS = 5 };
    static const char layer[] =
        ".version 6.5\n.target sm_50\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 object, .param .u32 layer)\n{\n"
        ".reg .b64 %out, %o; .reg .b32 %l, %a, %b, %c, %d; .reg .f32 %z;\n"
        "ld.param.u64 %out, [out];\nld.param.u64 %o, [object];\nld.param.u32 %l, [layer];\n"
        "mov.f32 %z, 0f00000000;\n"
        "tex.a2d.v4.u32.f32 {%a, %b, %c, %d}, [%o, {%l, %z, %z, %z}];\n"
        "st.global.v2.u32 [%out], {%a, %b};\nret;\n}\n";
    uint32_t texels[LAYERS][SIDE][SIDE], got[2];
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        SIDE, SIDE, LAYERS, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED};
    CUDA_TEXTURE_DESC description = {.addressMode = {1, 1, 1}, .flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_VIEW_DESC view = {.format = 8, /* two half-words */
                                    .width = SIDE,
                                    .height = SIDE,
                                    .firstLayer = 2,
                                    .lastLayer = 3};
    CUarray array = NULL;
    CUtexObject texture = 0;
    CUdeviceptr out = 0;
    api_context(0);
    for (unsigned i = 0; i < LAYERS * SIDE * SIDE; i++) (&texels[0][0][0])[i] = i << 16 | (i + 7);
    OK(cuArray3DCreate_v2(&array, &shape));
    OK(cuMemcpyHtoA_v2(array, 0, texels, sizeof texels));
    OK(cuMemAlloc_v2(&out, sizeof got));
    CUDA_RESOURCE_DESC resource = of_array(array);
    OK(cuTexObjectCreate(&texture, &resource, &description, &view));
    CUfunction kernel = api_function(layer, "k");
    for (unsigned i = 0; i < 4; i++) {
        unsigned expected = 2 + (i < 1 ? 0 : 1); /* of two layers; a number too high is the last */
        void *parameters[] = {&out, &texture, &i};
        OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        OK(cuMemcpyDtoH_v2(got, out, sizeof got));
        cr_assert_eq(got[0], texels[expected][0][0] & 0xffff);
        cr_assert_eq(got[1], texels[expected][0][0] >> 16);
    }
    view.lastLayer = LAYERS;
    REFUSED(cuTexObjectCreate(&texture, &resource, &description, &view), CUDA_ERROR_INVALID_VALUE);
}
