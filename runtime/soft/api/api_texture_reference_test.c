/*
 * Texture and surface references: PTX that declares them, and the bound objects in kernels.
 */
#include "test/test_api.h"
#include "test/test_soft.h"

#include <string.h>

enum { WIDTH = 8, HEIGHT = 4 };

/* As nvcc made PTX of texture<float, 2> and surface<void, 1>. */
static const char references[] =
    ".version 6.5\n.target sm_50\n.address_size 64\n"
    ".global .texref image;\n.global .texref row;\n.global .surfref cells;\n.global .u64 other;\n"
    ".visible .entry at(.param .u64 out, .param .f32 x, .param .f32 y)\n{\n"
    ".reg .b64 %out; .reg .f32 %x, %y, %a, %b, %c, %d;\n"
    "ld.param.u64 %out, [out];\nld.param.f32 %x, [x];\nld.param.f32 %y, [y];\n"
    "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [image, {%x, %y}];\n"
    "st.global.f32 [%out], %a;\nret;\n}\n"
    ".visible .entry in_row(.param .u64 out, .param .u32 x)\n{\n"
    ".reg .b64 %out, %t; .reg .b32 %x; .reg .f32 %a, %b, %c, %d;\n"
    "ld.param.u64 %out, [out];\nld.param.u32 %x, [x];\nmov.u64 %t, row;\n"
    "tex.1d.v4.f32.s32 {%a, %b, %c, %d}, [%t, {%x}];\n"
    "st.global.f32 [%out], %a;\nret;\n}\n"
    ".visible .entry put(.param .u32 x, .param .u32 value)\n{\n"
    ".reg .b32 %x, %v;\n"
    "ld.param.u32 %x, [x];\nld.param.u32 %v, [value];\n"
    "sust.b.1d.b32.trap [cells, {%x}], %v;\nret;\n}\n";

static CUmodule load(void) {
    CUmodule module = NULL;
    api_context(0);
    OK(cuModuleLoadData(&module, references));
    return module;
}

static CUresult launch(CUmodule module, const char *name, void **parameters) {
    CUfunction kernel = NULL;
    OK(cuModuleGetFunction(&kernel, module, name));
    OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    return cuCtxSynchronize();
}

static float at(CUmodule module, CUdeviceptr out, float x, float y) {
    void *parameters[] = {&out, &x, &y};
    float got = 0;
    OK(launch(module, "at", parameters));
    OK(cuMemcpyDtoH_v2(&got, out, sizeof got));
    return got;
}

static CUarray filled(unsigned height, CUarray_format format, unsigned flags, const void *bytes) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {WIDTH, height, 0, format, 1, flags};
    CUarray array = NULL;
    OK(cuArray3DCreate_v2(&array, &shape));
    OK(cuMemcpyHtoA_v2(array, 0, bytes, sizeof(float) * WIDTH * (height > 0 ? height : 1)));
    return array;
}

Test(api_texture_reference, a_reference_gives_what_is_bound_to_it) {
    float texels[HEIGHT][WIDTH], other[HEIGHT][WIDTH];
    CUtexref image = NULL, same = NULL;
    CUarray told = NULL;
    CUdeviceptr out = 0;
    CUmodule module = load();
    OK(cuMemAlloc_v2(&out, 4));
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        (&texels[0][0])[i] = (float)(i * i);
        (&other[0][0])[i] = (float)-i;
    }
    CUarray one = filled(HEIGHT, CU_AD_FORMAT_FLOAT, 0, texels);
    CUarray two = filled(HEIGHT, CU_AD_FORMAT_FLOAT, 0, other);
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuModuleGetTexRef(&same, module, "image"));
    cr_assert_eq(image, same);
    OK(cuTexRefSetArray(image, one, CU_TRSA_OVERRIDE_FORMAT));
    OK(cuTexRefGetArray(&told, image));
    cr_assert_eq(told, one);
    cr_assert_eq(at(module, out, 3.5f, 2.5f), texels[2][3]);
    cr_assert_eq(at(module, out, -9.0f, 99.0f), texels[HEIGHT - 1][0]);
    OK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
    cr_assert_eq(at(module, out, 4.0f, 2.5f), (texels[2][3] + texels[2][4]) / 2);
    OK(cuTexRefSetFlags(image, CU_TRSF_NORMALIZED_COORDINATES));
    OK(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_WRAP));
    cr_assert_eq(at(module, out, 1 + 3.5f / WIDTH, 2.5f / HEIGHT), texels[2][3]);
    OK(cuTexRefSetArray(image, two, CU_TRSA_OVERRIDE_FORMAT));
    cr_assert_eq(at(module, out, 1 + 3.5f / WIDTH, 2.5f / HEIGHT), other[2][3]);
    OK(cuModuleUnload(module));
    REFUSED(cuTexRefSetArray(image, one, CU_TRSA_OVERRIDE_FORMAT), CUDA_ERROR_INVALID_VALUE);
}

