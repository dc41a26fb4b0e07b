/*
 * Mipmapped arrays: their levels, their textures, and the results at a level or with gradients.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static CUdeviceptr in, out;

static void open_device(void) {
    api_context(0);
    OK(cuMemAlloc_v2(&in, 64));
    OK(cuMemAlloc_v2(&out, 64));
}

TestSuite(api_mipmap, .init = open_device);

static CUmipmappedArray mipmap_of(size_t width, size_t height, size_t depth, unsigned levels,
                                  unsigned flags) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
    CUmipmappedArray mipmap = NULL;
    OK(cuMipmappedArrayCreate(&mipmap, &shape, levels));
    return mipmap;
}

static CUarray level_of(CUmipmappedArray mipmap, unsigned level) {
    CUarray array = NULL;
    OK(cuMipmappedArrayGetLevel(&array, mipmap, level));
    return array;
}

/* Fills a level with numbers: a first one, and a step from texel to texel. */
static void fill(CUmipmappedArray mipmap, unsigned level, float first, float step) {
    static float texels[4096];
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUarray array = level_of(mipmap, level);
    OK(cuArray3DGetDescriptor_v2(&shape, array));
    size_t rows = shape.Height > 0 ? shape.Height : 1, layers = shape.Depth > 0 ? shape.Depth : 1;
    for (size_t i = 0; i < shape.Width * rows * layers; i++) texels[i] = first + (float)i * step;
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = texels,
                          .srcPitch = shape.Width * 4,
                          .srcHeight = rows,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = shape.Width * 4,
                          .Height = rows,
                          .Depth = layers};
    OK(cuMemcpy3D_v2(&copy));
}

static const CUDA_TEXTURE_DESC near_levels = {
    .addressMode = {1, 1, 1}, .flags = CU_TRSF_NORMALIZED_COORDINATES, .maxMipmapLevelClamp = 100};

static CUtexObject texture_of(CUmipmappedArray mipmap, const CUDA_TEXTURE_DESC *description) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUtexObject texture = 0;
    resource.res.mipmap.hMipmappedArray = mipmap;
    OK(cuTexObjectCreate(&texture, &resource, description, NULL));
    return texture;
}

/* What an instruction gives: %o is the object, %f0 to %f7 the numbers, %r0 to %r3 the first four as
 * integers; the result comes into %d0, or into %i. */
static float run(const char *instruction, CUtexObject texture, const float numbers[8]) {
    static char text[2000];
    snprintf(text, sizeof text,
             ".version 6.5\n.target sm_50\n.address_size 64\n"
             ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 object)\n{\n"
             ".reg .b64 %%in, %%out, %%o; .reg .f32 %%f<8>, %%d<4>; .reg .b32 %%r<4>, %%i;\n"
             "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\nld.param.u64 %%o, [object];\n"
             "ld.global.v4.f32 {%%f0, %%f1, %%f2, %%f3}, [%%in];\n"
             "ld.global.v4.f32 {%%f4, %%f5, %%f6, %%f7}, [%%in+16];\n"
             "cvt.rzi.s32.f32 %%r0, %%f0;\ncvt.rzi.s32.f32 %%r1, %%f1;\n"
             "cvt.rzi.s32.f32 %%r2, %%f2;\ncvt.rzi.s32.f32 %%r3, %%f3;\nmov.f32 %%d0, 0f00000000;\n"
             "mov.b32 %%i, 0;\n%s\ncvt.rn.f32.u32 %%d1, %%i;\nadd.f32 %%d0, %%d0, %%d1;\n"
             "st.global.f32 [%%out], %%d0;\nret;\n}\n",
             instruction);
    CUfunction kernel = api_function(text, "k");
    void *parameters[] = {&in, &out, &texture};
    float got = 0;
    OK(cuMemcpyHtoD_v2(in, numbers, 32));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(&got, out, sizeof got));
    return got;
}

