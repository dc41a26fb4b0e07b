/*
 * CUDA arrays, copies of them, texture and surface objects: the runtime's functions against the
 * driver's.
 */
#include "cudart/test/test_cudart.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(cudart_array, .init = test_cudart_begin);

static const cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static const cudaChannelFormatDesc pairs = {16, 16, 0, 0, cudaChannelFormatKindUnsigned};

static cudaArray_t array_of(const cudaChannelFormatDesc *desc, size_t width, size_t height) {
    cudaArray_t array = NULL;
    OK(rt.cudaMallocArray(&array, desc, width, height, 0));
    return array;
}

static void fill(unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i * 7 + 3);
}

Test(cudart_array, it_says_what_it_is) {
    cudaArray_t array = NULL;
    cudaChannelFormatDesc desc;
    cudaExtent extent;
    unsigned flags = 9;
    OK(rt.cudaMalloc3DArray(&array, &pairs, (cudaExtent){5, 6, 7}, CUDA_ARRAY3D_LAYERED));
    OK(rt.cudaArrayGetInfo(&desc, &extent, &flags, array));
    cr_assert(memcmp(&desc, &pairs, sizeof desc) == 0);
    cr_assert(extent.width == 5 && extent.height == 6 && extent.depth == 7);
    cr_assert(flags == CUDA_ARRAY3D_LAYERED);
    memset(&desc, 0, sizeof desc);
    OK(rt.cudaGetChannelDesc(&desc, array));
    cr_assert(memcmp(&desc, &pairs, sizeof desc) == 0);
    OK(rt.cudaArrayGetInfo(NULL, NULL, NULL, array));
    OK(rt.cudaFreeArray(array));
    OK(rt.cudaFreeArray(NULL));
    cr_assert(rt.cudaGetChannelDesc(&desc, array) != cudaSuccess);
}

Test(cudart_array, each_plain_format_comes_back) {
    static const struct {
        int kind, bits;
    } formats[] = {{cudaChannelFormatKindSigned, 8},    {cudaChannelFormatKindSigned, 16},
                   {cudaChannelFormatKindSigned, 32},   {cudaChannelFormatKindUnsigned, 8},
                   {cudaChannelFormatKindUnsigned, 16}, {cudaChannelFormatKindUnsigned, 32},
                   {cudaChannelFormatKindFloat, 16},    {cudaChannelFormatKindFloat, 32}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (int channels = 1; channels <= 4; channels *= 2) {
            const int bits = formats[i].bits, second = channels > 1 ? bits : 0;
            const int third = channels > 2 ? bits : 0;
            const cudaChannelFormatDesc desc = {bits, second, third, third, formats[i].kind};
            cudaChannelFormatDesc found;
            cudaArray_t array = array_of(&desc, 4, 4);
            OK(rt.cudaGetChannelDesc(&found, array));
            cr_assert(memcmp(&desc, &found, sizeof desc) == 0);
        }
    }
}

Test(cudart_array, formats_that_are_none_are_refused) {
    static const cudaChannelFormatDesc wrong[] = {
        {8, 8, 8, 0, cudaChannelFormatKindUnsigned}, {8, 16, 0, 0, cudaChannelFormatKindUnsigned},
        {8, 0, 8, 0, cudaChannelFormatKindUnsigned}, {0, 0, 0, 0, cudaChannelFormatKindUnsigned},
        {8, 0, 0, 0, cudaChannelFormatKindFloat},    {64, 0, 0, 0, cudaChannelFormatKindSigned},
        {32, 0, 0, 0, cudaChannelFormatKindNone},    {8, 0, 0, 0, 6},
    };
    cudaArray_t array = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        IS(rt.cudaMallocArray(&array, &wrong[i], 4, 4, 0), cudaErrorInvalidChannelDescriptor);
    }
    /* Those of normalised numbers follow each other: of 8 bits for 1, 2 and 4, then of 16. */
    for (int kind = 0; kind < 12; kind++) {
        const int bits = kind % 6 < 3 ? 8 : 16, channels = 1 << kind % 3;
        for (int wide = 8; wide <= 16; wide += 8) {
            const cudaChannelFormatDesc one = {wide, channels > 1 ? wide : 0,
                                               channels > 2 ? wide : 0, channels > 2 ? wide : 0,
                                               cudaChannelFormatKindUnsignedNormalized8X1 + kind};
            const cudaError_t result = rt.cudaMallocArray(&array, &one, 4, 4, 0);
            cr_assert_eq(result == cudaErrorInvalidChannelDescriptor, wide != bits, "%d: %d", kind,
                         (int)result);
            if (result == cudaSuccess) OK(rt.cudaFreeArray(array));
        }
    }
    const cudaChannelFormatDesc planes = {8, 8, 8, 0, cudaChannelFormatKindNV12};
    IS(rt.cudaMallocArray(&array, &planes, 4, 4, 0), cudaErrorNotSupported);
    IS(rt.cudaMallocArray(NULL, &floats, 4, 4, 0), cudaErrorInvalidValue);
    IS(rt.cudaMallocArray(&array, NULL, 4, 4, 0), cudaErrorInvalidValue);
    IS(rt.cudaMallocArray(&array, &floats, 4, 4, CUDA_ARRAY3D_LAYERED), cudaErrorInvalidValue);
}