Test(api_texture_reference, memory_may_begin_anywhere) {
    enum { COUNT = 40, OFFSET = 52 };
    float texels[OFFSET / 4 + COUNT], got = 0;
    CUtexref row = NULL;
    CUdeviceptr out = 0, memory = 0, told = 0;
    size_t offset = 0;
    CUmodule module = load();
    OK(cuMemAlloc_v2(&out, 4));
    OK(cuMemAlloc_v2(&memory, sizeof texels));
    for (int i = 0; i < OFFSET / 4 + COUNT; i++) texels[i] = (float)i;
    OK(cuMemcpyHtoD_v2(memory, texels, sizeof texels));
    OK(cuModuleGetTexRef(&row, module, "row"));
    REFUSED(cuTexRefSetAddress_v2(NULL, row, memory + OFFSET, COUNT * 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexRefSetAddress_v2(&offset, row, memory + OFFSET, COUNT * 4));
    cr_assert_eq(offset, OFFSET);
    OK(cuTexRefGetAddress_v2(&told, row));
    cr_assert_eq(told, memory);
    for (unsigned i = 0; i < COUNT; i += 7) {
        unsigned place = i + OFFSET / 4;
        void *parameters[] = {&out, &place};
        OK(launch(module, "in_row", parameters));
        OK(cuMemcpyDtoH_v2(&got, out, sizeof got));
        cr_assert_eq(got, texels[place]);
    }
    CUDA_ARRAY_DESCRIPTOR rows = {
        .Width = 4, .Height = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUtexref image = NULL;
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuTexRefSetAddress2D_v3(image, &rows, memory, 64));
    cr_assert_eq(at(module, out, 2.5f, 1.5f), texels[16 + 2]);
    REFUSED(cuTexRefSetAddress2D_v3(image, &rows, memory + 4, 64), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(at(module, out, 2.5f, 1.5f), texels[16 + 2]);
}

Test(api_texture_reference, a_surface_reference_is_written) {
    int words[WIDTH] = {0}, back[WIDTH];
    CUsurfref cells = NULL;
    CUarray told = NULL;
    CUmodule module = load();
    CUarray array = filled(0, CU_AD_FORMAT_SIGNED_INT32, CUDA_ARRAY3D_SURFACE_LDST, words);
    CUarray plain = filled(0, CU_AD_FORMAT_SIGNED_INT32, 0, words);
    OK(cuModuleGetSurfRef(&cells, module, "cells"));
    REFUSED(cuSurfRefSetArray(cells, plain, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfRefSetArray(cells, array, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuSurfRefGetArray(&told, cells), CUDA_ERROR_INVALID_VALUE); /* as it was: unbound */
    OK(cuSurfRefSetArray(cells, array, 0));
    OK(cuSurfRefGetArray(&told, cells));
    cr_assert_eq(told, array);
    for (int i = 0; i < WIDTH; i++) {
        int x = 4 * i, value = 100 - i;
        void *parameters[] = {&x, &value};
        OK(launch(module, "put", parameters));
    }
    OK(cuMemcpyAtoH_v2(back, array, 0, sizeof back));
    for (int i = 0; i < WIDTH; i++) cr_assert_eq(back[i], 100 - i);
}

Test(api_texture_reference, settings_are_told_again_and_checked) {
    CUmodule module = load();
    CUtexref image = NULL, own = NULL;
    CUsurfref cells = NULL;
    CUaddress_mode mode = 0;
    CUfilter_mode filter = 0;
    CUarray_format format = 0;
    CUdeviceptr address = 0;
    int channels = 0, anisotropy = 0;
    unsigned flags = 0;
    float bias = 0, least = 0, most = 0, color[4] = {1, 2, 3, 4}, told[4];
    REFUSED(cuModuleGetTexRef(&image, module, "none"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetTexRef(&image, module, "cells"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetTexRef(&image, module, "other"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetSurfRef(&cells, module, "image"), CUDA_ERROR_NOT_FOUND);
    REFUSED(cuModuleGetTexRef(NULL, module, "image"), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuModuleGetGlobal_v2(&address, NULL, module, "image"), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuTexRefCreate(&own));
    OK(cuTexRefSetFormat(own, CU_AD_FORMAT_HALF, 2));
    OK(cuTexRefDestroy(own));
    REFUSED(cuTexRefDestroy(own), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefDestroy(image), CUDA_ERROR_INVALID_VALUE);
    OK(cuTexRefSetFormat(image, CU_AD_FORMAT_SIGNED_INT16, 4));
    OK(cuTexRefGetFormat(&format, &channels, image));
    cr_assert(format == CU_AD_FORMAT_SIGNED_INT16 && channels == 4);
    OK(cuTexRefSetAddressMode(image, 2, CU_TR_ADDRESS_MODE_MIRROR));
    OK(cuTexRefGetAddressMode(&mode, image, 2));
    cr_assert_eq(mode, CU_TR_ADDRESS_MODE_MIRROR);
    OK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
    OK(cuTexRefGetFilterMode(&filter, image));
    cr_assert_eq(filter, CU_TR_FILTER_MODE_LINEAR);
    OK(cuTexRefSetMipmapFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
    filter = 0;
    OK(cuTexRefGetMipmapFilterMode(&filter, image));
    cr_assert_eq(filter, CU_TR_FILTER_MODE_LINEAR);
    OK(cuTexRefSetMipmapLevelBias(image, 0.5f));
    OK(cuTexRefGetMipmapLevelBias(&bias, image));
    OK(cuTexRefSetMipmapLevelClamp(image, 1, 2));
    OK(cuTexRefGetMipmapLevelClamp(&least, &most, image));
    cr_assert(bias == 0.5f && least == 1 && most == 2);
    OK(cuTexRefSetMaxAnisotropy(image, 8));
    OK(cuTexRefGetMaxAnisotropy(&anisotropy, image));
    cr_assert_eq(anisotropy, 8);
    OK(cuTexRefSetBorderColor(image, color));
    OK(cuTexRefGetBorderColor(told, image));
    cr_assert(memcmp(told, color, sizeof color) == 0);
    OK(cuTexRefSetFlags(image, CU_TRSF_READ_AS_INTEGER));
    OK(cuTexRefGetFlags(&flags, image));
    cr_assert_eq(flags, CU_TRSF_READ_AS_INTEGER);
    REFUSED(cuTexRefSetFlags(image, 0x1000), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetFormat(image, 0x99, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetFormat(image, CU_AD_FORMAT_FLOAT, 3), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetAddressMode(image, 3, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetAddressMode(image, 0, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetFilterMode(image, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefGetAddress_v2(&address, image), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuTexRefSetFilterMode((CUtexref)(void *)&flags, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(api_texture_reference, a_kernel_is_told_that_nothing_is_bound) {
    float x = 0, y = 0;
    CUdeviceptr out = 0;
    CUmodule module = load();
    test_capture(stderr);
    OK(cuMemAlloc_v2(&out, 4));
    void *parameters[] = {&out, &x, &y};
    cr_assert_eq(launch(module, "at", parameters), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert(strstr(test_captured(stderr), "nothing is bound to the reference image") != NULL);
}

/* PTX before 1.5 had a state space for them. */
Test(api_texture_reference, a_texture_of_old_ptx_is_a_reference) {
    static const char old[] =
        ".version 1.4\n.target sm_13\n.tex .u32 image;\n"
        ".entry at(.param .u64 out, .param .f32 x, .param .f32 y)\n{\n"
        ".reg .b64 %out; .reg .f32 %x, %y, %a, %b, %c, %d;\n"
        "ld.param.u64 %out, [out];\nld.param.f32 %x, [x];\nld.param.f32 %y, [y];\n"
        "tex.2d.v4.f32.f32 {%a, %b, %c, %d}, [image, {%x, %y, %y, %y}];\n"
        "st.global.f32 [%out], %a;\nexit;\n}\n";
    float texels[HEIGHT][WIDTH];
    CUmodule module = NULL;
    CUtexref image = NULL;
    CUdeviceptr out = 0;
    api_context(0);
    for (int i = 0; i < WIDTH * HEIGHT; i++) (&texels[0][0])[i] = (float)i;
    OK(cuModuleLoadData(&module, old));
    OK(cuModuleGetTexRef(&image, module, "image"));
    OK(cuMemAlloc_v2(&out, 4));
    OK(cuTexRefSetArray(image, filled(HEIGHT, CU_AD_FORMAT_FLOAT, 0, texels),
                        CU_TRSA_OVERRIDE_FORMAT));
    cr_assert_eq(at(module, out, 5.0f, 1.0f), texels[1][5]);
}
