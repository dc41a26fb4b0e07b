/*
 * Shared by the tests of tensor copies: a tensor of words numbered from 1, and a box of it.
 */
#ifndef SOFT_TEST_TENSOR_H
#define SOFT_TEST_TENSOR_H

#include "test_soft.h"

enum {
    TEST_ROWS = 40,
    TEST_COLUMNS = 48,
    TEST_BOX_ROWS = 16,
    TEST_BOX_COLUMNS = 32,
    TEST_BOX_WORDS = TEST_BOX_ROWS * TEST_BOX_COLUMNS
};

/* Before the kernel's own words: the map, whose bytes the kernel reads in global memory. */
struct test_box {
    CUtensorMap map;
    uint32_t words[TEST_BOX_WORDS];
};

/* Fills host, of TEST_ROWS times TEST_COLUMNS words, and copies it to the device. */
CUdeviceptr test_tensor_of(uint32_t *host);

/* A map of that tensor as floating point numbers, for boxes of TEST_BOX_ROWS rows. */
CUresult test_encode_box(CUtensorMap *map, CUdeviceptr tensor, cuuint32_t box_columns, int swizzle,
                         int fill);

/* Requires the box that begins at column x and row y; swizzle in bytes. */
void test_check_box(const struct test_box *data, int x, int y, unsigned swizzle, uint32_t outside);

#endif