Test(cudart_array, boxes_are_copied_both_ways) {
    unsigned char from[20 * 6], to[12 * 4];
    cudaArray_t array = array_of(&floats, 8, 10), other = array_of(&floats, 8, 10);
    fill(from, sizeof from);
    OK(rt.cudaMemcpy2DToArray(array, 4, 2, from, 20, 16, 6, cudaMemcpyHostToDevice));
    OK(rt.cudaMemcpy2DArrayToArray(other, 8, 1, array, 4, 3, 12, 4, cudaMemcpyDeviceToDevice));
    OK(rt.cudaMemcpy2DFromArrayAsync(to, 12, other, 8, 1, 12, 4, cudaMemcpyDefault, NULL));
    OK(rt.cudaStreamSynchronize(NULL));
    for (int y = 0; y < 4; y++) {
        cr_assert(memcmp(to + 12 * (size_t)y, from + 20 * (size_t)(y + 1), 12) == 0, "row %d", y);
    }
    IS(rt.cudaMemcpy2DToArray(array, 0, 0, from, 8, 16, 2, cudaMemcpyHostToDevice),
       cudaErrorInvalidPitchValue);
    IS(rt.cudaMemcpy2DToArray(array, 0, 0, from, 20, 16, 2, cudaMemcpyDeviceToHost),
       cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpy2DFromArray(to, 12, array, 0, 0, 12, 4, cudaMemcpyHostToDevice),
       cudaErrorInvalidMemcpyDirection);
    IS(rt.cudaMemcpy2DToArray(array, 28, 0, from, 20, 16, 2, cudaMemcpyHostToDevice),
       cudaErrorInvalidValue);
    IS(rt.cudaMemcpy2DToArray(NULL, 0, 0, from, 20, 16, 2, cudaMemcpyHostToDevice),
       cudaErrorInvalidResourceHandle);
}

