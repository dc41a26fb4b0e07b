/*
 * Copies and fills: rows, layers, valid and invalid overlaps.
 */
#include "test/test_api.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

static CUdeviceptr filled(unsigned char value) {
    CUdeviceptr pointer = 0;
    OK(cuMemAlloc_v2(&pointer, BYTES));
    OK(cuMemsetD8_v2(pointer, value, BYTES));
    OK(cuStreamSynchronize(NULL)); /* filling waits for nobody */
    return pointer;
}

static void pull(CUdeviceptr pointer, unsigned char bytes[BYTES]) {
    OK(cuMemcpyDtoH_v2(bytes, pointer, BYTES));
}

Test(api_copy, every_way_carries_the_bytes) {
    unsigned char sent[BYTES], back[BYTES], *pinned = NULL;
    CUcontext context = api_context(0);
    CUdeviceptr one = filled(0), other = filled(0);
    CUstream stream = NULL;
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    for (int i = 0; i < BYTES; i++) sent[i] = (unsigned char)(i * 31 + i / 256);
    CUdeviceptr host_sent = (CUdeviceptr)(uintptr_t)sent, host_back = (CUdeviceptr)(uintptr_t)back;
    CUdeviceptr host_pinned = (CUdeviceptr)(uintptr_t)pinned;
    for (int way = 0; way < 8; way++) {
        OK(cuMemsetD8_v2(one, 0, BYTES));
        OK(cuMemsetD8_v2(other, 0, BYTES));
        memset(back, 0, BYTES);
        switch (way) {
        case 0:
            OK(cuMemcpyHtoD_v2(one, sent, BYTES));
            OK(cuMemcpyDtoD_v2(other, one, BYTES));
            OK(cuMemcpyDtoH_v2(back, other, BYTES));
            break;
        case 1:
            OK(cuMemcpyHtoDAsync_v2(one, sent, BYTES, stream));
            OK(cuMemcpyDtoDAsync_v2(other, one, BYTES, stream));
            OK(cuMemcpyDtoHAsync_v2(back, other, BYTES, stream));
            break;
        case 2:
            OK(cuMemcpy(one, host_sent, BYTES));
            OK(cuMemcpy(other, one, BYTES));
            OK(cuMemcpy(host_back, other, BYTES));
            break;
        case 3:
            OK(cuMemcpyAsync(one, host_sent, BYTES, stream));
            OK(cuMemcpyAsync(other, one, BYTES, stream));
            OK(cuMemcpyAsync(host_back, other, BYTES, stream));
            break;
        case 4:
            OK(cuMemcpyHtoD_v2(one, sent, BYTES));
            OK(cuMemcpyPeer(other, context, one, context, BYTES));
            OK(cuMemcpyDtoH_v2(back, other, BYTES));
            break;
        case 5:
            memcpy(pinned, sent, BYTES);
            OK(cuMemcpyHtoDAsync_v2(one, pinned, BYTES, stream));
            OK(cuMemcpyPeerAsync(other, context, one, context, BYTES, stream));
            OK(cuStreamSynchronize(stream));
            memset(pinned, 0, BYTES);
            OK(cuMemcpyDtoHAsync_v2(pinned, other, BYTES, stream));
            OK(cuStreamSynchronize(stream));
            memcpy(back, pinned, BYTES);
            break;
        case 6: /* pinned memory under its device address */
            memcpy(pinned, sent, BYTES);
            OK(cuMemcpyDtoD_v2(one, host_pinned, BYTES));
            OK(cuMemcpy(host_back, one, BYTES));
            break;
        default: /* both ends are the host's */
            OK(cuMemcpy(host_back, host_sent, BYTES));
            break;
        }
        cr_assert(memcmp(sent, back, BYTES) == 0, "way %d", way);
    }
}

Test(api_copy, a_pageable_source_may_change_at_once) {
    unsigned char sent[BYTES], back[BYTES];
    CUdeviceptr flag_address = 0;
    api_context(0);
    volatile unsigned *flag = api_flag(&flag_address);
    CUdeviceptr pointer = filled(0);
    CUstream stream = NULL;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    memset(sent, 1, BYTES);
    OK(cuMemcpyHtoDAsync_v2(pointer, sent, BYTES, stream));
    memset(sent, 2, BYTES);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    pull(pointer, back);
    cr_assert(back[0] == 1 && back[BYTES - 1] == 1);
}

