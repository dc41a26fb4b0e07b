/*
 * Streams that wait for values in memory and write them.
 */
#include "test/test_api.h"

#include <string.h>
#include <unistd.h>

static CUstream stream;
static CUdeviceptr address;
static volatile uint64_t *word;

static void set_scene(void) {
    void *host = NULL;
    api_context(0);
    OK(cuMemHostAlloc(&host, 64, 0));
    OK(cuMemHostGetDevicePointer_v2(&address, host, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    word = host;
}

Test(api_value, bad_arguments_are_refused) {
    set_scene();
    REFUSED(cuStreamWaitValue32_v2(stream, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitValue32_v2(stream, address + 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitValue64_v2(stream, address + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitValue32_v2(stream, address, 1, 4), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitValue32_v2(stream, address, 1, (unsigned)CU_STREAM_WAIT_VALUE_FLUSH),
            CUDA_ERROR_NOT_SUPPORTED);
    REFUSED(cuStreamWriteValue32_v2(stream, address + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWriteValue64_v2(stream, address + 60, 1, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWriteValue32_v2(stream, address, 1, 2), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamWaitValue32_v2((CUstream)(uintptr_t)0x40, address, 1, 0),
            CUDA_ERROR_INVALID_HANDLE);
}

/* Each row: a wait for value lets a stream go on at go, and not at stay. */
static const struct {
    unsigned flags;
    uint64_t value, stay, go;
} rows[] = {
    {0 /* GEQ */, 5, 4, 5},
    {0, 5, 4, 6},
    {0, 5, 0x80000005, 0x7fffffff}, /* cyclic: half the circle is ahead */
    {1 /* EQ */, 5, 6, 5},
    {2 /* AND */, 6, 9, 4},
    {3 /* NOR */, 0xfffffff0, 0x0000000f, 0x00000001},
};

static void check_rows(bool wide) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value = rows[i].value, stay = rows[i].stay, go = rows[i].go;
        if (wide && (value > 6 || stay > 9)) { /* the same at the upper end */
            value = value << 32 | (value > 6 && rows[i].flags == 3 ? UINT32_MAX : 0);
            stay <<= 32;
            go <<= 32;
        }
        *word = stay;
        if (wide) OK(cuStreamWaitValue64_v2(stream, address, value, rows[i].flags));
        if (!wide) OK(cuStreamWaitValue32_v2(stream, address, (uint32_t)value, rows[i].flags));
        REFUSED(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        *word = go;
        OK(cuStreamSynchronize(stream));
    }
}

Test(api_value, a_stream_waits_until_the_condition_holds) {
    set_scene();
    check_rows(false);
    check_rows(true);
}

Test(api_value, values_are_written_in_order_and_beside_nothing) {
    set_scene();
    memset((void *)(uintptr_t)word, 0xee, 64);
    OK(cuStreamWriteValue32_v2(stream, address + 4, 1, 0));
    OK(cuStreamWriteValue32_v2(stream, address + 4, 2, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    OK(cuStreamWriteValue64_v2(stream, address + 16, 0x1122334455667788, 0));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(word[0], 0x00000002eeeeeeee);
    cr_assert_eq(word[1], 0xeeeeeeeeeeeeeeee);
    cr_assert_eq(word[2], 0x1122334455667788);
    cr_assert_eq(word[3], 0xeeeeeeeeeeeeeeee);
}

/* The program only writes memory; the device must look by itself. */
Test(api_value, a_value_is_noticed_without_a_call) {
    set_scene();
    *word = 0;
    OK(cuStreamWaitValue64_v2(stream, address, 1, 0));
    OK(cuStreamWriteValue64_v2(stream, address + 8, 7, 0));
    usleep(100 * 1000); /* longer than a helper looks after work that does not move */
    word[1] = 0;
    word[0] = 1;
    for (int i = 0; i < 5000 && word[1] == 0; i++) usleep(1000);
    cr_assert_eq(word[1], 7);
}

Test(api_value, streams_hand_values_to_each_other) {
    CUstream other = NULL;
    set_scene();
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    *word = 0;
    OK(cuStreamWaitValue32_v2(stream, address, 2, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32_v2(stream, address + 8, 3, 0));
    OK(cuStreamWriteValue32_v2(other, address, 2, 0));
    OK(cuStreamWaitValue32_v2(other, address + 8, 3, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamSynchronize(other));
    OK(cuStreamSynchronize(stream));
}

Test(api_value, a_batch_does_its_items_in_order) {
    set_scene();
    CUstreamBatchMemOpParams items[4];
    memset(items, 0, sizeof items);
    items[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    items[0].writeValue.address = address + 8;
    items[0].writeValue.value = 1;
    items[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    items[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    items[2].waitValue.address = address;
    items[2].waitValue.value64 = 9;
    items[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    items[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    items[3].writeValue.address = address + 16;
    items[3].writeValue.value64 = 2;
    *word = 0;
    word[1] = word[2] = 0;
    OK(cuStreamBatchMemOp_v2(stream, 4, items, 0));
    memset(items, 0xff, sizeof items); /* they were copied */
    REFUSED(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    cr_assert(word[1] == 1 && word[2] == 0);
    *word = 9;
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(word[2], 2);
    REFUSED(cuStreamBatchMemOp_v2(stream, 4, items, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamBatchMemOp_v2(stream, 0, items, 0));
    OK(cuStreamBatchMemOp_v2(stream, 0, NULL, 0));
    REFUSED(cuStreamBatchMemOp_v2(stream, 0, items, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamBatchMemOp_v2(stream, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuStreamBatchMemOp_v2(stream, 257, items, 0), CUDA_ERROR_INVALID_VALUE);
}
