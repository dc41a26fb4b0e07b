/*
 * A tensor, and boxes of it.
 */
#include "test_tensor.h"

CUdeviceptr test_tensor_of(uint32_t *host) {
    CUdeviceptr tensor = 0;
    for (uint32_t i = 0; i < TEST_ROWS * TEST_COLUMNS; i++) host[i] = i + 1;
    cr_assert_eq(cuMemAlloc_v2(&tensor, TEST_ROWS * TEST_COLUMNS * 4), CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(tensor, host, TEST_ROWS * TEST_COLUMNS * 4), CUDA_SUCCESS);
    return tensor;
}

CUresult test_encode_box(CUtensorMap *map, CUdeviceptr tensor, cuuint32_t box_columns, int swizzle,
                         int fill) {
    cuuint64_t sizes[2] = {TEST_COLUMNS, TEST_ROWS}, strides[1] = {TEST_COLUMNS * 4};
    cuuint32_t box[2] = {box_columns, TEST_BOX_ROWS}, steps[2] = {1, 1};
    return cuTensorMapEncodeTiled(map, 7, 2, (void *)(uintptr_t)tensor, sizes, strides, box, steps,
                                  0, swizzle, 0, fill);
}

void test_check_box(const struct test_box *data, int x, int y, unsigned swizzle, uint32_t outside) {
    for (int row = 0; row < TEST_BOX_ROWS; row++) {
        for (int column = 0; column < TEST_BOX_COLUMNS; column++) {
            int r = y + row, c = x + column;
            bool inside = r >= 0 && r < TEST_ROWS && c >= 0 && c < TEST_COLUMNS;
            uint32_t wanted = inside ? (uint32_t)(r * TEST_COLUMNS + c) + 1 : outside;
            unsigned byte = (unsigned)(row * TEST_BOX_COLUMNS + column) * 4;
            /* The bits of the 128-byte line go into those of the 16-byte chunk. */
            byte ^= (byte / 128 % (swizzle / 16)) * 16;
            cr_assert_eq(data->words[byte / 4], wanted, "%d, %d: %u, not %u", row, column,
                         data->words[byte / 4], wanted);
        }
    }
}
