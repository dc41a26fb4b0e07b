/*
 * CUDA arrays: valid ones, their descriptions, and copies between them, memory and the host.
 */
#include "test/test_api.h"

#include <string.h>

enum { WIDTH = 24, HEIGHT = 5, DEPTH = 3, PIXEL = 4, ROW = WIDTH * PIXEL };

static CUarray array_of(size_t width, size_t height, size_t depth, unsigned channels,
                        unsigned flags) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {width,    height, depth, CU_AD_FORMAT_UNSIGNED_INT8,
                                           channels, flags};
    CUarray array = NULL;
    OK(cuArray3DCreate_v2(&array, &shape));
    return array;
}

static void fill(unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i * 7 + i / 100);
}

Test(api_array, shapes_are_those_of_the_manual) {
    static const struct {
        CUDA_ARRAY3D_DESCRIPTOR shape;
        CUresult result;
    } rows[] = {
        {{100, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_SUCCESS},
        {{100, 50, 0, CU_AD_FORMAT_HALF, 2, 0}, CUDA_SUCCESS},
        {{10, 5, 4, CU_AD_FORMAT_SIGNED_INT16, 4, 0}, CUDA_SUCCESS},
        {{10, 0, 4, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED}, CUDA_SUCCESS},
        {{10, 8, 4, CU_AD_FORMAT_SIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED}, CUDA_SUCCESS},
        {{8, 8, 6, CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_CUBEMAP}, CUDA_SUCCESS},
        {{8, 8, 12, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
         CUDA_SUCCESS},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER}, CUDA_SUCCESS},
        {{8, 32768, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_TEXTURE_GATHER}, CUDA_SUCCESS},
        {{8, 32769, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_TEXTURE_GATHER},
         CUDA_ERROR_INVALID_VALUE},
        {{32769, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_TEXTURE_GATHER},
         CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST}, CUDA_SUCCESS},
        {{131072, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_SUCCESS},
        {{131073, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 65537, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 16385, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 2048, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED}, CUDA_SUCCESS},
        {{8, 8, 2049, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED},
         CUDA_ERROR_INVALID_VALUE},
        {{0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{0, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 0, 8, CU_AD_FORMAT_FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 3, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 0, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, 0x77, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, 0, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0x8000}, CUDA_ERROR_INVALID_VALUE},
        {{8, 4, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 8, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
         CUDA_ERROR_INVALID_VALUE},
        {{8, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER}, CUDA_ERROR_INVALID_VALUE},
        {{8, 8, 0, CU_AD_FORMAT_NV12, 1, 0}, CUDA_ERROR_NOT_SUPPORTED},
        {{8, 8, 0, CU_AD_FORMAT_UNORM_INT8X1, 1, 0}, CUDA_ERROR_NOT_SUPPORTED},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE}, CUDA_ERROR_NOT_SUPPORTED},
        {{8, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING}, CUDA_ERROR_NOT_SUPPORTED},
    };
    size_t before = 0, after = 0;
    api_context(0);
    OK(cuMemGetInfo_v2(&before, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUarray array = NULL;
        CUDA_ARRAY3D_DESCRIPTOR told;
        CUresult result = cuArray3DCreate_v2(&array, &rows[i].shape);
        cr_assert(result == rows[i].result, "row %zu: %s", i, api_code(result));
        if (result != CUDA_SUCCESS) continue;
        OK(cuArray3DGetDescriptor_v2(&told, array));
        cr_assert(told.Width == rows[i].shape.Width && told.Height == rows[i].shape.Height &&
                      told.Depth == rows[i].shape.Depth && told.Format == rows[i].shape.Format &&
                      told.NumChannels == rows[i].shape.NumChannels &&
                      told.Flags == rows[i].shape.Flags,
                  "row %zu", i);
        OK(cuArrayDestroy(array));
        REFUSED(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
    }
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after);
}

Test(api_array, handles_and_pointers_are_checked) {
    const CUDA_ARRAY_DESCRIPTOR flat = {WIDTH, HEIGHT, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY_DESCRIPTOR told;
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUarray array = NULL, plane = NULL;
    unsigned char bytes[16] = {0};
    api_context(0);
    REFUSED(cuArrayCreate_v2(NULL, &flat), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuArrayCreate_v2(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayCreate_v2(&array, &flat));
    OK(cuArrayGetDescriptor_v2(&told, array));
    cr_assert(told.Width == WIDTH && told.Height == HEIGHT && told.NumChannels == 1);
    cr_assert_eq(told.Format, CU_AD_FORMAT_FLOAT);
    REFUSED(cuArrayGetDescriptor_v2(NULL, array), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuArrayGetDescriptor_v2(&told, (CUarray)(void *)&told), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuArrayGetMemoryRequirements(&requirements, array, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuArrayGetMemoryRequirements(&requirements, array, 99), CUDA_ERROR_INVALID_DEVICE);
    REFUSED(cuArrayGetSparseProperties(&sparse, array), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuArrayGetPlane(&plane, array, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoA_v2(NULL, 0, bytes, 4), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMemcpyHtoA_v2(array, 2, bytes, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoA_v2(array, 0, bytes, 3), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoA_v2(array, WIDTH * HEIGHT * 4 - 4, bytes, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyHtoA_v2(array, WIDTH * HEIGHT * 4 - 4, bytes, 4));
    OK(cuArrayDestroy(array));
    REFUSED(cuArrayGetDescriptor_v2(&told, array), CUDA_ERROR_INVALID_HANDLE);
    REFUSED(cuMemcpyHtoA_v2(array, 0, bytes, 4), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_array, bytes_go_every_way_by_offsets) {
    unsigned char sent[ROW], back[ROW];
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    api_context(0);
    CUarray one = array_of(WIDTH, 0, 0, PIXEL, 0), other = array_of(WIDTH, 0, 0, PIXEL, 0);
    CUarray narrow = array_of(ROW, 0, 0, 1, 0);
    OK(cuMemAlloc_v2(&memory, ROW));
    OK(cuStreamCreate(&stream, 0));
    fill(sent, ROW);
    OK(cuMemcpyHtoA_v2(one, 0, sent, ROW));
    OK(cuMemcpyAtoA_v2(other, 0, one, 4, ROW - 4));
    OK(cuMemcpyAtoA_v2(other, ROW - 4, one, 0, 4));
    OK(cuMemcpyAtoD_v2(memory, other, 8, ROW - 8));
    OK(cuMemcpyDtoA_v2(one, 0, memory, 40));
    memset(back, 0, ROW);
    OK(cuMemcpyAtoHAsync_v2(back, one, 0, 40, stream));
    OK(cuStreamSynchronize(stream));
    cr_assert(memcmp(back, sent + 12, 40) == 0);
    OK(cuMemcpyHtoAAsync_v2(other, 0, sent, ROW, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyAtoH_v2(back, other, 0, ROW));
    cr_assert(memcmp(back, sent, ROW) == 0);
    REFUSED(cuMemcpyAtoA_v2(narrow, 0, one, 0, 8), CUDA_ERROR_INVALID_VALUE);
}

Test(api_array, rectangles_go_every_way) {
    unsigned char sent[HEIGHT][ROW], back[HEIGHT][ROW];
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    api_context(0);
    CUarray one = array_of(WIDTH, HEIGHT, 0, PIXEL, 0),
            other = array_of(WIDTH, HEIGHT, 0, PIXEL, 0);
    OK(cuMemAllocPitch_v2(&memory, &pitch, ROW, HEIGHT, 4));
    fill(&sent[0][0], sizeof sent);
    memset(back, 0, sizeof back);
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = sent,
                        .srcPitch = ROW,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = one,
                        .WidthInBytes = ROW,
                        .Height = HEIGHT};
    OK(cuMemcpy2D_v2(&in));
    /* three by two elements, from (2, 1) to (5, 3) */
    CUDA_MEMCPY2D across = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .srcArray = one,
                            .srcXInBytes = 2 * PIXEL,
                            .srcY = 1,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstArray = other,
                            .dstXInBytes = 5 * PIXEL,
                            .dstY = 3,
                            .WidthInBytes = 3 * PIXEL,
                            .Height = 2};
    OK(cuMemcpy2D_v2(&across));
    CUDA_MEMCPY2D to_device = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                               .srcArray = other,
                               .srcXInBytes = 5 * PIXEL,
                               .srcY = 3,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = memory,
                               .dstPitch = pitch,
                               .WidthInBytes = 3 * PIXEL,
                               .Height = 2};
    OK(cuMemcpy2DUnaligned_v2(&to_device));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = memory,
                         .srcPitch = pitch,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = ROW,
                         .WidthInBytes = 3 * PIXEL,
                         .Height = 2};
    OK(cuMemcpy2D_v2(&out));
    for (int y = 0; y < 2; y++) {
        cr_assert(memcmp(back[y], &sent[1 + y][2 * PIXEL], 3 * PIXEL) == 0, "row %d", y);
    }
    across.dstXInBytes = ROW - 2 * PIXEL;
    REFUSED(cuMemcpy2D_v2(&across), CUDA_ERROR_INVALID_VALUE);
    across.dstXInBytes = 0;
    across.dstY = HEIGHT - 1;
    REFUSED(cuMemcpy2D_v2(&across), CUDA_ERROR_INVALID_VALUE);
    across.dstY = 0;
    across.srcXInBytes = 1;
    REFUSED(cuMemcpy2D_v2(&across), CUDA_ERROR_INVALID_VALUE);
    across.srcXInBytes = 0;
    across.srcArray = NULL;
    REFUSED(cuMemcpy2D_v2(&across), CUDA_ERROR_INVALID_VALUE);
}

Test(api_array, boxes_and_layers_go_every_way) {
    unsigned char sent[DEPTH][HEIGHT][ROW], back[DEPTH][HEIGHT][ROW];
    CUcontext context = api_context(0);
    fill(&sent[0][0][0], sizeof sent);
    static const unsigned flags[] = {0, CUDA_ARRAY3D_LAYERED};
    for (int i = 0; i < 2; i++) {
        CUarray one = array_of(WIDTH, HEIGHT, DEPTH, PIXEL, flags[i]);
        CUarray other = array_of(WIDTH, HEIGHT, DEPTH, PIXEL, flags[i]);
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = sent,
                              .srcPitch = ROW,
                              .srcHeight = HEIGHT,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .dstArray = one,
                              .WidthInBytes = ROW,
                              .Height = HEIGHT,
                              .Depth = DEPTH};
        OK(cuMemcpy3D_v2(&copy));
        CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                   .srcArray = one,
                                   .srcZ = 1,
                                   .srcContext = context,
                                   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                   .dstArray = other,
                                   .dstContext = context,
                                   .WidthInBytes = ROW,
                                   .Height = HEIGHT,
                                   .Depth = DEPTH - 1};
        OK(cuMemcpy3DPeer(&peer));
        memset(back, 0, sizeof back);
        CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcArray = other,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = back,
                             .dstPitch = ROW,
                             .dstHeight = HEIGHT,
                             .WidthInBytes = ROW,
                             .Height = HEIGHT,
                             .Depth = DEPTH - 1};
        OK(cuMemcpy3DAsync_v2(&out, NULL));
        OK(cuStreamSynchronize(NULL));
        cr_assert(memcmp(back, sent[1], sizeof back - sizeof back[0]) == 0);
        out.srcZ = 2;
        REFUSED(cuMemcpy3D_v2(&out), CUDA_ERROR_INVALID_VALUE);
        OK(cuArrayDestroy(one));
        OK(cuArrayDestroy(other));
    }
}

Test(api_array, arrays_end_with_their_context) {
    CUcontext context = NULL;
    CUDA_ARRAY3D_DESCRIPTOR told;
    size_t before = 0, after = 0;
    api_context(0);
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuCtxCreate_v2(&context, 0, 0));
    CUarray array = array_of(WIDTH, HEIGHT, 0, PIXEL, 0);
    OK(cuCtxDestroy_v2(context));
    OK(cuMemGetInfo_v2(&after, NULL));
    cr_assert_eq(before, after);
    REFUSED(cuArray3DGetDescriptor_v2(&told, array), CUDA_ERROR_INVALID_HANDLE);
}

Test(api_array, a_pending_copy_finishes_before_the_array_is_destroyed) {
    unsigned char sent[ROW], back[ROW];
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    api_context(0);
    CUarray array = array_of(WIDTH, 0, 0, PIXEL, 0);
    OK(cuMemAlloc_v2(&memory, ROW));
    OK(cuStreamCreate(&stream, 0));
    fill(sent, ROW);
    OK(cuMemcpyHtoAAsync_v2(array, 0, sent, ROW, stream));
    OK(cuMemcpyAtoHAsync_v2(back, array, 0, ROW, stream));
    OK(cuArrayDestroy(array));
    cr_assert(memcmp(sent, back, ROW) == 0);
}