Test(api_copy, ranges_are_checked) {
    unsigned char host[BYTES] = {0};
    CUcontext context = api_context(0);
    CUdeviceptr pointer = filled(0), freed = filled(0);
    OK(cuMemFree_v2(freed));
    OK(cuMemcpyHtoD_v2(pointer, host, 0));
    OK(cuMemcpyHtoD_v2(0, NULL, 0));
    REFUSED(cuMemcpyHtoD_v2(pointer, NULL, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyDtoH_v2(NULL, pointer, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoD_v2(0, host, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoD_v2(pointer, host, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoD_v2(pointer + 1, host, BYTES), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoD_v2(pointer - 1, host, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyHtoD_v2(freed, host, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyDtoH_v2(host, freed, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyDtoH_v2(host, pointer, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyDtoD_v2(pointer, freed, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpy(freed, pointer, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpyPeer(pointer, NULL, pointer, context, 4), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemcpyPeer(pointer, context, pointer, (CUcontext)(uintptr_t)64, 4),
            CUDA_ERROR_INVALID_CONTEXT);
    /* A device's address where the host's is wanted is taken for what it is. */
    OK(cuMemcpyDtoH_v2((void *)(uintptr_t)pointer, pointer + 8, 8));
    REFUSED(cuMemcpyDtoH_v2((void *)(uintptr_t)freed, pointer, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

Test(api_copy, freed_while_it_waits_fails_the_context) {
    CUdeviceptr flag_address = 0;
    CUcontext one = api_context(0), other = NULL;
    volatile unsigned *flag = api_flag(&flag_address);
    CUdeviceptr pointer = filled(0);
    CUstream stream = NULL;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    api_hold(flag_address, stream);
    OK(cuMemsetD8Async(pointer, 1, BYTES, stream));
    OK(cuCtxSetCurrent(one));
    (void)one;
    /* Resetting the primary context frees its memory and waits for nobody else's work. */
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuCtxSetCurrent(other));
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    (void)flag;
}

/* ---- rows and layers ---- */

/* A plain loop over bytes is the reference. */
static void copy_by_hand(unsigned char *to, const unsigned char *from, const CUDA_MEMCPY3D *copy) {
    for (size_t z = 0; z < copy->Depth; z++) {
        for (size_t y = 0; y < copy->Height; y++) {
            for (size_t x = 0; x < copy->WidthInBytes; x++) {
                to[((copy->dstZ + z) * copy->dstHeight + copy->dstY + y) * copy->dstPitch +
                   copy->dstXInBytes + x] =
                    from[((copy->srcZ + z) * copy->srcHeight + copy->srcY + y) * copy->srcPitch +
                         copy->srcXInBytes + x];
            }
        }
    }
}

static const CUDA_MEMCPY3D shape = {.srcXInBytes = 3,
                                    .srcY = 1,
                                    .srcZ = 1,
                                    .srcPitch = 20,
                                    .srcHeight = 9,
                                    .dstXInBytes = 5,
                                    .dstY = 2,
                                    .dstZ = 0,
                                    .dstPitch = 32,
                                    .dstHeight = 10,
                                    .WidthInBytes = 13,
                                    .Height = 7,
                                    .Depth = 4};

Test(api_copy, layers_of_rows_go_where_they_should) {
    unsigned char source[BYTES], expected[BYTES], back[BYTES];
    api_context(0);
    for (int i = 0; i < BYTES; i++) source[i] = (unsigned char)(i * 7 + 1);
    memset(expected, 0xee, BYTES);
    copy_by_hand(expected, source, &shape);
    CUdeviceptr from = filled(0);
    OK(cuMemcpyHtoD_v2(from, source, BYTES));
    /* host or device, said or left to be found out, at either end */
    for (int way = 0; way < 16; way++) {
        CUDA_MEMCPY3D copy = shape;
        CUdeviceptr to = filled(0xee);
        memset(back, 0xee, BYTES);
        bool unified_from = way & 1, unified_to = way & 2, host_from = way & 4, host_to = way & 8;
        CUdeviceptr at_host_from = (CUdeviceptr)(uintptr_t)source;
        CUdeviceptr at_host_to = (CUdeviceptr)(uintptr_t)back;
        copy.srcMemoryType = unified_from ? CU_MEMORYTYPE_UNIFIED
                             : host_from  ? CU_MEMORYTYPE_HOST
                                          : CU_MEMORYTYPE_DEVICE;
        copy.srcHost = unified_from ? NULL : source;
        copy.srcDevice = host_from ? at_host_from : from;
        copy.dstMemoryType = unified_to ? CU_MEMORYTYPE_UNIFIED
                             : host_to  ? CU_MEMORYTYPE_HOST
                                        : CU_MEMORYTYPE_DEVICE;
        copy.dstHost = unified_to ? NULL : back;
        copy.dstDevice = host_to ? at_host_to : to;
        if (way % 3 == 0) {
            OK(cuMemcpy3DAsync_v2(&copy, NULL));
            OK(cuCtxSynchronize());
        } else {
            OK(cuMemcpy3D_v2(&copy));
        }
        if (!host_to) pull(to, back);
        cr_assert(memcmp(back, expected, BYTES) == 0, "way %d", way);
        OK(cuMemFree_v2(to));
    }
}

Test(api_copy, rows_go_where_they_should) {
    unsigned char source[BYTES], expected[BYTES], back[BYTES];
    api_context(0);
    for (int i = 0; i < BYTES; i++) source[i] = (unsigned char)(i * 11 + 5);
    CUDA_MEMCPY3D flat = shape;
    flat.srcZ = 0;
    flat.Depth = 1;
    memset(expected, 0xee, BYTES);
    copy_by_hand(expected, source, &flat);
    CUDA_MEMCPY2D copy = {.srcXInBytes = 3,
                          .srcY = 1,
                          .srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = source,
                          .srcPitch = 20,
                          .dstXInBytes = 5,
                          .dstY = 2,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstPitch = 32,
                          .WidthInBytes = 13,
                          .Height = 7};
    for (int way = 0; way < 3; way++) {
        copy.dstDevice = filled(0xee);
        if (way == 0) OK(cuMemcpy2D_v2(&copy));
        if (way == 1) OK(cuMemcpy2DUnaligned_v2(&copy));
        if (way == 2) OK(cuMemcpy2DAsync_v2(&copy, NULL));
        pull(copy.dstDevice, back);
        cr_assert(memcmp(back, expected, BYTES) == 0, "way %d", way);
    }
}

Test(api_copy, peers_may_be_named_in_layers) {
    unsigned char source[BYTES] = {1, 2, 3}, back[BYTES];
    CUcontext context = api_context(0);
    CUdeviceptr to = filled(0);
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = source,
                               .srcContext = context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = to,
                               .dstContext = context,
                               .WidthInBytes = 3,
                               .Height = 1,
                               .Depth = 1};
    OK(cuMemcpy3DPeer(&copy));
    OK(cuMemcpy3DPeerAsync(&copy, NULL));
    pull(to, back);
    cr_assert(back[0] == 1 && back[2] == 3 && back[3] == 0);
    copy.dstContext = (CUcontext)(uintptr_t)128;
    REFUSED(cuMemcpy3DPeer(&copy), CUDA_ERROR_INVALID_CONTEXT);
    REFUSED(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSetCurrent(NULL)); /* that comes first */
    REFUSED(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

/* Each row of the table spoils one field of a good call. */
Test(api_copy, shapes_that_make_no_sense_are_refused) {
    unsigned char host[BYTES] = {0};
    api_context(0);
    CUdeviceptr pointer = filled(0);
    CUDA_MEMCPY3D good = shape;
    good.srcMemoryType = CU_MEMORYTYPE_HOST;
    good.srcHost = host;
    good.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    good.dstDevice = pointer;
    OK(cuMemcpy3D_v2(&good));
#define SPOILED(field, value)                                                                      \
    do {                                                                                           \
        CUDA_MEMCPY3D bad = good;                                                                  \
        bad.field = (value);                                                                       \
        REFUSED(cuMemcpy3D_v2(&bad), CUDA_ERROR_INVALID_VALUE);                                    \
    } while (0)
    SPOILED(srcMemoryType, 0);
    SPOILED(srcMemoryType, 5);
    SPOILED(dstMemoryType, CU_MEMORYTYPE_ARRAY);
    SPOILED(srcHost, NULL);
    SPOILED(dstDevice, 0);
    SPOILED(srcPitch, 15); /* less than x and width */
    SPOILED(dstPitch, 17);
    SPOILED(srcPitch, 0);  /* needed, and not given */
    SPOILED(srcHeight, 7); /* less than y and height */
    SPOILED(dstHeight, 8);
    SPOILED(dstHeight, 0);
    SPOILED(srcPitch, 1ull << 31); /* more than the most */
    SPOILED(srcLOD, 1);
    SPOILED(dstLOD, 1);
    SPOILED(srcXInBytes, SIZE_MAX);
    SPOILED(dstXInBytes, SIZE_MAX - 5);
    SPOILED(srcY, SIZE_MAX);
    SPOILED(srcZ, SIZE_MAX / 2);
    SPOILED(WidthInBytes, SIZE_MAX);
    SPOILED(Height, SIZE_MAX);
    SPOILED(Depth, SIZE_MAX);
    SPOILED(dstZ, 9); /* outside the allocation */
    SPOILED(Depth, 13);
#undef SPOILED
    REFUSED(cuMemcpy3D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemcpy2DAsync_v2(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    good.Height = 0;
    OK(cuMemcpy3D_v2(&good));
}

Test(api_copy, one_row_needs_no_pitch) {
    unsigned char host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[BYTES];
    api_context(0);
    CUdeviceptr pointer = filled(0);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcXInBytes = 2,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = pointer,
                          .WidthInBytes = 4,
                          .Height = 1};
    OK(cuMemcpy2D_v2(&copy));
    pull(pointer, back);
    cr_assert(memcmp(back, host + 2, 4) == 0 && back[4] == 0);
}

/* ---- fills ---- */

Test(api_copy, fills_write_elements_and_nothing_beside_them) {
    unsigned char back[BYTES], expected[BYTES];
    api_context(0);
    for (int bytes = 1; bytes <= 4; bytes *= 2) {
        for (int async = 0; async < 2; async++) {
            CUdeviceptr pointer = filled(0xee);
            unsigned value = 0x01020304;
            memset(expected, 0xee, BYTES);
            for (int i = 0; i < 10; i++) memcpy(expected + 8 + i * bytes, &value, (size_t)bytes);
            if (bytes == 1 && !async) OK(cuMemsetD8_v2(pointer + 8, 4, 10));
            if (bytes == 2 && !async) OK(cuMemsetD16_v2(pointer + 8, 0x0304, 10));
            if (bytes == 4 && !async) OK(cuMemsetD32_v2(pointer + 8, value, 10));
            if (bytes == 1 && async) OK(cuMemsetD8Async(pointer + 8, 4, 10, NULL));
            if (bytes == 2 && async) OK(cuMemsetD16Async(pointer + 8, 0x0304, 10, NULL));
            if (bytes == 4 && async) OK(cuMemsetD32Async(pointer + 8, value, 10, NULL));
            pull(pointer, back);
            cr_assert(memcmp(back, expected, BYTES) == 0, "%d bytes, async %d", bytes, async);
        }
    }
}

Test(api_copy, fills_of_rows_leave_what_is_between_them) {
    unsigned char back[BYTES], expected[BYTES];
    api_context(0);
    for (int bytes = 1; bytes <= 4; bytes *= 2) {
        for (int async = 0; async < 2; async++) {
            CUdeviceptr pointer = filled(0xee);
            unsigned value = 0x01020304;
            memset(expected, 0xee, BYTES);
            for (int y = 0; y < 6; y++) {
                for (int x = 0; x < 5; x++) {
                    memcpy(expected + y * 40 + x * bytes, &value, (size_t)bytes);
                }
            }
            if (bytes == 1 && !async) OK(cuMemsetD2D8_v2(pointer, 40, 4, 5, 6));
            if (bytes == 2 && !async) OK(cuMemsetD2D16_v2(pointer, 40, 0x0304, 5, 6));
            if (bytes == 4 && !async) OK(cuMemsetD2D32_v2(pointer, 40, value, 5, 6));
            if (bytes == 1 && async) OK(cuMemsetD2D8Async(pointer, 40, 4, 5, 6, NULL));
            if (bytes == 2 && async) OK(cuMemsetD2D16Async(pointer, 40, 0x0304, 5, 6, NULL));
            if (bytes == 4 && async) OK(cuMemsetD2D32Async(pointer, 40, value, 5, 6, NULL));
            pull(pointer, back);
            cr_assert(memcmp(back, expected, BYTES) == 0, "%d bytes, async %d", bytes, async);
        }
    }
}

Test(api_copy, fills_are_checked) {
    api_context(0);
    CUdeviceptr pointer = filled(0);
    OK(cuMemsetD8_v2(pointer, 1, 0));
    OK(cuMemsetD2D8_v2(pointer, 0, 1, 4, 1)); /* the pitch of one row does not matter */
    REFUSED(cuMemsetD8_v2(0, 1, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD8_v2(pointer, 1, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD16_v2(pointer + 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD32_v2(pointer + 2, 1, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD32_v2(pointer, 1, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD32_v2(pointer, 1, SIZE_MAX / 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD2D8_v2(pointer, 4, 1, 5, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD2D32_v2(pointer, 42, 1, 5, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD2D8_v2(pointer, 40, 1, 5, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemsetD2D8_v2(pointer, 2048, 1, 5, 3), CUDA_ERROR_INVALID_VALUE);
}