Test(cudart_array, bytes_run_through_the_rows) {
    unsigned char from[100], to[100], rest[40];
    cudaArray_t array = array_of(&floats, 6, 8), wider = array_of(&floats, 10, 8);
    fill(from, sizeof from);
    /* From within a row of 24 bytes: 8 bytes, three rows, 20 bytes. */
    OK(rt.cudaMemcpyToArray(array, 16, 1, from, 100, cudaMemcpyHostToDevice));
    OK(rt.cudaMemcpyFromArray(to, array, 16, 1, 100, cudaMemcpyDeviceToHost));
    cr_assert(memcmp(from, to, 100) == 0);
    OK(rt.cudaMemcpy2DFromArray(rest, 20, array, 0, 5, 20, 1, cudaMemcpyDeviceToHost));
    cr_assert(memcmp(rest, from + 80, 20) == 0);
    OK(rt.cudaMemcpyArrayToArray(wider, 36, 2, array, 16, 1, 100, cudaMemcpyDeviceToDevice));
    memset(to, 0, sizeof to);
    OK(rt.cudaMemcpyFromArrayAsync(to, wider, 36, 2, 100, cudaMemcpyDeviceToHost, NULL));
    OK(rt.cudaStreamSynchronize(NULL));
    cr_assert(memcmp(from, to, 100) == 0);
    OK(rt.cudaMemcpy2DFromArray(rest, 40, wider, 0, 3, 40, 1, cudaMemcpyDeviceToHost));
    cr_assert(memcmp(rest, from + 4, 40) == 0);
    IS(rt.cudaMemcpyToArray(array, 16, 4, from, 81, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    OK(rt.cudaMemcpyToArray(array, 16, 4, from, 80, cudaMemcpyHostToDevice));
    IS(rt.cudaMemcpyToArray(array, 24, 0, from, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

Test(cudart_array, three_dimensions_count_elements) {
    unsigned char from[4 * 4 * 3 * 2], to[2 * 4 * 2 * 2];
    cudaArray_t array = NULL;
    fill(from, sizeof from);
    OK(rt.cudaMalloc3DArray(&array, &pairs, (cudaExtent){5, 6, 7}, 0));
    cudaMemcpy3DParms in = {.srcPtr = {from, 16, 16, 3},
                            .dstArray = array,
                            .dstPos = {1, 2, 3},
                            .extent = {4, 3, 2},
                            .kind = cudaMemcpyHostToDevice};
    OK(rt.cudaMemcpy3D(&in));
    const cudaMemcpy3DParms out = {.srcArray = array,
                                   .srcPos = {2, 3, 3},
                                   .dstPtr = {to, 8, 8, 2},
                                   .extent = {2, 2, 2},
                                   .kind = cudaMemcpyDeviceToHost};
    OK(rt.cudaMemcpy3DAsync(&out, NULL));
    OK(rt.cudaStreamSynchronize(NULL));
    for (int z = 0; z < 2; z++) {
        for (int y = 0; y < 2; y++) {
            cr_assert(memcmp(to + 16 * (size_t)z + 8 * (size_t)y,
                             from + 48 * (size_t)z + 16 * (size_t)(y + 1) + 4, 8) == 0,
                      "row %d of slice %d", y, z);
        }
    }
    in.srcPtr.pitch = 15;
    IS(rt.cudaMemcpy3D(&in), cudaErrorInvalidPitchValue);
    in.srcPtr.pitch = 16;
    in.dstPtr.ptr = to;
    IS(rt.cudaMemcpy3D(&in), cudaErrorInvalidValue);
    in.dstPtr.ptr = NULL;
    in.srcPtr.ptr = NULL;
    in.srcArray = array_of(&(cudaChannelFormatDesc){8, 0, 0, 0, cudaChannelFormatKindSigned}, 8, 8);
    in.kind = cudaMemcpyDeviceToDevice;
    IS(rt.cudaMemcpy3D(&in), cudaErrorInvalidValue);
}

Test(cudart_array, a_node_of_a_graph_keeps_its_array) {
    unsigned char from[8 * 4];
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    cudaMemcpy3DParms found;
    cudaArray_t array = array_of(&pairs, 8, 8);
    fill(from, sizeof from);
    const cudaMemcpy3DParms in = {.srcPtr = {from, 16, 16, 2},
                                  .dstArray = array,
                                  .dstPos = {3, 5, 0},
                                  .extent = {4, 2, 1},
                                  .kind = cudaMemcpyHostToDevice};
    OK(rt.cudaGraphCreate(&graph, 0));
    OK(rt.cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &in));
    OK(rt.cudaGraphMemcpyNodeGetParams(node, &found));
    cr_assert(found.dstArray == array && found.dstPtr.ptr == NULL && found.srcArray == NULL &&
              found.srcPtr.ptr == from);
    cr_assert(found.dstPos.x == 3 && found.dstPos.y == 5 && found.extent.width == 4 &&
              found.extent.height == 2 && found.kind == cudaMemcpyHostToDevice);
}

Test(cudart_array, textures_tell_what_they_were_made_of) {
    const cudaTextureDesc how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, 3, 1},
                                 .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                 .readMode = cudaReadModeNormalizedFloat,
                                 .borderColor = {1, 2, 3, 4},
                                 .normalizedCoords = 1,
                                 .maxAnisotropy = 2,
                                 .disableTrilinearOptimization = 1};
    cudaResourceDesc of = {.resType = CU_RESOURCE_TYPE_ARRAY}, found;
    cudaTextureDesc found_how;
    cudaTextureObject_t texture = 0;
    void *row = NULL;
    of.res.array.array = array_of(&pairs, 8, 8);
    OK(rt.cudaCreateTextureObject(&texture, &of, &how, NULL));
    OK(rt.cudaGetTextureObjectResourceDesc(&found, texture));
    cr_assert(found.resType == of.resType && found.res.array.array == of.res.array.array);
    OK(rt.cudaGetTextureObjectTextureDesc(&found_how, texture));
    cr_assert(memcmp(&found_how, &how, sizeof how) == 0);
    cr_assert(rt.cudaGetTextureObjectResourceViewDesc(&(cudaResourceViewDesc){0}, texture) !=
              cudaSuccess);
    OK(rt.cudaDestroyTextureObject(texture));
    IS(rt.cudaDestroyTextureObject(texture), cudaErrorInvalidValue);

    OK(rt.cudaMalloc(&row, 4096));
    of = (cudaResourceDesc){.resType = CU_RESOURCE_TYPE_PITCH2D};
    of.res.pitch2D.devPtr = row;
    of.res.pitch2D.desc = floats;
    of.res.pitch2D.width = 5;
    of.res.pitch2D.height = 6;
    of.res.pitch2D.pitchInBytes = 64;
    OK(rt.cudaCreateTextureObject(&texture, &of, &(cudaTextureDesc){.readMode = 0}, NULL));
    OK(rt.cudaGetTextureObjectResourceDesc(&found, texture));
    cr_assert(memcmp(&found.res.pitch2D, &of.res.pitch2D, sizeof of.res.pitch2D) == 0);
    of = (cudaResourceDesc){.resType = CU_RESOURCE_TYPE_LINEAR};
    of.res.linear.devPtr = row;
    of.res.linear.desc = pairs;
    of.res.linear.sizeInBytes = 256;
    OK(rt.cudaCreateTextureObject(&texture, &of, &(cudaTextureDesc){.readMode = 0}, NULL));
    OK(rt.cudaGetTextureObjectResourceDesc(&found, texture));
    cr_assert(memcmp(&found.res.linear, &of.res.linear, sizeof of.res.linear) == 0);
    of.flags = 1;
    IS(rt.cudaCreateTextureObject(&texture, &of, &how, NULL), cudaErrorInvalidValue);
    of.flags = 0;
    of.resType = 9;
    IS(rt.cudaCreateTextureObject(&texture, &of, &how, NULL), cudaErrorInvalidValue);
    of.resType = CU_RESOURCE_TYPE_LINEAR;
    IS(rt.cudaCreateTextureObject(&texture, &of, &(cudaTextureDesc){.readMode = 2}, NULL),
       cudaErrorInvalidValue);
}

/* Recorded on an H200: 8, 16 and 32 bits, each address mode. */
Test(cudart_array, integers_that_stay_integers_have_no_linear_filter) {
    const cudaTextureDesc how = {.filterMode = CU_TR_FILTER_MODE_LINEAR,
                                 .readMode = cudaReadModeElementType};
    cudaResourceDesc of = {.resType = CU_RESOURCE_TYPE_ARRAY};
    cudaTextureObject_t texture = 0;
    for (int bits = 8; bits <= 32; bits *= 2) {
        for (int is_signed = 0; is_signed <= 1; is_signed++) {
            const cudaChannelFormatDesc integers = {.x = bits,
                                                    .f = is_signed ? cudaChannelFormatKindSigned
                                                                   : cudaChannelFormatKindUnsigned};
            of.res.array.array = array_of(&integers, 8, 8);
            IS(rt.cudaCreateTextureObject(&texture, &of, &how, NULL),
               cudaErrorInvalidFilterSetting);
        }
    }
    of.res.array.array = array_of(&floats, 8, 8);
    OK(rt.cudaCreateTextureObject(&texture, &of, &how, NULL));
    of = (cudaResourceDesc){.resType = CU_RESOURCE_TYPE_PITCH2D};
    OK(rt.cudaMalloc(&of.res.pitch2D.devPtr, 4096));
    of.res.pitch2D.desc = pairs;
    of.res.pitch2D.width = of.res.pitch2D.height = 4;
    of.res.pitch2D.pitchInBytes = 64;
    IS(rt.cudaCreateTextureObject(&texture, &of, &how, NULL), cudaErrorInvalidFilterSetting);
}

Test(cudart_array, the_older_runtime_leaves_what_its_structure_lacks) {
    /* CUDA 12's structure: a number, and the largest of its variants, 64 bytes in all. */
    enum { OLD_BYTES = 64 };
    void *old = test_cudart_open("libcudart.so.12");
    union {
        void *pointer;
        cudaError_t (*function)(cudaResourceDesc *, cudaSurfaceObject_t);
    } get = {.pointer = test_cudart_find(old, "cudaGetSurfaceObjectResourceDesc")};
    union {
        void *pointer;
        cudaError_t (*function)(cudaSurfaceObject_t *, const cudaResourceDesc *);
    } create = {.pointer = test_cudart_find(old, "cudaCreateSurfaceObject")};
    union {
        cudaResourceDesc desc;
        unsigned char bytes[sizeof(cudaResourceDesc)];
    } of, found;
    cudaSurfaceObject_t surface = 0;
    cudaArray_t array = NULL;
    OK(rt.cudaMallocArray(&array, &floats, 8, 8, CUDA_ARRAY3D_SURFACE_LDST));
    memset(&of, 0xff, sizeof of);
    memset(&found, 0xee, sizeof found);
    of.desc.resType = CU_RESOURCE_TYPE_ARRAY;
    of.desc.res.array.array = array;
    OK(create.function(&surface, &of.desc));
    OK(get.function(&found.desc, surface));
    cr_assert(found.desc.res.array.array == array && found.bytes[OLD_BYTES - 1] == 0);
    for (size_t i = OLD_BYTES; i < sizeof found; i++) cr_assert(found.bytes[i] == 0xee);
    IS(rt.cudaCreateSurfaceObject(&surface, &of.desc), cudaErrorInvalidValue);
    of.desc.flags = 0;
    OK(rt.cudaCreateSurfaceObject(&surface, &of.desc));
    OK(rt.cudaDestroySurfaceObject(surface));
}

Test(cudart_array, linear_textures_have_a_width) {
    size_t width = 0;
    OK(rt.cudaDeviceGetTexture1DLinearMaxWidth(&width, &floats, 0));
    cr_assert(width == 1 << 28);
    IS(rt.cudaDeviceGetTexture1DLinearMaxWidth(&width, &floats, 9), cudaErrorInvalidDevice);
}

Test(cudart_array, mipmapped_arrays_have_levels) {
    cudaMipmappedArray_t mipmap = NULL;
    cudaArray_t level = NULL;
    cudaExtent extent;
    cudaArrayMemoryRequirements requirements;
    cudaArraySparseProperties sparse;
    OK(rt.cudaMallocMipmappedArray(&mipmap, &pairs, (cudaExtent){16, 8, 0}, 3, 0));
    OK(rt.cudaGetMipmappedArrayLevel(&level, mipmap, 2));
    OK(rt.cudaArrayGetInfo(NULL, &extent, NULL, level));
    cr_assert(extent.width == 4 && extent.height == 2 && extent.depth == 0);
    IS(rt.cudaGetMipmappedArrayLevel(&level, mipmap, 3), cudaErrorInvalidValue);
    IS(rt.cudaMallocMipmappedArray(NULL, &pairs, extent, 1, 0), cudaErrorInvalidValue);
    IS(rt.cudaMallocMipmappedArray(&mipmap, NULL, extent, 1, 0), cudaErrorInvalidValue);
    IS(rt.cudaMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0), cudaErrorInvalidValue);
    IS(rt.cudaMipmappedArrayGetSparseProperties(&sparse, mipmap), cudaErrorInvalidValue);

    cudaResourceDesc resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureDesc description = {.readMode = 0, .normalizedCoords = 1};
    cudaTextureObject_t texture = 0;
    OK(rt.cudaCreateTextureObject(&texture, &resource, &description, NULL));
    OK(rt.cudaDestroyTextureObject(texture));
    OK(rt.cudaFreeMipmappedArray(mipmap));
    OK(rt.cudaFreeMipmappedArray(NULL));
    IS(rt.cudaFreeMipmappedArray(mipmap), cudaErrorInvalidResourceHandle);
}