#define NUMBERS(...) ((const float[8]){__VA_ARGS__})
#define GIVES(instruction, texture, expected, ...)                                                 \
    do {                                                                                           \
        float gives_got = run(instruction, texture, NUMBERS(__VA_ARGS__));                         \
        cr_assert(gives_got == (float)(expected), "%s with %s: %a, not %a", instruction,           \
                  #__VA_ARGS__, (double)gives_got, (double)(expected));                            \
    } while (0)

static const char at_level[] = "tex.level.2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%f0,%f1}], %f2;";

Test(api_mipmap, levels_are_arrays_of_half_the_size) {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUarray array = NULL;
    CUmipmappedArray mipmap = mipmap_of(10, 4, 0, 99, CUDA_ARRAY3D_SURFACE_LDST);
    static const size_t sizes[4][2] = {{10, 4}, {5, 2}, {2, 1}, {1, 1}};
    for (unsigned i = 0; i < 4; i++) {
        OK(cuArray3DGetDescriptor_v2(&shape, level_of(mipmap, i)));
        cr_assert(shape.Width == sizes[i][0] && shape.Height == sizes[i][1] && shape.Depth == 0);
        cr_assert(shape.Flags == CUDA_ARRAY3D_SURFACE_LDST && shape.Format == CU_AD_FORMAT_FLOAT);
    }
    cr_assert_eq(level_of(mipmap, 2), level_of(mipmap, 2));
    REFUSED(cuMipmappedArrayGetLevel(&array, mipmap, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMipmappedArrayGetLevel(NULL, mipmap, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuArrayDestroy(level_of(mipmap, 1)), CUDA_ERROR_INVALID_VALUE);
    array = level_of(mipmap, 1);
    OK(cuMipmappedArrayDestroy(mipmap));
    REFUSED(cuArray3DGetDescriptor_v2(&shape, array), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMipmappedArrayGetLevel(&array, mipmap, 0), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);

    mipmap = mipmap_of(4, 8, 2, 3, 0); /* a box: its slices become fewer as well */
    OK(cuArray3DGetDescriptor_v2(&shape, level_of(mipmap, 2)));
    cr_assert(shape.Width == 1 && shape.Height == 2 && shape.Depth == 1);
    REFUSED(cuMipmappedArrayGetLevel(&array, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
    mipmap = mipmap_of(4, 4, 3, 0, CUDA_ARRAY3D_LAYERED);
    REFUSED(cuMipmappedArrayGetLevel(&array, mipmap, 1), CUDA_ERROR_INVALID_VALUE);
    mipmap = mipmap_of(4, 4, 3, 9, CUDA_ARRAY3D_LAYERED);
    OK(cuArray3DGetDescriptor_v2(&shape, level_of(mipmap, 2)));
    cr_assert(shape.Width == 1 && shape.Depth == 3);
}

Test(api_mipmap, what_cannot_be_is_refused) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUmipmappedArray mipmap = NULL;
    REFUSED(cuMipmappedArrayCreate(NULL, &shape, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMipmappedArrayCreate(&mipmap, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    shape.NumChannels = 3;
    REFUSED(cuMipmappedArrayCreate(&mipmap, &shape, 1), CUDA_ERROR_INVALID_VALUE);
    shape.NumChannels = 1;
    shape.Width = 0;
    REFUSED(cuMipmappedArrayCreate(&mipmap, &shape, 1), CUDA_ERROR_INVALID_VALUE);
    shape.Width = 8;
    shape.Flags = CUDA_ARRAY3D_SPARSE;
    REFUSED(cuMipmappedArrayCreate(&mipmap, &shape, 2), CUDA_ERROR_NOT_SUPPORTED);
    mipmap = mipmap_of(8, 8, 0, 4, 0);
    REFUSED(cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0),
            CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMipmappedArrayGetSparseProperties(&sparse, mipmap), CUDA_ERROR_INVALID_VALUE);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUDA_TEXTURE_DESC description = near_levels;
    CUtexObject texture = 0;
    resource.res.mipmap.hMipmappedArray = mipmap;
    description.flags = 0;
    REFUSED(cuTexObjectCreate(&texture, &resource, &description, NULL), CUDA_ERROR_INVALID_VALUE);
    resource.res.mipmap.hMipmappedArray = (CUmipmappedArray)(void *)level_of(mipmap, 0);
    REFUSED(cuTexObjectCreate(&texture, &resource, &near_levels, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Level l is 10 l + 1 everywhere. */
static CUmipmappedArray steps(void) {
    CUmipmappedArray mipmap = mipmap_of(8, 4, 0, 4, 0);
    for (unsigned i = 0; i < 4; i++) fill(mipmap, i, 10.0f * (float)i + 1, 0);
    return mipmap;
}

Test(api_mipmap, the_nearest_level_is_read) {
    CUtexObject texture = texture_of(steps(), &near_levels);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, 0.49f);
    GIVES(at_level, texture, 11, 0.5f, 0.5f, 0.5f);
    GIVES(at_level, texture, 21, 0.5f, 0.5f, 2);
    GIVES(at_level, texture, 31, 0.5f, 0.5f, 77);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, -3);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, NAN);
    GIVES("tex.2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%f0,%f1}];", texture, 1, 0.5f, 0.5f, 3);
    GIVES("tex.level.2d.v4.f32.s32 {%d0,%d1,%d2,%d3}, [%o, {%r0,%r1}], %r2;", texture, 21, 1, 0, 2);
}

Test(api_mipmap, two_levels_are_mixed) {
    CUDA_TEXTURE_DESC description = near_levels;
    description.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    CUtexObject texture = texture_of(steps(), &description);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 3.5, 0.5f, 0.5f, 0.25f);
    GIVES(at_level, texture, 16, 0.5f, 0.5f, 1.5f);
    GIVES(at_level, texture, 31, 0.5f, 0.5f, 3);
    GIVES(at_level, texture, 31, 0.5f, 0.5f, 3.5f);
    /* 256 steps of a weight; what is less than one is cut off. */
    GIVES(at_level, texture, 1, 0.5f, 0.5f, 0.9f / 256);
    GIVES(at_level, texture, 1 + 10 / 256.0, 0.5f, 0.5f, 1.1f / 256);
    GIVES(at_level, texture, 11 - 10 / 256.0, 0.5f, 0.5f, 1 - 0.4f / 256);
}

Test(api_mipmap, bias_and_bounds_are_those_of_the_texture) {
    CUDA_TEXTURE_DESC description = near_levels;
    description.mipmapLevelBias = 1;
    CUtexObject texture = texture_of(steps(), &description);
    GIVES(at_level, texture, 11, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 1, 0.5f, 0.5f, -1);
    description = near_levels;
    description.minMipmapLevelClamp = 1;
    description.maxMipmapLevelClamp = 2;
    texture = texture_of(steps(), &description);
    GIVES(at_level, texture, 11, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 21, 0.5f, 0.5f, 3);
}

Test(api_mipmap, gradients_choose_the_level) {
    static const char text[] =
        "tex.grad.2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%f0,%f1}], {%f2,%f3}, {%f4,%f5};";
    CUDA_TEXTURE_DESC description = near_levels;
    description.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    CUtexObject texture = texture_of(steps(), &description);
    /* Across a texel, two texels, four; 8 are in a row and 4 in a column. */
    GIVES(text, texture, 1, 0.5f, 0.5f, 1 / 8.0f, 0, 0, 1 / 4.0f);
    GIVES(text, texture, 11, 0.5f, 0.5f, 2 / 8.0f, 0, 0, 1 / 4.0f);
    GIVES(text, texture, 21, 0.5f, 0.5f, 2 / 8.0f, 0, 0, -4 / 4.0f);
    GIVES(text, texture, 16, 0.5f, 0.5f, 0, 0, 2 / 8.0f, 2 / 4.0f); /* the diagonal of a square */
    GIVES(text, texture, 1, 0.5f, 0.5f, 0, 0, 0, 0);
    GIVES(text, texture, 31, 0.5f, 0.5f, 1000, 0, 0, 0);
}

/* Texel (x, y) of level l is 100 l + x + width y; so a mixture of texels can be recognised. */
Test(api_mipmap, each_level_is_filtered_by_itself) {
    CUDA_TEXTURE_DESC description = near_levels;
    CUmipmappedArray mipmap = mipmap_of(8, 4, 0, 4, 0);
    for (unsigned i = 0; i < 4; i++) fill(mipmap, i, 100.0f * (float)i, 1);
    CUtexObject texture = texture_of(mipmap, &description);
    GIVES(at_level, texture, 0 + 2 + 8 * 3, 2.5f / 8, 3.5f / 4, 0);
    GIVES(at_level, texture, 100 + 1 + 4 * 1, 1.5f / 4, 1.5f / 2, 1);
    GIVES(at_level, texture, 200 + 1, 0.9f, 0.2f, 2);
    description.filterMode = CU_TR_FILTER_MODE_LINEAR;
    description.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    texture = texture_of(mipmap, &description);
    GIVES(at_level, texture, 2.5 + 8, 3 / 8.0f, 1.5f / 4, 0);
    /* At (0.5, 0.5): texels 3.5 and 1.5 rows of level 0, 1.5 and a half of level 1. */
    GIVES(at_level, texture, 3.5 + 8 * 1.5, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 100 + 1.5 + 4 * 0.5, 0.5f, 0.5f, 1);
    GIVES(at_level, texture, (15.5 + 103.5) / 2, 0.5f, 0.5f, 0.5f);
}

Test(api_mipmap, boxes_layers_and_cubes_have_levels) {
    CUDA_TEXTURE_DESC description = near_levels;
    CUmipmappedArray mipmap = mipmap_of(4, 4, 4, 3, 0);
    for (unsigned i = 0; i < 3; i++) fill(mipmap, i, 100.0f * (float)i, 1);
    GIVES("tex.level.3d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%f0,%f1,%f2,%f2}], %f3;",
          texture_of(mipmap, &description), 100 + 1 + 2 * 1 + 4 * 1, 0.9f, 0.9f, 0.9f, 1);
    mipmap = mipmap_of(4, 4, 3, 3, CUDA_ARRAY3D_LAYERED);
    for (unsigned i = 0; i < 3; i++) fill(mipmap, i, 100.0f * (float)i, 1);
    GIVES("tex.level.a2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%r2,%f0,%f1,%f1}], %f3;",
          texture_of(mipmap, &description), 100 + 1 + 2 * 1 + 4 * 2, 0.9f, 0.9f, 2, 1);
    mipmap = mipmap_of(4, 4, 6, 3, CUDA_ARRAY3D_CUBEMAP);
    for (unsigned i = 0; i < 3; i++) fill(mipmap, i, 100.0f * (float)i, 1);
    /* The face of -z is the last one; x goes the other way on it. */
    CUtexObject cube = texture_of(mipmap, &description);
    GIVES("tex.level.cube.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%f0,%f1,%f2,%f2}], %f3;", cube,
          100 + 5 * 4 + 1 + 2, -0.5f, -0.5f, -1, 1);
    static const char text[] = "tex.grad.cube.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, "
                               "{%f0,%f1,%f2,%f2}], {%f3,%f4,%f5,%f5}, {%f6,%f7,%f7,%f7};";
    /* At (-1, -1, -2) a step of 2 in x is one of half the face, two texels of four. */
    GIVES(text, cube, 100 + 5 * 4 + 1 + 2, -1, -1, -2, 2, 0, 0, 0, 0);
    GIVES(text, cube, 200 + 5, -1, -1, -2, 4, 0, 0, 0, 0);
    /* A step along the direction goes nowhere. */
    GIVES(text, cube, 5 * 16 + 3 + 4 * 3, -1, -1, -2, -8, -8, -16, 0, 0);
}

Test(api_mipmap, a_view_has_some_of_the_levels) {
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUDA_RESOURCE_VIEW_DESC view = {
        .width = 8, .height = 4, .firstMipmapLevel = 1, .lastMipmapLevel = 2};
    CUtexObject texture = 0;
    resource.res.mipmap.hMipmappedArray = steps();
    OK(cuTexObjectCreate(&texture, &resource, &near_levels, &view));
    GIVES(at_level, texture, 11, 0.5f, 0.5f, 0);
    GIVES(at_level, texture, 21, 0.5f, 0.5f, 1);
    GIVES(at_level, texture, 21, 0.5f, 0.5f, 2);
    GIVES("txq.width.b32 %i, [%o];", texture, 4, 0);
    view.lastMipmapLevel = 4;
    REFUSED(cuTexObjectCreate(&texture, &resource, &near_levels, &view), CUDA_ERROR_INVALID_VALUE);
    view.lastMipmapLevel = 0;
    REFUSED(cuTexObjectCreate(&texture, &resource, &near_levels, &view), CUDA_ERROR_INVALID_VALUE);

    view = (CUDA_RESOURCE_VIEW_DESC){.width = 4,
                                     .height = 4,
                                     .firstMipmapLevel = 0,
                                     .lastMipmapLevel = 1,
                                     .firstLayer = 1,
                                     .lastLayer = 2};
    CUmipmappedArray layers = mipmap_of(4, 4, 3, 3, CUDA_ARRAY3D_LAYERED);
    for (unsigned i = 0; i < 3; i++) fill(layers, i, 100.0f * (float)i, 1);
    resource.res.mipmap.hMipmappedArray = layers;
    OK(cuTexObjectCreate(&texture, &resource, &near_levels, &view));
    GIVES("tex.level.a2d.v4.f32.f32 {%d0,%d1,%d2,%d3}, [%o, {%r2,%f0,%f1,%f1}], %f3;", texture,
          100 + 1 + 2 * 1 + 4 * 2, 0.9f, 0.9f, 1, 1);
}

Test(api_mipmap, kernels_can_ask_for_the_levels) {
    CUtexObject texture = texture_of(steps(), &near_levels);
    GIVES("txq.num_mipmap_levels.b32 %i, [%o];", texture, 4, 0);
    GIVES("txq.width.b32 %i, [%o];", texture, 8, 0);
    GIVES("txq.level.width.b32 %i, [%o], %r0;", texture, 2, 2);
    GIVES("txq.level.height.b32 %i, [%o], %r0;", texture, 2, 1);
    GIVES("txq.level.width.b32 %i, [%o], %r0;", texture, 0, 4);
}

Test(api_mipmap, references_can_be_bound_to_one) {
    CUtexref reference = NULL;
    CUmipmappedArray mipmap = mipmap_of(8, 8, 0, 4, 0), found = NULL;
    CUarray array = NULL;
    OK(cuTexRefCreate(&reference));
    REFUSED(cuTexRefGetMipmappedArray(&found, reference), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexRefSetFlags(reference, CU_TRSF_NORMALIZED_COORDINATES));
    REFUSED(cuTexRefSetMipmappedArray(reference, mipmap, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetMipmappedArray(reference, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexRefSetMipmappedArray(reference, mipmap, 1));
    OK(cuTexRefGetMipmappedArray(&found, reference));
    cr_assert_eq(found, mipmap);
    REFUSED(cuTexRefGetMipmappedArray(NULL, reference), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefGetArray(&array, reference), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexRefDestroy(reference));
}

static void make_and_destroy(void) {
    CUmipmappedArray mipmap = mipmap_of(64, 64, 0, 7, 0);
    OK(cuTexObjectDestroy(texture_of(mipmap, &near_levels)));
    OK(cuMipmappedArrayDestroy(mipmap));
}

Test(api_mipmap, nothing_is_left_of_one) {
    api_must_keep_nothing(make_and_destroy, 200);
}

Test(api_mipmap_leak, a_lost_one_is_reported_once) {
    setenv("TOLLENS_SOFT_CHECK", "leak", 1);
    open_device();
    test_capture(stderr);
    (void)mipmap_of(8, 8, 0, 4, 0);
    OK(cuMemFree_v2(in));
    OK(cuMemFree_v2(out));
    OK(cuDevicePrimaryCtxReset_v2(0));
    const char *said = test_captured(stderr), *line = strchr(said, '\n');
    cr_assert(line != NULL && line[1] == '\0', "%s", said);
    cr_assert(strstr(said, "a mipmapped CUDA array") != NULL, "%s", said);
}
